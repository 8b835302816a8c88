/* Tests rows of cells: what is derived from times and ceilings, and their flags. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "harness/test/bench_rows.h"
#include "harness/test/fake_backend.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9 * (1 + fabs((double)(b))))

static js *made_row_on(const mla_backend_info *backend, mla_precision p, const bench_shape *shape,
                       double ns, const paired_probes *looks, double others_s) {
    stop_limits limits = {.noise = 1, .min_samples = 1, .max_samples = 3, .timeout_s = 1e9};
    stop_rule timing;
    verified v = {.error = {.rows = 1}, .bound = {.out_rel = 1, .lse_err = 1}};
    row_context ctx = {.backend = *backend, .distribution = "normal"};
    row_measured m = {.shape = *shape,
                      .kind = p == MLA_FP8 ? BENCH_FP8 : BENCH_BF16,
                      .cold = "rotate",
                      .verdict = &v,
                      .timing = &timing,
                      .probes = looks,
                      .before = {.mhz = (double)NAN},
                      .after = {.mhz = (double)NAN, .busy_s = others_s, .wall_s = 1}};
    stop_init(&timing, &limits);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(stop_add(&timing, ns, 0, NULL) == SNAP_OK);
    js *row = row_json(&ctx, &m);
    stop_release(&timing);
    CU_ASSERT_FATAL(row != NULL);
    return row;
}

static js *made_row_beside(mla_precision p, const bench_shape *shape, double ns,
                           const paired_probes *looks, double others_s) {
    const mla_backend_info cpu = {.name = "cpu", .kernel = "none", .host_memory = true};
    return made_row_on(&cpu, p, shape, ns, looks, others_s);
}

static js *made_row(mla_precision p, const bench_shape *shape, double ns) {
    return made_row_beside(p, shape, ns, NULL, (double)NAN);
}

/* H 128, batch 1, 65536 tokens of 512 + 64: FLOP = 2176 * 128 * 65536. Bytes: 1152 (BF16) or 644
 * (FP8) per token, and 128 rows of query (1152 or 644) and output (1028). */
static const bench_shape known = {
    .heads = 128, .s_q = 1, .batch = 1, .context = 65536, .d_c = 512, .d_r = 64};
static const double known_flop = 2176.0 * 128 * 65536;

static void test_floor_by_arithmetic(void) {
    mla_ceilings c = {.read = {.rate = 1e15}, .bf16 = {.rate = 4e11}, .fp8 = {.rate = 8e11}};
    js *bf16 = made_row(MLA_BF16, &known, 1e8), *fp8 = made_row(MLA_FP8, &known, 1e8);
    CU_ASSERT(row_derive(bf16, &c, NULL) == SNAP_OK);
    CU_ASSERT(row_derive(fp8, &c, NULL) == SNAP_OK);
    NEAR(row_number(bf16, "floor_ns"), known_flop / 4e11 * 1e9);
    NEAR(row_number(fp8, "floor_ns"), known_flop / (4e11 * 17 / 9) * 1e9);
    NEAR(row_number(bf16, "tflops"), known_flop / 0.1 / 1e12);
    NEAR(row_number(bf16, "roofline_pct"), 100 * known_flop / 4e11 / 0.1);
    NEAR(row_number(bf16, "tok_s"), 10);
    CU_ASSERT(row_is(js_get_object(bf16, "performance"), "bound", "flops"));
    js_free(bf16);
    js_free(fp8);
}

static void test_floor_by_bytes(void) {
    mla_ceilings c = {.read = {.rate = 5e10}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    js *bf16 = made_row(MLA_BF16, &known, 1e8), *fp8 = made_row(MLA_FP8, &known, 1e8);
    double bf16_bytes = 65536.0 * 1152 + 128 * (1152 + 1028);
    double fp8_bytes = 65536.0 * 644 + 128 * (644 + 1028);
    CU_ASSERT(row_derive(bf16, &c, NULL) == SNAP_OK);
    CU_ASSERT(row_derive(fp8, &c, NULL) == SNAP_OK);
    NEAR(row_number(bf16, "floor_ns"), bf16_bytes / 5e10 * 1e9);
    NEAR(row_number(fp8, "floor_ns"), fp8_bytes / 5e10 * 1e9);
    NEAR(row_number(fp8, "gb_s"), fp8_bytes / 0.1 / 1e9);
    CU_ASSERT(row_is(js_get_object(fp8, "performance"), "bound", "bytes"));
    js_free(bf16);
    js_free(fp8);
}

/* Between the samples, the median read rate was half of the read ceiling. So relative to that rate
 * the row is twice as good. A row with load by other processes has no such figure. */
static void test_paired(void) {
    mla_ceilings c = {.read = {.rate = 5e10}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    paired_probes looks = {.n = 3, .read = {2e10, 2.5e10, 4e10}, .bf16 = {1e18, 1e18, 1e18}};
    memcpy(looks.fp8, looks.bf16, sizeof looks.fp8);
    js *row = made_row_beside(MLA_BF16, &known, 1e8, &looks, 0);
    js *shared = made_row_beside(MLA_BF16, &known, 1e8, &looks, 0.5), *none;
    none = made_row(MLA_BF16, &known, 1e8);
    CU_ASSERT(row_derive(row, &c, NULL) == SNAP_OK && row_derive(shared, &c, NULL) == SNAP_OK &&
              row_derive(none, &c, NULL) == SNAP_OK);
    NEAR(row_paired_pct(row), 2 * row_number(row, "roofline_pct"));
    mla_ceilings low = {.read = {.rate = 1e10}, .bf16 = {.rate = 2e18}, .fp8 = {.rate = 1e17}};
    row_raise(none, &low);
    NEAR(low.read.rate, 1e10);
    row_raise(row, &low); /* rises to the best probe; a better ceiling stays */
    NEAR(low.read.rate, 4e10);
    NEAR(low.bf16.rate, 2e18);
    NEAR(low.fp8.rate, 1e18);
    CU_ASSERT(isnan(row_paired_pct(shared)) && isnan(row_paired_pct(none)));
    js_free(row);
    js_free(shared);
    js_free(none);
}

/* A journal is a file, so its contents may be malicious. */
static void test_rows_of_others(void) {
    static const char *const rows[] = {
        "{\"performance\": {}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": 5}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": -5}, \"shape\": {\"heads\": 1, "
        "\"s_q\": 1, \"batch\": 1, \"context\": 1, \"d_c\": 512, \"d_r\": 64}}",
        "{\"arm\": \"fp8\", \"performance\": {\"median_ns\": 5}, \"shape\": {\"heads\": 1, "
        "\"s_q\": 1, \"batch\": 2147483647, \"context\": 1, \"d_c\": 512, \"d_r\": 64}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        js *row = js_parse(rows[i], strlen(rows[i]), "test", NULL);
        CU_ASSERT_FATAL(row != NULL);
        CU_ASSERT(row_derive(row, &fake_plenty, NULL) == SNAP_E_INPUT);
        js_free(row);
    }
}

/* ---- flags ---- */

static void test_flags(void) {
    mla_ceilings low = {.read = {.rate = 1e10}, .bf16 = {.rate = 1e12}, .fp8 = {.rate = 1e12}};
    mla_ceilings high = {.read = {.rate = 1e12}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    js *rows = js_new_array();
    /* floors with `high`: 76 and 42 us, ratio 1.79; times: 5 and 1 ms, ratio 5 */
    js_push_new(rows, made_row(MLA_BF16, &known, 5e6));
    js_push_new(rows, made_row(MLA_FP8, &known, 1e6));
    CU_ASSERT(sweep_derive(rows, NULL, &low, NULL) == SNAP_OK);
    CU_ASSERT(row_has_flag(js_at(rows, 0), "below_floor"));
    CU_ASSERT(row_has_flag(js_at(rows, 1), "below_floor"));
    CU_ASSERT(err_exit_code(sweep_verdict(rows, NULL)) == 7);
    CU_ASSERT(sweep_derive(rows, NULL, &high, NULL) == SNAP_OK);
    CU_ASSERT(!sweep_count_flag(rows, NULL, "below_floor"));
    CU_ASSERT(sweep_verdict(rows, NULL) == SNAP_OK);
    CU_ASSERT(row_has_flag(js_at(rows, 1), "weak_baseline"));
    CU_ASSERT(!row_has_flag(js_at(rows, 0), "weak_baseline"));
    NEAR(rows_speedup(rows, 1), 5);
    js_free(rows);
    rows = js_new_array(); /* 1.5x is below the ratio of the floors */
    js_push_new(rows, made_row(MLA_BF16, &known, 1.5e6));
    js_push_new(rows, made_row(MLA_FP8, &known, 1e6));
    CU_ASSERT(sweep_derive(rows, NULL, &high, NULL) == SNAP_OK);
    CU_ASSERT(!sweep_count_flag(rows, NULL, "weak_baseline"));
    js_free(rows);
}

/* Other programs disturb a row if the processors compute it, also through OpenCL. */
static void test_shared_processors(void) {
    static const struct {
        mla_backend_info backend;
        bool flagged;
    } cases[] = {
        {{.name = "cpu", .kernel = "none", .host_memory = true}, true},
        {{.name = "opencl", .kernel = "none", .processors = true}, true},
        {{.name = "opencl", .kernel = "none"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        js *row = made_row_on(&cases[i].backend, MLA_BF16, &known, 1e8, NULL, 0.5);
        CU_ASSERT_EQUAL(row_has_flag(row, "shared"), cases[i].flagged);
        js_free(row);
    }
}

/* NVML's reason for a reduced clock counts also if the clock is back when the row ends. */
static bool is_flagged(uint64_t before, uint64_t during, uint64_t after, const char *flag) {
    stop_limits limits = {.noise = 1, .min_samples = 1, .max_samples = 3, .timeout_s = 1e9};
    const bench_shape shape = {
        .heads = 16, .s_q = 1, .batch = 1, .context = 64, .d_c = 512, .d_r = 64};
    stop_rule timing;
    verified v = {.error = {.rows = 1}, .bound = {.out_rel = 1, .lse_err = 1}};
    row_context ctx = {.backend = {.name = "cuda"}, .distribution = "normal"};
    row_measured m = {.shape = shape,
                      .cold = "flush",
                      .verdict = &v,
                      .timing = &timing,
                      .gpu_before.reasons = before,
                      .gpu_during = during,
                      .gpu_after.reasons = after};
    stop_init(&timing, &limits);
    CU_ASSERT(stop_add(&timing, 1e6, 0, NULL) == SNAP_OK);
    js *row = row_json(&ctx, &m);
    const js *flags = js_get_array(row, "flags");
    bool found = false;
    for (size_t i = 0; i < js_len(flags); i++)
        found |= strcmp(js_str(js_at(flags, i)), flag) == 0;
    stop_release(&timing);
    js_free(row);
    return found;
}

static void test_throttling_in_the_middle(void) {
    enum { kPowerCap = 0x4, kThermal = 0x40 }; /* NVML: SW power cap, HW thermal slowdown */
    CU_ASSERT_FALSE(is_flagged(0, 0, 0, "throttled"));
    CU_ASSERT(is_flagged(kThermal, 0, 0, "throttled"));
    CU_ASSERT(is_flagged(0, kThermal, 0, "throttled"));
    CU_ASSERT(is_flagged(0, 0, kThermal, "throttled"));
    CU_ASSERT(is_flagged(0, kPowerCap, 0, "power_capped"));
    CU_ASSERT_FALSE(is_flagged(0, kPowerCap, 0, "throttled"));
}

CU_TestInfo tests_row[] = {
    {"a device that throttles in the middle", test_throttling_in_the_middle},
    {"time floor from arithmetic", test_floor_by_arithmetic},
    {"time floor from bytes", test_floor_by_bytes},
    {"time floor from paired probes", test_paired},
    {"flags of a row", test_flags},
    {"other programs on the processors", test_shared_processors},
    {"rows of other files", test_rows_of_others},
    CU_TEST_INFO_NULL,
};
