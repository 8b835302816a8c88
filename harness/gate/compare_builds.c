#include "harness/gate/compare_builds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "harness/gate/verdicts.h"

void gate_measured_release(gate_measured *m) {
    gate_timed_free(m->timed, m->n);
    free(m->cells);
    free(m->estimates);
    *m = (gate_measured){0};
}

static snap_status prepare(const gate_run_options *opt, gate_measured *m, snap_err *err) {
    snap_status st = gate_timed_new(&m->timed, &m->n, opt->grid, opt->arms, err);
    if (st == SNAP_OK)
        st = gate_limits_check(&opt->limits, m->n, err);
    if (st != SNAP_OK)
        return st;
    m->cells = calloc(m->n + 1, sizeof *m->cells);
    m->estimates = calloc(m->n + 1, sizeof *m->estimates);
    return m->cells && m->estimates ? SNAP_OK
                                    : err_set(err, SNAP_E_NOMEM, "out of memory for cells");
}

/* Whether the cell needs more sessions. A cell that could not run or had wrong output is not tried
 * again. */
static bool needs_session(const gate_measured *m, size_t i, size_t number) {
    bool passed = number == 0 || gate_timed_passed(&m->timed[i]);
    return m->cells[i].state == GATE_INCONCLUSIVE && passed;
}

static void show(const gate_run_options *opt, const gate_measured *m, size_t i, int look) {
    char note[GATE_NAME + 48];
    (void)snprintf(note, sizeof note, "%s, session %zu of %zu", m->timed[i].name, m->timed[i].n + 1,
                   gate_sessions_at(&opt->limits, look));
    if (opt->progress)
        opt->progress(opt->ctx, i, m->n, note);
}

/* Starts the two processes, in alternating order, and measures one session of every open cell. */
static snap_status session(const gate_run_options *opt, gate_measured *m, int look, size_t number,
                           snap_err *err) {
    gate_remote *arms[2] = {NULL, NULL};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < 2; i++) {
        size_t arm = (i + number) % 2;
        TRY(remote_open(&arms[arm], &opt->arms[arm], &opt->remote, err));
        m->about[arm] = *remote_describe(arms[arm]);
    }
    for (size_t i = 0; i < m->n; i++) {
        if (!needs_session(m, i, number))
            continue;
        show(opt, m, i, look);
        TRY(gate_timed_extend(&m->timed[i], arms, err));
    }
cleanup:
    remote_close(arms[0]);
    remote_close(arms[1]);
    return st;
}

static bool any_needs_session(const gate_measured *m, size_t number) {
    for (size_t i = 0; i < m->n; i++)
        if (needs_session(m, i, number))
            return true;
    return false;
}

static snap_status run_look(const gate_run_options *opt, gate_measured *m, int look,
                            snap_err *err) {
    size_t from = look ? gate_sessions_at(&opt->limits, look - 1) : 0;
    snap_status st = SNAP_OK;
    for (size_t k = from; k < gate_sessions_at(&opt->limits, look) && st == SNAP_OK; k++)
        if (any_needs_session(m, k))
            st = session(opt, m, look, k, err);
    for (size_t i = 0; i < m->n && st == SNAP_OK; i++)
        st = gate_timed_tests(&m->timed[i], &opt->limits, &m->cells[i], err);
    return st == SNAP_OK ? gate_look(m->cells, m->n, &opt->limits, err) : st;
}

static snap_status estimate(const gate_run_options *opt, gate_measured *m, snap_err *err) {
    double level = gate_strictest(&opt->limits, m->n);
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < m->n && st == SNAP_OK; i++)
        st = gate_timed_estimate(&m->cells[i], level, m->estimates[i], err);
    return st;
}

snap_status gate_run(const gate_run_options *opt, gate_measured *m, snap_err *err) {
    int64_t from = clock_now_ns();
    snap_status st = prepare(opt, m, err);
    for (int look = 0; look < opt->limits.looks && st == SNAP_OK; look++) {
        int64_t now = clock_now_ns(); /* a look takes about as long as all looks before it */
        if (look == 0 || !opt->deadline_ns || now + (now - from) <= opt->deadline_ns)
            st = run_look(opt, m, look, err);
    }
    return st == SNAP_OK ? estimate(opt, m, err) : st;
}

snap_status gate_run_rows(const gate_run_options *opt, const gate_measured *m, js *rows,
                          snap_err *err) {
    rank_estimate *known = calloc(m->n + 1, sizeof *known);
    size_t n = 0;
    bool ok = known != NULL;
    for (size_t i = 0; i < m->n && ok; i++) {
        const gate_estimate *e = m->estimates[i];
        ok = verdicts_of_cell(&m->timed[i], &m->cells[i], e, opt->arms, rows);
        if (!isnan(e[GATE_QUARTILE].ratio.centre))
            known[n++] = e[GATE_QUARTILE].ratio;
    }
    if (ok && n)
        ok = js_push_new(rows, verdict_of_mean(known, n));
    free(known);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}
