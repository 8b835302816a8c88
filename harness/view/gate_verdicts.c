#include "harness/view/gate_verdicts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/gate/verdicts.h"
#include "harness/view/format.h"
#include "harness/view/writers.h"

const char *verdict_text(const js *row, const char *key) {
    const char *s = js_get_str(row, key);
    return s ? s : "";
}

static double number_of(const js *row, const char *key) {
    return js_get_num(row, key, (double)NAN);
}

static void put_interval(char *to, size_t size, const js *ci, bool ratio) {
    if (js_len(ci) != 2)
        return;
    double lo = js_num(js_at(ci, 0)), hi = js_num(js_at(ci, 1));
    if (ratio)
        (void)snprintf(to, size, "[%+.2f, %+.2f] %%", 100 * (lo - 1), 100 * (hi - 1));
    else
        (void)snprintf(to, size, "[%+.2f, %+.2f] pp", lo, hi);
}

/* The change, its interval and its limit as text; "" where a row has none. Accuracies are in
 * points, ratios in percent. */
typedef struct {
    char change[48], interval[64], limit[48];
} verdict_figures;

static verdict_figures verdict_figures_of(const js *row) {
    verdict_figures f = {"", "", ""};
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

void verdict_message(const js *row, buf *out) {
    verdict_figures f = verdict_figures_of(row);
    const char *reason = verdict_text(row, "reason");
    (void)buf_printf(out, "%s", verdict_text(row, "verdict"));
    if (f.change[0])
        (void)buf_printf(out, ": %s", f.change);
    if (f.interval[0])
        (void)buf_printf(out, ", 90 %% interval %s", f.interval);
    if (f.limit[0])
        (void)buf_printf(out, ", threshold %s", f.limit);
    if (reason[0])
        (void)buf_printf(out, "; %s", reason);
}

bool verdict_is_failure(const js *row) {
    return text_equal(verdict_text(row, "verdict"), "regressed") ||
           text_equal(verdict_text(row, "verdict"), "wrong");
}

/* ---- text ---- */

static bool same_reason(const js *a, const js *b) {
    return strcmp(verdict_text(a, "reason"), verdict_text(b, "reason")) == 0 &&
           strcmp(verdict_text(a, "verdict"), verdict_text(b, "verdict")) == 0;
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
        if (before || !verdict_text(row, "reason")[0])
            continue;
        (void)buf_printf(out, "%s", verdict_text(row, "name"));
        if (n > 1)
            (void)buf_printf(out, " and %zu more", n - 1);
        (void)buf_printf(out, ": %s: %s\n", verdict_text(row, "verdict"),
                         verdict_text(row, "reason"));
    }
}

void verdicts_text(const js *rows, bool color, buf *out) {
    static const char *const heads[] = {"kind",          "what",  "verdict", "change",
                                        "90 % interval", "limit", "p",       "sessions"};
    table t = table_new(heads, 8);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        verdict_figures f = verdict_figures_of(row);
        double p = number_of(row, "p_holm"), sessions = number_of(row, "sessions");
        table_cell(&t, "%s", verdict_text(row, "kind"));
        table_cell(&t, "%s", verdict_text(row, "name"));
        table_cell(&t, "%s", verdict_text(row, "verdict"));
        table_cell(&t, "%s", f.change);
        table_cell(&t, "%s", f.interval);
        table_cell(&t, "%s", f.limit);
        table_cell(&t, isnan(p) ? "" : "%.2g", p);
        table_cell(&t, isnan(sessions) ? "" : "%.0f", sessions);
    }
    if (write_text(&t, color, out, NULL) != SNAP_OK)
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

void verdicts_markdown(const js *rows, const char *title, buf *out) {
    table t = {.columns = {{"kind", "", TABLE_TEXT, true},
                           {"what", "", TABLE_TEXT, true},
                           {"verdict", "", TABLE_TEXT, true},
                           {"change", "", TABLE_NUMBER, true},
                           {"90 % interval", "", TABLE_TEXT, true},
                           {"limit", "", TABLE_NUMBER, true},
                           {"reason", "", TABLE_TEXT, true}},
               .n_columns = 7};
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        verdict_figures f = verdict_figures_of(row);
        table_put(&t, verdict_text(row, "kind"));
        table_put(&t, verdict_text(row, "name"));
        table_put(&t, verdict_text(row, "verdict"));
        table_put(&t, f.change);
        table_put(&t, f.interval);
        table_put(&t, f.limit);
        table_put(&t, verdict_text(row, "reason"));
    }
    (void)buf_puts(out, "## ");
    format_markdown(out, title);
    (void)buf_puts(out, "\n\n");
    summary(rows, out);
    (void)buf_puts(out, "\n");
    write_markdown(&t, out);
    out->failed |= t.failed;
    table_release(&t);
}

/* ---- changes in a history ---- */

table changes_table(const js *rows) {
    static const char *const heads[] = {"cell",      "run",      "started", "commit",
                                        "us before", "us after", "change",  "p"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < js_len(rows); i++) {
        const js *row = js_at(rows, i);
        table_cell(&t, "%s", js_get_str(row, "name"));
        table_cell(&t, "%lld", (long long)js_get_int(row, "at", 0));
        table_cell(&t, "%s", js_get_str(row, "started"));
        table_cell(&t, "%.12s", js_get_str(row, "commit"));
        table_number(&t, js_get_num(row, "baseline_ns", 0) / 1e3, 1);
        table_number(&t, js_get_num(row, "current_ns", 0) / 1e3, 1);
        table_cell(&t, "%+.1f %%", 100 * (js_get_num(row, "ratio", 1) - 1));
        table_number(&t, js_get_num(row, "p", 1), 3);
    }
    return t;
}
