/* Tests the formats of reports with ordinary and hostile texts and numbers. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/test/report_fixture.h"
#include "harness/test/report_readers.h"
#include "harness/view/format.h"
#include "harness/view/model.h"
#include "harness/view/pages.h"
#include "harness/view/report.h"
#include "harness/view/svg.h"

static void test_xml_reader(void) {
    static const char *const bad[] = {"<a>",          "<a></b>",           "<a x=1></a>", "a & b",
                                      "<a x=\"<\"/>", "<a x=\"&nbsp;\"/>", "<a>\x01</a>", "</a>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_PTR_NOT_NULL(xml_fault(bad[i]));
    CU_ASSERT_PTR_NULL(xml_fault("<a x=\"1\" y-z=\"&lt;\"><b/>t &amp; u</a>"));
}

/* ---- escapes and numbers ---- */

static void test_escapes(void) {
    static const struct {
        const char *text, *markdown, *latex;
    } cases[] = {
        {"a|b", "a\\|b", "a$|$b"},
        {"<b> & c", "&lt;b&gt; &amp; c", "$<$b$>$ \\& c"},
        {"a_b*c#", "a\\_b\\*c\\#", "a\\_b{*}c\\#"},
        {"50 %, $x^2$ ~", "50 %, $x^2$ \\~",
         "50 \\%, \\$x\\textasciicircum{}2\\$ \\textasciitilde{}"},
        {"\\end{x}", "\\\\end{x}", "\\textbackslash{}end\\{x\\}"},
        {"[x](y)", "\\[x\\](y)", "{[}x](y)"},
        {"bench --json -q", "bench --json -q", "bench -{}-json -q"},
        {"a\nb\tc", "a\\\\nb\\\\tc", "a b c"},
        {"−1 × 2 µs", "−1 × 2 µs", "$-$1 $\\times$ 2 $\\mu$s"},
        {"\xE2\x80\xAE\xF0\x9F\x98\x80", "\\\\u202e\xF0\x9F\x98\x80", "??"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf md = {0}, tex = {0};
        format_markdown(&md, cases[i].text);
        format_latex(&tex, cases[i].text);
        CU_ASSERT_STRING_EQUAL(buf_str(&md), cases[i].markdown);
        CU_ASSERT_STRING_EQUAL(buf_str(&tex), cases[i].latex);
        buf_release(&md);
        buf_release(&tex);
    }
    buf out = {0};
    format_xml(&out, "<a b='\"'>&\xff\x01\xEF\xBF\xBE");
    CU_ASSERT_STRING_EQUAL(buf_str(&out),
                           "&lt;a b=&#39;&quot;&#39;&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    buf_clear(&out);
    format_xml_cut(&out, "aé<bc", 3);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), "aé&lt;…");
    buf_release(&out);
}

static void test_numbers(void) {
    char out[FORMAT_MAX];
    format_fixed(-1.25, 1, out);
    CU_ASSERT_STRING_EQUAL(out, "−1.2");
    format_fixed(-0.001, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "0.00"); /* no negative zero */
    format_fixed((double)NAN, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "–");
    format_fixed((double)INFINITY, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "–");
    format_fixed(1e300, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "1.00e+300");
    format_signed(0.3, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "+0.30");
    format_signed(0.5, 0, out); /* rounded to even */
    CU_ASSERT_STRING_EQUAL(out, "0");
    format_fixed(-0.5, 0, out);
    CU_ASSERT_STRING_EQUAL(out, "0");
    format_fixed(-1.5, 0, out);
    CU_ASSERT_STRING_EQUAL(out, "−2");
    format_interval((double[2]){-1.694, 0.5}, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "[−1.69, +0.50]");
    format_interval((double[2]){(double)NAN, 0.5}, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "–");
    format_range((double[2]){-1e308, 1e308}, 2, out);
    CU_ASSERT_STRING_EQUAL(out, "[−1.00e+308, 1.00e+308]");
    format_context(8192, out);
    CU_ASSERT_STRING_EQUAL(out, "8k");
    format_context(1000, out);
    CU_ASSERT_STRING_EQUAL(out, "1000");
    format_p(0.0004, out);
    CU_ASSERT_STRING_EQUAL(out, "<0.001");
    format_scale s = {0};
    format_scale_add(&s, 1234);
    CU_ASSERT_EQUAL(format_scale_decimals(&s), 0);
    format_scale_add(&s, 12.3);
    CU_ASSERT_EQUAL(format_scale_decimals(&s), 1);
    format_scale_add(&s, 0.0123);
    CU_ASSERT_EQUAL(format_scale_decimals(&s), 4);
}

static void test_scales(void) {
    svg_scale linear = svg_linear(-2, 2, 100, 500), log10s = svg_log(1, 1000, 0, 300);
    CU_ASSERT_DOUBLE_EQUAL(svg_at(&linear, 1), 400, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(svg_at(&log10s, 10), 100, 1e-9);
    CU_ASSERT(isfinite(svg_at(&log10s, 0)) && isfinite(svg_at(&log10s, -1)));
    static const double want[] = {-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2};
    double ticks[SVG_TICKS_MAX];
    CU_ASSERT_EQUAL_FATAL(svg_ticks(&linear, 8, ticks), 9);
    for (int i = 0; i < 9; i++)
        CU_ASSERT_DOUBLE_EQUAL(ticks[i], want[i], 1e-12);
    CU_ASSERT_EQUAL(svg_ticks(&log10s, 0, ticks), 4); /* 1 10 100 1000 */
    svg_scale decade = svg_log(1.5, 30, 0, 1), huge = svg_log(0, HUGE_VAL, 0, 1);
    CU_ASSERT_EQUAL_FATAL(svg_ticks(&decade, 0, ticks), 4); /* 2 5 10 20 */
    CU_ASSERT_DOUBLE_EQUAL(ticks[3], 20, 1e-9);
    CU_ASSERT(svg_ticks(&huge, 0, ticks) <= SVG_TICKS_MAX);
    CU_ASSERT_EQUAL(svg_decimals((double[]){10, 10.5, 11}, 3), 1);
    CU_ASSERT_EQUAL(svg_decimals((double[]){-0.3, 0, 0.3}, 3), 1);
    CU_ASSERT_EQUAL(svg_decimals((double[]){0.02, 5}, 2), 2);
    CU_ASSERT_EQUAL(svg_decimals((double[]){200, 1e15}, 2), 0);
    CU_ASSERT_EQUAL(svg_decimals((double[]){(double)NAN}, 1), 4);
}

/* ---- whole reports ---- */

static void test_every_format_is_well_formed(void) {
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    expect_well_formed(m);
    report_model_free(m);
    results_free(r);
}

static void poison(js *object, const char *key) {
    CU_ASSERT(js_set_str(object, key, kEvil));
}

/* Every default format names the rates of truncated, empty, unparsed and failed answers. */
static void test_rates_in_every_format(void) {
    static const char *const files[] = {"report.md", "report.csv", "parity.tex", "report.html"};
    static const char *const heads[] = {"truncated", "empty", "unparsed", "failed"};
    results *r = fixture_load();
    report_model *m = fixture_model(r);
    char dir[] = "/tmp/snapmla-rates-XXXXXX", speed[60];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    (void)strcpy(speed, dir);
    CU_ASSERT_EQUAL_FATAL(report_write(m, dir, REPORT_DEFAULT | REPORT_TEX, NULL, NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = fs_join(dir, files[i]);
        buf text = {0};
        CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
        for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
            CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), heads[h]));
        buf_release(&text);
        (void)unlink(path);
        free(path);
    }
    (void)unlink(strcat(speed, "/speed.tex"));
    (void)rmdir(dir);
    report_model_free(m);
    results_free(r);
}

/* Strings that come from outside are hostile: some in the provenance and in every section of which
 * the fixture has rows. Every format must stay well formed. */
static void test_hostile_strings(void) {
    results *r = fixture_load();
    js *doc = results_document(r), *evals = js_get_array(doc, "evals");
    for (size_t i = 0; i < js_len(evals); i++) {
        js *e = js_at(evals, i), *arms = js_get_array(e, "arms"), *pairs = js_get_array(e, "pairs");
        poison(e, "task");
        poison(e, "grader");
        for (size_t k = 0; k < js_len(arms); k++) {
            poison(js_at(arms, k), "name");
            poison(js_at(arms, k), "model");
            poison(js_at(arms, k), "endpoint");
            poison(js_at(arms, k), "generator");
        }
        for (size_t k = 0; k < js_len(pairs); k++) {
            poison(js_at(pairs, k), "arm");
            poison(js_at(pairs, k), "baseline");
            if (js_get_str(js_at(pairs, k), "refused"))
                poison(js_at(pairs, k), "refused");
        }
    }
    js *bench = js_get_array(doc, "bench"), *fidelity = js_get_array(doc, "fidelity");
    for (size_t i = 0; i < js_len(bench); i++) {
        poison(js_at(bench, i), "backend");
        poison(js_at(bench, i), "kernel");
        poison(js_at(bench, i), "distribution");
        poison(js_at(bench, i), "reason");
        CU_ASSERT(js_push_new(js_get_array(js_at(bench, i), "flags"), js_new_str(kEvil)));
    }
    poison(js_at(bench, js_len(bench) - 1), "source");
    for (size_t i = 0; i < js_len(fidelity); i++)
        poison(js_at(fidelity, i), i % 2 ? "config" : "distribution");
    js *ceilings = js_get_array(doc, "ceilings"), *p = js_get_object(doc, "provenance");
    poison(js_at(ceilings, 0), "method");
    poison(js_get_object(p, "cpu"), "model");
    poison(js_get_object(p, "backend"), "device");
    poison(js_get_object(p, "host"), "os");
    poison(js_get_object(p, "config"), kEvil);
    CU_ASSERT(js_push_new(js_get_array(p, "argv"), js_new_str(kEvil)));
    report_model *m = fixture_model(r);
    expect_well_formed(m);
    report_model_free(m);
    results_free(r);
}

static void set_all(js *rows, const char *object, const char *key, double value) {
    for (size_t i = 0; i < js_len(rows); i++) {
        js *o = object ? js_get_object(js_at(rows, i), object) : js_at(rows, i);
        if (o) {
            CU_ASSERT(js_set_num(o, key, value));
        }
    }
}

/* Numbers that a file may contain but no figure can show: the pictures must stay valid. */
static void test_absurd_numbers(void) {
    static const double values[] = {1e308, 1e-308, 1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        results *r = fixture_load();
        js *doc = results_document(r), *bench = js_get_array(doc, "bench");
        set_all(bench, "performance", "median_ns", values[i]);
        set_all(bench, "performance", "tflops", values[(i + 1) % 3]);
        set_all(bench, "performance", "gb_s", values[(i + 2) % 3]);
        set_all(js_get_array(doc, "ceilings"), NULL, "value", values[i]);
        set_all(js_get_array(doc, "fidelity"), NULL, "rel_l2", values[i]);
        js *evals = js_get_array(doc, "evals");
        for (size_t k = 0; k < js_len(evals); k++) {
            js *pairs = js_get_array(js_at(evals, k), "pairs");
            set_all(pairs, NULL, "margin_pp", values[i]);
            set_all(pairs, NULL, "delta_pp", -values[(i + 1) % 3]);
        }
        report_model *m = fixture_model(r);
        expect_well_formed(m);
        report_model_free(m);
        results_free(r);
    }
}

static void test_the_largest_sweep_stays_below_a_megabyte(void) {
    results *r = fixture_sweep(4 * 2 * 8 * 8 * 4);
    report_model *m = fixture_model(r);
    CU_ASSERT_EQUAL(m->n_speeds, 1024);
    buf page = {0};
    write_page(m, &page);
    CU_ASSERT(page.len < 1000000);
    expect_page(buf_str(&page));
    buf_release(&page);
    report_model_free(m);
    results_free(r);
}

static void test_format_names(void) {
    unsigned formats;
    snap_err err = {0};
    CU_ASSERT_EQUAL(report_parse_formats("html,csv", &formats, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(formats, REPORT_HTML | REPORT_CSV);
    CU_ASSERT_EQUAL(report_parse_formats("html,pdf", &formats, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unknown format 'pdf'"));
    CU_ASSERT_EQUAL(report_parse_formats("", &formats, NULL), SNAP_E_USAGE);
}

CU_TestInfo tests_report_formats[] = {
    {"the reader of XML finds faults", test_xml_reader},
    {"text is escaped in Markdown and LaTeX", test_escapes},
    {"numbers as text", test_numbers},
    {"scales and ticks of axes", test_scales},
    {"every format is well-formed", test_every_format_is_well_formed},
    {"rates in every format", test_rates_in_every_format},
    {"hostile strings", test_hostile_strings},
    {"absurd numbers leave pictures valid", test_absurd_numbers},
    {"the largest sweep stays below a megabyte", test_the_largest_sweep_stays_below_a_megabyte},
    {"format names", test_format_names},
    CU_TEST_INFO_NULL,
};
