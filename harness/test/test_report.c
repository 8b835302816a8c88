/* Tests reports: which runs they compare, their numbers against a simple loop over the rows, and
 * what figures and tables show. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/test/report_fixture.h"
#include "harness/test/report_readers.h"
#include "harness/view/eval_text.h"
#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/model.h"
#include "harness/view/outline.h"
#include "harness/view/pages.h"
#include "harness/view/report.h"
#include "harness/view/writers.h"

static report_model *model_of_two(results *runs[2], const char *key, js *value) {
    static const char *const names[] = {"one.json", "two.json"};
    report_model *m;
    for (int i = 0; i < 2; i++)
        runs[i] = fixture_load();
    js *row = js_at(results_section(runs[1], "evals"), 0);
    if (strcmp(key, "sha256") == 0)
        row = js_get_object(row, "dataset");
    CU_ASSERT(js_set_new(row, key, value));
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, runs, names, 2, NULL), SNAP_OK);
    return m;
}

static js *sampling(double temperature, int seed) {
    js *s = js_new_object();
    CU_ASSERT(js_set_num(s, "temperature", temperature) && js_set_num(s, "top_p", 0.95) &&
              js_set_int(s, "top_k", 0) && js_set_int(s, "max_tokens", 32768) &&
              js_set_int(s, "seed", seed));
    return s;
}

/* Runs with other data, prompts, grader or sampling are not compared; runs with another seed are.
 * Markdown, HTML and LaTeX say so. */
static void test_other_runs_are_not_compared(void) {
    const struct {
        const char *key, *says;
        js *value;
    } cases[] = {
        {"grader", "grader", js_new_str("aime-2")},
        {"prompt_sha256", "prompts",
         js_new_str("ababababababababababababababababababababababababababababababababab")},
        {"sha256", "data",
         js_new_str("cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd")},
        {"sampling", "sampling", sampling(0.6, 1)},
        {"sampling", "", sampling(1, 99)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        results *runs[2];
        report_model *m = model_of_two(runs, cases[i].key, cases[i].value);
        bool differs = cases[i].says[0] != '\0';
        arena mem = {0};
        table t;
        CU_ASSERT(report_table_mismatches(m, &mem, &t));
        CU_ASSERT_EQUAL_FATAL(t.n_rows, differs ? 1 : 0);
        if (differs) {
            CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "aime24");
            CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 1), cases[i].says);
            CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "one.json");
            CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 4), "two.json");
            CU_ASSERT_STRING_NOT_EQUAL(table_at(&t, 0, 3), table_at(&t, 0, 5));
        }
        buf md = {0}, html = {0}, tex = {0};
        report_markdown(m, &md);
        write_page(m, &html);
        CU_ASSERT_EQUAL(strstr(buf_str(&md), "not comparable") != NULL, differs);
        CU_ASSERT_EQUAL(strstr(buf_str(&html), "not comparable") != NULL, differs);
        write_latex(&t, &tex);
        CU_ASSERT_EQUAL(strstr(buf_str(&tex), "two.json") != NULL, differs);
        buf_release(&md);
        buf_release(&html);
        buf_release(&tex);
        arena_release(&mem);
        report_model_free(m);
        results_free(runs[0]);
        results_free(runs[1]);
    }
}

/* ---- numbers of the model, compared with a simple loop over the rows ---- */

static const js *partner_of(const js *bench, const js *cell) {
    for (size_t i = 0; i < js_len(bench); i++) {
        const js *other = js_at(bench, i);
        if (strcmp(js_get_str(other, "arm"), "fp8") == 0 &&
            js_equal(js_get(other, "shape"), js_get(cell, "shape")) &&
            js_equal(js_get(other, "scope"), js_get(cell, "scope")))
            return other;
    }
    return NULL;
}

static bool has_flags(const js *cell) {
    return js_len(js_get_array(cell, "flags")) > 0;
}

static void test_speedups(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    const js *bench = results_section(r, "bench");
    double logs[2] = {0};
    size_t n[2] = {0}, flagged[2] = {0};
    for (size_t i = 0; i < js_len(bench); i++) {
        const js *a = js_at(bench, i), *b = partner_of(bench, a);
        const js *pa = js_get_object(a, "performance"), *pb = js_get_object(b, "performance");
        if (strcmp(js_get_str(a, "arm"), "bf16") != 0 || !pa || !pb ||
            strcmp(js_get_str(a, "origin"), "measured") != 0)
            continue;
        int scope = strcmp(js_get_str(a, "scope"), "served") == 0;
        if (has_flags(a) || has_flags(b)) {
            flagged[scope]++;
            continue;
        }
        logs[scope] += log(js_get_num(pa, "median_ns", 0) / js_get_num(pb, "median_ns", 0));
        n[scope]++;
    }
    for (int k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL(m->gains[k].n, n[k]);
        CU_ASSERT_EQUAL(m->gains[k].flagged, flagged[k]);
        CU_ASSERT_DOUBLE_EQUAL(m->gains[k].mean, exp(logs[k] / (double)n[k]), 1e-12);
    }
    CU_ASSERT_EQUAL(n[0] + flagged[0], 7); /* eight shapes; one FP8 result is wrong */
    CU_ASSERT_EQUAL(flagged[0], 2);
    CU_ASSERT_EQUAL(n[1], 1);
    report_model_free(m);
    results_free(r);
}

/* With a flag on every cell, the headline gives no number and says why. */
static void test_headlines_without_a_clean_cell(void) {
    results *r = fixture_load();
    js *bench = results_section(r, "bench");
    for (size_t i = 0; i < js_len(bench); i++) {
        js *flags = js_new_array();
        CU_ASSERT(js_push_new(flags, js_new_str("shared")));
        CU_ASSERT(js_set_new(js_at(bench, i), "flags", flags));
    }
    report_model *m = fixture_model(r);
    buf md = {0}, html = {0};
    CU_ASSERT(m->gains[0].n == 0 && m->gains[0].flagged == 7 && isnan(m->gains[0].mean));
    report_markdown(m, &md);
    write_page(m, &html);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(buf_str(&md), "scope kernel: (no mean: every one of 7 shapes has a flag)."));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&html), "<b>–</b><span>speed-up of FP8 over BF16, scope "
                                                  "kernel</span><small>no mean: "));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&html), "of the roofline, BF16"));
    buf_release(&md);
    buf_release(&html);
    report_model_free(m);
    results_free(r);
}

/* Sustained rows of the same shapes are paired among themselves. Here they are ten times as slow,
 * so a speed-up across modes would be near 10 or 0.1. */
static void test_modes_are_not_paired(void) {
    results *r = fixture_load();
    js *bench = results_section(r, "bench");
    size_t rows = js_len(bench), sustained = 0;
    for (size_t i = 0; i < rows; i++) {
        js *copy = js_copy(js_at(bench, i)), *perf = js_get_object(copy, "performance");
        if (perf && strcmp(js_get_str(copy, "scope"), "kernel") == 0) {
            CU_ASSERT(js_set_str(copy, "mode", "sustained") &&
                      js_set_num(perf, "median_ns", 10 * js_get_num(perf, "median_ns", 0)) &&
                      js_push_new(bench, js_copy(copy)));
        }
        js_free(copy);
    }
    report_model *m = fixture_model(r);
    for (size_t i = 0; i < m->n_speeds; i++) {
        const report_speed *s = &m->speeds[i];
        if (isnan(s->speedup))
            continue;
        CU_ASSERT_STRING_EQUAL(s->bf16->row->mode, s->fp8->row->mode);
        CU_ASSERT(s->speedup > 0.5 && s->speedup < 2);
        sustained += strcmp(s->any->row->mode, "sustained") == 0;
    }
    CU_ASSERT_EQUAL(sustained, 7);
    arena mem = {0};
    table t;
    bool shown = false;
    CU_ASSERT(report_table_speed(m, &mem, &t));
    for (size_t i = 0; i < t.n_rows; i++)
        for (int c = 0; c < t.n_columns; c++)
            shown |= strstr(table_at(&t, i, c), ", sustained") != NULL;
    CU_ASSERT(shown);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static size_t fidelity_figures(const results *r) {
    report_model *m = fixture_model(r);
    buf out = {0};
    size_t n = 0;
    while (figure_fidelity(m, n, false, &out))
        n++;
    buf_release(&out);
    report_model_free(m);
    return n;
}

/* Rows with an error of 0 cannot be drawn on a logarithmic axis. They hide no later figure. */
static void test_errors_of_zero_hide_no_figure(void) {
    results *r = fixture_load();
    js *rows = results_section(r, "fidelity"), *first = js_copy(js_at(rows, 0));
    CU_ASSERT_EQUAL(fidelity_figures(r), 2);
    CU_ASSERT(js_set_num(js_at(rows, 0), "rel_l2", 0) &&
              js_set_str(js_at(rows, 0), "distribution", "zeros") && js_push_new(rows, first));
    CU_ASSERT_EQUAL(fidelity_figures(r), 2);
    results_free(r);
}

static size_t rows_of(const report_model *m, report_table_fn build) {
    arena mem = {0};
    table t;
    CU_ASSERT(build(m, &mem, &t));
    size_t n = t.n_rows;
    arena_release(&mem);
    return n;
}

static void test_reported_rows_stand_apart(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL(m->n_cells - m->n_measured, 1);
    CU_ASSERT_EQUAL(rows_of(m, report_table_reported), 1);
    CU_ASSERT_EQUAL(rows_of(m, report_table_speed), 9);
    CU_ASSERT_EQUAL(rows_of(m, report_table_not_measured), 1);
    for (size_t i = 0; i < m->n_speeds; i++)
        CU_ASSERT_STRING_EQUAL(m->speeds[i].any->row->origin, "measured");
    report_model_free(m);
    results_free(r);
}

static void test_figures_show_every_cell(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    buf out = {0};
    size_t speedups = 0, points = 0;
    for (size_t i = 0; figure_speedup(m, i, false, &out); i++)
        ;
    for (size_t i = 0; i < m->n_speeds; i++)
        if (!isnan(m->speeds[i].speedup)) {
            char text[FORMAT_MAX];
            (void)snprintf(text, sizeof text, ">%.2f</text>", m->speeds[i].speedup);
            CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), text));
            speedups++;
        }
    CU_ASSERT_EQUAL(count_of(buf_str(&out), "</title></rect>"),
                    speedups + 1); /* one more: the cell with the wrong result */
    CU_ASSERT_EQUAL(count_of(buf_str(&out), ">wrong</text>"), 1);
    buf_clear(&out);
    CU_ASSERT(figure_roofline(m, 0, false, &out));
    CU_ASSERT_FALSE(figure_roofline(m, 1, false, &out));
    for (size_t i = 0; i < m->n_measured; i++)
        points += strcmp(m->cells[i].row->status, "passed") == 0;
    CU_ASSERT_EQUAL(count_of(buf_str(&out), "of the roofline"), points);
    buf_clear(&out);
    CU_ASSERT(figure_parity(m, 0, false, &out));
    CU_ASSERT_EQUAL(count_of(buf_str(&out), "class=\"ci90\""), 3);
    CU_ASSERT_EQUAL(count_of(buf_str(&out), ">refused<"), 1);
    CU_ASSERT_EQUAL(count_of(buf_str(&out), ">equivalent<"), 1);
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

static js *passed_fp8(const js *rows) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "arm"), "fp8") == 0 &&
            js_get_object(js_at(rows, i), "performance"))
            return js_at(rows, i);
    CU_FAIL_FATAL("no such row");
    return NULL;
}

static void test_ablation_is_held_against_the_whole_arm(void) {
    results *r = fixture_load();
    js *rows = results_section(r, "bench"), *whole = passed_fp8(rows);
    report_model *before = fixture_model(r);
    size_t speeds = before->n_speeds;
    report_model_free(before);
    js *copy = js_copy(whole), *perf = js_get_object(copy, "performance");
    double ns = js_get_num(perf, "median_ns", 0);
    CU_ASSERT(js_set_str(copy, "arm", "fp8-in-place"));
    CU_ASSERT(js_set_num(perf, "median_ns", 1.25 * ns));
    CU_ASSERT(js_set_num(js_get_object(copy, "correctness"), "error", 0.0875));
    CU_ASSERT(js_push_new(rows, copy));
    report_model *m = fixture_model(r);
    arena mem = {0};
    table t;
    CU_ASSERT(m->n_speeds == speeds); /* it is not an arm of the comparison */
    CU_ASSERT_FATAL(report_table_ablation(m, &mem, &t) && t.n_rows == 1);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 0), "FP32 accumulation (sums stay in the tensor cores)");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 7), "1.25×");
    CU_ASSERT_PTR_NOT_NULL(strstr(table_at(&t, 0, 9), "8.7"));
    buf out = {0};
    report_markdown(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "## The FP8 arm with one technique left out"));
    buf_clear(&out);
    write_page(m, &out);
    expect_page(buf_str(&out));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "id=\"ablation\""));
    buf_clear(&out);
    write_csv(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "fp8-in-place"));
    buf_release(&out);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* The tables say how each FP8 kernel of the file rounds P. A named arm with units of pages is no
 * row of the ablation. */
static void test_tables_name_the_unit(void) {
    results *r = fixture_load();
    js *rows = results_section(r, "bench"), *copy = js_copy(passed_fp8(rows));
    CU_ASSERT(js_set_str(copy, "arm", "fp8-page-units"));
    CU_ASSERT(js_set_str(copy, "kernel", "page_units_fp8"));
    js *named = js_copy(copy);
    CU_ASSERT(js_set_str(named, "name", "page"));
    CU_ASSERT(js_push_new(rows, named));
    report_model *m = fixture_model(r);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_ablation(m, &mem, &t));
    CU_ASSERT(t.n_rows == 0);
    report_model_free(m);
    CU_ASSERT(js_push_new(rows, copy));
    m = fixture_model(r);
    CU_ASSERT_FATAL(report_table_ablation(m, &mem, &t));
    CU_ASSERT(t.n_rows == 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(t.note, "page_units_fp8 round P in a unit of each page"));
    CU_ASSERT_PTR_NULL(strstr(t.note, "sm90_fp8"));
    CU_ASSERT_FATAL(report_table_speed(m, &mem, &t));
    CU_ASSERT_PTR_NOT_NULL(strstr(t.note, "page_units_fp8"));
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* Three layers of two configurations, with errors 1e-3 * (layer + 1) and 1e-2 / (layer + 1). */
static void add_layers(results *r, const char *model) {
    for (int i = 0; i < 6; i++) {
        int layer = i / 2;
        char row[512];
        (void)snprintf(row, sizeof row,
                       "{\"kind\":\"layer\",\"origin\":\"measured\",\"model\":\"m\",\"layer\":%d,"
                       "\"context\":32768,\"config\":\"%s\",\"rmse\":%g,\"cosine_diff\":1e-4,"
                       "\"rel_l2\":%.17g,\"lse_error\":0,\"max_abs\":1}",
                       layer, i % 2 ? "A" : "snapmla", 0.5 + layer,
                       i % 2 ? 1e-2 / (layer + 1) : 1e-3 * (layer + 1));
        js *o = js_parse(row, strlen(row), "row", NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(o);
        CU_ASSERT(js_set_str(o, "model", model));
        CU_ASSERT_EQUAL_FATAL(results_add(r, "model_fidelity", o, NULL), SNAP_OK);
    }
}

static void test_layers_of_a_model(void) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "fidelity", NULL, 0, NULL), SNAP_OK);
    add_layers(r, kEvil);
    js *half = js_copy(js_at(results_section(r, "model_fidelity"), 0));
    CU_ASSERT(js_delete(half, "rel_l2"));
    CU_ASSERT_EQUAL(results_add(r, "model_fidelity", half, NULL), SNAP_E_INPUT);
    report_model *m = fixture_model(r);
    arena mem = {0};
    table t;
    CU_ASSERT_FATAL(report_table_layers(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 2), "snapmla");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 3), "2.00e-03"); /* median */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 4), "3.00e-03"); /* worst, and its layer */
    CU_ASSERT_STRING_EQUAL(table_at(&t, 0, 5), "2");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 4), "1.00e-02");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 5), "0");
    CU_ASSERT_STRING_EQUAL(table_at(&t, 1, 6), "2.50e+00");
    expect_well_formed(m);
    expect_latex(m, report_table_layers);
    buf out = {0};
    CU_ASSERT_TRUE(figure_layers(m, 0, true, &out));
    CU_ASSERT_EQUAL(count_of(buf_str(&out), "<circle"), 6);
    CU_ASSERT_FALSE(figure_layers(m, 1, true, &out));
    buf_clear(&out);
    write_csv(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "0.0033333333333333335"));
    buf_release(&out);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static void test_an_empty_run_makes_an_empty_report(void) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    report_model *m = fixture_model(r);
    char dir[] = "/tmp/snapmla-report-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    buf paths = {0}, page = {0};
    CU_ASSERT_EQUAL(report_write(m, dir, REPORT_DEFAULT | REPORT_SVG, &paths, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(count_of(buf_str(&paths), "\n"), 3);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&paths), ".tex"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&paths), ".svg"));
    write_page(m, &page);
    expect_page(buf_str(&page));
    for (char *line = paths.data, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        CU_ASSERT_EQUAL(remove(line), 0);
    }
    CU_ASSERT_EQUAL(remove(dir), 0);
    buf_release(&page);
    buf_release(&paths);
    report_model_free(m);
    results_free(r);
}

/* The report and the tables of eval mark data that differ from the manifest, and data of a listed
 * set without a published checksum. Data of a set that the manifest does not list have no mark. */
static void test_unverified_data_is_marked(void) {
    static const struct {
        const char *manifest, *mark;
    } cases[] = {{"match", NULL},
                 {"unknown", NULL},
                 {"unverified", "data UNVERIFIED"},
                 {"differs", "data DIFFER from the manifest"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        results *r = fixture_load();
        js *row = js_at(results_section(r, "evals"), 0);
        buf page = {0}, text = {0};
        CU_ASSERT(js_set_str(js_get_object(row, "dataset"), "manifest", cases[i].manifest));
        report_model *m = fixture_model(r);
        report_markdown(m, &page);
        CU_ASSERT_EQUAL(eval_view(r, false, &text, NULL), SNAP_OK);
        const char *mark = cases[i].mark ? cases[i].mark : "data ";
        CU_ASSERT_EQUAL(strstr(buf_str(&text), mark) != NULL, cases[i].mark != NULL);
        CU_ASSERT(!cases[i].mark || strstr(buf_str(&page), mark));
        report_model_free(m);
        results_free(r);
        buf_release(&page);
        buf_release(&text);
    }
}

/* A page about servers or recordings is named after its arms, and one about kernels or checkpoints
 * after the formats. */
static void test_title(void) {
    static const struct {
        const char *arms, *generator, *control, *title;
        bool cells;
    } cases[] = {
        {"base new", "http", "", "Quality of new against base", false},
        {"base new other", "replay", "", "Quality of new and other against base", false},
        {"base a b c d e f", "http", "", "Quality of a, b, c, d and others against base", false},
        {"base new", "http", "new", "Quality of base", false},
        {"base new", "http", "base", "Quality of new", false},
        {"one", "http", "", "Quality of one", false},
        {"bf16 fp8", "local", "", "FP8 MLA decoding against BF16", false},
        {"base new", "http", "", "FP8 MLA decoding against BF16", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[40];
        arm_record arms[8] = {{0}};
        pair_record pair = {.arm = cases[i].control, .control = "seeds"};
        eval_record e = {.arms = {.at = arms}, .pairs = {.at = &pair, .n = 1}};
        report_eval row = {.row = &e};
        report_model m = {.outline = &report_outline_whole,
                          .evals = &row,
                          .n_evals = 1,
                          .n_cells = cases[i].cells};
        buf title = {0};
        char *rest;
        (void)snprintf(words, sizeof words, "%s", cases[i].arms);
        for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            arms[e.arms.n++] = (arm_record){.name = w, .generator = cases[i].generator};
        report_title(&m, &title);
        CU_ASSERT_STRING_EQUAL(buf_str(&title), cases[i].title);
        buf_release(&title);
    }
}

/* One circle for each arm with a length and an accuracy, except rows of further metrics, and one
 * for each class of arms in the legend. */
static void test_lengths(void) {
    static const double kNone = (double)NAN;
    arm_record arms[3] = {{.name = "a", .accuracy_pct = 50, .completion_tokens_mean = 100},
                          {.name = "b", .accuracy_pct = 60, .completion_tokens_mean = 9000},
                          {.name = "c", .accuracy_pct = 60, .completion_tokens_mean = kNone}};
    for (size_t i = 0; i < 3; i++)
        arms[i].ci95_pct[0] = arms[i].ci95_pct[1] = kNone;
    eval_record e = {.task = "t", .arms = {.at = arms, .n = 3}};
    eval_record further = {.task = "t:loose", .arms = {.at = arms, .n = 3}};
    report_eval rows[2] = {{.row = &e}, {.row = &further}};
    report_model m = {.evals = rows, .n_evals = 2};
    buf svg = {0};
    CU_ASSERT(figure_length(&m, 0, false, &svg));
    CU_ASSERT_EQUAL(count_of(buf_str(&svg), "<circle"), 2 + 2);
    expect_xml(buf_str(&svg));
    CU_ASSERT_FALSE(figure_length(&m, 1, false, &svg));
    arms[0].accuracy_pct = arms[1].completion_tokens_mean = kNone;
    CU_ASSERT_FALSE(figure_length(&m, 0, false, &svg));
    buf_release(&svg);
}

CU_TestInfo tests_report[] = {
    {"unverified data is marked", test_unverified_data_is_marked},
    {"other runs are not compared", test_other_runs_are_not_compared},
    {"speed-ups", test_speedups},
    {"reported rows have their own table", test_reported_rows_stand_apart},
    {"headlines without a clean cell", test_headlines_without_a_clean_cell},
    {"modes are not paired", test_modes_are_not_paired},
    {"errors of zero hide no figure", test_errors_of_zero_hide_no_figure},
    {"figures show every cell", test_figures_show_every_cell},
    {"the ablation is compared with the full arm", test_ablation_is_held_against_the_whole_arm},
    {"tables name the unit of P", test_tables_name_the_unit},
    {"layers of a model", test_layers_of_a_model},
    {"an empty run makes an empty report", test_an_empty_run_makes_an_empty_report},
    {"the title names arms or formats", test_title},
    {"accuracy against length", test_lengths},
    CU_TEST_INFO_NULL,
};
