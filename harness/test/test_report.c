#include <CUnit/CUnit.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/report/figures.h"
#include "harness/report/format.h"
#include "harness/report/model.h"
#include "harness/report/report.h"
#include "harness/report/svg.h"
#include "harness/report/writers.h"

static const char kFixture[] = "harness/test/fixtures/run.json";

/* Everything that some format takes for markup, and what no format may pass on. */
static const char kEvil[] =
    "]]>--><script>alert(1)</script>&amp;\"'|`*_[x](y)#%$&{}~^\\ \x01\x1b[31m"
    "\xEF\xBF\xBF\xE2\x80\xAE\n\\input{x}, =1+1";

/* ---- models ---- */

static report_model *model_of(const results *r) {
    report_model *m;
    const char *name = "run.json";
    results *runs[1];
    memcpy(runs, &r, sizeof r);
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, runs, &name, 1, NULL), SNAP_OK);
    return m;
}

static results *load_fixture(void) {
    results *r;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_load(&r, kFixture, &err), SNAP_OK);
    return r;
}

/* Two runs of the fixture's tasks, the second with @value at @key of its first evaluation. */
static report_model *model_of_two(results *runs[2], const char *key, js *value) {
    static const char *const names[] = {"one.json", "two.json"};
    report_model *m;
    for (int i = 0; i < 2; i++)
        runs[i] = load_fixture();
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

/* A run is not compared with another one of other data, prompts, grader or sampling; of another seed it
 * is. Every format that is read by people says so. */
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
        report_table t;
        CU_ASSERT(report_table_mismatches(m, &mem, &t));
        CU_ASSERT_EQUAL_FATAL(t.n_rows, differs ? 1 : 0);
        if (differs) {
            CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 0), "aime24");
            CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 1), cases[i].says);
            CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 2), "one.json");
            CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 4), "two.json");
            CU_ASSERT_STRING_NOT_EQUAL(report_table_cell(&t, 0, 3), report_table_cell(&t, 0, 5));
        }
        buf md = {0}, html = {0}, tex = {0};
        report_markdown(m, &md);
        write_html(m, &html);
        CU_ASSERT_EQUAL(strstr(buf_str(&md), "Not comparable") != NULL, differs);
        CU_ASSERT_EQUAL(strstr(buf_str(&html), "Not comparable") != NULL, differs);
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

/* ---- an independent reader of XML: tags nest, attributes are quoted, entities are known ---- */

typedef struct {
    const char *p;
    const char *open[64]; /* names of the open elements */
    size_t lengths[64];
    int depth;
    const char *why; /* NULL = well-formed so far */
} xml;

static size_t name_length(const char *p) {
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-:_", p[n])))
        n++;
    return n;
}

static void entity(xml *x) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(x->p, known[i], strlen(known[i])) == 0) {
            x->p += strlen(known[i]);
            return;
        }
    x->why = "a bare ampersand";
}

static void attributes(xml *x) {
    while (!x->why && *x->p == ' ') {
        size_t n = name_length(++x->p);
        x->p += n;
        if (!n || strncmp(x->p, "=\"", 2) != 0) {
            x->why = "a malformed attribute";
            return;
        }
        for (x->p += 2; *x->p && *x->p != '"' && !x->why;) {
            if (*x->p == '<')
                x->why = "'<' in an attribute";
            else if (*x->p == '&')
                entity(x);
            else
                x->p++;
        }
        x->p++;
    }
}

static void open_tag(xml *x) {
    const char *name = ++x->p;
    size_t n = name_length(name);
    x->p += n;
    attributes(x);
    if (x->why)
        return;
    if (strncmp(x->p, "/>", 2) == 0) {
        x->p += 2;
    } else if (*x->p == '>' && n && x->depth < 64) {
        x->p++;
        x->open[x->depth] = name;
        x->lengths[x->depth++] = n;
    } else {
        x->why = "a malformed tag";
    }
}

static void close_tag(xml *x) {
    x->p += 2;
    size_t n = name_length(x->p);
    bool matches = x->depth && x->lengths[x->depth - 1] == n &&
                   strncmp(x->open[x->depth - 1], x->p, n) == 0 && x->p[n] == '>';
    if (!matches)
        x->why = "a closing tag that matches none";
    x->depth--;
    x->p += n + 1;
}

static const char *xml_fault(const char *text) {
    xml x = {.p = text};
    if (strncmp(x.p, "<!DOCTYPE html>\n", 16) == 0)
        x.p += 16;
    while (*x.p && !x.why) {
        unsigned char c = (unsigned char)*x.p;
        if (c == '<' && x.p[1] == '/')
            close_tag(&x);
        else if (c == '<')
            open_tag(&x);
        else if (c == '&')
            entity(&x);
        else if (c < 0x20 && c != '\n')
            x.why = "a control character";
        else
            x.p++;
    }
    return x.why ? x.why : x.depth ? "an element is not closed" : NULL;
}

static void check_xml(const char *text) {
    const char *why = xml_fault(text);
    if (why)
        printf("\n  XML: %s", why);
    CU_ASSERT_PTR_NULL(why);
    CU_ASSERT_PTR_NULL(strstr(text, "<script"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"nan"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"inf"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"-nan"));
    CU_ASSERT_PTR_NULL(strstr(text, "\xEF\xBF\xBF"));
}

static void test_xml_reader(void) {
    static const char *const bad[] = {"<a>",          "<a></b>",           "<a x=1></a>", "a & b",
                                      "<a x=\"<\"/>", "<a x=\"&nbsp;\"/>", "<a>\x01</a>", "</a>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_PTR_NOT_NULL(xml_fault(bad[i]));
    CU_ASSERT_PTR_NULL(xml_fault("<a x=\"1\" y-z=\"&lt;\"><b/>t &amp; u</a>"));
}

/* ---- an independent reader of CSV (RFC 4180) ---- */

enum { kSheetFields = 160 };
typedef struct {
    char *fields[kSheetFields];
    int n;
} record;

/* Reads a record, its fields unquoted in place; false at the end of the text. */
static bool next_record(char **text, record *r) {
    char *p = *text;
    r->n = 0;
    if (!*p)
        return false;
    for (;;) {
        CU_ASSERT_FATAL(r->n < kSheetFields);
        bool quoted = *p == '"';
        char *to = p += quoted;
        r->fields[r->n++] = to;
        for (; *p && (quoted || (*p != ',' && *p != '\r')); p++) {
            if (quoted && *p == '"' && *++p != '"')
                break;
            *to++ = *p;
        }
        bool more = *p == ',';
        CU_ASSERT(more || strncmp(p, "\r\n", 2) == 0);
        p += more ? 1 : 2;
        *to = '\0';
        if (!more)
            break;
    }
    *text = p;
    return true;
}

static const char *field_of(const record *head, const record *row, const char *name) {
    for (int i = 0; i < head->n; i++)
        if (strcmp(head->fields[i], name) == 0)
            return row->fields[i];
    CU_FAIL_FATAL("no such column");
    return "";
}

static bool same_cell(const record *head, const record *row, const js *cell) {
    static const char *const keys[] = {"heads", "s_q", "batch", "context"};
    const js *shape = js_get_object(cell, "shape");
    bool same = strcmp(field_of(head, row, "section"), "bench") == 0 &&
                strcmp(field_of(head, row, "arm"), js_get_str(cell, "arm")) == 0 &&
                strcmp(field_of(head, row, "scope"), js_get_str(cell, "scope")) == 0;
    for (size_t i = 0; i < 4; i++)
        same = same && strtod(field_of(head, row, keys[i]), NULL) == js_get_num(shape, keys[i], -1);
    return same;
}

static void check_numbers(const record *head, const record *row, const js *cell) {
    static const char *const keys[] = {"median_ns", "min_ns", "q3_ns",        "tflops",
                                       "gb_s",      "tok_s",  "roofline_pct", "floor_ns"};
    const js *p = js_get_object(cell, "performance");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = field_of(head, row, keys[i]);
        double want = p ? js_get_num(p, keys[i], (double)NAN) : (double)NAN;
        if (isnan(want)) {
            CU_ASSERT_STRING_EQUAL(text, "");
        } else {
            CU_ASSERT_EQUAL(strtod(text, NULL), want);
        }
    }
}

static void test_csv_brings_every_number_back(void) {
    results *r = load_fixture();
    report_model *m = model_of(r);
    const js *bench = results_section(r, "bench");
    buf out = {0};
    write_csv(m, &out);
    char *p = out.data;
    record head, row;
    size_t rows = 0, found = 0;
    CU_ASSERT_FATAL(next_record(&p, &head));
    for (; next_record(&p, &row); rows++) {
        CU_ASSERT_EQUAL(row.n, head.n);
        for (size_t i = 0; i < js_len(bench); i++)
            if (same_cell(&head, &row, js_at(bench, i))) {
                check_numbers(&head, &row, js_at(bench, i));
                found++;
            }
    }
    CU_ASSERT_EQUAL(found, js_len(bench));
    CU_ASSERT_EQUAL(rows, 3 + js_len(bench) + js_len(results_section(r, "fidelity")) + 4 * 3);
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

/* No text field may start a formula; the reader's own numbers may be negative. */
static void test_csv_has_no_formulas(void) {
    static const char *const texts[] = {"=1+1", "+1",   "-1",    "@x", "\tx",
                                        "a,b",  "a\"b", "plain", ""};
    static const char *const want[] = {"\"'=1+1\"", "\"'+1\"",    "\"'-1\"", "\"'@x\"", "\"'\tx\"",
                                       "\"a,b\"",   "\"a\"\"b\"", "plain",   ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf out = {0};
        format_csv_text(&out, texts[i]);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), want[i]);
        buf_release(&out);
    }
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
        {"a\nb\tc", "a b c", "a b c"},
        {"−1 × 2 µs", "−1 × 2 µs", "$-$1 $\\times$ 2 $\\mu$s"},
        {"\xE2\x80\xAE\xF0\x9F\x98\x80", "\xE2\x80\xAE\xF0\x9F\x98\x80", "??"},
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
}

/* ---- what the model says, against a plain walk over the rows ---- */

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

static void test_speedups(void) {
    results *r = load_fixture();
    report_model *m = model_of(r);
    const js *bench = results_section(r, "bench");
    double logs[2] = {0};
    size_t n[2] = {0};
    for (size_t i = 0; i < js_len(bench); i++) {
        const js *a = js_at(bench, i), *b = partner_of(bench, a);
        const js *pa = js_get_object(a, "performance"), *pb = js_get_object(b, "performance");
        if (strcmp(js_get_str(a, "arm"), "bf16") != 0 || !pa || !pb ||
            strcmp(js_get_str(a, "origin"), "measured") != 0)
            continue;
        int scope = strcmp(js_get_str(a, "scope"), "served") == 0;
        logs[scope] += log(js_get_num(pa, "median_ns", 0) / js_get_num(pb, "median_ns", 0));
        n[scope]++;
    }
    for (int k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL(m->gains[k].n, n[k]);
        CU_ASSERT_DOUBLE_EQUAL(m->gains[k].mean, exp(logs[k] / (double)n[k]), 1e-12);
    }
    CU_ASSERT_EQUAL(n[0], 7); /* eight shapes, one with a wrong FP8 result */
    CU_ASSERT_EQUAL(n[1], 1);
    report_model_free(m);
    results_free(r);
}

static size_t rows_of(const report_model *m, report_table_fn build) {
    arena mem = {0};
    report_table t;
    CU_ASSERT(build(m, &mem, &t));
    size_t n = t.n_rows;
    arena_release(&mem);
    return n;
}

static void test_reported_rows_stand_apart(void) {
    results *r = load_fixture();
    report_model *m = model_of(r);
    CU_ASSERT_EQUAL(m->n_cells - m->n_measured, 1);
    CU_ASSERT_EQUAL(rows_of(m, report_table_reported), 1);
    CU_ASSERT_EQUAL(rows_of(m, report_table_speed), 9);
    CU_ASSERT_EQUAL(rows_of(m, report_table_not_measured), 1);
    for (size_t i = 0; i < m->n_speeds; i++)
        CU_ASSERT_STRING_EQUAL(m->speeds[i].any->origin, "measured");
    report_model_free(m);
    results_free(r);
}

/* ---- whole reports ---- */

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Unescaped column marks: '|' of Markdown, '&' of LaTeX. */
static size_t marks(const char *line, size_t n, char mark) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == mark && !(i && line[i - 1] == '$'))
            found++;
    }
    return found;
}

/* All lines of one table have the same number of columns. */
static void check_columns(const char *text, const char *starts, char mark) {
    size_t want = 0;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), got = marks(line, n, mark);
        bool in_table = starts ? line[0] == *starts : got > 0;
        if (in_table && want) {
            CU_ASSERT_EQUAL(got, want);
        }
        want = in_table ? got : 0;
        line += n + (line[n] == '\n');
    }
}

static void check_braces(const char *tex) {
    int depth = 0;
    for (const char *p = tex; *p && depth >= 0; p++) {
        if (*p == '\\' && p[1])
            p++;
        else
            depth += (*p == '{') - (*p == '}');
    }
    CU_ASSERT_EQUAL(depth, 0);
}

static void check_latex(const report_model *m, report_table_fn build) {
    arena mem = {0};
    report_table t;
    buf out = {0};
    CU_ASSERT(build(m, &mem, &t));
    write_latex(&t, &out);
    check_braces(buf_str(&out));
    const char *body = strstr(buf_str(&out), "\\midrule");
    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    check_columns(body, NULL, '&');
    CU_ASSERT_PTR_NULL(strstr(body, "\\input"));
    for (const char *p = out.data; *p; p++)
        CU_ASSERT((unsigned char)*p < 0x80 && (*p == '\n' || !iscntrl((unsigned char)*p)));
    buf_release(&out);
    arena_release(&mem);
}

static void check_page(const char *page) {
    check_xml(page);
    CU_ASSERT_EQUAL(count(page, "http://"), count(page, "http://www.w3.org/"));
    CU_ASSERT_EQUAL(count(page, "https://"), 0);
    CU_ASSERT_EQUAL(count(page, "url("), 0);
    CU_ASSERT_EQUAL(count(page, "src="), 0);
    CU_ASSERT_EQUAL(count(page, "<table "), count(page, "<caption "));
    CU_ASSERT_EQUAL(count(page, "role=\"img\""), count(page, "<desc id="));
}

/* Every format of a model, checked by readers that know nothing of the writers. */
static void check_all(const report_model *m) {
    buf out = {0};
    write_html(m, &out);
    CU_ASSERT_EQUAL(buf_check(&out, "page", NULL), SNAP_OK);
    check_page(buf_str(&out));
    buf_clear(&out);
    report_markdown(m, &out);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&out), "<"));
    check_columns(buf_str(&out), "|", '|');
    for (const figure *f = report_figures; f->name; f++)
        for (size_t i = 0; i < FIGURES_MAX; i++) {
            buf_clear(&out);
            if (!f->draw(m, i, true, &out))
                break;
            check_xml(buf_str(&out));
        }
    buf_release(&out);
    check_latex(m, report_table_speed);
    check_latex(m, report_table_parity);
    check_latex(m, report_table_arms);
}

static void test_every_format_is_well_formed(void) {
    results *r = load_fixture();
    report_model *m = model_of(r);
    check_all(m);
    report_model_free(m);
    results_free(r);
}

static void poison(js *object, const char *key) {
    CU_ASSERT(js_set_str(object, key, kEvil));
}

/* Every string that comes from outside is hostile. */
/* Beside an accuracy stands what became of the answers, whatever the format. */
static void test_rates_in_every_format(void) {
    static const char *const files[] = {"report.md", "report.csv", "parity.tex", "report.html"};
    static const char *const heads[] = {"truncated", "empty", "unparsed", "failed"};
    results *r = load_fixture();
    report_model *m = model_of(r);
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

static void test_hostile_strings(void) {
    results *r = load_fixture();
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
    report_model *m = model_of(r);
    check_all(m);
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

/* Numbers that a file may hold and no figure can show: pictures stay pictures. */
static void test_absurd_numbers(void) {
    static const double values[] = {1e308, 1e-308, 1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        results *r = load_fixture();
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
        report_model *m = model_of(r);
        check_all(m);
        report_model_free(m);
        results_free(r);
    }
}

static void test_figures_show_every_cell(void) {
    results *r = load_fixture();
    report_model *m = model_of(r);
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
    CU_ASSERT_EQUAL(count(buf_str(&out), "</title></rect>"), speedups + 1); /* and the wrong one */
    CU_ASSERT_EQUAL(count(buf_str(&out), ">wrong</text>"), 1);
    buf_clear(&out);
    CU_ASSERT(figure_roofline(m, 0, false, &out));
    CU_ASSERT_FALSE(figure_roofline(m, 1, false, &out));
    for (size_t i = 0; i < m->n_measured; i++)
        points += strcmp(m->cells[i].status, "passed") == 0;
    CU_ASSERT_EQUAL(count(buf_str(&out), "of the roofline"), points);
    buf_clear(&out);
    CU_ASSERT(figure_parity(m, 0, false, &out));
    CU_ASSERT_EQUAL(count(buf_str(&out), "class=\"ci90\""), 3);
    CU_ASSERT_EQUAL(count(buf_str(&out), ">refused<"), 1);
    CU_ASSERT_EQUAL(count(buf_str(&out), ">equivalent<"), 1);
    buf_release(&out);
    report_model_free(m);
    results_free(r);
}

/* The public grid: 4 heads x 2 s_q x 8 batches x 8 contexts, both arms and scopes. */
static void test_the_largest_sweep_stays_below_a_megabyte(void) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    results *fixture = load_fixture();
    js *rows = results_section(r, "bench"), *row = js_at(results_section(fixture, "bench"), 0);
    CU_ASSERT_EQUAL(
        results_add_all(r, "ceilings", js_copy(results_section(fixture, "ceilings")), NULL),
        SNAP_OK);
    for (int i = 0; i < 4 * 2 * 8 * 8 * 4; i++) {
        js *copy = js_copy(row), *shape = js_get_object(copy, "shape");
        CU_ASSERT(js_set_str(copy, "arm", i % 2 ? "bf16" : "fp8"));
        CU_ASSERT(js_set_str(copy, "scope", i / 2 % 2 ? "kernel" : "served"));
        CU_ASSERT(js_set_int(shape, "context", (int64_t)1024 << (i / 4 % 8)));
        CU_ASSERT(js_set_int(shape, "batch", (int64_t)1 << (i / 32 % 8)));
        CU_ASSERT(js_set_int(shape, "s_q", 1 + i / 256 % 2));
        CU_ASSERT(js_set_int(shape, "heads", (int64_t)16 << (i / 512)));
        CU_ASSERT(js_set_num(js_get_object(copy, "performance"), "median_ns", 1e7 + i));
        CU_ASSERT(js_push_new(rows, copy));
    }
    report_model *m = model_of(r);
    CU_ASSERT_EQUAL(m->n_speeds, 1024);
    buf page = {0};
    write_html(m, &page);
    CU_ASSERT(page.len < 1000000);
    check_page(buf_str(&page));
    buf_release(&page);
    report_model_free(m);
    results_free(fixture);
    results_free(r);
}

/* The cell of the fixture that the ablation is made of, and with which it is compared. */
static js *passed_fp8(const js *rows) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "arm"), "fp8") == 0 &&
            js_get_object(js_at(rows, i), "performance"))
            return js_at(rows, i);
    CU_FAIL_FATAL("no such row");
    return NULL;
}

static void test_ablation_is_held_against_the_whole_arm(void) {
    results *r = load_fixture();
    js *rows = results_section(r, "bench"), *whole = passed_fp8(rows);
    report_model *before = model_of(r);
    size_t speeds = before->n_speeds;
    report_model_free(before);
    js *copy = js_copy(whole), *perf = js_get_object(copy, "performance");
    double ns = js_get_num(perf, "median_ns", 0);
    CU_ASSERT(js_set_str(copy, "arm", "fp8-in-place"));
    CU_ASSERT(js_set_num(perf, "median_ns", 1.25 * ns));
    CU_ASSERT(js_set_num(js_get_object(copy, "correctness"), "error", 0.0875));
    CU_ASSERT(js_push_new(rows, copy));
    report_model *m = model_of(r);
    arena mem = {0};
    report_table t;
    CU_ASSERT(m->n_speeds == speeds); /* it is no arm of the comparison */
    CU_ASSERT_FATAL(report_table_ablation(m, &mem, &t) && t.n_rows == 1);
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 0), "FP32 sums: added up in the tensor cores");
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 7), "1.25×");
    CU_ASSERT_PTR_NOT_NULL(strstr(report_table_cell(&t, 0, 9), "8.7"));
    buf out = {0};
    report_markdown(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "## The FP8 arm with one technique left out"));
    buf_clear(&out);
    write_html(m, &out);
    check_page(buf_str(&out));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "id=\"ablation\""));
    buf_clear(&out);
    write_csv(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&out), "fp8-in-place"));
    buf_release(&out);
    arena_release(&mem);
    report_model_free(m);
    results_free(r);
}

/* Three layers of two configs, with errors 1e-3 * (layer + 1) and 1e-2 / (layer + 1). */
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
    report_model *m = model_of(r);
    arena mem = {0};
    report_table t;
    CU_ASSERT_FATAL(report_table_layers(m, &mem, &t) && t.n_rows == 2);
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 2), "snapmla");
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 3), "2.00e-03"); /* median */
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 4), "3.00e-03"); /* worst, in layer */
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 0, 5), "2");
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 1, 4), "1.00e-02");
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 1, 5), "0");
    CU_ASSERT_STRING_EQUAL(report_table_cell(&t, 1, 6), "2.50e+00");
    check_all(m);
    check_latex(m, report_table_layers);
    buf out = {0};
    CU_ASSERT_TRUE(figure_layers(m, 0, true, &out));
    CU_ASSERT_EQUAL(count(buf_str(&out), "<circle"), 6);
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
    report_model *m = model_of(r);
    char dir[] = "/tmp/snapmla-report-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    buf paths = {0}, page = {0};
    CU_ASSERT_EQUAL(report_write(m, dir, REPORT_DEFAULT | REPORT_SVG, &paths, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(count(buf_str(&paths), "\n"), 3);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&paths), ".tex"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&paths), ".svg"));
    write_html(m, &page);
    check_page(buf_str(&page));
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

static void test_format_names(void) {
    unsigned formats;
    snap_err err = {0};
    CU_ASSERT_EQUAL(report_parse_formats("html,csv", &formats, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(formats, REPORT_HTML | REPORT_CSV);
    CU_ASSERT_EQUAL(report_parse_formats("html,pdf", &formats, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unknown format 'pdf'"));
    CU_ASSERT_EQUAL(report_parse_formats("", &formats, NULL), SNAP_E_USAGE);
}

CU_TestInfo tests_report[] = {
    {"rates in every format", test_rates_in_every_format},
    {"other runs are not compared", test_other_runs_are_not_compared},
    {"the reader of XML finds faults", test_xml_reader},
    {"CSV brings every number back", test_csv_brings_every_number_back},
    {"CSV has no formulas", test_csv_has_no_formulas},
    {"escapes", test_escapes},
    {"numbers", test_numbers},
    {"scales", test_scales},
    {"speed-ups", test_speedups},
    {"reported rows stand apart", test_reported_rows_stand_apart},
    {"every format is well-formed", test_every_format_is_well_formed},
    {"hostile strings", test_hostile_strings},
    {"absurd numbers", test_absurd_numbers},
    {"figures show every cell", test_figures_show_every_cell},
    {"the largest sweep stays below a megabyte", test_the_largest_sweep_stays_below_a_megabyte},
    {"the ablation is held against the whole arm", test_ablation_is_held_against_the_whole_arm},
    {"layers of a model", test_layers_of_a_model},
    {"an empty run makes an empty report", test_an_empty_run_makes_an_empty_report},
    {"format names", test_format_names},
    CU_TEST_INFO_NULL};
