/* Tests whole predictions of a made-up GPU (harness/bench/predict.h): rows, files and the
 * report. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/audit/audit.h"
#include "harness/bench/predict.h"
#include "harness/bench/predict_routing.h"
#include "harness/bench/step_work.h"
#include "harness/record/run.h"
#include "harness/test/predict_named.h"
#include "harness/test/report_fixture.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"
#include "harness/view/tables.h"

/* ---- whole predictions ---- */

/* A made-up GPU whose steps follow known rules. The times below are computed here, from the
 * numbers of DeepSeek-V2-Lite: 27 layers, 26 of them with 64 experts, 16 heads, hidden size 2048.
 * The attention kernel takes 2 ns (BF16) or 1 ns (FP8) for each cached token, whatever the number
 * of heads, a byte of weights 1/4000 ns in products, and a product 1.5e-6 ns for each FLOP. A step
 * of at most 64 rows is 1 us shorter than its parts for each launch. */
static const double kRead = 4e12, kByte = 1 / 4000., kFlop = 1.5e-6;

static double attention_ns(bool fp8, double rows, double context, double heads) {
    return 27 * (5000 + 0.5 * rows * heads + (fp8 ? 1 : 2) * rows * context +
                 2 * heads * 128 * 512 / kRead * 1e9);
}

static double experts_read(double rows) {
    return 64 * (1 - pow(58. / 64, rows));
}

/* With more than 64 rows, each row is moved to 8 experts, and each expert takes 150 ns more. A rank
 * of a split model joins the outputs in a launch of its own. */
static double experts_ns(double rows, double parts) {
    double one = 3.0 * 2048 * 1408 * 2 / parts, router = 4.0 * 64 * 2048,
           fixed = rows > 64 ? 150 * (experts_read(rows) + 2) + 0.01 * rows * 8 * 2048 : 9000;
    return 26 *
           (fixed + kByte * (one * (experts_read(rows) + 2) + router) + (parts > 1 ? 2000 : 0));
}

/* 2 bytes of a weight give 2 FLOP for each row. */
static double rest_ns(double rows, double parts) {
    double heads = 16 / parts,
           layer = 2048 * (heads * 192 + 512 + 64) + heads * 128 * 512 + heads * 128 * 2048,
           dense = 3.0 * 2048 * 10944 / parts, logits = 102400. * 2048;
    return (27 * 4 + (rows > 8 ? 4 : 3) + 4) * 2000. +
           2 * (27 * layer + dense + logits) * fmax(kByte, rows > 8 ? rows * kFlop : 0);
}

/* Launches outside attention and experts, as in rest_ns(); two of attention in each layer; choice,
 * two products and, with more than 8 rows, a gather in each layer with experts; and the join. */
static double saved_ns(double rows, double parts) {
    double rest = 27 * 4 + (rows > 8 ? 4 : 3) + 4,
           experts = 26 * ((rows > 8 ? 4 : 3) + (parts > 1 ? 1 : 0));
    return rows > 64 ? 0 : 1000 * (rest + 27 * 2 + experts);
}

static double step_ns(bool fp8, double rows, double context, double parts, double exchange) {
    return attention_ns(fp8, rows, context, 16 / parts) + experts_ns(rows, parts) +
           rest_ns(rows, parts) + exchange - saved_ns(rows, parts);
}

static js *made_up_step(bool fp8, int rows, int64_t context, const char *layout, double factor) {
    step_record s;
    model_shape shape = shape_named("deepseek-v2-lite");
    record_init(&step_type, &s);
    s.parts = STEP_TIMED;
    s.model_config = "deepseek-v2-lite";
    s.layout = layout;
    s.arm = fp8 ? "fp8" : "bf16";
    s.step = "decode";
    s.context = context;
    s.batch = rows;
    s.samples = 9;
    double parts = *layout ? 2 : 1, exchange = *layout ? 54 * 3000 : 0;
    s.median_ns = s.best_ns = s.worst_ns =
        factor * step_ns(fp8, rows, (double)context, parts, exchange);
    s.tokens_s = rows / s.median_ns * 1e9;
    s.weight_bytes = step_work_bytes(&shape, 26 * experts_read(rows));
    s.cache_bytes = 1;
    s.flop = 0;
    s.cublaslt = 0;
    s.roofline_pct = 50;
    s.attention_ns = factor * attention_ns(fp8, rows, (double)context, 16 / parts);
    s.exchange_ns = exchange;
    s.experts_ns = factor * experts_ns(rows, parts);
    s.rest_ns = factor * rest_ns(rows, parts);
    return record_write(&step_type, &s);
}

static js *made_up_cell(bool fp8, int heads) {
    char text[1200];
    const double ns = (fp8 ? 1 : 2) * 64 * 32768.;
    (void)snprintf(
        text, sizeof text,
        "{\"arm\": \"%s\", \"backend\": \"cuda\", \"cold\": \"flush\", \"distribution\": "
        "\"normal\", \"flags\": [], \"kernel\": \"\", \"kernel_hash\": \"\", \"mode\": \"burst\", "
        "\"origin\": \"measured\", \"reason\": null, \"scope\": \"kernel\", \"source\": null, "
        "\"status\": \"passed\", \"shape\": {\"batch\": 64, \"context\": 32768, \"d_c\": 512, "
        "\"d_r\": 64, \"heads\": %d, \"s_q\": 1}, \"correctness\": {\"error\": 0, \"lse_error\": 0,"
        " "
        "\"lse_tolerance\": 1, \"rows_checked\": 1, \"tolerance\": 1}, \"performance\": %s}",
        fp8 ? "fp8" : "bf16", heads, "null");
    js *cell = js_parse(text, strlen(text), "cell", NULL);
    js *perf = js_new_object();
    static const char *const keys[] = {"max_ns", "mean_ns", "median_ns", "min_ns",
                                       "p99_ns", "q1_ns",   "q3_ns",     "floor_ns"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)js_set_num(perf, keys[i], ns);
    static const char *const other[] = {"gb_s",         "tflops",           "tok_s",
                                        "roofline_pct", "clock_mhz_before", "clock_mhz_during"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        (void)js_set_num(perf, other[i], 1);
    (void)js_set_int(perf, "count", 1);
    (void)js_set_new(perf, "energy_j", js_new_null());
    (void)js_set_new(perf, "power_w", js_new_null());
    (void)js_set_new(perf, "tok_j", js_new_null());
    (void)js_set_new(perf, "samples_ns", js_new_array());
    (void)js_set_str(perf, "bound", "bytes");
    (void)js_set_str(perf, "stop_reason", "timeout");
    (void)js_set_new(cell, "performance", perf);
    return cell;
}

static js *made_up_ceiling(const char *name, const char *unit, double value) {
    js *c = js_new_object();
    (void)js_set_str(c, "name", name);
    (void)js_set_num(c, "value", value);
    (void)js_set_str(c, "unit", unit);
    (void)js_set_str(c, "method", "made up");
    (void)js_set_new(c, "samples", js_new_array());
    (void)js_set_str(c, "origin", "measured");
    return c;
}

static void add_row(results *r, const char *section, js *row) {
    snap_err err = {0};
    if (results_add(r, section, row, &err) != SNAP_OK)
        CU_FAIL_FATAL(err.text);
}

/* Writes the measurements of one GPU to @path. The step of 8 rows at 32768 tokens in BF16 takes
 * @factor x its time. */
static void write_measured(const char *path, double factor) {
    static const int batches[] = {1, 4, 8, 16, 64, 128, 200, 512};
    static const int64_t contexts[] = {8192, 32768, 131072};
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, &err), SNAP_OK);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
            for (size_t k = 0; k < 3; k++) {
                bool odd = !fp8 && batches[i] == 8 && contexts[k] == 32768;
                add_row(r, "e2e", made_up_step(fp8, batches[i], contexts[k], "", odd ? factor : 1));
            }
        add_row(r, "bench", made_up_cell(fp8, 16));
        add_row(r, "bench", made_up_cell(fp8, 128));
    }
    add_row(r, "ceilings", made_up_ceiling("read_bandwidth", "B/s", kRead));
    add_row(r, "ceilings", made_up_ceiling("bf16_mma", "FLOP/s", 1e15));
    const exchange_record sums[] = {exchange_row("all_reduce", "one_shot", 1024, 3000),
                                    exchange_row("all_reduce", "one_shot", 1 << 21, 3000),
                                    exchange_row("all_reduce", "nccl", 1 << 21, 3000),
                                    exchange_row("reduce_scatter", "nccl", 1 << 21, 3000),
                                    exchange_row("all_gather", "nccl", 1 << 21, 3000)};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        add_row(r, "exchange", record_write(&exchange_type, &sums[i]));
    CU_ASSERT_EQUAL_FATAL(results_save(r, path, &err), SNAP_OK);
    results_free(r);
}

static void write_split(const char *path, const char *layout) {
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        add_row(r, "e2e", made_up_step(fp8, 8, 32768, layout, 1));
        add_row(r, "e2e", made_up_step(fp8, 64, 32768, layout, 2));
    }
    CU_ASSERT_EQUAL_FATAL(results_save(r, path, NULL), SNAP_OK);
    results_free(r);
}

typedef struct {
    char dir[64], one[128], two[128];
    predict_result *p;
    predict_options o;
} fixture;

static void open_fixture(fixture *f, double factor) {
    *f = (fixture){.dir = "/tmp/snapmla-predict-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->dir));
    (void)snprintf(f->one, sizeof f->one, "%s/one.json", f->dir);
    (void)snprintf(f->two, sizeof f->two, "%s/two.json", f->dir);
    write_measured(f->one, factor);
    write_split(f->two, "DP1/TP2");
    f->p = calloc(1, sizeof *f->p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->p);
    f->o = (predict_options){.from = {.measured = f->one, .network = "ib-ndr"},
                             .model_config = "deepseek-v2-lite",
                             .arms = "bf16,fp8",
                             .contexts = "16384",
                             .batches = "32",
                             .weights = "bf16"};
}

static void predict_again(fixture *f) {
    snap_err err = {0};
    predict_release(f->p);
    CU_ASSERT_EQUAL(predict_run(&f->o, NULL, f->p, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL_FATAL(err.text, "");
}

static void close_fixture(fixture *f) {
    predict_release(f->p);
    free(f->p);
    (void)unlink(f->one);
    (void)unlink(f->two);
    (void)rmdir(f->dir);
}

static void expect_near(double got, double expected) {
    CU_ASSERT_DOUBLE_EQUAL(got / expected, 1, 1e-6);
}

/* Layouts, batches and contexts that were not measured. With 300 rows, arithmetic limits the rest
 * of the step, and NCCL does the sums. A launch of 3000 ns adds each sum. */
static void test_many_rows(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.layouts = "DP1,TP2";
    f.o.batches = "100,300";
    predict_again(&f);
    for (int fp8 = 0; fp8 < 2; fp8++)
        for (int k = 0; k < 2; k++) {
            double rows = k ? 300 : 100;
            expect_near(f.p->rows[2 * fp8 + k].median_ns, step_ns(fp8, rows, 16384, 1, 0));
            expect_near(f.p->rows[4 + 2 * fp8 + k].rest_ns, rest_ns(rows, 2));
            expect_near(f.p->rows[4 + 2 * fp8 + k].experts_ns, experts_ns(rows, 2));
            double bytes = rows * 2048 * 4, nccl = 3000 * bytes / (1 << 21) + 3000;
            expect_near(f.p->rows[4 + 2 * fp8 + k].exchange_ns,
                        54 * (k ? nccl + 3 * bytes / kRead * 1e9 : 3000));
        }
    close_fixture(&f);
}

static void test_known_rules(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.layouts = "DP1,TP2,DP4";
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 6);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        expect_near(f.p->rows[fp8].median_ns, step_ns(fp8, 32, 16384, 1, 0));
        expect_near(f.p->rows[2 + fp8].median_ns, step_ns(fp8, 32, 16384, 2, 54 * 3000));
        expect_near(f.p->rows[2 + fp8].attention_ns, attention_ns(fp8, 32, 16384, 8));
        expect_near(f.p->rows[2 + fp8].exchange_ns, 54 * 3000);
        expect_near(f.p->rows[2 + fp8].experts_ns, experts_ns(32, 2));
        expect_near(f.p->rows[2 + fp8].rest_ns, rest_ns(32, 2));
        expect_near(f.p->rows[4 + fp8].median_ns, step_ns(fp8, 8, 16384, 1, 0));
        expect_near(f.p->rows[4 + fp8].tokens_s, 32e9 / step_ns(fp8, 8, 16384, 1, 0));
        CU_ASSERT_STRING_EQUAL(f.p->rows[fp8].origin, "predicted");
    }
    expect_near(f.p->rows[1].fp8_over_bf16,
                step_ns(false, 32, 16384, 1, 0) / step_ns(true, 32, 16384, 1, 0));
    CU_ASSERT(isnan(f.p->rows[0].fp8_over_bf16));
    for (int end = 0; end < 2; end++)
        expect_near(f.p->rows[1].fp8_over_bf16_interval[end], f.p->rows[1].fp8_over_bf16);
    /* The rules have no error here. The exchange takes between half and twice its median. */
    const prediction_record *split = &f.p->rows[2];
    double sum = split->median_ns + saved_ns(32, 2), share = split->median_ns / sum;
    expect_near(split->interval_ns[0], share * (sum - 54 * 1500));
    expect_near(split->interval_ns[1], share * (sum + 54 * 3000));
    close_fixture(&f);
}

/* With EP, a step has the waiting for the busiest rank. It is between none and twice the expected
 * one. Steps of 16 sequences have five more launches in each of 26 layers: joining, sorting and
 * three of the shared experts. */
static void test_waiting(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.layouts = "DP2/EP2,TP2";
    f.o.arms = "bf16";
    predict_again(&f);
    model_shape s = shape_named("deepseek-v2-lite");
    const prediction_record *r = &f.p->rows[0];
    double waiting = 26 * predict_busiest_rank(&s, 2, 32) * 3 * 2048 * 1408 * 2 * kByte,
           sum = r->attention_ns + r->exchange_ns + r->experts_ns + r->rest_ns + waiting,
           saved = saved_ns(16, 1) + 26 * 5 * 1000;
    CU_ASSERT(waiting > 1000);
    expect_near(r->waiting_ns, waiting);
    expect_near(r->median_ns, sum - saved);
    expect_near(r->interval_ns[0], r->median_ns * (1 - (waiting + r->exchange_ns / 2) / sum));
    expect_near(r->interval_ns[1], r->median_ns * (1 + (waiting + r->exchange_ns) / sum));
    CU_ASSERT_EQUAL(f.p->rows[1].waiting_ns, 0);
    close_fixture(&f);
}

/* The interval of a row on one GPU from the errors of its rules, in a fixture whose step of 8 rows
 * at 32768 tokens, in BF16, takes 1.2 times its time. */
static void expect_interval(const prediction_record *odd, const rules *r) {
    const double ns[] = {odd->attention_ns, odd->experts_ns, odd->rest_ns},
                 error[] = {r->error[STEP_ATTENTION], r->error[STEP_EXPERTS], r->error[STEP_REST]},
                 step = step_ns(false, 8, 32768, 1, 0), saved = saved_ns(8, 1);
    double sum = 0, low = 0, high = 0;
    for (int p = 0; p < 3; p++) {
        sum += ns[p];
        low += ns[p] * (1 - error[p]);
        high += ns[p] * (1 + error[p]);
    }
    CU_ASSERT(r->sum_error > (1.2 * (step + saved) - saved) / (1.2 * step) - 1 - 1e-6);
    expect_near(odd->interval_ns[0], odd->median_ns * low / sum * (1 - r->sum_error));
    expect_near(odd->interval_ns[1], odd->median_ns * high / sum * (1 + r->sum_error));
}

/* A measured step of one GPU that is 20 % too slow is predicted from the others, so all of the
 * difference shows. The steps of two GPUs are not in the fit. */
static void test_against_measured_steps(void) {
    fixture f;
    open_fixture(&f, 1.2);
    f.o.against = f.one;
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 48);
    const prediction_record *odd = &f.p->rows[2 * 3 + 1];
    CU_ASSERT_EQUAL(odd->batch, 8);
    CU_ASSERT_EQUAL(odd->context, 32768);
    CU_ASSERT_DOUBLE_EQUAL(odd->error_pct, 100 * (1 / 1.2 - 1), 1e-4);
    const rules *few = &f.p->in.book.range[0];
    double ratio = f.p->in.book.ratio_error;
    CU_ASSERT_DOUBLE_EQUAL(few->error[STEP_EXPERTS], 1 - 1 / 1.2, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(ratio, 1 - 1 / 1.2, 1e-6);
    expect_interval(odd, few);
    const prediction_record *fp8 = odd + 24; /* its 8 x 3 steps in BF16 come first */
    expect_near(fp8->fp8_over_bf16_interval[0], fp8->fp8_over_bf16 / (1 + ratio));
    expect_near(fp8->fp8_over_bf16_interval[1], fp8->fp8_over_bf16 / (1 - ratio));
    expect_near(fp8->measured_fp8_over_bf16, 1.2 * fp8->fp8_over_bf16);
    close_fixture(&f);
    open_fixture(&f, 1);
    f.o.against = f.two;
    predict_again(&f);
    predict_agreement a = predict_agreement_of(f.p, "DP1/TP2");
    CU_ASSERT_EQUAL(a.n, 4);
    CU_ASSERT_DOUBLE_EQUAL(f.p->rows[0].error_pct, 0, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(f.p->rows[1].error_pct, -50, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(a.median_pct, 25, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(a.most_pct, 50, 1e-4);
    CU_ASSERT_EQUAL(predict_agreement_of(f.p, "DP2/TP1").n, 0);
    close_fixture(&f);
}

/* Compares the row @best of the map, which has the most tokens/s, with rows of all layouts. */
static void expect_compared(const fixture *f, const prediction_record *best, const char *name) {
    double next = 0;
    int tied = 0;
    for (int i = 0; i < f->p->n; i++) {
        const prediction_record *r = &f->p->rows[i];
        if (strcmp(r->arm, best->arm) != 0 || strcmp(r->layout, name) == 0)
            continue;
        next = fmax(next, r->tokens_s);
        tied += r->tokens_s_interval[1] >= best->tokens_s_interval[0];
        if (r->tokens_s == best->runner_up_tokens_s)
            CU_ASSERT_EQUAL(r->tokens_s_interval[0], best->runner_up_interval[0]);
    }
    CU_ASSERT_EQUAL(best->runner_up_tokens_s, next);
    CU_ASSERT_EQUAL(best->tied, tied);
}

/* The map has the layout that wins when all layouts are predicted one by one, and the second one.
 * Where the best layouts of both arms differ, the interval of their ratio follows from both. */
static void test_best_layouts(void) {
    fixture f;
    open_fixture(&f, 1.2);
    f.o.gpus = "4";
    f.o.batches = "max";
    f.o.memory_gb = 120;
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(f.p->n, 2);
    char best[32];
    const prediction_record map[] = {f.p->rows[0], f.p->rows[1]};
    double most = map[1].tokens_s, gain = map[1].fp8_over_bf16;
    (void)snprintf(best, sizeof best, "%s", map[1].layout);
    CU_ASSERT(map[1].best);
    CU_ASSERT_STRING_NOT_EQUAL(map[1].layout, map[1].runner_up);
    CU_ASSERT(map[1].fp8_over_bf16_interval[0] < gain && gain < map[1].fp8_over_bf16_interval[1]);
    f.o.gpus = NULL;
    f.o.layouts = "DP4,DP2/TP2,TP4,DP4/EP4,DP2/TP2/EP4,TP4/EP4";
    predict_again(&f);
    double top[2] = {0, 0};
    for (int i = 0; i < f.p->n; i++) {
        const prediction_record *r = &f.p->rows[i];
        bool fp8 = strcmp(r->arm, "fp8") == 0;
        top[fp8] = fmax(top[fp8], r->tokens_s);
        if (fp8 && r->tokens_s == most)
            CU_ASSERT_STRING_EQUAL(r->layout, best);
        CU_ASSERT(!r->best);
        CU_ASSERT(r->weight_bytes + r->buffer_bytes + r->cache_bytes <= (int64_t)120e9);
    }
    CU_ASSERT_EQUAL(most, top[1]);
    expect_near(gain, top[1] / top[0]);
    expect_compared(&f, &map[1], best);
    close_fixture(&f);
}

/* 16 GPUs have at least two replicas of at most 8 GPUs, so one sequence is too few. */
static void test_idle_replicas(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.gpus = "16";
    f.o.batches = "1,2";
    predict_again(&f);
    CU_ASSERT_EQUAL(f.p->n, 2);
    for (int i = 0; i < f.p->n; i++) {
        CU_ASSERT_EQUAL(f.p->rows[i].batch, 2);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.p->rows[i].layout, "DP2/TP8"));
    }
    close_fixture(&f);
}

static void test_too_little_memory(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.batches = "8,max";
    f.o.memory_gb = 30; /* the weights alone take 31.5 GB */
    predict_again(&f);
    for (int i = 0; i < f.p->n; i++) {
        CU_ASSERT_EQUAL(f.p->rows[i].batch, 0);
        CU_ASSERT_EQUAL(f.p->rows[i].parts, 0);
    }
    close_fixture(&f);
}

static void test_kept_rows(void) {
    fixture f;
    char out[160];
    results *r = NULL;
    run_record run;
    arena mem = {0};
    open_fixture(&f, 1);
    (void)snprintf(out, sizeof out, "%s/out.json", f.dir);
    f.o.out = out;
    f.o.layouts = "DP16/TP1/EP16";
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(results_load(&r, out, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(run.predicted.n, (size_t)f.p->n);
    CU_ASSERT_EQUAL(run.e2e.n, 0); /* where measured steps are */
    for (size_t i = 0; i < run.predicted.n; i++) {
        CU_ASSERT(record_equal(&prediction_type, &run.predicted.at[i], &f.p->rows[i]));
        CU_ASSERT_STRING_EQUAL(run.predicted.at[i].network, "ib-ndr");
    }
    arena_release(&mem);
    results_free(r);
    (void)unlink(out);
    close_fixture(&f);
}

/* A report shows predicted rows as such, and ranks none of them. */
static void test_report(void) {
    fixture f;
    results *r = NULL;
    arena mem = {0};
    table t;
    buf csv = {0};
    open_fixture(&f, 1);
    predict_again(&f);
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (int i = 0; i < f.p->n; i++)
        add_row(r, "predicted", record_write(&prediction_type, &f.p->rows[i]));
    report_model *m = fixture_model(r);
    CU_ASSERT_FATAL(report_table_predicted(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "predicted");
    CU_ASSERT_EQUAL(m->n_steps + m->n_speeds, 0);
    CU_ASSERT_FATAL(report_table_paper_speed(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 1); /* FP8 beside BF16 */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "predicted");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "1 GPU");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3), "1 GPU, weights in bf16");
    write_csv_section(m, "predicted", &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "DP1/TP1"));
    buf_release(&csv);
    report_model_free(m);
    arena_release(&mem);
    results_free(r);
    close_fixture(&f);
}

static size_t findings_in(prediction_record *row) {
    const run_record run = {.predicted = {row, 1}};
    verify_findings f = {0};
    verify_predicted(&run, &f);
    size_t n = f.n[VERIFY_FORM] + f.n[VERIFY_PHYSICS];
    verify_release(&f);
    return n;
}

/* verify-run finds each number that was changed afterwards. */
static void test_changed_rows(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.against = f.two;
    predict_again(&f);
    prediction_record changed[7];
    CU_ASSERT_EQUAL(findings_in(&f.p->rows[0]), 0);
    CU_ASSERT_EQUAL(findings_in(&f.p->rows[2]), 0); /* FP8 */
    for (int i = 0; i < 7; i++)
        changed[i] = f.p->rows[i < 5 ? 0 : 2];
    changed[0].tokens_s *= 1.01;
    changed[1].error_pct += 0.1;
    changed[2].gpus = 3;
    changed[3].interval_ns[1] = changed[3].median_ns / 2;
    changed[4].limit = "exchange"; /* it takes the least time here */
    changed[5].fp8_over_bf16 *= 1.01;
    changed[6].runner_up_tokens_s = 2 * changed[6].tokens_s; /* a faster layout */
    for (int i = 0; i < 7; i++)
        CU_ASSERT(findings_in(&changed[i]) > 0);
    close_fixture(&f);
}

static void expect_refused(fixture *f, const char *text) {
    snap_err err = {0};
    predict_release(f->p);
    CU_ASSERT_EQUAL(predict_run(&f->o, NULL, f->p, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_refusals(void) {
    fixture f;
    open_fixture(&f, 1);
    f.o.from.measured = f.two; /* no step of one GPU */
    expect_refused(&f, "no decode step of one GPU with timed parts");
    f.o.from.measured = NULL;
    expect_refused(&f, "--predict needs --measured");
    f.o.from.measured = f.one;
    f.o.against = f.two;
    f.o.model_config = "deepseek-v3";
    expect_refused(&f, "its model is 'deepseek-v2-lite', and --model-config 'deepseek-v3'");
    f.o.layouts = "DP1";
    expect_refused(&f, "--against takes the layouts of its files");
    f.o.against = NULL;
    f.o.layouts = "TP16";
    expect_refused(&f, "TP is at most 8");
    f.o.layouts = NULL;
    f.o.model_config = "deepseek-v2-lite";
    f.o.against = f.two;
    write_split(f.two, "DP1/TP16");
    expect_refused(&f, "TP is at most 8");
    f.o.against = NULL;
    f.o.model_config = "deepseek-v3";
    f.o.layouts = "DP1";
    f.o.batches = "max";
    expect_refused(&f, "--batch max needs --gpu-memory");
    f.o.batches = "8";
    f.o.layouts = "DP4/EP4";
    f.o.batches = "3";
    expect_refused(&f, "--batch 3 is too small: each of 4 replicas needs a sequence");
    f.o.layouts = "DP1";
    f.o.arms = "fp8,nvfp4";
    expect_refused(&f, "--predict knows the arms bf16 and fp8");
    f.o.arms = "fp8";
    f.o.weights = "int4";
    expect_refused(&f, "--weights must be bf16 or e4m3");
    f.o.weights = "bf16";
    f.o.from.link = "token-ring";
    expect_refused(&f, "no link 'token-ring' (nvlink3, ");
    f.o.from.link = NULL;
    f.o.from.all_to_all = true;
    f.o.layouts = "DP4/EP4";
    f.o.batches = "8";
    expect_refused(&f, "no measured all_to_all inside a graph");
    close_fixture(&f);
}

CU_TestInfo tests_predict[] = {
    {"steps of many rows", test_many_rows},
    {"steps that follow known rules", test_known_rules},
    {"waiting for the busiest rank", test_waiting},
    {"against measured steps", test_against_measured_steps},
    {"the best layouts", test_best_layouts},
    {"idle replicas", test_idle_replicas},
    {"too little memory", test_too_little_memory},
    {"predicted rows come back from the file", test_kept_rows},
    {"the report marks predicted rows", test_report},
    {"verify-run finds changed numbers", test_changed_rows},
    {"what cannot be predicted", test_refusals},
    CU_TEST_INFO_NULL,
};
