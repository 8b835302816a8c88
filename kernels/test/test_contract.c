/* Tests how the functions of mla.h handle bad arguments, compares the dataflow operations with
 * formats.h, and tests the figures of ceilings.h. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/backend.h"
#include "kernels/ceilings.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/machine.h"
#include "kernels/formats.h"
#include "kernels/test/fixture.h"

static fixture_spec small_spec(mla_precision p) {
    return (fixture_spec){
        .isa = "auto", .precision = p, .heads = 4, .batch = 2, .length = {100, 30}, .id = {0, 1}};
}

static void test_backends(void) {
    mla_backend *be;
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_backend_open(&be, "tpu", NULL, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_EQUAL(strstr(err.text, "unknown backend 'tpu'; this build has: cpu"), err.text);
    CU_ASSERT_PTR_NULL(be);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.isa = "sse"}, &err),
                    SNAP_E_USAGE);
    CU_ASSERT_EQUAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = -1}, NULL),
                    SNAP_E_USAGE);
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", NULL, NULL), SNAP_OK);
    mla_backend_info info;
    mla_backend_describe(be, &info);
    CU_ASSERT_STRING_EQUAL(info.name, "cpu");
    CU_ASSERT(info.host_memory && info.memory_bytes > 0 && info.kernel[0] && info.device[0]);
    void *p = mla_alloc(be, 1000, NULL);
    CU_ASSERT_EQUAL((uintptr_t)p % MLA_ALIGN, 0);
    mla_free(be, p);
    CU_ASSERT_PTR_NULL(mla_alloc(be, SIZE_MAX / 2, NULL));
    mla_backend_close(be);
    mla_backend_close(NULL);
}

/* Bad sizes and null pointers do not reach the functions of the backend, which are null here. */
static void test_memory_arguments(void) {
    static const mla_backend_ops none;
    mla_backend be = {&none};
    char x[8] = "abc";
    static const size_t kBad[] = {0, SIZE_MAX, (size_t)PTRDIFF_MAX + 1};
    for (int i = 0; i < 3; i++) {
        snap_err err = {0};
        CU_ASSERT_PTR_NULL(mla_alloc(&be, kBad[i], &err));
        CU_ASSERT(err.code == SNAP_E_SHAPE && strstr(err.text, "must have 1.."));
    }
    mla_free(&be, NULL);
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_copy_in(&be, NULL, x, 1, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "device memory of a copy is null");
    CU_ASSERT_EQUAL(mla_copy_in(&be, x, NULL, 1, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_copy_in(&be, x, x, SIZE_MAX, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_copy_out(&be, NULL, x, 1, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_copy_out(&be, x, NULL, 1, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_copy_in(&be, NULL, NULL, 0, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_copy_out(&be, NULL, NULL, 0, NULL), SNAP_OK);
}

static void expect_capacity_error(mla_backend *be, mla_capacity cap, const char *text) {
    mla_plan *plan;
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_plan_create(&plan, be, &cap, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, text);
    CU_ASSERT_PTR_NULL(plan);
}

static void test_capacity(void) {
    mla_backend *be;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", NULL, NULL), SNAP_OK);
    mla_capacity ok = {.heads = 1, .d_c = 512, .d_r = 64, .batch = 1, .s_q = 1, .max_tokens = 1},
                 bad = ok;
    bad.heads = 129;
    expect_capacity_error(be, bad, "heads must be 1..128, got '129'");
    bad = ok;
    bad.d_c = 500;
    expect_capacity_error(be, bad, "d_c and d_r must be multiples of 32, got '500' and '64'");
    bad = ok;
    bad.s_q = 5;
    expect_capacity_error(be, bad, "s_q must be 1..4, got '5'");
    bad = ok;
    bad.batch = 0;
    expect_capacity_error(be, bad, "batch must be 1..4194303, got '0'");
    bad = ok;
    bad.max_tokens = (1 << 20) + 1;
    expect_capacity_error(be, bad, "max_tokens must be 1..1048576, got '1048577'");
    mla_backend_close(be);
}

static void test_run_arguments(void) {
    fixture f;
    fixture_make(&f, small_spec(MLA_FP8));
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &f.attn, &err),
                    SNAP_E_SHAPE); /* nothing is scheduled */
    CU_ASSERT_STRING_EQUAL(err.text,
                           "mla_run() was called with a step that is not the scheduled one");
    mla_step step = f.step;
    step.batch = 3;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &step, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "batch must be 1..2, got '3'");
    CU_ASSERT_EQUAL_FATAL(mla_schedule(f.plan, &f.step, NULL), SNAP_OK);
    mla_attn attn = f.attn;
    attn.q = (const char *)attn.q + 2;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &attn, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "q must be aligned to 256 bytes");
    attn = f.attn;
    attn.softmax_scale = NAN;
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &attn, NULL), SNAP_E_SHAPE);
    mla_cache cache = f.cache;
    cache.rope = NULL;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &cache, &f.attn, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "rope plane is null");
    mla_step narrow = f.step;
    narrow.table_width--;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_run(f.plan, &narrow, &f.cache, &f.attn, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "mla_run() was called with a step that is not the scheduled one");
    attn = f.attn;
    attn.lse = NULL;
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &attn, NULL), SNAP_OK);
    fixture_free(&f);
}

static snap_status fail(mla_plan *plan, const mla_step *step, snap_err *err) {
    (void)plan;
    (void)step;
    return err_set(err, SNAP_E_DEVICE, "no device");
}

/* mla_run() accepts only the step scheduled or prepared last, and none after the backend has failed
 * to schedule one. */
static void test_scheduled(void) {
    fixture f;
    fixture_make(&f, small_spec(MLA_FP8));
    const mla_backend_ops *ops = f.be->ops;
    mla_backend_ops failing = *ops;
    failing.schedule = fail;
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &f.step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &f.attn, NULL), SNAP_OK);
    f.be->ops = &failing;
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &f.step, NULL), SNAP_E_DEVICE);
    f.be->ops = ops;
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &f.attn, NULL), SNAP_E_SHAPE);
    uint16_t *kv = calloc((size_t)f.step.batch * (size_t)f.step.s_q * 2048, sizeof *kv);
    CU_ASSERT_PTR_NOT_NULL_FATAL(kv);
    mla_step wide = f.step;
    wide.table_width++;
    CU_ASSERT_EQUAL(mla_prepare(f.plan, &f.step, &f.cache, &(mla_fresh){.kv = kv}, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &wide, &f.cache, &f.attn, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &f.attn, NULL), SNAP_OK);
    free(kv);
    fixture_free(&f);
}

/* With bad device data, mla_check_step() reports an error, and a step without that check does not
 * read outside the pool. */
static void test_bad_device_data(void) {
    fixture f;
    fixture_make(&f, small_spec(MLA_FP8));
    int32_t lengths[2] = {100, 1 << 30}, table[6] = {0};
    mla_step step = f.step;
    step.seqlens = lengths;
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_check_step(f.plan, &step, &f.cache, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "length of sequence 1 must be 0..192, got '1073741824'");
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &step, &f.cache, &f.attn, NULL), SNAP_OK);
    lengths[1] = -5;
    CU_ASSERT_EQUAL(mla_check_step(f.plan, &step, &f.cache, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &step, &f.cache, &f.attn, NULL), SNAP_OK);
    lengths[1] = 30;
    table[1] = 1000;
    table[3] = -1;
    step.block_table = table;
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_check_step(f.plan, &step, &f.cache, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "page 1 of sequence 0 must be 0..4, got '1000'");
    CU_ASSERT_EQUAL(mla_schedule(f.plan, &step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &step, &f.cache, &f.attn, NULL), SNAP_OK);
    fixture_free(&f);
}

/* ---- dataflow ------------------------------------------------------------------------------- */

/* Rows of six kinds: normal, zero, subnormal, huge with some infinities, a wide range of exponents,
 * and random bits, some of which are NaN. */
static void odd_row(rng *r, int kind, uint16_t *row, int n) {
    for (int d = 0; d < n; d++) {
        double x = rng_normal(r);
        row[d] = kind == 0   ? bf16_from_f64(x)
                 : kind == 1 ? 0
                 : kind == 2 ? bf16_from_f64(x * 1e-39)
                 : kind == 3 ? bf16_from_f64(x * 1e38)
                 : kind == 4 ? bf16_from_f64(ldexp(x, (int)rng_below(r, 60) - 40))
                             : (uint16_t)rng_u32(r);
    }
}

static bool same_float(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_bf16(const uint16_t *a, const uint16_t *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i] && !((a[i] & 0x7fff) > 0x7f80 && (b[i] & 0x7fff) > 0x7f80))
            return false;
    return true;
}

static void test_rows_match_the_definition(void) {
    enum { kC = 160, kR = 32 };
    rng r = rng_make(21, 0);
    for (const cpu_isa *const *isa = machine_isas(); *isa; isa++)
        for (int i = 0; i < 300 && !(*isa)->lacks(); i++) {
            uint16_t row[kC + kR], rope[2][kR], back[2][kC + kR];
            uint8_t c8[2][kC];
            odd_row(&r, i % 6, row, kC + kR);
            mla_scale rule = i / 6 % 2 ? MLA_SCALE_POW2 : MLA_SCALE_MAX;
            float a = quant_row(row, kC, kR, rule, c8[0], rope[0]);
            CU_ASSERT(same_float((*isa)->quant(row, kC, kR, rule, c8[1], rope[1]), a));
            CU_ASSERT_EQUAL(memcmp(c8[0], c8[1], kC), 0);
            CU_ASSERT(same_bf16(rope[0], rope[1], kR));
            float other = i % 2 ? a : (float)ldexp(rng_uniform(&r), (int)rng_below(&r, 80) - 60);
            dequant_row(c8[0], rope[0], other, kC, kR, back[0]);
            (*isa)->dequant(c8[0], rope[0], other, kC, kR, back[1]);
            CU_ASSERT(same_bf16(back[0], back[1], kC + kR));
        }
}

static void test_quant_q(void) {
    fixture f;
    fixture_make(&f, small_spec(MLA_FP8));
    fixture bf16;
    fixture_make(&bf16, small_spec(MLA_BF16));
    char *q8 = mla_alloc(f.be, 8 * 512, NULL);
    uint16_t *rope = mla_alloc(f.be, 8 * 64 * 2, NULL);
    float *scale = mla_alloc(f.be, 8 * 4, NULL);
    CU_ASSERT_EQUAL(mla_quant_q(f.be, 8, 512, 64, bf16.attn.q, q8, rope, scale, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(q8, f.attn.q, 8 * 512), 0);
    CU_ASSERT_EQUAL(memcmp(rope, f.attn.q_rope, 8 * 64 * 2), 0);
    CU_ASSERT_EQUAL(memcmp(scale, f.attn.q_scale, 8 * 4), 0);
    mla_free(f.be, q8);
    mla_free(f.be, rope);
    mla_free(f.be, scale);
    fixture_free(&f);
    fixture_free(&bf16);
}

/* Appending to overwritten slots restores the content plane exactly and changes nothing else in
 * it. */
static void append_restores(mla_precision p) {
    enum { kSq = 3 };
    fixture_spec spec = small_spec(p);
    spec.s_q = kSq;
    spec.length[1] = 2; /* shorter than s_q: the first new row has no slot */
    fixture f;
    fixture_make(&f, spec);
    mla_page_bytes page = mla_cache_page_bytes(p, 512, 64);
    size_t bytes = page.content * (size_t)f.cache.pages;
    uint16_t *kv = mla_alloc(f.be, 2 * kSq * 576 * 2, NULL);
    void *want = malloc(bytes);
    CU_ASSERT_FATAL(kv && want);
    memcpy(want, f.cache.content, bytes);
    for (int b = 0; b < 2; b++)
        for (int s = 0; s < kSq; s++) {
            int64_t token = spec.length[b] - kSq + s;
            fixture_row(&f.spec, b, token < 0 ? 999 : token, kv + (b * kSq + s) * 576);
            if (token < 0)
                continue;
            int64_t slot =
                mla_slot(f.step.block_table + b * f.step.table_width, f.cache.pages, token);
            memset((char *)f.cache.content + (size_t)slot * page.content / MLA_PAGE, 0xee,
                   page.content / MLA_PAGE);
        }
    CU_ASSERT_EQUAL(mla_append_kv(f.plan, &f.step, &f.cache, kv, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(want, f.cache.content, bytes), 0);
    free(want);
    mla_free(f.be, kv);
    fixture_free(&f);
}

static void test_append(void) {
    append_restores(MLA_BF16);
    append_restores(MLA_FP8);
}

/* mla_prepare() quantises the queries as the fixture did, and the step then has the same result as
 * with the fixture's queries. A missing plane and queries for MLA_BF16 are refused. */
static void test_prepare(void) {
    fixture f, bf16;
    snap_err err = {0};
    fixture_make(&f, small_spec(MLA_FP8));
    fixture_make(&bf16, small_spec(MLA_BF16));
    enum { kRows = 8, kOut = kRows * 512 * 2 };
    char *q8 = mla_alloc(f.be, kRows * 512, NULL), *want = malloc(kOut);
    uint16_t *rope = mla_alloc(f.be, kRows * 64 * 2, NULL);
    float *scale = mla_alloc(f.be, kRows * 4, NULL);
    uint16_t *kv = mla_alloc(f.be, 2 * 576 * 2, NULL);
    CU_ASSERT_FATAL(q8 && want && rope && scale && kv);
    for (int b = 0; b < 2; b++)
        fixture_row(&f.spec, b, f.spec.length[b] - 1, kv + b * 576);
    CU_ASSERT_EQUAL_FATAL(mla_schedule(f.plan, &f.step, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &f.attn, NULL), SNAP_OK);
    memcpy(want, f.attn.out, kOut);
    memset(f.attn.out, 0xee, kOut);

    mla_fresh fresh = {.kv = kv, .q = bf16.attn.q, .q8 = q8, .q_rope = rope, .q_scale = scale};
    mla_attn attn = f.attn;
    attn.q = q8, attn.q_rope = rope, attn.q_scale = scale;
    CU_ASSERT_EQUAL(mla_prepare(f.plan, &f.step, &f.cache, &fresh, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(q8, f.attn.q, kRows * 512), 0);
    CU_ASSERT_EQUAL(mla_run(f.plan, &f.step, &f.cache, &attn, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(want, f.attn.out, kOut), 0);

    fresh.q8 = NULL;
    CU_ASSERT_EQUAL(mla_prepare(f.plan, &f.step, &f.cache, &fresh, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "q8 is null");
    fresh = (mla_fresh){.kv = kv, .q = bf16.attn.q};
    err = (snap_err){0};
    CU_ASSERT_EQUAL(mla_prepare(bf16.plan, &bf16.step, &bf16.cache, &fresh, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "queries are quantised for fp8 only");
    mla_free(f.be, q8);
    mla_free(f.be, rope);
    mla_free(f.be, scale);
    mla_free(f.be, kv);
    free(want);
    fixture_free(&f);
    fixture_free(&bf16);
}

static void fetch_returns(mla_precision p) {
    fixture f;
    fixture_make(&f, small_spec(p));
    uint16_t *kv = mla_alloc(f.be, 60 * 576 * 2, NULL), row[576], rope[64], back[576];
    uint8_t c8[512];
    CU_ASSERT_EQUAL(mla_fetch_kv(f.plan, &f.step, &f.cache, 0, 50, 60, kv, NULL), SNAP_OK);
    for (int i = 0; i < 60; i++) {
        fixture_row(&f.spec, 0, 50 + i, row);
        if (p == MLA_FP8) {
            float a = quant_row(row, 512, 64, MLA_SCALE_MAX, c8, rope);
            dequant_row(c8, rope, a, 512, 64, back);
            memcpy(row, back, sizeof row);
        }
        if (50 + i >= 100)
            memset(row, 0, sizeof row);
        CU_ASSERT_EQUAL(memcmp(row, kv + i * 576, sizeof row), 0);
    }
    snap_err err = {0};
    CU_ASSERT_EQUAL(mla_fetch_kv(f.plan, &f.step, &f.cache, 2, 0, 1, kv, &err), SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "seq must be 0..1, got '2'");
    mla_free(f.be, kv);
    fixture_free(&f);
}

static void test_fetch(void) {
    fetch_returns(MLA_BF16);
    fetch_returns(MLA_FP8);
}

/* ---- roofline ------------------------------------------------------------------------------- */

static void test_work(void) {
    CU_ASSERT_EQUAL(mla_cache_token_bytes(MLA_BF16, 512, 64), 1152);
    CU_ASSERT_EQUAL(mla_cache_token_bytes(MLA_FP8, 512, 64), 644);
    static const int32_t kLengths[] = {1000, 0, 1};
    mla_work w = mla_work_of(MLA_FP8, 16, 512, 64, 3, 2, kLengths);
    CU_ASSERT_EQUAL(w.flop, (999.0 + 1000 + 0 + 1) * 16 * 2176);
    CU_ASSERT_EQUAL(w.bytes, 1001 * 644.0 + 3 * 2 * 16 * (512 + 128 + 4 + 1024 + 4.0));
    mla_ceilings c = {.read.rate = 1e9, .bf16.rate = 1e9, .fp8.rate = 2e9};
    CU_ASSERT_DOUBLE_EQUAL(mla_peak_flop_s(&c, MLA_FP8, 512, 64), 17e9 / 9,
                           1); /* 1024 products at the fp8 rate and 64 at the bf16 rate: 1088 / (512
                                  + 64) = 17 / 9 */
    CU_ASSERT_EQUAL(mla_peak_flop_s(&c, MLA_BF16, 512, 64), 1e9);
    bool bytes;
    CU_ASSERT_EQUAL(mla_floor_ns(&c, MLA_BF16, 512, 64, (mla_work){10, 20}, &bytes), 20.0);
    CU_ASSERT(bytes);
    CU_ASSERT_EQUAL(mla_floor_ns(&c, MLA_BF16, 512, 64, (mla_work){30, 20}, &bytes), 30.0);
    CU_ASSERT_FALSE(bytes);
}

/* The probes report plausible rates, and the fp8 rate is the bf16 rate. */
static void test_probes(void) {
    mla_backend *be;
    mla_ceilings c;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = 1}, NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL(mla_ceilings_measure(&c, be, 0.0, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL_FATAL(mla_ceilings_measure(&c, be, 0.02, NULL), SNAP_OK);
    CU_ASSERT(c.read.rate > 1e8 && c.read.how[0] && c.read_bytes > 1 << 26);
    CU_ASSERT(c.bf16.rate > 1e8 && c.bf16.how[0] && c.bf16.windows >= 3);
    CU_ASSERT(!c.fp8_native && c.fp8.rate == c.bf16.rate);
    CU_ASSERT(c.bf16.worst_window <= c.bf16.rate && c.read.worst_window <= c.read.rate);
    mla_probe_rates now;
    CU_ASSERT_EQUAL_FATAL(mla_ceilings_probe_once(&now, be, NULL), SNAP_OK);
    CU_ASSERT(now.read > 1e7 && now.bf16 > 1e7 && now.fp8 == now.bf16);
    mla_backend_close(be);
}

CU_TestInfo tests_contract[] = {
    {"backends: names, options, memory", test_backends},
    {"sizes and pointers of memory", test_memory_arguments},
    {"capacities out of range", test_capacity},
    {"bad arguments of a run", test_run_arguments},
    {"only the scheduled step is run", test_scheduled},
    {"bad lengths and pages", test_bad_device_data},
    {"rows to the formats and back, bit for bit", test_rows_match_the_definition},
    {"quantising queries", test_quant_q},
    {"appending tokens", test_append},
    {"a step prepared in one call", test_prepare},
    {"fetching tokens", test_fetch},
    {"work and floor in closed form", test_work},
    {"the probes report plausible rates", test_probes},
    CU_TEST_INFO_NULL,
};
