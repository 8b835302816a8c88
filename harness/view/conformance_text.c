#include "harness/view/conformance_text.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "harness/record/results.h"
#include "harness/view/writers.h"

_Static_assert(CONFORMANCE_BACKENDS + 3 <= TABLE_COLUMNS_MAX, "a column for each backend");

static void add_cell(table *t, const conformance_row *row) {
    if (row->verdict == CONFORMANCE_PASSED && !isnan(row->worst))
        table_cell(t, "%.1e%s", row->worst, row->exact ? "*" : "");
    else
        table_cell(t, "%s", conformance_verdict_name(row->verdict));
}

static snap_status put_table(const conformance_result *s, bool color, buf *out, snap_err *err) {
    char heads_of[CONFORMANCE_BACKENDS][TABLE_CELL];
    const char *heads[TABLE_COLUMNS_MAX] = {"check", "arm", "bound"};
    for (int i = 0; i < s->n; i++) {
        const mla_backend_info *info = &s->backends[i].info;
        buf head = {0};
        (void)buf_printf(&head, "%s %s", info->name, info->kernel);
        (void)text_show(heads_of[i], TABLE_CELL, buf_str(&head));
        buf_release(&head);
        heads[3 + i] = heads_of[i];
    }
    table t = table_new(heads, 3 + s->n);
    for (int r = 0; s->n && r < s->backends[0].n; r++) {
        const conformance_row *row = &s->backends[0].rows[r];
        table_cell(&t, "%s", row->check);
        table_cell(&t, "%s", row->arm);
        table_cell(&t, isnan(row->bound) ? "equal" : "%.1e", row->bound);
        for (int i = 0; i < s->n; i++)
            add_cell(&t, &s->backends[i].rows[r]);
    }
    snap_status st = write_text(&t, color, out, err);
    table_release(&t);
    return st;
}

/* Explains the "*" in the table, if there is one: this backend rounds P by another rule than the
 * paper, so the row was compared with exact probabilities and has its own bound. It prints the
 * bound of the first such row only. */
static void put_own_rules(const conformance_result *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->backends[i].n; r++)
            if (s->backends[i].rows[r].exact) {
                (void)buf_printf(
                    out,
                    "* this backend rounds P in FP8 by its own rule, not in one unit per page; "
                    "it is compared with exact probabilities, bound per row %.1e\n",
                    s->backends[i].rows[r].bound);
                return;
            }
}

/* Lists the rows with a log-sum-exp that exceeds its bound, but not if the reference scores are
 * summed with as few bits as the backend declares for its tensor cores. */
static void put_short_sums(const conformance_result *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->backends[i].n; r++) {
            const conformance_row *row = &s->backends[i].rows[r];
            const mla_backend_info *info = &s->backends[i].info;
            if (!(row->lse > row->lse_bound && row->lse_alike <= row->lse_bound))
                continue;
            text_append_shown_printf(
                out,
                "%s %s: %s, %s: the log-sum-exp differs by %.1e (bound %.1e); it differs by %.1e "
                "from scores that are summed with %d bits like those of its tensor cores",
                info->name, info->kernel, row->check, row->arm, row->lse, row->lse_bound,
                row->lse_alike, info->fp8_sums.bits);
            (void)buf_puts(out, "\n");
        }
}

static void put_reasons(const conformance_result *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->backends[i].n; r++) {
            const conformance_row *row = &s->backends[i].rows[r];
            if (row->verdict == CONFORMANCE_PASSED && row->unsupported)
                text_append_shown_printf(out, "%s %s: %d of %d cases left out, %s, %s: %s",
                                         s->backends[i].info.name, s->backends[i].info.kernel,
                                         row->unsupported, row->unsupported + row->cases,
                                         row->check, row->arm, row->reason);
            else if (row->verdict != CONFORMANCE_PASSED)
                text_append_shown_printf(out, "%s %s: %s, %s, %s: %s", s->backends[i].info.name,
                                         s->backends[i].info.kernel,
                                         conformance_verdict_name(row->verdict), row->check,
                                         row->arm, row->reason);
            else
                continue;
            (void)buf_puts(out, "\n");
        }
}

static void put_totals(const conformance_result *s, buf *out) {
    for (int i = 0; i < s->n; i++) {
        const conformance_backend *b = &s->backends[i];
        text_append_shown_printf(out, "%s %s: %d passed, %d failed, %d skipped", b->info.name,
                                 b->info.kernel, b->n - b->failed - b->skipped, b->failed,
                                 b->skipped);
        (void)buf_puts(out, "\n");
    }
}

snap_status conformance_text(const conformance_result *s, bool color, buf *out, snap_err *err) {
    snap_status st = put_table(s, color, out, err);
    put_own_rules(s, out);
    put_short_sums(s, out);
    put_reasons(s, out);
    put_totals(s, out);
    return st;
}

static js *row_json(const conformance_row *row) {
    js *o = js_new_object();
    (void)js_set_str(o, "check", row->check);
    (void)js_set_str(o, "arm", row->arm);
    (void)js_set_str(o, "verdict", conformance_verdict_name(row->verdict));
    (void)js_set_int(o, "cases", row->cases);
    (void)js_set_int(o, "unsupported", row->unsupported);
    (void)js_set_new(o, "worst", js_new_num(row->worst));
    (void)js_set_new(o, "bound", js_new_num(row->bound));
    (void)js_set_bool(o, "exact_probabilities", row->exact);
    (void)js_set_new(o, "lse", js_new_num(row->lse));
    (void)js_set_new(o, "lse_alike", js_new_num(row->lse_alike));
    (void)js_set_new(o, "lse_bound", js_new_num(row->lse_bound));
    if (row->reason[0])
        (void)js_set_str(o, "reason", row->reason);
    return o;
}

static js *backend_json(const conformance_backend *s) {
    js *o = js_new_object(), *rows = js_new_array();
    for (int i = 0; i < s->n; i++)
        (void)js_push_new(rows, row_json(&s->rows[i]));
    (void)js_set_str(o, "name", s->info.name);
    (void)js_set_str(o, "device", s->info.device);
    (void)js_set_str(o, "kernel", s->info.kernel);
    (void)js_set_int(o, "failed", s->failed);
    (void)js_set_int(o, "skipped", s->skipped);
    (void)js_set_new(o, "checks", rows);
    return o;
}

snap_status conformance_json(const conformance_result *s, buf *out, snap_err *err) {
    js *doc = js_new_object(), *all = js_new_array();
    for (int i = 0; i < s->n; i++)
        (void)js_push_new(all, backend_json(&s->backends[i]));
    (void)js_set_str(doc, "program", results_program_version());
    (void)js_set_str(doc, "commit", results_program_commit());
    (void)js_set_new(doc, "backends", all);
    snap_status st = js_write_shown(doc, JS_ROWS, out, err);
    (void)buf_puts(out, "\n");
    js_free(doc);
    return st;
}
