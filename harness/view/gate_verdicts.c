#include "harness/view/gate_verdicts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/gate/verdicts.h"
#include "harness/view/format.h"
#include "harness/view/writers.h"

static void put_interval(char *to, size_t size, const double ci[2], bool ratio) {
    if (isnan(ci[0]) || isnan(ci[1]))
        return;
    if (ratio)
        (void)snprintf(to, size, "[%+.2f, %+.2f] %%", 100 * (ci[0] - 1), 100 * (ci[1] - 1));
    else
        (void)snprintf(to, size, "[%+.2f, %+.2f] pp", ci[0], ci[1]);
}

/* The change of a row, its interval, its limit and the smallest change that it could have reported,
 * as text; "" if the row has none. Accuracies and shares of steps are in percentage points, ratios
 * in percent. */
typedef struct {
    char change[48], interval[64], limit[48], visible[48];
} verdict_figures;

static verdict_figures verdict_figures_of(const verdict_record *v) {
    verdict_figures f = {"", "", "", ""};
    if (!isnan(v->delta_pp)) {
        (void)snprintf(f.change, sizeof f.change, "%+.2f pp", v->delta_pp);
        put_interval(f.interval, sizeof f.interval, v->ci90, false);
    } else if (!isnan(v->ratio)) {
        (void)snprintf(f.change, sizeof f.change, "%+.2f %%", 100 * (v->ratio - 1));
        put_interval(f.interval, sizeof f.interval, v->ci90, true);
    }
    if (!isnan(v->margin_pp))
        (void)snprintf(f.limit, sizeof f.limit, "-%.2f pp", v->margin_pp);
    else if (!isnan(v->threshold))
        (void)snprintf(f.limit, sizeof f.limit, "+%.2f %%", 100 * (v->threshold - 1));
    if (isfinite(v->visible))
        (void)snprintf(f.visible, sizeof f.visible, "+%.2f %%", 100 * (v->visible - 1));
    else if (isfinite(v->visible_pp))
        (void)snprintf(f.visible, sizeof f.visible, "+%.2f pp", v->visible_pp);
    return f;
}

void verdict_title(const verdict_record *v, buf *out) {
    text_append_shown_printf(out, "%s%s%s", v->name, v->statistic[0] ? ", " : "", v->statistic);
}

void verdict_message(const verdict_record *v, buf *out) {
    verdict_figures f = verdict_figures_of(v);
    text_append_shown(out, v->verdict[0] ? v->verdict : "no verdict");
    if (f.change[0])
        (void)buf_printf(out, ": %s", f.change);
    if (f.interval[0])
        (void)buf_printf(out, ", 90 %% interval %s", f.interval);
    if (f.limit[0])
        (void)buf_printf(out, ", threshold %s", f.limit);
    if (f.visible[0])
        (void)buf_printf(out, ", visible from %s", f.visible);
    if (v->reason[0])
        text_append_shown_printf(out, "; %s", v->reason);
}

bool verdict_is_failure(const verdict_record *v) {
    return strcmp(v->verdict, "regressed") == 0 || strcmp(v->verdict, "wrong") == 0;
}

/* ---- text ---- */

static bool same_reason(const verdict_record *a, const verdict_record *b) {
    return strcmp(a->reason, b->reason) == 0 && strcmp(a->verdict, b->verdict) == 0;
}

/* Writes each reason once, with the first row that has it and the number of further rows. */
static void put_reasons(const verdict_list *all, buf *out) {
    for (size_t i = 0; i < all->n; i++) {
        const verdict_record *v = &all->at[i];
        size_t before = 0, n = 0;
        for (size_t k = 0; k < all->n; k++) {
            bool same = same_reason(&all->at[k], v);
            before += same && k < i;
            n += same;
        }
        if (before || !v->reason[0])
            continue;
        verdict_title(v, out);
        if (n > 1)
            (void)buf_printf(out, " and %zu more", n - 1);
        text_append_shown_printf(out, ": %s%s%s", v->verdict, v->verdict[0] ? ": " : "", v->reason);
        (void)buf_puts(out, "\n");
    }
}

void verdicts_text(const js *rows, bool color, buf *out) {
    static const char *const heads[] = {"kind",   "name",          "statistic", "verdict",
                                        "change", "90 % interval", "limit",     "visible",
                                        "p",      "sessions"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &out->failed);
    for (size_t i = 0; i < all.n; i++) {
        const verdict_record *v = &all.at[i];
        verdict_figures f = verdict_figures_of(v);
        double sessions = record_count(v->sessions);
        table_cell(&t, "%s", v->kind);
        table_cell(&t, "%s", v->name);
        table_cell(&t, "%s", v->statistic);
        table_cell(&t, "%s", v->verdict);
        table_cell(&t, "%s", f.change);
        table_cell(&t, "%s", f.interval);
        table_cell(&t, "%s", f.limit);
        table_cell(&t, "%s", f.visible);
        table_cell(&t, isnan(v->p_holm) ? "" : "%.2g", v->p_holm);
        table_cell(&t, isnan(sessions) ? "" : "%.0f", sessions);
    }
    if (write_text(&t, color, out, NULL) != SNAP_OK)
        out->failed = true;
    table_release(&t);
    put_reasons(&all, out);
    arena_release(&mem);
}

/* ---- Markdown ---- */

static void summary(const verdict_list *all, buf *out) {
    static const char *const verdicts[] = {"wrong",        "invalid", "regressed",
                                           "inconclusive", "missing", "noise"};
    size_t ok = verdict_list_count(all, NULL, "ok");
    (void)buf_printf(out, "%zu ok", ok);
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        size_t n = verdict_list_count(all, NULL, verdicts[i]);
        if (n)
            (void)buf_printf(out, ", **%zu %s**", n, verdicts[i]);
    }
    (void)buf_puts(out, "\n");
}

void verdicts_markdown(const js *rows, const char *title, buf *out) {
    table t = {.columns = {{"kind", "", TABLE_TEXT, true},
                           {"name", "", TABLE_TEXT, true},
                           {"statistic", "", TABLE_TEXT, true},
                           {"verdict", "", TABLE_TEXT, true},
                           {"change", "", TABLE_NUMBER, true},
                           {"90 % interval", "", TABLE_TEXT, true},
                           {"limit", "", TABLE_NUMBER, true},
                           {"visible", "", TABLE_NUMBER, true},
                           {"reason", "", TABLE_TEXT, true}},
               .n_columns = 9};
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &out->failed);
    for (size_t i = 0; i < all.n; i++) {
        const verdict_record *v = &all.at[i];
        verdict_figures f = verdict_figures_of(v);
        table_put(&t, v->kind);
        table_put(&t, v->name);
        table_put(&t, v->statistic);
        table_put(&t, v->verdict);
        table_put(&t, f.change);
        table_put(&t, f.interval);
        table_put(&t, f.limit);
        table_put(&t, f.visible);
        table_put(&t, v->reason);
    }
    (void)buf_puts(out, "## ");
    format_markdown(out, title);
    (void)buf_puts(out, "\n\n");
    summary(&all, out);
    (void)buf_puts(out, "\n");
    write_markdown(&t, out);
    out->failed |= t.failed;
    table_release(&t);
    arena_release(&mem);
}

/* ---- changes in a history ---- */

table changes_table(const js *rows) {
    static const char *const heads[] = {"cell",      "run",      "started", "commit",
                                        "us before", "us after", "change",  "p"};
    table t = table_new(heads, sizeof heads / sizeof *heads);
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &t.failed);
    for (size_t i = 0; i < all.n; i++) {
        const verdict_record *v = &all.at[i];
        table_cell(&t, "%s", v->name);
        table_cell(&t, "%lld", (long long)v->at);
        table_cell(&t, "%s", v->started);
        table_cell(&t, "%.12s", v->commit);
        table_number(&t, v->baseline_ns / 1e3, 1);
        table_number(&t, v->current_ns / 1e3, 1);
        table_cell(&t, "%+.1f %%", 100 * (v->ratio - 1));
        table_number(&t, v->p, 3);
    }
    arena_release(&mem);
    return t;
}
