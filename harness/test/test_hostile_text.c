/* No text of a result file may act on a terminal or on the log of a CI system. Keys and texts of a
 * file, one at a time, are replaced by a text with escape sequences and commands, and what is
 * printed from the file is searched for them. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "harness/audit/audit.h"
#include "harness/gate/verdicts.h"
#include "harness/test/report_fixture.h"
#include "harness/test/serving_fixture.h"
#include "harness/view/bench_tables.h"
#include "harness/view/eval_text.h"
#include "harness/view/findings.h"
#include "harness/view/gate_verdicts.h"
#include "harness/view/serving_text.h"
#include "harness/view/writers.h"

/* A text that begins with a command of a CI system. Its second line is such a command, too. Then
 * come escape sequences for a terminal (with ESC and with a C1 control), DEL, a change of the
 * writing direction, and a command of another CI system. */
#define EVIL                                                                                       \
    "::stop-commands::x\n::error::y\r\033[2J\xC2\x9B"                                              \
    "31m\x7F\xE2\x80\xAE##[error]z"
static const char kEvilJson[] = "::stop-commands::x\\n::error::y\\r\\u001b[2J\\u009b31m\\u007f"
                                "\\u202e##[error]z";

enum { kStrings = 4096 };

/* The first thing in @text that a terminal or a CI system would act on; NULL = none. */
static const char *harmful_part(const char *text) {
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *start = line + strspn(line, " ");
        if (text_starts(start, "::"))
            return start;
    }
    for (const char *s = text; *s;) {
        size_t n = text_utf8_len(s, strnlen(s, 4));
        if (!n || (*s != '\n' && text_is_harmful(text_code_point(s, n))))
            return s;
        s += n;
    }
    return strstr(text, "##[");
}

static void expect_harmless(const buf *text, const char *what, const char *where) {
    const char *bad = harmful_part(buf_str(text));
    CU_ASSERT_PTR_NULL(bad);
    if (bad)
        printf("\n%s, changed %s: '%.60s'\n", what, where, bad);
}

/* ---- each text of a file ---- */

static void check_bench(const results *r, const char *where) {
    buf out = {0};
    table t = bench_table(results_section(r, "bench"));
    CU_ASSERT_EQUAL(write_text(&t, false, &out, NULL), SNAP_OK);
    expect_harmless(&out, "the table of bench", where);
    table_release(&t);
    buf_release(&out);
}

static void check_findings(const results *r, const char *where) {
    verify_findings f = {0};
    buf out = {0};
    snap_err err = {0};
    verify_document(r, &f);
    CU_ASSERT_EQUAL(findings_text(&f, false, &out, NULL), SNAP_OK);
    expect_harmless(&out, "verify-run", where);
    buf_clear(&out);
    CU_ASSERT_EQUAL(findings_json(&f, &out, NULL), SNAP_OK);
    expect_harmless(&out, "verify-run --json", where);
    if (verify_status(&f, &err) != SNAP_OK)
        CU_ASSERT_PTR_NULL(harmful_part(err.text));
    verify_release(&f);
    buf_release(&out);
}

static void check_views(const results *r, const char *where) {
    buf out = {0};
    report_model *m = fixture_model(r);
    report_markdown(m, &out);
    expect_harmless(&out, "report.md", where);
    report_model_free(m);
    buf_clear(&out);
    CU_ASSERT_EQUAL(eval_view(r, false, &out, NULL), SNAP_OK);
    expect_harmless(&out, "the tables of eval", where);
    buf_clear(&out);
    CU_ASSERT_EQUAL(js_write_shown(results_document(r), JS_PRETTY, &out, NULL), SNAP_OK);
    expect_harmless(&out, "--json", where);
    buf_clear(&out);
    if (js_len(results_section(r, "serving"))) {
        CU_ASSERT_EQUAL(serving_view((results *)(uintptr_t)r, false, &out, NULL), SNAP_OK);
        expect_harmless(&out, "the tables of bench serving", where);
    }
    buf_release(&out);
    check_bench(r, where);
    check_findings(r, where);
}

/* A string of a JSON text without its quotes. */
typedef struct {
    const char *s;
    size_t n;
    bool is_key;
} string;

static string next_string(const char **at) {
    const char *open = strchr(*at, '"');
    if (!open)
        return (string){0};
    const char *end = open + 1;
    while (*end != '"')
        end += *end == '\\' ? 2 : 1;
    *at = end + 1;
    return (string){open + 1, (size_t)(end - open - 1), end[1] == ':'};
}

static bool seen_before(string keys[], size_t n, string key) {
    for (size_t i = 0; i < n; i++)
        if (keys[i].n == key.n && memcmp(keys[i].s, key.s, key.n) == 0)
            return true;
    return false;
}

/* Whether the text is that of a result file. */
static bool check_text(const buf *text, const char *where) {
    snap_err err = {0};
    results *r = NULL;
    bool good = results_parse(&r, buf_str(text), text->len, "run.json", &err) == SNAP_OK;
    if (good)
        check_views(r, where);
    else
        CU_ASSERT_PTR_NULL(harmful_part(err.text));
    results_free(r);
    return good;
}

static void check_changed(const char *text, string old, const char *where) {
    buf changed = {0};
    (void)buf_append(&changed, text, (size_t)(old.s - text));
    (void)buf_puts(&changed, kEvilJson);
    (void)buf_puts(&changed, old.s + old.n);
    (void)check_text(&changed, where);
    buf_release(&changed);
}

/* Changes each key where it first occurs, and its value there if that is a text. */
static void check_each_text(const char *text, size_t least_keys, size_t least_values) {
    static string keys[kStrings];
    char where[120];
    size_t n = 0, values = 0;
    string key = {0};
    const char *at = text;
    for (string s = next_string(&at); s.s; s = next_string(&at)) {
        bool first = s.is_key && !seen_before(keys, n, s);
        if (first && n < kStrings)
            keys[n++] = s;
        if (!s.is_key && key.s)
            values++;
        (void)snprintf(where, sizeof where, "%.*s", (int)(s.is_key ? s.n : key.n),
                       s.is_key ? s.s : key.s);
        if (first || (!s.is_key && key.s))
            check_changed(text, s, where);
        if (s.is_key)
            key = first ? s : (string){0};
        else
            key = (string){0};
    }
    CU_ASSERT(n >= least_keys && values >= least_values);
}

static void test_each_text_of_a_file(void) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read("harness/test/fixtures/run.json", &text, NULL), SNAP_OK);
    check_each_text(buf_str(&text), 100, 30);
    buf_release(&text);
}

/* Replaces a value wherever it occurs. */
static void check_everywhere(const char *text, const char *value) {
    buf changed = {0};
    size_t n = 0;
    const char *from = text;
    for (const char *at; (at = strstr(from, value)); from = at + strlen(value), n++) {
        (void)buf_append(&changed, from, (size_t)(at - from));
        (void)buf_printf(&changed, "\"%s\"", kEvilJson);
    }
    (void)buf_puts(&changed, from);
    CU_ASSERT(n > 1);
    CU_ASSERT_TRUE(check_text(&changed, value));
    buf_release(&changed);
}

/* The rows of servers: the names of arms, models and endpoints, and each text. */
static void test_each_text_of_servers(void) {
    static const char *const names[] = {"\"fp8 & <co>\"", "\"bf16\"", "\"http://b/v1\"", "\"m\""};
    buf text = {0};
    results *r = serving_fixture(2);
    CU_ASSERT_EQUAL_FATAL(js_write(results_document(r), JS_COMPACT, &text, NULL), SNAP_OK);
    results_free(r);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_everywhere(buf_str(&text), names[i]);
    check_each_text(buf_str(&text), 100, 20);
    buf_release(&text);
}

/* ---- the verdicts of a gate ---- */

static js *evil_verdicts(void) {
    js *rows = js_new_array();
    CU_ASSERT(js_push_new(rows, verdict_new("cell", EVIL, "regressed", EVIL)));
    CU_ASSERT(js_push_new(rows, verdict_new(EVIL, EVIL, EVIL, EVIL)));
    CU_ASSERT(js_push_new(rows, verdict_new("cell", EVIL, "noise", "")));
    return rows;
}

/* The number of titles of our own annotations. */
static int own_annotations(const char *text) {
    int n = 0;
    for (const char *s = text; (s = strstr(s, "title=snapmla gate")); s++)
        n++;
    return n;
}

static void test_verdicts(void) {
    js *rows = evil_verdicts();
    buf out = {0};
    verdicts_text(rows, false, &out);
    expect_harmless(&out, "gate", "verdicts");
    buf_clear(&out);
    verdicts_markdown(rows, "snapmla gate", &out);
    expect_harmless(&out, "--markdown", "verdicts");
    buf_clear(&out);
    verdicts_junit(rows, &out);
    expect_harmless(&out, "--junit", "verdicts");
    buf_clear(&out);
    verdicts_gitlab(rows, "x", &out);
    js *issues = js_parse(buf_str(&out), out.len, "issues", NULL);
    CU_ASSERT_PTR_NULL(harmful_part(js_get_str(js_at(issues, 0), "description")));
    js_free(issues);
    buf_clear(&out);
    verdicts_github(rows, &out);
    int lines = 0;
    for (const char *s = buf_str(&out); *s; s = strchr(s, '\n') + 1, lines++)
        CU_ASSERT(text_starts(s, "::error title=snapmla gate") ||
                  text_starts(s, "::warning title=snapmla gate"));
    CU_ASSERT(lines == own_annotations(buf_str(&out)) && lines == 3);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&out), "%0A"));
    CU_ASSERT_PTR_NULL(strchr(buf_str(&out), '\033'));
    buf_release(&out);
    js_free(rows);
}

CU_TestInfo tests_hostile_text[] = {
    {"each text of a file", test_each_text_of_a_file},
    {"each text of a file about servers", test_each_text_of_servers},
    {"hostile text in verdicts of the gate", test_verdicts},
    CU_TEST_INFO_NULL};
