/* test_packed.c - named arms with a cache format: a sweep over every shipped format with a plugin
 * that reads it, plugins and adapters with faults, and what verify-run finds in their rows. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "harness/audit/audit.h"
#include "harness/bench/arm_spec.h"
#include "harness/bench/sweep.h"
#include "harness/record/run.h"
#include "kernels/backend.h"
#include "kernels/formats.h"
#include "kernels/plugin/attend.h"
#include "kernels/plugin/packed.h"

enum { D_C = 512, D_R = 64, WIDTH = D_C + D_R };

/* ---- a plugin that reads any format through kernels/format, with sums in FP64 ---- */

/* Faults of the plugin. */
static bool drops_a_token, ignores_scales, writes_after_out, changes_the_cache;
static int calls;

typedef struct {
    cache_format format;
} reader;

static snap_status plan_reader(void *self, void **state, const mla_capacity *cap,
                               const snapmla_format *format, snap_err *err) {
    reader *r = calloc(1, sizeof *r);
    (void)self;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    *state = r;
    return arm_format_parse(&r->format, format->json, format->name, cap->d_c, cap->d_r, err);
}

static void free_reader(void *state) {
    free(state);
}

/* The queries as the format has them. */
static void read_query(const cache_format *f, const uint16_t *row, float *q) {
    cache_bytes one;
    for (int d = 0; d < WIDTH; d++)
        q[d] = bf16_to_f32(row[d]);
    if (f->queries != QUERIES_FORMAT)
        return;
    CU_ASSERT_FATAL(cache_format_pack(&one, f, q, 1, NULL) == SNAP_OK);
    cache_format_unpack(q, f, &one, NULL, 0, 1);
    cache_bytes_release(&one);
}

static void read_row(const float *q, const float *k, int64_t n, double scale, uint16_t *out,
                     float *lse) {
    double o[D_C] = {0}, sum = 0, *p = malloc((size_t)n * sizeof *p), most = -INFINITY;
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (int64_t j = 0; j < n; j++) {
        p[j] = 0;
        for (int d = 0; d < WIDTH; d++)
            p[j] += scale * (double)q[d] * (double)k[j * WIDTH + d];
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        double e = exp(p[j] - most);
        sum += e;
        for (int d = 0; d < D_C; d++)
            o[d] += e * (double)k[j * WIDTH + d];
    }
    for (int d = 0; d < D_C; d++)
        out[d] = bf16_from_f32((float)(o[d] / sum));
    *lse = (float)(most + log(sum));
    free(p);
}

static snap_status read_packed(void *state, const snapmla_step *s, const snapmla_queries *q,
                               const snapmla_packed *cache, void *out, float *lse, void *stream,
                               snap_err *err) {
    const reader *r = state;
    cache_bytes b = {.pages = cache->pages};
    int rows = s->s_q * s->heads;
    (void)stream, (void)err;
    for (int i = 0; i < cache->format->pools; i++)
        b.pool[i] = (uint8_t *)(uintptr_t)cache->pool[i];
    for (int seq = 0; seq < s->batch; seq++) {
        int64_t n = s->seqlens[seq];
        float *k = malloc((size_t)n * WIDTH * sizeof *k), row[WIDTH];
        CU_ASSERT_PTR_NOT_NULL_FATAL(k);
        cache_format_unpack(k, &r->format, &b, s->block_table + (int64_t)seq * s->table_width, 0,
                            n);
        for (int64_t d = 0; ignores_scales && d < n * WIDTH; d++)
            k[d] *= 1.25f;
        for (int i = 0; i < rows; i++) {
            int64_t at = (int64_t)seq * rows + i, visible = n - (s->s_q - 1 - i / s->heads);
            read_query(&r->format, (const uint16_t *)q->q + at * WIDTH, row);
            read_row(row, k, visible - drops_a_token, (double)q->softmax_scale,
                     (uint16_t *)out + at * D_C, lse + at);
        }
        free(k);
    }
    if (changes_the_cache && ++calls == 4) /* the inputs are compared in two calls only */
        b.pool[0][0] ^= 1;
    if (writes_after_out)
        ((unsigned char *)out)[(size_t)s->batch * (size_t)rows * D_C * 2] ^= 1;
    return SNAP_OK;
}

static const snapmla_attention kReader = {SNAPMLA_ATTENTION,          .name = "reader",
                                          .device = "host",           .plan_free = free_reader,
                                          .plan_packed = plan_reader, .attend_packed = read_packed};

/* ---- sweeps ---- */

static const mla_backend_ops *real;

/* Describes a backend without a cache. The arms then need only one set of data, because no cache
 * has to be emptied. */
static void describe_without_cache(const mla_backend *be, mla_backend_info *out) {
    real->describe(be, out);
    out->cache_bytes = 0;
}

/* Runs a sweep of one shape with one arm, the plugin @path, or kReader if @path is NULL. Returns
 * the row; @rows owns its texts. */
static cell_record sweep_one(const char *path, const char *format, const char *scope, int s_q,
                             js *rows, arena *mem) {
    bench_grid_text text = {.arms = "bf16",
                            .scopes = scope,
                            .heads = "2",
                            .s_q = s_q == 1 ? "1" : "2",
                            .batch = "2",
                            .context = "100",
                            .d_c = D_C,
                            .d_r = D_R};
    mla_backend_options one = {.threads = 1};
    mla_backend *be = NULL;
    arm_format *f = NULL;
    bench_grid grid;
    cell_list all;
    snap_err err = {0};
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    snap_status st = path ? mla_backend_open(&be, path, &one, &err)
                          : attend_backend_open(&be, &kReader, "reader", &one, &err);
    CU_ASSERT_FATAL(st == SNAP_OK);
    real = be->ops;
    mla_backend_ops ops = *real;
    ops.describe = describe_without_cache;
    be->ops = &ops;
    CU_ASSERT_FATAL(arm_format_load(&f, format, D_C, D_R, &err) == SNAP_OK);
    sweep_arm arm = {.name = "mine",
                     .options = "reader",
                     .kind = arm_format_kind(&f->format),
                     .format = f,
                     .backend = be};
    sweep_options sweep = {
        .arms = &arm,
        .n_arms = 1,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .seed = 5,
        .limits = {.noise = 1, .min_samples = 1, .max_samples = 1, .timeout_s = 1e9}};
    CU_ASSERT(sweep_run(&sweep, rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, mem, &all.at, &all.n) && all.n == 1);
    mla_backend_close(be);
    arm_format_free(f);
    return all.at[0];
}

static void expect_status(const char *path, const char *format, const char *scope, int s_q,
                          const char *status, const char *says) {
    js *rows = js_new_array();
    arena mem = {0};
    cell_record row = sweep_one(path, format, scope, s_q, rows, &mem);
    if (strcmp(row.status, status) != 0 || !strstr(row.reason, says)) {
        CU_FAIL("status");
        (void)fprintf(stderr, "%s: %s: %s\n", format, row.status, row.reason);
    }
    arena_release(&mem);
    js_free(rows);
}

/* The arms of one sweep, which share a backend. */
typedef struct {
    sweep_arm arms[SWEEP_ARMS];
    arm_format *formats[SWEEP_ARMS];
    int n;
} format_arms;

static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    format_arms *f = ctx;
    if (kThreadSanitized && f->n == 2) /* other formats do not change how threads synchronise */
        return SNAP_OK;
    CU_ASSERT_FATAL(f->n < SWEEP_ARMS);
    CU_ASSERT_FATAL(arm_format_load(&f->formats[f->n], name, D_C, D_R, err) == SNAP_OK);
    const cache_format *loaded = &f->formats[f->n]->format;
    f->arms[f->n] = (sweep_arm){.name = loaded->name,
                                .options = "reader",
                                .kind = arm_format_kind(loaded),
                                .format = f->formats[f->n]};
    f->n++;
    return SNAP_OK;
}

static void test_every_format(void) {
    bench_grid_text text = {.arms = "bf16",
                            .scopes = "kernel",
                            .heads = "1",
                            .s_q = "1",
                            .batch = "2",
                            .context = "70",
                            .d_c = D_C,
                            .d_r = D_R};
    mla_backend_options one = {.threads = 1};
    mla_backend *be = NULL;
    format_arms f = {.n = 0};
    bench_grid grid;
    cell_list all;
    arena mem = {0};
    js *rows = js_new_array();
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(attend_backend_open(&be, &kReader, "reader", &one, NULL) == SNAP_OK);
    mla_backend_ops ops = *be->ops;
    real = be->ops;
    ops.describe = describe_without_cache;
    be->ops = &ops;
    CU_ASSERT(cache_format_each(add_format, &f, NULL) == SNAP_OK &&
              f.n > (kThreadSanitized ? 1 : 15));
    for (int i = 0; i < f.n; i++)
        f.arms[i].backend = be;
    sweep_options sweep = {
        .arms = f.arms,
        .n_arms = f.n,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .seed = 5,
        .limits = {.noise = 1, .min_samples = 1, .max_samples = 1, .timeout_s = 1e9}};
    CU_ASSERT(sweep_run(&sweep, rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, &mem, &all.at, &all.n));
    CU_ASSERT((int)all.n == f.n);
    for (size_t i = 0; i < all.n; i++)
        if (strcmp(all.at[i].status, "passed") != 0) {
            CU_FAIL("status");
            (void)fprintf(stderr, "%s: %s\n", all.at[i].name, all.at[i].reason);
        }
    mla_backend_close(be);
    for (int i = 0; i < f.n; i++)
        arm_format_free(f.formats[i]);
    arena_release(&mem);
    js_free(rows);
}

/* Pages of 1 token and of 48, given as text. */
static void test_page_sizes(void) {
    static const char *const texts[] = {
        "{\"name\":\"one\",\"description\":\"d\",\"page_tokens\":1,\"content\":{\"type\":\"bf16\"},"
        "\"rope\":{\"type\":\"bf16\"}}",
        "{\"name\":\"many\",\"description\":\"d\",\"page_tokens\":48,\"order\":\"page\","
        "\"content\":{\"type\":\"int8\",\"scale\":{\"type\":\"fp32\",\"per\":\"page\"}},"
        "\"rope\":{\"type\":\"bf16\"}}"};
    for (int i = 0; i < (kThreadSanitized ? 1 : 2); i++)
        for (int s_q = kThreadSanitized ? 2 : 1; s_q <= 2; s_q++)
            expect_status(NULL, texts[i], "kernel", s_q, "passed", "");
}

static void test_faults_are_found(void) {
    drops_a_token = true;
    expect_status(NULL, "mxfp8", "kernel", 1, "failed", "above");
    drops_a_token = false;
    if (kThreadSanitized) /* the fault does not change how threads synchronise */
        return;
    ignores_scales = true;
    expect_status(NULL, "nvfp4", "kernel", 1, "failed", "above");
    ignores_scales = false;
    writes_after_out = true;
    expect_status(NULL, "bf16", "kernel", 1, "error", "wrote outside of 'out'");
    writes_after_out = false;
    changes_the_cache = true;
    expect_status(NULL, "bf16", "kernel", 1, "error", "a later call of attend() changed the cache");
    changes_the_cache = false;
    expect_status(NULL, "bf16", "served", 1, "skipped", "no step that appends");
}

/* The example reads the bytes by itself. */
static void test_example(void) {
    static const char kPacked[] = "plugin:" PLUGINS "/plugins/packed.so";
    expect_status(kPacked, "fp8_ds_mla", "kernel", 2, "passed", "");
    expect_status(kPacked, "nvfp4", "kernel", 1, "skipped", "format nvfp4: it reads e4m3 content");
    expect_status("plugin:" PLUGINS "/plugins/attend.so", "bf16", "kernel", 1, "skipped",
                  "no attend_packed()");
}

/* ---- the row of a packed arm ---- */

static size_t count_findings(js *row, const char *says) {
    run_record run = {0};
    verify_findings f = {0};
    arena mem = {0};
    js *rows = js_new_array();
    size_t n = 0;
    CU_ASSERT(js_push_new(rows, js_copy(row)));
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, &mem, &run.bench.at, &run.bench.n));
    verify_bench(&run, &f);
    for (size_t i = 0; i < js_len(f.rows); i++)
        n += strstr(js_get_str(js_at(f.rows, i), "what"), says) != NULL;
    verify_release(&f);
    js_free(rows);
    arena_release(&mem);
    return n;
}

static void test_row_and_audit(void) {
    js *rows = js_new_array();
    arena mem = {0};
    cell_record row = sweep_one(NULL, "fp8_ds_mla", "kernel", 1, rows, &mem);
    CU_ASSERT(row.format.exists && row.format.bytes_per_token == 656 &&
              row.format.page_tokens == 64);
    CU_ASSERT_STRING_EQUAL(row.format.name, "fp8_ds_mla");
    CU_ASSERT_STRING_EQUAL(row.arm, "bf16");
    mla_ceilings c = {.read.rate = 1e9, .bf16.rate = 1e15, .fp8.rate = 1e15};
    CU_ASSERT(cell_derive(&row, &c, &mem, NULL) == SNAP_OK);
    /* 200 tokens, and 4 rows of bf16 queries, outputs and log-sum-exps, at 1 byte per ns */
    CU_ASSERT_DOUBLE_EQUAL(row.performance.floor_ns, 200 * 656 + 4 * (2 * WIDTH + 2 * D_C + 4),
                           1e-6);
    js *stored = js_at(rows, 0), *format = js_get_object(stored, "format");
    CU_ASSERT(count_findings(stored, "descriptor") == 0);
    CU_ASSERT(js_set_num(format, "bytes_per_token", 576));
    CU_ASSERT(count_findings(stored, "bytes_per_token is not that") == 1);
    CU_ASSERT(js_set_str(format, "descriptor", "{\"name\":\"other\"}"));
    CU_ASSERT(count_findings(stored, "its format cannot be read") >= 1);
    js_free(rows);
    arena_release(&mem);
}

/* ---- the option --arm ---- */

static void test_specs(void) {
    static const struct {
        const char *item, *says;
    } bad[] = {
        {"a=cpu,format=nvfp4", "'format' is for plugin:PATH and python:FILE"},
        {"a=plugin:x.so,format=", "must be a format's name or file"},
        {"a=plugin:x.so,format=nvfp4,precision=fp8", "'precision' is for arms without a format"},
        {"a=python:x.py,precision=fp8", "'precision' is for arms without a format"},
        {"a=python:", "must be cpu, cuda"},
    };
    arm_spec arm;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opt_list list = {.n = 1, .items = {bad[i].item}};
        arena mem = {0};
        snap_err err = {0};
        CU_ASSERT(arm_specs_parse(&list, &mem, &arm, &err) == SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].says));
        arena_release(&mem);
    }
    opt_list list = {.n = 1, .items = {"a=python:/there/x.py,format=/there/f.json"}};
    arena mem = {0};
    CU_ASSERT(arm_specs_parse(&list, &mem, &arm, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(arm.format, "/there/f.json");
    CU_ASSERT_STRING_EQUAL(arm.options, "python:x.py,format=f.json");
    arena_release(&mem);
}

static void test_bad_formats(void) {
    static const struct {
        const char *name;
        snap_status st;
        const char *says;
    } bad[] = {
        {"nvfp5", SNAP_E_USAGE, "did you mean 'nvfp4'?"},
        {"nowhere.json", SNAP_E_IO, "nowhere.json"},
        {"{\"name\":", SNAP_E_INPUT, "the format of the plugin"},
        {"{\"name\":\"x\",\"description\":\"d\",\"content\":{\"type\":\"bf17\"},\"rope\":{\"type\":"
         "\"bf16\"}}",
         SNAP_E_INPUT, "unknown type 'bf17'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        arm_format *f;
        snap_err err = {0};
        CU_ASSERT(arm_format_load(&f, bad[i].name, D_C, D_R, &err) == bad[i].st);
        if (!strstr(err.text, bad[i].says)) {
            CU_FAIL("message");
            (void)fprintf(stderr, "%s\n", err.text);
        }
    }
}

/* ---- Python ---- */

#define PLAIN "python:adapters/test/plain.py"

/* Opens the adapter with a fault. False if this machine cannot embed Python, with a message. */
static bool open_plain(mla_backend **be, const char *path, const char *fault, snap_err *err) {
    mla_backend_options wanted = {.threads = 1, .isa = fault};
    snap_err why = {0};
    snap_status st = mla_backend_open(be, path, &wanted, &why);
    if (st != SNAP_OK &&
        (strstr(why.text, "no shared library") || strstr(why.text, "cannot run '"))) {
        (void)fprintf(stderr, "skipped: %s\n", why.text);
        return false;
    }
    *err = why;
    return true;
}

/* Runs one step of the adapter over 3 tokens whose content is their number. */
static snap_status run_plain(mla_backend *be, float *first, snap_err *err) {
    enum { HEADS = 2, C = 32, W = 64 };
    mla_capacity cap = {.precision = MLA_BF16,
                        .heads = HEADS,
                        .d_c = C,
                        .d_r = C,
                        .batch = 1,
                        .s_q = 1,
                        .max_tokens = 64};
    arm_format *f = NULL;
    mla_plan *plan = NULL;
    snap_status st = SNAP_OK;
    uint16_t *pool = mla_alloc(be, 64 * W * 2, err), *q = mla_alloc(be, HEADS * W * 2, err);
    uint16_t *out = mla_alloc(be, HEADS * C * 2, err);
    float *lse = mla_alloc(be, HEADS * sizeof *lse, err);
    int32_t *step_data = mla_alloc(be, 2 * sizeof *step_data, err);
    CU_ASSERT_FATAL(pool && q && out && lse && step_data);
    memset(q, 0, HEADS * W * 2);
    for (int i = 0; i < 64 * W; i++)
        pool[i] = bf16_from_f32((float)(i / W));
    step_data[0] = 3; /* length of the sequence */
    step_data[1] = 0; /* number of its page */
    TRY(arm_format_load(&f, "bf16", C, C, err));
    TRY(packed_plan_create(&plan, be, &cap, &f->format, f->json, err));
    mla_step step = {1, 1, step_data, step_data + 1, 1};
    packed_cache cache = {.pages = 1, .pool = {pool}};
    mla_attn attn = {.q = q, .softmax_scale = 1, .out = out, .lse = lse};
    TRY(packed_schedule(plan, &step, &cache, &attn, err));
    TRY(packed_run(plan, &step, &cache, &attn, err));
    *first = bf16_to_f32(out[0]); /* the mean of 0, 1 and 2 */
cleanup:
    mla_plan_free(plan);
    arm_format_free(f);
    void *const all[] = {pool, q, out, lse, step_data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mla_free(be, all[i]);
    return st;
}

static void test_python(void) {
    static const struct {
        const char *fault, *says;
    } cases[] = {
        {"auto", ""},
        {"raises", "attend(): KeyError: 'nothing' (plain.py, line"},
        {"returns", "attend() must write to 'out' and 'lse' and return None"},
        {"schedule", "schedule(): ValueError: 1 sequences"},
        {"plan", "plan(): NotImplementedError: only 3 heads, got 2"},
        {"setup", "NotImplementedError: this machine has no abacus"},
        {"device", "device must be \"host\" or \"cuda\", got \"abacus\""},
        {"inputs", "changed its inputs"},
        {"outside", "wrote outside of 'out'"},
        {"shape", "attend(): ValueError: memoryview assignment: lvalue and rvalue have different "
                  "structures (plain.py, line"},
        {"dtype", "attend(): IndexError: index out of bounds on dimension 1 (plain.py, line"},
        {"far", "wrote after a buffer of"},
        {"hangs", "attend() took longer than 0.3 seconds; 'limit_s = SECONDS' in the adapter"},
        {"auto", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mla_backend *be = NULL;
        snap_err err = {0};
        float first = -1;
        if (!open_plain(&be, PLAIN, cases[i].fault, &err))
            return;
        snap_status st = be ? run_plain(be, &first, &err) : SNAP_E_DEVICE;
        CU_ASSERT((st == SNAP_OK) == !cases[i].says[0]);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
        CU_ASSERT(st != SNAP_OK || first == 1.0f);
        mla_backend_close(be);
    }
}

static void test_python_files(void) {
    mla_backend *be = NULL;
    snap_err err = {0};
    if (!open_plain(&be, "python:adapters/nothing.py", "auto", &err))
        return;
    CU_ASSERT(!be && strstr(err.text, "FileNotFoundError"));
    CU_ASSERT(open_plain(&be, "python:adapters/test/hangs.py", "auto", &err) && !be);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "importing hangs.py took longer than 0.2 seconds"));
    CU_ASSERT(mla_backend_open(&be, "python:", NULL, NULL) == SNAP_E_USAGE);
    CU_ASSERT_FATAL(open_plain(&be, PLAIN, "auto", &err) && be);
    const char *own = packed_own_format(be);
    CU_ASSERT(own && strcmp(own, "bf16") == 0 && packed_has_lse(be));
    mla_backend_close(be);
    CU_ASSERT_FATAL(open_plain(&be, PLAIN, "no-lse", &err) && be);
    CU_ASSERT(!packed_has_lse(be));
    mla_backend_close(be);
}

CU_TestInfo tests_packed[] = {
    {"every shipped format", test_every_format},
    {"pages of other sizes", test_page_sizes},
    {"faults of a plugin are found", test_faults_are_found},
    {"the example that reads 656 bytes per token", test_example},
    {"the row and its audit", test_row_and_audit},
    {"the option --arm with a format", test_specs},
    {"bad formats are refused", test_bad_formats},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* Python frees nothing */
    {"an adapter in Python", test_python},
    {"files of adapters", test_python_files},
#endif
    CU_TEST_INFO_NULL,
};
