/* Checks the figures of predicted layouts. What each square of the maps in results/ must have is
 * computed here from the JSON rows. */
#include <CUnit/CUnit.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/record/prediction.h"
#include "harness/test/paper_fixture.h"
#include "harness/test/report_readers.h"
#include "harness/view/figures.h"
#include "harness/view/paper.h"

/* ---- the squares of a figure ---- */

/* Appends the text of an element. Entities stay as they are. */
static void append_content(buf *out, const char *element, const char *end) {
    const char *from = strchr(element, '>');
    const char *to = from && from < end ? strstr(from, "</") : NULL;
    if (to && to < end)
        (void)buf_append(out, from + 1, (size_t)(to - from - 1));
}

/* Appends one line for each square of the panels: its class, and the texts in it, with "|" before
 * each. "b" after the class stands for bold text. Each element of a figure has a line of its own.
 * The first @skip squares belong to the legend. */
static void squares_of(const char *svg, size_t skip, buf *out) {
    const char *next;
    for (const char *line = svg; *line; line = next) {
        next = strchr(line, '\n') ? strchr(line, '\n') + 1 : line + strlen(line);
        const char *cls = strstr(line, "class=\"");
        if (!cls || cls > next)
            continue;
        cls += strlen("class=\"");
        if (text_starts(line, "<rect")) {
            if (skip && skip--)
                continue;
            (void)buf_printf(out, "%s%.*s", out->len ? "\n" : "", (int)strcspn(cls, "\""), cls);
        } else if (text_starts(cls, "c s") || text_starts(cls, "m c\"")) {
            const char *bold = strstr(cls, " b\"");
            (void)buf_printf(out, "%s|", bold && bold < next ? " b" : "");
            append_content(out, line, next);
        }
    }
}

/* The figure must have exactly the squares of @expected. */
static void expect_squares(const char *svg, size_t skip, const char *expected) {
    buf found = {0};
    squares_of(svg, skip, &found);
    CU_ASSERT_STRING_EQUAL(buf_str(&found), expected);
    if (strcmp(buf_str(&found), expected) != 0)
        printf("\nfound:\n%s\nexpected:\n%s\n", buf_str(&found), expected);
    buf_release(&found);
}

/* ---- what JSON rows must give ---- */

typedef struct {
    double at[32];
    int n;
} numbers;

static void insert(numbers *s, double x) {
    int i = s->n;
    for (int k = 0; k < s->n; k++)
        if (s->at[k] == x)
            return;
    CU_ASSERT_FATAL(s->n < (int)(sizeof s->at / sizeof s->at[0]));
    for (; i > 0 && s->at[i - 1] > x; i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = x;
    s->n++;
}

static bool is_fit(const js *row) {
    return js_get_num(row, "batch", 0) > 0;
}

static bool has(const js *row, const char *arm, double gpus, double context, bool largest) {
    return strcmp(js_get_str(row, "arm"), arm) == 0 && js_get_num(row, "gpus", 0) == gpus &&
           js_get_num(row, "context", 0) == context &&
           js_get_bool(row, "largest", false) == largest;
}

/* @batch < 0: the largest batch. NULL: no such row that fits. */
static const js *row_of(const js *rows, const char *arm, double gpus, double context,
                        double batch) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (has(js_at(rows, i), arm, gpus, context, batch < 0) && is_fit(js_at(rows, i)) &&
            (batch < 0 || js_get_num(js_at(rows, i), "batch", 0) == batch))
            return js_at(rows, i);
    return NULL;
}

static numbers column(const js *rows, const char *arm, const char *key) {
    numbers s = {.n = 0};
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        bool batch = strcmp(key, "batch") == 0;
        if (strcmp(js_get_str(row, "arm"), arm) == 0 &&
            (!batch || (is_fit(row) && !js_get_bool(row, "largest", false))))
            insert(&s, js_get_num(row, key, 0));
    }
    return s;
}

static void expect_layout(buf *out, const js *row) {
    int dp = 0, tp = 0, ep = 0;
    CU_ASSERT_FATAL(sscanf(js_get_str(row, "layout"), "DP%d/TP%d/EP%d", &dp, &tp, &ep) >= 2);
    const js *mine = js_get_array(row, "tokens_s_interval"),
             *second = js_get_array(row, "runner_up_interval");
    bool tied = second && js_num(js_at(second, 1)) >= js_num(js_at(mine, 0));
    const char *bold = tied ? "" : " b";
    char cut[32] = "1 GPU";
    if (dp > 1)
        (void)snprintf(cut, sizeof cut, tp > 1 ? "DP%d/TP%d" : "DP%d", dp, tp);
    else if (tp > 1)
        (void)snprintf(cut, sizeof cut, "TP%d", tp);
    (void)buf_printf(out, "h%d%s|%s", tp == 1 ? 2 : tp == 2 ? 4 : tp == 4 ? 6 : 8, bold, cut);
    if (ep > 1)
        (void)buf_printf(out, "%s|EP%d", bold, ep);
    if (js_get_bool(row, "largest", false))
        (void)buf_printf(out, "|%.0f", js_get_num(row, "batch", 0));
    if (tied)
        (void)buf_puts(out, "|=");
}

/* Of the numbers of sequences without a row, the largest ones do not fit: as many as there are rows
 * without a time. */
static bool does_not_fit(const js *rows, const char *arm, double gpus, double context,
                         const numbers *batches, int b) {
    int without = 0, larger = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        without += has(js_at(rows, i), arm, gpus, context, false) && !is_fit(js_at(rows, i));
    for (int k = b + 1; k < batches->n; k++)
        larger += !row_of(rows, arm, gpus, context, batches->at[k]);
    return larger < without;
}

static void expected_map(const js *rows, const char *arm, buf *out) {
    const numbers gpus = column(rows, arm, "gpus"), contexts = column(rows, arm, "context"),
                  batches = column(rows, arm, "batch");
    for (int g = 0; g < gpus.n; g++)
        for (int b = 0; b <= batches.n; b++)
            for (int c = 0; c < contexts.n; c++) {
                const js *row = row_of(rows, arm, gpus.at[g], contexts.at[c],
                                       b < batches.n ? batches.at[b] : -1);
                (void)buf_puts(out, out->len ? "\n" : "");
                if (row)
                    expect_layout(out, row);
                else if (does_not_fit(rows, arm, gpus.at[g], contexts.at[c], &batches, b))
                    (void)buf_puts(out, "gr|×");
                else
                    (void)buf_puts(out, "gr|–");
            }
}

static void expected_parts(const js *rows, const char *arm, buf *out) {
    static const char *const keys[] = {"attention_ns", "exchange_ns", "experts_ns", "rest_ns"},
                             *const says[] = {"h7|attention", "h1|exchange", "band|experts",
                                              "h2|rest"};
    const numbers gpus = column(rows, arm, "gpus"), contexts = column(rows, arm, "context");
    for (int g = 0; g < gpus.n; g++)
        for (int c = 0; c < contexts.n; c++) {
            const js *row = row_of(rows, arm, gpus.at[g], contexts.at[c], -1);
            double ns[4], sum = 0;
            int most = 0;
            CU_ASSERT_FATAL(row != NULL);
            for (int i = 0; i < 4; i++) {
                ns[i] = js_get_num(row, keys[i], (double)NAN);
                sum += ns[i];
                most = ns[i] > ns[most] ? i : most;
            }
            (void)buf_printf(out, "%s%s|%.0f %%", out->len ? "\n" : "", says[most],
                             100 * ns[0] / sum);
        }
}

/* ---- the maps in results/ ---- */

static void check_file(const char *path) {
    static const char *const arms[] = {"bf16", "fp8"};
    results *r;
    buf svg = {0}, expected = {0};
    CU_ASSERT_EQUAL_FATAL(results_load(&r, path, NULL), SNAP_OK);
    report_model *m = fixture_model(r);
    const js *rows = results_section(r, "predicted");
    for (size_t i = 0; i < 2; i++) {
        CU_ASSERT_TRUE_FATAL(figure_layout_map(m, i, true, &svg));
        expect_xml(buf_str(&svg));
        expected_map(rows, arms[i], &expected);
        expect_squares(buf_str(&svg), 1 + 4, buf_str(&expected)); /* background and legend */
        buf_clear(&svg);
        buf_clear(&expected);
    }
    CU_ASSERT_FALSE(figure_layout_map(m, 2, true, &svg));
    for (size_t i = 0; i < 2; i++)
        expected_parts(rows, arms[i], &expected);
    CU_ASSERT_TRUE_FATAL(figure_largest_part(m, 0, false, &svg));
    expect_xml(buf_str(&svg));
    expect_squares(buf_str(&svg), 4, buf_str(&expected));
    CU_ASSERT_FALSE(figure_largest_part(m, 1, false, &svg));
    buf_release(&svg);
    buf_release(&expected);
    report_model_free(m);
    results_free(r);
}

static void test_kept_maps(void) {
    glob_t files;
    CU_ASSERT_EQUAL_FATAL(glob("results/predicted/*-map.json", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i]);
    globfree(&files);
}

/* ---- made rows ---- */

/* A row of a map on 8 GPUs, with 32k tokens and 16 sequences. */
static prediction_record row(const char *layout, double tokens_s) {
    prediction_record r;
    record_init(&prediction_type, &r);
    r.parts = PREDICTION_FITS;
    r.origin = "predicted";
    r.model_config = "a";
    r.layout = layout;
    r.gpus = 8;
    r.weights = "e4m3";
    r.link = "measured";
    r.arm = "fp8";
    r.context = 32768;
    r.batch = 16;
    r.best = true;
    r.weight_bytes = r.buffer_bytes = r.cache_bytes = 1;
    r.median_ns = 16e9 / tokens_s;
    r.interval_ns[0] = 0.9 * r.median_ns;
    r.interval_ns[1] = 1.1 * r.median_ns;
    r.attention_ns = r.exchange_ns = r.rest_ns = 0.2 * r.median_ns;
    r.experts_ns = 0.4 * r.median_ns;
    r.limit = "experts";
    r.tokens_s = tokens_s;
    r.tokens_s_interval[0] = 0.9 * tokens_s;
    r.tokens_s_interval[1] = 1.1 * tokens_s;
    r.tied = 0;
    return r;
}

static prediction_record row_without_time(const char *layout, int64_t gpus, int64_t context) {
    prediction_record r = row(layout, 1);
    r.parts = 0;
    r.gpus = gpus;
    r.context = context;
    r.batch = 0;
    r.best = false;
    return r;
}

static results *run_of(const prediction_record *rows, size_t n) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL_FATAL(
            results_add(r, "predicted", record_write(&prediction_type, &rows[i]), NULL), SNAP_OK);
    return r;
}

/* The number of figures of a kind. */
static size_t figures(const report_model *m, figure_fn draw) {
    buf svg = {0};
    size_t n = 0;
    while (n < FIGURES_MAX && draw(m, n, false, &svg))
        n++;
    buf_release(&svg);
    return n;
}

static void expect_map(const prediction_record *rows, size_t n, const char *expected) {
    results *r = run_of(rows, n);
    report_model *m = fixture_model(r);
    buf svg = {0};
    CU_ASSERT_TRUE_FATAL(figure_layout_map(m, 0, false, &svg));
    CU_ASSERT_EQUAL(figures(m, figure_layout_map), 1);
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 0); /* there is no largest batch */
    expect_squares(buf_str(&svg), 4, expected);
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* The intervals of the fastest layouts begin at 900. The last row has a tie with a third layout,
 * whose interval is wider than that of the second one. */
static void test_ties(void) {
    prediction_record rows[] = {row("DP4/TP2/EP8", 1000), row("DP1/TP8", 1000),
                                row("DP8/TP1", 1000), row("DP1/TP8", 1000)};
    for (int i = 0; i < 4; i++) {
        rows[i].context = 32768 << i;
        if (i == 2)
            continue;
        rows[i].runner_up = "DP2/TP4/EP8";
        rows[i].runner_up_tokens_s = 800;
        rows[i].runner_up_interval[0] = 700;
        rows[i].runner_up_interval[1] = i == 0 ? 900 : 899;
    }
    rows[3].tied = 1;
    expect_map(rows, 4, "h4|DP4/TP2|EP8|=\nh8 b|TP8\nh2 b|DP8\nh8|TP8|=");
}

/* On 8 GPUs, 16 sequences fit with 32k tokens, and not with 64k. On 256 GPUs, 64 sequences fit with
 * 32k tokens, and not with 64k. There is no layout of 256 GPUs for 16 sequences. */
static void test_cells_without_a_layout(void) {
    prediction_record rows[] = {
        row("DP8/TP1", 100), row("DP32/TP8", 900), row_without_time("DP8/TP1", 8, 65536),
        row_without_time("DP8/TP1", 8, 32768), row_without_time("DP32/TP8", 256, 65536)};
    rows[1].gpus = 256;
    rows[1].batch = 64;
    expect_map(rows, 5,
               "h2 b|DP8\ngr|×\ngr|×\ngr|×\n"
               "gr|–\ngr|–\nh8 b|DP32/TP8\ngr|×");
}

/* Nothing fits on 4 GPUs. On 256 GPUs, only a number of sequences was tried that fits nowhere, and
 * 16, which no layout allows. */
static void test_gpus_without_a_layout(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row_without_time("DP4/TP1", 4, 32768),
                                row_without_time("DP256/TP1", 256, 32768)};
    expect_map(rows, 3, "gr|×\nh2 b|DP8\ngr|–");
}

/* A damaged file may call a row the best that has no time. */
static void test_best_row_without_time(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row_without_time("DP4/TP2", 8, 65536),
                                row_without_time("DP4/TP2", 8, 65536)};
    rows[1].best = rows[2].best = rows[2].largest = true;
    rows[2].context = 131072;
    expect_map(rows, 2, "h2 b|DP8\ngr|×");
    results *r = run_of(rows, 3);
    report_model *m = fixture_model(r);
    buf svg = {0};
    CU_ASSERT_TRUE(figure_largest_part(m, 0, false, &svg));
    expect_squares(buf_str(&svg), 4, "gr|–\ngr|–\ngr|×");
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* Joined files can have two rows for one cell. */
static void test_the_fastest_row_is_shown(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row("DP2/TP4", 300), row("DP4/TP2", 200)};
    expect_map(rows, 3, "h6 b|DP2/TP4");
}

static void test_rows_without_a_map(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row_without_time("DP8/TP1", 8, 65536)};
    rows[0].best = false; /* a row of --layout */
    results *r = run_of(rows, 2), *none = run_of(NULL, 0);
    report_model *m = fixture_model(r), *empty = fixture_model(none);
    CU_ASSERT_EQUAL(figures(m, figure_layout_map), 0);
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 0);
    CU_ASSERT_EQUAL(figures(empty, figure_layout_map), 0);
    CU_ASSERT_EQUAL(figures(empty, figure_largest_part), 0);
    report_model_free(m);
    report_model_free(empty);
    results_free(r);
    results_free(none);
}

/* The map of each network also has the rows without a network. */
static void test_models_and_networks(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row("DP16/TP1/EP16", 200),
                                row("DP8/TP2/EP16", 300), row("DP8/TP1", 400), row("DP1/TP8", 500)};
    static const char *const expected[] = {"h2 b|DP8|16\nh2 b|DP16 b|EP16|16", "h2 b|DP8|16",
                                           "h2 b|DP8|16\nh4 b|DP8/TP2 b|EP16|16", "h8 b|TP8|16"};
    static const char *const names[] = {"a, weights in e4m3, network ib-ndr", "b, weights in e4m3",
                                        "a, weights in e4m3, network ib-xdr", "a, weights in bf16"};
    rows[1].gpus = rows[2].gpus = 16;
    rows[1].network = "ib-ndr";
    rows[2].network = "ib-xdr";
    rows[3].model_config = "b";
    rows[4].weights = "bf16";
    for (size_t i = 0; i < 5; i++)
        rows[i].largest = true;
    /* the file has them in another order */
    const prediction_record order[] = {rows[0], rows[3], rows[1], rows[2], rows[4]};
    results *r = run_of(order, 5);
    report_model *m = fixture_model(r);
    buf svg = {0};
    CU_ASSERT_EQUAL(figures(m, figure_layout_map), 4);
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 4);
    for (size_t i = 0; i < 4; i++) {
        buf_clear(&svg);
        CU_ASSERT_TRUE(figure_layout_map(m, i, false, &svg));
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), names[i]));
        expect_squares(buf_str(&svg), 4, expected[i]);
    }
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* Both cache formats are panels of one figure. */
static void test_cache_formats_share_a_figure(void) {
    prediction_record rows[] = {row("DP8/TP1", 100), row("DP8/TP1", 100), row("DP8/TP1", 100),
                                row_without_time("DP8/TP1", 8, 65536)};
    for (size_t i = 0; i < 4; i++)
        rows[i].largest = true;
    rows[0].arm = rows[3].arm = "bf16";
    rows[2].context = 65536;
    rows[2].attention_ns = 0.9 * rows[2].median_ns;
    rows[2].limit = "attention";
    results *r = run_of(rows, 4);
    report_model *m = fixture_model(r);
    buf svg = {0};
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 1);
    CU_ASSERT_TRUE(figure_largest_part(m, 0, false, &svg));
    expect_squares(buf_str(&svg), 4,
                   "band|experts|20 %\ngr|×\nband|experts|20 %\nh7|attention|53 %");
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), ">cache in bf16<"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&svg), ">cache in fp8<"));
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* 13 numbers of each kind: the smallest GPUs and sequences are left out, and the three smallest
 * contexts. 12 numbers of GPUs need two figures. */
static void test_limits(void) {
    enum { N = 13 };
    prediction_record rows[N];
    buf svg = {0};
    char text[64];
    for (int i = 0; i < N; i++) {
        int k = i * 5 % N; /* in another order */
        rows[i] = row("DP8/TP1", 100);
        rows[i].gpus = 8 * (k + 1);
        rows[i].batch = 100 + k;
        rows[i].context = 1024 * (k + 1);
    }
    results *r = run_of(rows, N);
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL_FATAL(figures(m, figure_layout_map), 2);
    CU_ASSERT_TRUE(figure_layout_map(m, 0, false, &svg));
    CU_ASSERT_TRUE(figure_layout_map(m, 1, false, &svg));
    for (int k = 0; k < N; k++) {
        (void)snprintf(text, sizeof text, ">%d GPUs<", 8 * (k + 1));
        CU_ASSERT_EQUAL(count_of(buf_str(&svg), text), k > 0);
        (void)snprintf(text, sizeof text, ">%d<", 100 + k);
        CU_ASSERT_EQUAL(count_of(buf_str(&svg), text), k > 0 ? 12 : 0);
        (void)snprintf(text, sizeof text, ">%dk<", k + 1);
        CU_ASSERT_EQUAL(count_of(buf_str(&svg), text), k > 2 ? 12 : 0);
    }
    CU_ASSERT_EQUAL(count_of(buf_str(&svg), "smallest numbers are left out"), 2);
    CU_ASSERT_EQUAL(count_of(buf_str(&svg), "<rect"), 2 * 4 + 12 * 12 * 10);
    buf_release(&svg);
    report_model_free(m);
    results_free(r);
}

/* Any text of a file may be hostile. */
static void test_hostile_names(void) {
    prediction_record rows[2] = {row(kEvil, 100), row("DP1/TP99999/EP99999", 100)};
    for (size_t i = 0; i < 2; i++) {
        rows[i].model_config = rows[i].arm = rows[i].link = rows[i].network = kEvil;
        rows[i].runner_up = kEvil;
        rows[i].runner_up_tokens_s = 99;
        rows[i].runner_up_interval[0] = 98;
        rows[i].runner_up_interval[1] = 99;
        rows[i].gpus = INT64_C(1) << (20 + i);
        rows[i].largest = true;
    }
    results *r = run_of(rows, 2);
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL(figures(m, figure_layout_map), 1);
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 1);
    expect_well_formed(m);
    report_model_free(m);
    results_free(r);
}

/* The paper's report has the figures and a table of the rows of maps only. A map has no bars over
 * the context: its layouts change from one context to the next. */
static void test_paper(void) {
    prediction_record rows[] = {row("DP8/TP1/EP8", 100), row("DP8/TP1/EP8", 150),
                                row("DP4/TP2/EP8", 90)};
    rows[0].arm = "bf16";
    rows[1].fp8_over_bf16 = 1.5;
    rows[0].largest = rows[1].largest = true;
    rows[2].best = false;
    rows[2].context = 65536;
    results *r = run_of(rows, 3);
    report_model *m = paper_of(r);
    arena mem = {0};
    table t;
    CU_ASSERT_EQUAL(figures(m, figure_layout_map), 2);
    CU_ASSERT_EQUAL(figures(m, figure_largest_part), 1);
    CU_ASSERT_EQUAL(figures(m, figure_layouts), 0);
    CU_ASSERT_TRUE_FATAL(report_table_paper_map(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 2);
    CU_ASSERT_STRING_EQUAL(t.id, "paper-map");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 0, "cache", ""), "bf16");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 1, "tokens/s", ""), "150");
    expect_well_formed(m);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

CU_TestInfo tests_layout_map[] = {
    {"maps in results/", test_kept_maps},
    {"ties", test_ties},
    {"cells without a layout", test_cells_without_a_layout},
    {"GPUs without a layout", test_gpus_without_a_layout},
    {"a best row without a time", test_best_row_without_time},
    {"the fastest row is shown", test_the_fastest_row_is_shown},
    {"rows without a map", test_rows_without_a_map},
    {"models and networks", test_models_and_networks},
    {"cache formats share a figure", test_cache_formats_share_a_figure},
    {"limits", test_limits},
    {"hostile names", test_hostile_names},
    {"paper", test_paper},
    CU_TEST_INFO_NULL,
};
