/* Compares the paper's tables with numbers computed by hand from the rows here, and compiles the
 * LaTeX if pdflatex is installed. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/test/paper_fixture.h"
#include "harness/view/outline.h"
#include "harness/view/pages.h"
#include "harness/view/paper.h"
#include "harness/view/report.h"
#include "harness/view/report_files.h"
#include "harness/view/writers.h"

/* A shape, and the TFLOPS of both arms. */
typedef struct {
    int heads, batch, context, s_q;
    double bf16, fp8;
} point;

/* Series over heads: 16, 64, 128 at batch 8, context 4096, s_q 1; over batch: 8, 16 at 64 heads;
 * over s_q: 1, 2 at 128 heads. The cell with 64 heads, batch 4, context 1024 differs from
 * every other in at least two numbers, so it belongs to no series. */
static const point kPoints[] = {{16, 8, 4096, 1, 100, 150},  {64, 8, 4096, 1, 200, 320},
                                {128, 8, 4096, 1, 300, 450}, {64, 16, 4096, 1, 210, 336},
                                {128, 8, 4096, 2, 310, 480}, {64, 4, 1024, 1, 50, 60}};

static js *passed_row(const js *rows, const char *arm) {
    for (size_t i = 0; i < js_len(rows); i++) {
        js *row = js_at(rows, i);
        if (strcmp(js_get_str(row, "arm"), arm) == 0 && js_get_object(row, "performance") &&
            strcmp(js_get_str(row, "scope"), "kernel") == 0 &&
            strcmp(js_get_str(row, "origin"), "measured") == 0)
            return row;
    }
    CU_FAIL_FATAL("no such row");
    return NULL;
}

static void add_point(results *r, const js *like, const point *p, bool fp8) {
    js *row = js_copy(like), *shape = js_get_object(row, "shape");
    js *perf = js_get_object(row, "performance");
    double tflops = fp8 ? p->fp8 : p->bf16;
    CU_ASSERT(js_set_int(shape, "heads", p->heads) && js_set_int(shape, "batch", p->batch) &&
              js_set_int(shape, "context", p->context) && js_set_int(shape, "s_q", p->s_q) &&
              js_set_str(row, "distribution", "normal") && js_set_num(perf, "tflops", tflops) &&
              js_set_num(perf, "median_ns", 1e9 / tflops));
    CU_ASSERT_EQUAL_FATAL(results_add(r, "bench", row, NULL), SNAP_OK);
}

static results *points(void) {
    results *r, *fixture = fixture_load();
    const js *rows = results_section(fixture, "bench");
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof kPoints / sizeof *kPoints; i++) {
        add_point(r, passed_row(rows, "bf16"), &kPoints[i], false);
        add_point(r, passed_row(rows, "fp8"), &kPoints[i], true);
    }
    static const char *const ceilings[] = {"bf16_mma", "fp8_mma"};
    for (int i = 0; i < 2; i++) {
        js *c = js_copy(js_at(results_section(fixture, "ceilings"), 0));
        CU_ASSERT(js_set_str(c, "name", ceilings[i]) && js_set_num(c, "value", (i + 1) * 1e15));
        CU_ASSERT_EQUAL_FATAL(results_add(r, "ceilings", c, NULL), SNAP_OK);
    }
    results_free(fixture);
    return r;
}

static void test_rows_vary_one_number(void) {
    results *r = points();
    report_model *m = paper_of(r);
    report_axis row;
    CU_ASSERT_TRUE_FATAL(report_axis_find(m, 0, AXIS_HEADS, &row));
    CU_ASSERT_EQUAL_FATAL(row.n, 3);
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(row.at[i]->any->shape->heads, kPoints[i].heads);
        CU_ASSERT_EQUAL(row.at[i]->fp8->perf->tflops, kPoints[i].fp8);
    }
    CU_ASSERT_TRUE_FATAL(report_axis_find(m, 0, AXIS_BATCH, &row));
    CU_ASSERT_EQUAL(row.n, 2);
    CU_ASSERT_FALSE(report_axis_find(m, 0, AXIS_CONTEXT, &row));
    CU_ASSERT_TRUE_FATAL(report_axis_find(m, 0, AXIS_S_Q, &row));
    CU_ASSERT_EQUAL(row.n, 2);
    CU_ASSERT_FALSE(report_axis_find(m, 1, AXIS_HEADS, &row));
    arena mem = {0};
    table t;
    CU_ASSERT_TRUE_FATAL(report_table_paper_kernel(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 3 + 2 + 2 + 1);
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 2, "varies", ""), "heads");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 2, "BF16", "TFLOPS"), "300.0");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 2, "FP8", "TFLOPS"), "450.0");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 2, "speed-up", ""), "1.50×");
    /* one of 17 equal parts of the FLOP runs at 1e15, and 16 run at 2e15: 17/9 of 1e15 */
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 2, "FP8, % of peak", ""), "23.8");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 7, "origin", ""), "reported");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 7, "FP8, % of peak", ""), "85.0");
    buf svg = {0};
    CU_ASSERT_TRUE(figure_axes(m, 0, true, &svg));
    size_t circles = 0;
    for (const char *at = buf_str(&svg); (at = strstr(at, "<circle")); at++)
        circles++;
    CU_ASSERT_EQUAL(circles, 2 * 7 + 2); /* two more are in the legend */
    CU_ASSERT_FALSE(figure_axes(m, 1, true, &svg));
    buf_release(&svg);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static void test_quality_stands_beside_what_is_reported(void) {
    results *r = fixture_load();
    report_model *m = paper_of(r);
    arena mem = {0};
    table t;
    CU_ASSERT_TRUE_FATAL(report_table_paper_quality(m, &mem, &t));
    size_t at = 0;
    while (at + 1 < t.n_rows && strcmp(paper_cell(&t, at, "task", ""), "aime25") != 0)
        at++;
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at, "origin", ""), "measured");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at + 1, "task", ""), "aime25");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at + 1, "origin", ""), "reported");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at + 1, "baseline", "accuracy, %"), "87.92");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at + 1, "Δ", ""), "−2.50");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, at + 1, "verdict", ""), "–");
    size_t measured = 0;
    for (size_t i = 0; i < t.n_rows; i++)
        measured += strcmp(paper_cell(&t, i, "origin", ""), "measured") == 0;
    CU_ASSERT_EQUAL(t.n_rows - measured, 9);
    CU_ASSERT_EQUAL(measured, 4);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* In the table of quality, too, data without a published checksum are marked. */
static void test_unverified_data_is_marked(void) {
    static const char *const manifest[] = {"match", "unverified", "differs"};
    static const char *const mark[] = {"", " (data UNVERIFIED)",
                                       " (data DIFFER from the manifest)"};
    for (size_t i = 0; i < 3; i++) {
        results *r = fixture_load();
        js *row = js_at(results_section(r, "evals"), 0);
        CU_ASSERT(js_set_str(js_get_object(row, "dataset"), "manifest", manifest[i]));
        report_model *m = paper_of(r);
        arena mem = {0};
        table t;
        char want[80];
        (void)snprintf(want, sizeof want, "%s%s", js_get_str(row, "task"), mark[i]);
        CU_ASSERT_TRUE_FATAL(report_table_paper_quality(m, &mem, &t));
        size_t found = 0, marked = 0;
        for (size_t k = 0; k < t.n_rows; k++) {
            bool measured = strcmp(paper_cell(&t, k, "origin", ""), "measured") == 0;
            found += measured && strcmp(paper_cell(&t, k, "task", ""), want) == 0;
            marked += strstr(paper_cell(&t, k, "task", ""), "(data ") != NULL;
        }
        CU_ASSERT(found > 0);
        CU_ASSERT_EQUAL(marked, i ? found : 0);
        arena_release(&mem);
        report_model_free(m);
        results_free(r);
    }
}

static void test_granularity_is_shown_at_one_context(void) {
    results *r = fixture_load();
    report_model *m = paper_of(r);
    arena mem = {0};
    table t;
    CU_ASSERT_EQUAL(
        paper_add(m,
                  "{\"source\":\"S\",\"rows\":[{\"about\":\"granularity\",\"what\":\"A\","
                  "\"fp8\":0.5,\"where\":\"figure 1\"}]}",
                  false, NULL),
        SNAP_OK);
    CU_ASSERT_TRUE_FATAL(report_table_paper_granularity(m, &mem, &t));
    CU_ASSERT_EQUAL_FATAL(t.n_rows, 2 * 9 + 1); /* inputs x configurations */
    for (size_t i = 0; i < 18; i++) {
        CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "context", ""), "32k");
        if (strcmp(paper_cell(&t, i, "configuration", ""), "snapmla") == 0)
            CU_ASSERT_STRING_EQUAL(paper_cell(&t, i, "relative to snapmla", ""), "1.00×");
    }
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 18, "origin", ""), "reported");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 18, "relative L2", ""), "5.00e-01");
    CU_ASSERT_STRING_EQUAL(paper_cell(&t, 18, "source", ""), "S, figure 1");
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

static void test_hostile_documents(void) {
    static const struct {
        const char *doc;
        bool e2e;
        const char *says;
    } cases[] = {
        {"[]", false, "must be an object"},
        {"{\"rows\":[]}", false, "source"},
        {"{\"source\":\"\",\"rows\":[]}", false, "must not be empty"},
        {"{\"source\":\"s\"}", false, "rows"},
        {"{\"source\":\"s\",\"rows\":[3]}", false, "rows[0]: must be an object"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\"}]}", false, "rows[0].what"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"x\",\"what\":\"y\",\"fp8\":1}]}", false, "'x'"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\",\"what\":\"y\"}]}", false, "none of"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\",\"what\":\"y\",\"fp8\":\"1\"}]}", false,
         "rows[0].fp8"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\",\"what\":\"y\",\"bf16\":-1}]}", false,
         "rows[0].bf16"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\",\"what\":\"y\",\"fp8\":1,\"where\":2}]}",
         false, "rows[0].where"},
        {"{\"source\":\"s\",\"rows\":[{\"about\":\"speed\",\"what\":\"y\",\"layout\":8}]}", false,
         "rows[0].layout"},
        {"{\"what\":\"grading\",\"rows\":[]}", true, "bench model"},
        {"{\"what\":\"e2e\",\"rows\":[]}", true, "model_config"},
        {"{\"what\":\"e2e\"}", true, "rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        report_model *m = paper_of(NULL);
        snap_err err = {0};
        CU_ASSERT_EQUAL(paper_add(m, cases[i].doc, cases[i].e2e, &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "doc"));
        report_model_free(m);
    }
    report_model *m = paper_of(NULL);
    CU_ASSERT_EQUAL(
        paper_add(m,
                  "{\"what\":\"e2e\",\"model_config\":\"m\",\"device\":\"d\",\"rows\":[1,null,{},"
                  "{\"arm\":\"fp8\",\"step\":\"decode\",\"context\":1e300,\"batch\":-1e300,"
                  "\"tokens_s\":1e300,\"fp8_over_bf16\":1e-300}]}",
                  true, NULL),
        SNAP_OK);
    buf page = {0};
    write_page(m, &page);
    CU_ASSERT_FALSE(page.failed);
    buf_release(&page);
    report_model_free(m);
}

/* A section without measured rows says so, and still shows the reported figures. */
static void test_what_is_absent_is_said(void) {
    report_model *m = paper_of(NULL);
    buf md = {0}, html = {0};
    report_markdown(m, &md);
    write_page(m, &html);
    size_t lines = 0;
    for (const char *at = buf_str(&md); (at = strstr(at, "Not measured in these runs")); at++)
        lines++;
    CU_ASSERT_EQUAL(lines, 7);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&html), "Not measured in these runs"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&md), "1.91×"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&html), "84.43"));
    buf_release(&md);
    buf_release(&html);
    report_model_free(m);
}

/* ---- LaTeX ---- */

/* The exit status of pdflatex for DIR/main.tex; 127 if it is not installed. */
static int latex(const char *dir) {
    pid_t child = fork();
    if (child == 0) {
        if (chdir(dir) != 0 || !freopen("/dev/null", "w", stdout) ||
            !freopen("/dev/null", "r", stdin))
            _exit(1);
        (void)execlp("pdflatex", "pdflatex", "-halt-on-error", "-interaction=nonstopmode",
                     "-no-shell-escape", "main.tex", (char *)NULL);
        _exit(127);
    }
    int status = 1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void remove_all(const char *dir) {
    static const char *const files[] = {"main.tex",    "main.aux",   "main.log",     "main.pdf",
                                        "speed.tex",   "parity.tex", "ablation.tex", "model.tex",
                                        "compare.tex", "paper.tex"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = fs_join(dir, files[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(path);
        (void)remove(path);
        free(path);
    }
    CU_ASSERT_EQUAL(remove(dir), 0);
}

static int compile(const char *dir, const char *body) {
    buf text = {0};
    char *path = fs_join(dir, "main.tex");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    (void)buf_printf(&text,
                     "\\documentclass{article}\\usepackage{booktabs,graphicx}\n"
                     "\\begin{document}\n%s\n\\end{document}\n",
                     body);
    CU_ASSERT_EQUAL(fs_write_atomic(path, text.data, text.len, NULL), SNAP_OK);
    free(path);
    buf_release(&text);
    return latex(dir);
}

/* The result is checked only if LaTeX and the packages are installed. LaTeX must refuse a broken
 * file. */
static void test_latex_compiles(void) {
    results *r = fixture_load();
    report_model *m;
    const char *name = "50% of #1_{x}^y ~\\input{z}.json";
    results *runs[1] = {r};
    char dir[] = "/tmp/snapmla-latex-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, runs, &name, 1, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(report_write(m, dir, REPORT_TEX, NULL, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(report_paper(m, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(report_write(m, dir, REPORT_TEX, NULL, NULL), SNAP_OK);
    if (compile(dir, "x") == 0) {
        CU_ASSERT_NOT_EQUAL(compile(dir, "a_b"), 0);
        CU_ASSERT_EQUAL(compile(dir, "\\input{speed}\\input{parity}"), 0);
        CU_ASSERT_EQUAL(compile(dir, "\\input{paper}"), 0);
    }
    remove_all(dir);
    report_model_free(m);
    results_free(r);
}

static size_t count_of_text(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* Whether LaTeX found text that is wider than the page. */
static bool overflows(const char *dir) {
    buf text = {0};
    char *path = fs_join(dir, "main.log");
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    CU_ASSERT_EQUAL(fs_read(path, &text, NULL), SNAP_OK);
    bool found = strstr(buf_str(&text), "Overfull \\hbox") != NULL;
    free(path);
    buf_release(&text);
    return found;
}

/* A table with 90 wide rows has three parts. Each has the longest cells of all rows, and none is
 * wider than the page. A head over narrow cells has several lines. Long sentences are broken into
 * lines, paths are not. */
static void test_latex_long_table(void) {
    static const char *const heads[] = {"speed vs first file", "path", "why"};
    static const char *const path =
        "/a/long/path/which/has/more/characters/than/the/page/has/room.json";
    static const char *const why = "a sentence of many words, which is broken into several lines";
    table t = table_new(heads, 3);
    buf body = {0};
    char dir[] = "/tmp/snapmla-latex-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    t.id = "x", t.caption = "X", t.note = "y";
    for (int c = 0; c < 3; c++)
        t.columns[c].group = "", t.columns[c].paper = true;
    for (int r = 0; r < 90; r++) {
        table_number(&t, r, 2);
        table_put(&t, r == 50 ? path : "b");
        table_put(&t, r == 60 ? why : "none");
    }
    write_latex(&t, &body);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), "\\begin{tabular}{llp{20em}}"), 3);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), "\\hphantom{/a/long"), 3);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), "{speed\\\\vs\\\\first\\\\file}"), 3);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), "\n89.00 & b "), 1);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), why), 1);
    CU_ASSERT_EQUAL(count_of_text(buf_str(&body), "\\caption{"), 1);
    if (compile(dir, "x") == 0) {
        CU_ASSERT_EQUAL(compile(dir, buf_str(&body)), 0);
        CU_ASSERT(!overflows(dir));
        CU_ASSERT_EQUAL(compile(dir, "\\hbox to 1em{wide text}"), 0);
        CU_ASSERT(overflows(dir));
    }
    remove_all(dir);
    buf_release(&body);
    table_release(&t);
}

/* The status is that of the fault, not the same one for every file. */
static void test_files_that_cannot_be_read(void) {
    static const struct {
        const char *path;
        snap_status status;
    } cases[] = {{"/nonexistent/reported.json", SNAP_E_IO}, {"Makefile", SNAP_E_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const report_files_options o = {
            .formats = "md", .paper = true, .reported = {&cases[i].path, 1}};
        snap_err err = {0};
        buf printed = {0};
        CU_ASSERT_EQUAL(report_files((report_paths){NULL, 0}, &o, &printed, &err), cases[i].status);
        CU_ASSERT_EQUAL(err.code, cases[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].path));
        buf_release(&printed);
    }
}

CU_TestInfo tests_report_paper[] = {
    {"series vary one number", test_rows_vary_one_number},
    {"measured and reported quality side by side", test_quality_stands_beside_what_is_reported},
    {"unverified data is marked", test_unverified_data_is_marked},
    {"granularity is shown at one context", test_granularity_is_shown_at_one_context},
    {"hostile documents", test_hostile_documents},
    {"files that cannot be read", test_files_that_cannot_be_read},
    {"missing sections are named", test_what_is_absent_is_said},
    {"LaTeX compiles", test_latex_compiles},
    {"LaTeX, a long table", test_latex_long_table},
    CU_TEST_INFO_NULL,
};
