/* Compares the paper's tables of decoding speed with numbers computed by hand. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/record/prediction.h"
#include "harness/test/paper_fixture.h"
#include "harness/view/figures.h"
#include "harness/view/layout_series.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"

#define NONE "–" /* an empty cell */

static void test_steps_of_whole_models(void) {
    report_model *m = paper_of(NULL);
    arena mem = {0};
    table t;
    static const char doc[] =
        "{\"what\":\"e2e\",\"model_config\":\"big\",\"device\":\"D\",\"rows\":["
        "{\"arm\":\"bf16\",\"step\":\"decode\",\"context\":8192,\"batch\":4,\"tokens_s\":500},"
        "{\"arm\":\"fp8\",\"step\":\"decode\",\"context\":8192,\"batch\":4,\"tokens_s\":800,"
        "\"fp8_over_bf16\":1.6},"
        "{\"arm\":\"fp8\",\"step\":\"prompt\",\"context\":8192,\"batch\":1,\"tokens_s\":9,"
        "\"fp8_over_bf16\":1},"
        "{\"arm\":\"fp8\",\"step\":\"decode\",\"context\":65536,\"batch\":0}]}";
    CU_ASSERT_EQUAL_FATAL(paper_add(m, doc, true, NULL), SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_speed(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 2);
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "BF16", "tokens/s"), "500");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "FP8", "tokens/s"), "800");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "speed-up", ""), "1.60×");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 1, "origin", ""), "reported");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 1, "speed-up", ""), "1.91×");
    buf csv = {0};
    write_csv(m, &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "\r\nstep,doc,measured,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), ",500,800,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "\r\nquote,,reported,"));
    buf_release(&csv);
    arena_release(&mem);
    report_model_free(m);
}

/* A result file, in which each row names its model. */
static void test_steps_of_a_result_file(void) {
    report_model *m = paper_of(NULL);
    arena mem = {0};
    table t;
    static const char doc[] =
        "{\"provenance\":{\"backend\":{\"device\":\"D\"}},\"e2e\":["
        "{\"model_config\":\"small\",\"arm\":\"fp8\",\"step\":\"decode\",\"context\":8192,"
        "\"batch\":4,\"tokens_s\":800,\"fp8_over_bf16\":1.6},"
        "{\"model_config\":\"large\",\"arm\":\"fp8\",\"step\":\"decode\",\"context\":8192,"
        "\"batch\":4,\"tokens_s\":300,\"fp8_over_bf16\":1.5}]}";
    CU_ASSERT_EQUAL_FATAL(paper_add(m, doc, true, NULL), SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_speed(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 3);
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "model", ""), "large"); /* sorted by model */
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "BF16", "tokens/s"), "200");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "speed-up", ""), "1.50×");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 1, "BF16", "tokens/s"), "500");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 1, "BF16", "batch"), "–"); /* no BF16 row */
    arena_release(&mem);
    report_model_free(m);
}

static void test_layouts_as_text(void) {
    static const struct {
        const char *text, *says;
        int gpus;
    } cases[] = {{"", "1 GPU", 1},
                 {"DP1/TP1", "1 GPU", 1},
                 {"DP4/TP1/EP4", "DP4/EP4", 4},
                 {"DP1/TP4/EP4", "TP4/EP4", 4},
                 {"DP2/TP2/EP4", "DP2/TP2/EP4", 4},
                 {"DP2/TP1", "DP2", 2},
                 {"EP2", "DP2/EP2", 2},
                 {"DP0/TP2", "DP0/TP2", 0},
                 {"DP2TP2", "DP2TP2", 0},
                 {"DP99999999999/TP2", "DP99999999999/TP2", 0},
                 {"PP2", "PP2", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[LAYOUT_SHORT_MAX];
        CU_ASSERT_STRING_EQUAL(layout_short(cases[i].text, out), cases[i].says);
        CU_ASSERT_EQUAL(layout_read(cases[i].text).gpus, cases[i].gpus);
    }
}

/* A file in which one model was measured in layout @layout with 32k tokens. The largest batches are
 * 10 in BF16 and 18 in FP8; with 10 sequences, FP8 is slower than with 18. */
static void add_layout(report_model *m, const char *layout, int bf16, int fp8) {
    char doc[1600];
    (void)snprintf(doc, sizeof doc,
                   "{\"provenance\":{\"backend\":{\"device\":\"D\"}},\"e2e\":["
                   "{\"model_config\":\"big.json\",\"arm\":\"bf16\",\"step\":\"decode\","
                   "\"context\":32768,\"batch\":10,\"tokens_s\":%d,\"layout\":\"%s\"},"
                   "{\"model_config\":\"big.json\",\"arm\":\"fp8\",\"step\":\"decode\","
                   "\"context\":32768,\"batch\":10,\"tokens_s\":%d,\"fp8_over_bf16\":1.25,"
                   "\"layout\":\"%s\"},"
                   "{\"model_config\":\"big.json\",\"arm\":\"fp8\",\"step\":\"decode\","
                   "\"context\":32768,\"batch\":18,\"tokens_s\":%d,\"fp8_over_bf16\":%.17g,"
                   "\"layout\":\"%s\"}]}",
                   bf16, layout, bf16 * 5 / 4, layout, fp8, (double)fp8 / bf16, layout);
    CU_ASSERT_EQUAL_FATAL(paper_add(m, doc, true, NULL), SNAP_OK);
}

/* A predicted step of 8 GPUs, with 64k tokens. @gain: FP8 over BF16; NAN for BF16. */
static prediction_record predicted(const char *arm, int64_t batch, double tokens_s, double lo,
                                   double hi, double gain) {
    return (prediction_record){.parts = PREDICTION_FITS,
                               .origin = "predicted",
                               .model_config = "big",
                               .layout = "DP8/TP1/EP8",
                               .gpus = 8,
                               .weights = "e4m3",
                               .link = "measured",
                               .network = "",
                               .exchange = "",
                               .arm = arm,
                               .context = 65536,
                               .batch = batch,
                               .largest = true,
                               .median_ns = 1e6,
                               .interval_ns = {9e5, 2e6},
                               .limit = "experts",
                               .tokens_s = tokens_s,
                               .tokens_s_interval = {lo, hi},
                               .fp8_over_bf16 = gain,
                               .fp8_over_bf16_interval = {gain - 0.1, gain + 0.2},
                               .runner_up_tokens_s = (double)NAN,
                               .runner_up_interval = {(double)NAN, (double)NAN},
                               .tied = RECORD_NO_COUNT,
                               .measured_fp8_over_bf16 = (double)NAN};
}

static prediction_record predicted_fp8(void) {
    return predicted("fp8", 120, 3000, 2700, 3200, 1.5);
}

static results *predictions(void) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    const prediction_record rows[] = {predicted("bf16", 64, 2000, 1800, 2100, (double)NAN),
                                      predicted_fp8()};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        js *row = record_write(&prediction_type, &rows[i]);
        CU_ASSERT_EQUAL_FATAL(results_add(r, "predicted", row, NULL), SNAP_OK);
    }
    return r;
}

/* Only predictions of steps that were measured have a row. */
static void test_predictions_that_were_checked(void) {
    prediction_record row = predicted_fp8();
    results *r = predictions();
    arena mem = {0};
    table t;
    row.parts = PREDICTION_FITS | PREDICTION_MEASURED;
    row.median_ns = 1.9e6;
    row.measured_ns = 2e6;
    row.error_pct = -5;
    row.measured_attention_ns = row.measured_exchange_ns = (double)NAN;
    row.measured_experts_ns = row.measured_rest_ns = (double)NAN;
    CU_ASSERT_EQUAL_FATAL(results_add(r, "predicted", record_write(&prediction_type, &row), NULL),
                          SNAP_OK);
    report_model *m = paper_of(r);
    CU_ASSERT_TRUE_FATAL(report_table_paper_checked(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 1);
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "model", ""), "big");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "layout", ""), "DP8/EP8");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "cache", ""), "FP8");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "batch", ""), "120");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "measured, ms", ""), "2.0");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "predicted, ms", ""), "1.9 (0.9–2.0)");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "error, %", ""), "−5.0");
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* Two layouts in the wrong order, the first of them measured twice, and a prediction. */
static report_model *layouts(results *predicted) {
    report_model *m = paper_of(predicted);
    add_layout(m, "DP1/TP4/EP4", 400, 600);
    add_layout(m, "DP4/TP1/EP4", 1000, 1500);
    add_layout(m, "DP1/TP4/EP4", 400, 640);
    return m;
}

static void test_rows_have_layout_and_batches(void) {
    static const struct {
        const char *origin, *layout, *where, *context, *batch[2], *speed[2], *gain;
    } rows[] = {{"measured", "DP4/EP4", "4 × D", "32k", {"10", "10"}, {"1000", "1250"}, "1.25×"},
                {"measured", "DP4/EP4", "4 × D", "32k", {"10", "18"}, {"1000", "1500"}, "1.50×"},
                {"measured", "TP4/EP4", "4 × D", "32k", {"10", "10"}, {"400", "500"}, "1.25×"},
                {"measured", "TP4/EP4", "4 × D", "32k", {"10", "10"}, {"400", "500"}, "1.25×"},
                {"measured", "TP4/EP4", "4 × D", "32k", {"10", "18"}, {"400", "600"}, "1.50×"},
                {"measured", "TP4/EP4", "4 × D", "32k", {"10", "18"}, {"400", "640"}, "1.60×"},
                {"predicted",
                 "DP8/EP8",
                 "8 GPUs, weights in e4m3",
                 "64k",
                 {"64", "120"},
                 {"2000 (1800–2100)", "3000 (2700–3200)"},
                 "1.50× (1.40–1.70)"},
                {"reported",
                 "DP8",
                 "up to; 8 GPUs, 16k to 128k",
                 NONE,
                 {NONE, NONE},
                 {NONE, NONE},
                 "1.91×"}};
    results *r = predictions();
    report_model *m = layouts(r);
    arena mem = {0};
    table t;
    CU_ASSERT_TRUE_FATAL(report_table_paper_speed(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < t.n_rows; i++) {
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "origin", ""), rows[i].origin);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "layout", ""), rows[i].layout);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "device or conditions", ""), rows[i].where);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "context", ""), rows[i].context);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "BF16", "batch"), rows[i].batch[0]);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "FP8", "batch"), rows[i].batch[1]);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "BF16", "tokens/s"), rows[i].speed[0]);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "FP8", "tokens/s"), rows[i].speed[1]);
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "speed-up", ""), rows[i].gain);
    }
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* The ratios of TP4/EP4 are 600/400 and 640/400: 1.55 on average. The batch of 10 is left out. */
static void test_layouts_over_the_context(void) {
    static const char *const rows[][8] = {
        {"measured", "DP4/EP4", "BF16", "1000", "–", "–", "1"},
        {"measured", "DP4/EP4", "FP8", "1500", "–", "–", "1"},
        {"measured", "DP4/EP4", "FP8 / BF16", "1.50×", "–", "1.50×", "1"},
        {"measured", "TP4/EP4", "BF16", "400", "–", "–", "2"},
        {"measured", "TP4/EP4", "FP8", "620", "–", "–", "2"},
        {"measured", "TP4/EP4", "FP8 / BF16", "1.55× (1.50–1.60)", "–", "1.55×", "2"},
        {"predicted", "DP8/EP8", "BF16", "–", "2000 (1800–2100)", "–", "–"},
        {"predicted", "DP8/EP8", "FP8", "–", "3000 (2700–3200)", "–", "–"},
        {"predicted", "DP8/EP8", "FP8 / BF16", "–", "1.50× (1.40–1.70)", "1.50×", "–"},
        {"reported", "DP8", "FP8 / BF16", "–", "–", "1.91×", "–"}};
    static const struct {
        const char *head, *group;
    } columns[] = {{"origin", ""},     {"layout", ""},  {"cache", ""}, {"32k", "context"},
                   {"64k", "context"}, {"highest", ""}, {"runs", ""}};
    results *r = predictions();
    report_model *m = layouts(r);
    arena mem = {0};
    table t;
    CU_ASSERT_TRUE_FATAL(report_table_paper_layouts(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < t.n_rows; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, columns[k].head, columns[k].group),
                                   rows[i][k]);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* There is one figure for the measured steps, with a panel for each layout, and one for the
 * predicted steps. */
static void test_figures_of_layouts(void) {
    results *r = predictions();
    report_model *m = layouts(r);
    buf svg = {0};
    CU_ASSERT_TRUE(figure_layouts(m, 0, true, &svg));
    CU_ASSERT_EQUAL(count(buf_str(&svg), "<rect class=\"bf\""), 1 + 2); /* and the legend's */
    CU_ASSERT_EQUAL(count(buf_str(&svg), "<rect class=\"f8\""), 1 + 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), ">TP4/EP4<"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), ">1.55×<"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), "FP8, context 32k, batch 18: 620 tokens/s"));
    buf_clear(&svg);
    CU_ASSERT_TRUE(figure_layouts(m, 1, true, &svg));
    CU_ASSERT_EQUAL(count(buf_str(&svg), "<rect class=\"f8\""), 0);
    CU_ASSERT_EQUAL(count(buf_str(&svg), "<rect class=\"f8l\""), 1 + 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), "Predicted throughput of big"));
    CU_ASSERT_FALSE(figure_layouts(m, 2, true, &svg));
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* Steps of one GPU are not in the table of layouts, which then names the command. */
static void test_one_gpu_has_no_layout(void) {
    report_model *m = paper_of(NULL);
    arena mem = {0};
    buf md = {0};
    table t;
    add_layout(m, "DP1/TP1", 100, 150);
    CU_ASSERT_TRUE_FATAL(report_table_paper_layouts(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 1); /* the reported one */
    CU_ASSERT_FALSE(figure_layouts(m, 0, true, &md));
    report_markdown(m, &md);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&md), "ci/gpu\\_figure1.sh"));
    buf_release(&md);
    arena_release(&mem);
    report_model_free(m);
}

/* Of ten contexts, the longest eight have columns. Four layouts need two figures. */
static void test_many_contexts_and_layouts(void) {
    static const char *const all[] = {"DP8/TP1", "DP4/TP2", "DP2/TP4", "DP1/TP8"};
    report_model *m = paper_of(NULL);
    arena mem = {0};
    buf text = {0};
    table t;
    (void)buf_printf(&text, "{\"provenance\":{\"backend\":{\"device\":\"D\"}},\"e2e\":[");
    for (int i = 0; i < 40; i++)
        (void)buf_printf(&text,
                         "%s{\"model_config\":\"big\",\"arm\":\"fp8\",\"step\":\"decode\","
                         "\"context\":%d,\"batch\":4,\"tokens_s\":800,\"fp8_over_bf16\":1.6,"
                         "\"layout\":\"%s\"}",
                         i ? "," : "", 1024 * (1 + i / 4 * 7 % 10), all[i % 4]);
    (void)buf_printf(&text, "]}");
    CU_ASSERT_EQUAL_FATAL(paper_add(m, buf_str(&text), true, NULL), SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_layouts(m, &mem, &t));
    CU_ASSERT_EQUAL(t.n_rows, 3 * 4 + 1);
    CU_ASSERT_EQUAL_FATAL(t.n_columns, 5 + 8 + 2);
    CU_ASSERT_STRING_EQUAL(t.columns[5].head, "3k");
    CU_ASSERT_STRING_EQUAL(t.columns[12].head, "10k");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "3k", "context"), "500");
    buf_clear(&text);
    CU_ASSERT_TRUE(figure_layouts(m, 0, true, &text));
    CU_ASSERT_TRUE(figure_layouts(m, 1, true, &text));
    CU_ASSERT_FALSE(figure_layouts(m, 2, true, &text));
    CU_ASSERT_EQUAL(count(buf_str(&text), ">context<"), 4);
    buf_release(&text);
    arena_release(&mem);
    report_model_free(m);
}

static void test_csv_has_layouts(void) {
    results *r = predictions();
    report_model *m = layouts(r);
    buf csv = {0};
    write_csv_section(m, "step", &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "layout"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "bf16_batch"));
    CU_ASSERT_EQUAL(count(buf_str(&csv), "DP4/TP1/EP4"), 2);
    CU_ASSERT_EQUAL(count(buf_str(&csv), "DP1/TP4/EP4"), 4);
    buf_clear(&csv);
    write_csv_section(m, "quote", &csv);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&csv), "DP8/TP1"));
    buf_release(&csv);
    report_model_free(m);
    results_free(r);
}

CU_TestInfo tests_paper_speed[] = {
    {"steps of whole models", test_steps_of_whole_models},
    {"steps of whole models from a result file", test_steps_of_a_result_file},
    {"layouts as text", test_layouts_as_text},
    {"rows have layout and batches", test_rows_have_layout_and_batches},
    {"layouts over the context", test_layouts_over_the_context},
    {"predictions that were checked", test_predictions_that_were_checked},
    {"figures of layouts", test_figures_of_layouts},
    {"one GPU has no layout", test_one_gpu_has_no_layout},
    {"many contexts and layouts", test_many_contexts_and_layouts},
    {"CSV has layouts", test_csv_has_layouts},
    CU_TEST_INFO_NULL,
};
