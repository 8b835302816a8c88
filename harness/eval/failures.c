#include "harness/eval/failures.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { kShown = 3 };

static bool is_digit(char c) {
    return isdigit((unsigned char)c) != 0;
}

/* Whether the number at s[i] is an HTTP status. */
static bool is_status(const char *s, size_t i) {
    return i >= 5 && strncmp(s + i - 5, "HTTP ", 5) == 0;
}

/* Whether two messages differ in nothing but numbers that are no HTTP status. */
static bool same_reason(const char *a, const char *b) {
    size_t i = 0, j = 0;
    while (a[i] && b[j]) {
        if (is_digit(a[i]) && is_digit(b[j]) && !is_status(a, i) && !is_status(b, j)) {
            i += strspn(a + i, "0123456789");
            j += strspn(b + j, "0123456789");
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return a[i] == b[j];
}

void failures_add(failure_tally *t, const char *message, int64_t times) {
    char text[FAILURE_LENGTH];
    (void)text_show(text, sizeof text, message && *message ? message : "unknown");
    for (size_t i = 0; i < t->n; i++)
        if (same_reason(t->at[i].text, text)) {
            t->at[i].n += times;
            return;
        }
    if (t->n == FAILURE_REASONS) {
        t->other += times;
        return;
    }
    (void)snprintf(t->at[t->n].text, FAILURE_LENGTH, "%s", text);
    t->at[t->n++].n = times;
}

/* Moves the most frequent of the reasons from the i-th on to place i. Of equally frequent ones it
 * is the first. */
static void bring_forward(failure_tally *t, size_t i) {
    size_t best = i;
    for (size_t k = i; k < t->n; k++)
        if (t->at[k].n > t->at[best].n)
            best = k;
    failure_reason found = t->at[best];
    memmove(&t->at[i + 1], &t->at[i], (best - i) * sizeof *t->at);
    t->at[i] = found;
}

void failures_keep(failure_tally *t, size_t most) {
    for (size_t i = 0; i < t->n; i++)
        bring_forward(t, i);
    for (size_t i = most; i < t->n; i++)
        t->other += t->at[i].n;
    t->n = t->n < most ? t->n : most;
}

static snap_status add_cell(const judged_rows *rows, size_t cell, const sample_outcome *o,
                            failure_tally *t, snap_err *err) {
    js *row = NULL;
    if (!o->failed) {
        failures_add(t, FAILURE_UNJUDGED, 1);
        return SNAP_OK;
    }
    snap_status st = rows->read(rows->ctx, cell, &row, err);
    if (st == SNAP_OK)
        failures_add(t, js_get_str(row, "error"), 1);
    js_free(row);
    return st;
}

snap_status failures_collect(const eval_plan *plan, sample_store *store,
                             const sample_outcome *outcomes, size_t task, size_t arm,
                             failure_tally *out, snap_err *err) {
    const judged_rows rows = samples_rows(store);
    snap_status st = SNAP_OK;
    size_t first = plan_index(plan, (plan_cell){.task = task, .arm = arm});
    size_t cells = plan->tasks[task].set.n * (size_t)plan->tasks[task].samples;
    *out = (failure_tally){0};
    for (size_t i = first; i < first + cells && st == SNAP_OK; i++)
        if (outcomes[i].present && (outcomes[i].failed || outcomes[i].unjudged))
            st = add_cell(&rows, i, &outcomes[i], out, err);
    failures_keep(out, FAILURE_KEPT);
    return st;
}

void failures_write(const failure_tally *t, buf *out) {
    int64_t other = t->other;
    for (size_t i = 0; i < t->n; i++) {
        if (i < kShown)
            (void)buf_printf(out, "%s%lld: %s", i ? "; " : "", (long long)t->at[i].n,
                             t->at[i].text);
        else
            other += t->at[i].n;
    }
    if (other)
        (void)buf_printf(out, "; %lld: %s", (long long)other, FAILURE_OTHER);
}
