#include "harness/gate/outputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "harness/cmd/table.h"
#include "harness/gate/verdicts.h"
#include "harness/view/format.h"

static const char *text_of(const js *row, const char *key) {
    const char *s = js_get_str(row, key);
    return s ? s : "";
}

static double number_of(const js *row, const char *key) {
    return js_get_num(row, key, (double)NAN);
}

/* Two columns of a row as text: the change and its interval. What a kind measures decides the unit: a ratio
 * in percent, an accuracy in points. */
typedef struct {
    char change[48], interval[64], limit[48];
} figures;

static void put_interval(char *to, size_t size, const js *ci, bool ratio) {
    if (js_len(ci) != 2)
        return;
    double lo = js_num(js_at(ci, 0)), hi = js_num(js_at(ci, 1));
    if (ratio)
        (void)snprintf(to, size, "[%+.2f, %+.2f] %%", 100 * (lo - 1), 100 * (hi - 1));
    else
        (void)snprintf(to, size, "[%+.2f, %+.2f] pp", lo, hi);
}

static figures figures_of(const js *row) {
    figures f = {"", "", ""};
    double ratio = number_of(row, "ratio"), threshold = number_of(row, "threshold");
    double delta = number_of(row, "delta_pp"), margin = number_of(row, "margin_pp");
    if (!isnan(delta)) {
        (void)snprintf(f.change, sizeof f.change, "%+.2f pp", delta);
        put_interval(f.interval, sizeof f.interval, js_get_array(row, "ci90"), false);
    } else if (!isnan(ratio)) {
        (void)snprintf(f.change, sizeof f.change, "%+.2f %%", 100 * (ratio - 1));
        put_interval(f.interval, sizeof f.interval, js_get_array(row, "ci90"), true);
    }
    if (!isnan(margin))
        (void)snprintf(f.limit, sizeof f.limit, "-%.2f pp", margin);
    else if (!isnan(threshold))
        (void)snprintf(f.limit, sizeof f.limit, "+%.2f %%", 100 * (threshold - 1));
    return f;
}

/* "+5.1 %, 90 % interval [+4.2, +6.0] %, threshold +2.00 %: reason" */
static void put_message(buf *out, const js *row) {
    figures f = figures_of(row);
    const char *reason = text_of(row, "reason");
    (void)buf_printf(out, "%s", text_of(row, "verdict"));
    if (f.change[0])
        (void)buf_printf(out, ": %s", f.change);
    if (f.interval[0])
        (void)buf_printf(out, ", 90 %% interval %s", f.interval);
    if (f.limit[0])
        (void)buf_printf(out, ", threshold %s", f.limit);
    if (reason[0])
        (void)buf_printf(out, "; %s", reason);
}

/* ---- text ---- */

static bool same_reason(const js *a, const js *b) {
    return strcmp(text_of(a, "reason"), text_of(b, "reason")) == 0 &&
           strcmp(text_of(a, "verdict"), text_of(b, "verdict")) == 0;
}

/* Each reason once, with the first row that has it and how many do. */
static void put_reasons(const js *rows, buf *out) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        size_t before = 0, n = 0;
        for (size_t k = 0; k < js_len(rows); k++) {
            bool same = same_reason(js_at(rows, k), row);
            before += same && k < i;
            n += same;
        }
        if (before || !text_of(row, "reason")[0])
            continue;
        (void)buf_printf(out, "%s", text_of(row, "name"));
        if (n > 1)
            (void)buf_printf(out, " and %zu more", n - 1);
        (void)buf_printf(out, ": %s: %s\n", text_of(row, "verdict"), text_of(row, "reason"));
    }
}

void gate_write_text(const js *rows, bool color, buf *out) {
    static const char *const heads[] = {"kind",          "what",  "verdict", "change",
                                        "90 % interval", "limit", "p",       "sessions"};
    table t = {.heads = heads, .columns = 8};
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        figures f = figures_of(row);
        double p = number_of(row, "p_holm"), sessions = number_of(row, "sessions");
        table_cell(&t, "%s", text_of(row, "kind"));
        table_cell(&t, "%s", text_of(row, "name"));
        table_cell(&t, "%s", text_of(row, "verdict"));
        table_cell(&t, "%s", f.change);
        table_cell(&t, "%s", f.interval);
        table_cell(&t, "%s", f.limit);
        table_cell(&t, isnan(p) ? "" : "%.2g", p);
        table_cell(&t, isnan(sessions) ? "" : "%.0f", sessions);
    }
    if (table_write(&t, color, out, NULL) != SNAP_OK)
        out->failed = true;
    table_release(&t);
    put_reasons(rows, out);
}

/* ---- Markdown ---- */

static void summary(const js *rows, buf *out) {
    static const char *const verdicts[] = {"wrong",        "invalid", "regressed",
                                           "inconclusive", "missing", "noise"};
    size_t ok = verdict_count(rows, NULL, "ok");
    (void)buf_printf(out, "%zu ok", ok);
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        size_t n = verdict_count(rows, NULL, verdicts[i]);
        if (n)
            (void)buf_printf(out, ", **%zu %s**", n, verdicts[i]);
    }
    (void)buf_puts(out, "\n");
}

static void markdown_cell(buf *out, const char *s) {
    (void)buf_puts(out, "| ");
    format_markdown(out, s);
    (void)buf_puts(out, " ");
}

void gate_write_markdown(const js *rows, const char *title, buf *out) {
    (void)buf_puts(out, "## ");
    format_markdown(out, title);
    (void)buf_puts(out, "\n\n");
    summary(rows, out);
    (void)buf_puts(out, "\n| kind | what | verdict | change | 90 % interval | limit | reason |\n"
                        "|:---|:---|:---|---:|:---|---:|:---|\n");
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        figures f = figures_of(row);
        const char *const cells[] = {text_of(row, "kind"),
                                     text_of(row, "name"),
                                     text_of(row, "verdict"),
                                     f.change,
                                     f.interval,
                                     f.limit,
                                     text_of(row, "reason")};
        for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
            markdown_cell(out, cells[c]);
        (void)buf_puts(out, "|\n");
    }
}

/* ---- JUnit ---- */

static bool is_failure(const js *row) {
    return text_equal(text_of(row, "verdict"), "regressed") ||
           text_equal(text_of(row, "verdict"), "wrong");
}

static size_t count_failures(const js *rows, bool failures) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += verdict_is_bad(js_at(rows, i)) && is_failure(js_at(rows, i)) == failures;
    return n;
}

static void put_case(const js *row, buf *out) {
    buf message = {0};
    put_message(&message, row);
    out->failed |= message.failed;
    (void)buf_puts(out, "  <testcase classname=\"gate.");
    text_append_xml(out, text_of(row, "kind"));
    (void)buf_puts(out, "\" name=\"");
    text_append_xml(out, text_of(row, "name"));
    (void)buf_printf(out, "\" time=\"0\">\n    <%s",
                     !verdict_is_bad(row) ? "system-out>"
                     : is_failure(row)    ? "failure"
                                          : "error");
    if (verdict_is_bad(row)) {
        (void)buf_puts(out, " type=\"");
        text_append_xml(out, text_of(row, "verdict"));
        (void)buf_puts(out, "\" message=\"");
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "\"/>\n  </testcase>\n");
    } else {
        text_append_xml(out, buf_str(&message));
        (void)buf_puts(out, "</system-out>\n  </testcase>\n");
    }
    buf_release(&message);
}

void gate_write_junit(const js *rows, buf *out) {
    size_t failures = count_failures(rows, true), errors = count_failures(rows, false);
    (void)buf_printf(out,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites>\n<testsuite name=\"snapmla gate\" tests=\"%zu\" "
                     "failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"0\">\n",
                     js_len(rows), failures, errors);
    for (size_t i = 0; i < js_len(rows); i++)
        put_case(js_at(rows, i), out);
    (void)buf_puts(out, "</testsuite>\n</testsuites>\n");
}

/* ---- annotations ---- */

/* As the runner unescapes: % CR LF in data, and : , in properties. */
static void put_escaped(buf *out, const char *s, bool property) {
    for (; *s; s++) {
        bool special = *s == '%' || *s == '\r' || *s == '\n';
        if (special || (property && (*s == ':' || *s == ',')))
            (void)buf_printf(out, "%%%02X", (unsigned)(unsigned char)*s);
        else
            (void)buf_append(out, s, 1);
    }
}

void gate_write_github(const js *rows, buf *out) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        bool noise = text_equal(text_of(row, "verdict"), "noise");
        buf message = {0};
        if (!verdict_is_bad(row) && !noise)
            continue;
        put_message(&message, row);
        out->failed |= message.failed;
        (void)buf_printf(out, "::%s title=", is_failure(row) ? "error" : "warning");
        put_escaped(out, "snapmla gate: ", true);
        put_escaped(out, text_of(row, "name"), true);
        (void)buf_puts(out, "::");
        put_escaped(out, buf_str(&message), false);
        (void)buf_puts(out, "\n");
        buf_release(&message);
    }
}

static js *issue_of(const js *row, const char *file) {
    buf message = {0};
    char fingerprint[HASH_HEX];
    (void)buf_printf(&message, "%s %s: ", text_of(row, "kind"), text_of(row, "name"));
    bool ok = hash_bytes(buf_str(&message), message.len, fingerprint, NULL) == SNAP_OK;
    put_message(&message, row);
    js *issue = js_new_object(), *location = js_new_object(), *lines = js_new_object();
    ok = ok && lines && js_set_int(lines, "begin", 1);
    ok = location && js_set_str(location, "path", file) && ok;
    ok = js_set_new(location, "lines", lines) && ok;
    ok = issue && js_set_str(issue, "description", buf_str(&message)) &&
         js_set_str(issue, "check_name", "snapmla-gate") &&
         js_set_str(issue, "fingerprint", fingerprint) &&
         js_set_str(issue, "severity", is_failure(row) ? "major" : "minor") && ok;
    ok = js_set_new(issue, "location", location) && ok;
    buf_release(&message);
    if (ok)
        return issue;
    js_free(issue);
    return NULL;
}

void gate_write_gitlab(const js *rows, const char *file, buf *out) {
    js *issues = js_new_array();
    bool ok = issues != NULL;
    for (size_t i = 0; i < js_len(rows) && ok; i++)
        if (verdict_is_bad(js_at(rows, i)))
            ok = js_push_new(issues, issue_of(js_at(rows, i), file));
    if (!ok || js_write(issues, JS_PRETTY, out, NULL) != SNAP_OK)
        out->failed = true;
    (void)buf_puts(out, "\n");
    js_free(issues);
}
