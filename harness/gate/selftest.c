#include "harness/gate/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/gate/verdicts.h"

enum { kSimulated = 2000, kSearched = 400, kMostRuns = 200 };
static const double kDelays[SELFTEST_DELAYS] = {0, 1, 2, 5};
static const double kPower = 0.95;
static const double kOver = 1.2;        /* limit of the total time, as a multiple of @seconds */
static const double kSuspicious = 0.01; /* a smaller probability of the observed false alarms is
                                           suspicious */

void selftest_release(selftest *s) {
    arena_release(&s->mem);
    *s = (selftest){0};
}

/* ---- runs ---- */

/* The noise of one cell between equal arms: its sessions of all runs, in order. */
typedef struct {
    char name[GATE_NAME];
    double baseline_ns;
    double *x; /* owned */
    size_t n;
} cell_noise;

typedef struct {
    cell_noise *cells; /* owned */
    size_t n;
} noise_log;

static void noise_log_release(noise_log *rec) {
    for (size_t i = 0; i < rec->n; i++)
        free(rec->cells[i].x);
    free(rec->cells);
}

static snap_status keep_noise(noise_log *rec, const gate_measured *m, snap_err *err) {
    if (!rec->cells) {
        rec->cells = calloc(m->n + 1, sizeof *rec->cells);
        rec->n = rec->cells ? m->n : 0;
    }
    for (size_t i = 0; i < rec->n; i++) {
        const gate_timed *t = &m->timed[i];
        cell_noise *c = &rec->cells[i];
        double *x = realloc(c->x, (c->n + t->n + 1) * sizeof *x);
        if (!x)
            return err_set(err, SNAP_E_NOMEM, "out of memory for the noise");
        memcpy(x + c->n, t->x, t->n * sizeof *x);
        c->x = x;
        c->n += t->n;
        c->baseline_ns = gate_timed_median(t, 0);
        memcpy(c->name, t->name, GATE_NAME);
    }
    return rec->n ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the noise");
}

static void count_run(selftest_delay *d, const gate_measured *m) {
    size_t found = 0, sessions = 0;
    for (size_t i = 0; i < m->n; i++) {
        sessions = m->timed[i].n > sessions ? m->timed[i].n : sessions;
        found += m->cells[i].state == GATE_REGRESSED;
        d->estimate_pct += 100 * expm1(m->estimates[i].centre);
    }
    d->runs++;
    d->sessions += sessions;
    d->alarms += found > 0;
    d->cells += m->n;
    d->found += found;
}

static snap_status check_passed(const gate_measured *m, snap_err *err) {
    for (size_t i = 0; i < m->n; i++) {
        const gate_timed *t = &m->timed[i];
        const remote_cell *c = &t->about[strcmp(t->about[0].status, "passed") == 0];
        if (!gate_timed_passed(t))
            return err_set(err,
                           strcmp(c->status, "failed") == 0 ? SNAP_E_WRONG : SNAP_E_UNSUPPORTED,
                           "%s: %s", t->name, c->reason);
    }
    return SNAP_OK;
}

static snap_status one_run(const gate_run_options *opt, selftest *s, int which, noise_log *rec,
                           snap_err *err) {
    gate_run_options now = *opt;
    gate_measured m = {0};
    snap_status st = SNAP_OK;
    now.arms[1].delay_pct = kDelays[which];
    TRY(gate_run(&now, &m, err));
    TRY(check_passed(&m, err));
    s->about = m.about[1];
    count_run(&s->delays[which], &m);
    for (size_t i = 0; i < m.n && which == 0; i++)
        s->spread_pct = fmax(s->spread_pct, fabs(100 * expm1(m.estimates[i].centre)));
    if (which == 0)
        st = keep_noise(rec, &m, err);
cleanup:
    gate_measured_release(&m);
    return st;
}

/* Whether another run would end in time at the pace so far. Runs with delays near the threshold
 * need most looks. */
static bool fits_in_time(const gate_limits *l, int which, const selftest *s, double elapsed,
                         double seconds) {
    size_t so_far = 0;
    for (int d = 0; d < SELFTEST_DELAYS; d++)
        so_far += s->delays[d].sessions;
    bool open = kDelays[which] > 0 && kDelays[which] < 2 * 100 * l->share;
    size_t sessions = gate_sessions_at(l, open ? l->looks - 1 : 0);
    double pace = elapsed / (double)(so_far ? so_far : 1);
    return elapsed < seconds && elapsed + pace * (double)sessions < kOver * seconds;
}

/* Alternates runs of equal arms with runs of the delays, the longest delay first. A delay for which
 * there is no time is only simulated. */
static snap_status all_runs(const gate_run_options *opt, double seconds, selftest *s,
                            noise_log *rec, snap_err *err) {
    static const int order[] = {0, 3, 0, 2, 0, 1};
    enum { kOrder = sizeof order / sizeof *order, kFewest = 2 };
    int64_t from = clock_now_ns();
    for (int i = 0; i < kMostRuns; i++) {
        double elapsed = (double)(clock_now_ns() - from) / 1e9;
        if (i >= kFewest && !fits_in_time(&opt->limits, order[i % kOrder], s, elapsed, seconds))
            continue;
        snap_status st = one_run(opt, s, order[i % kOrder], rec, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* ---- results from the noise ---- */

/* Copies the recorded noise to s->noise: each cell's name, its baseline time, and the log-ratios of
 * its times. */
static bool copy_noise(selftest *s, const noise_log *rec) {
    noise_record *all = arena_alloc(&s->mem, rec->n + 1, sizeof *all);
    bool ok = all != NULL;
    for (size_t i = 0; i < rec->n && ok; i++) {
        const cell_noise *c = &rec->cells[i];
        double *x = arena_alloc(&s->mem, c->n + 1, sizeof *x);
        const char *name = arena_strdup(&s->mem, c->name);
        ok = x && name;
        for (size_t k = 0; k < c->n && ok; k++)
            x[k] = c->x[k];
        all[i] = (noise_record){name, c->baseline_ns, {x, c->n}};
    }
    s->noise = (noise_list){all, ok ? rec->n : 0};
    return ok;
}

static snap_status simulate_delays(const gate_noise *noise, double *effects, size_t n,
                                   const gate_limits *l, uint64_t seed, selftest *s,
                                   snap_err *err) {
    double share;
    for (int d = 0; d < SELFTEST_DELAYS; d++) {
        for (size_t i = 0; i < n; i++)
            effects[i] = log1p(kDelays[d] / 100);
        snap_status st =
            gate_simulate(noise, effects, n, l, kSimulated, seed, &s->delays[d].simulated, err);
        if (st != SNAP_OK)
            return st;
    }
    snap_status st = gate_smallest_effect(noise, n, l, kPower, kSearched, seed, &share, err);
    s->smallest_pct = 100 * share;
    return st;
}

static snap_status simulate(const noise_log *rec, const gate_limits *l, uint64_t seed, selftest *s,
                            snap_err *err) {
    gate_noise *noise = calloc(rec->n + 1, sizeof *noise);
    double *effects = calloc(rec->n + 1, sizeof *effects);
    snap_status st = SNAP_E_NOMEM;
    if (noise && effects) {
        for (size_t i = 0; i < rec->n; i++)
            noise[i] = (gate_noise){rec->cells[i].x, rec->cells[i].n, rec->cells[i].baseline_ns};
        st = simulate_delays(noise, effects, rec->n, l, seed, s, err);
    } else {
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
    }
    free(noise);
    free(effects);
    return st;
}

snap_status selftest_run(const gate_run_options *opt, double seconds, selftest *s, snap_err *err) {
    noise_log rec = {0};
    int64_t from = clock_now_ns();
    snap_status st = SNAP_OK;
    *s = (selftest){0};
    for (int d = 0; d < SELFTEST_DELAYS; d++)
        s->delays[d].delay_pct = kDelays[d];
    TRY(all_runs(opt, seconds, s, &rec, err));
    for (int d = 0; d < SELFTEST_DELAYS; d++)
        s->delays[d].estimate_pct /= (double)s->delays[d].cells;
    TRY(simulate(&rec, &opt->limits, (uint64_t)opt->remote.seed, s, err));
    TRY(copy_noise(s, &rec) ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the noise"));
    s->seconds = (double)(clock_now_ns() - from) / 1e9;
cleanup:
    noise_log_release(&rec);
    return st;
}

/* ---- rows ---- */

static double rate(size_t k, size_t n) {
    return n ? (double)k / (double)n : (double)NAN;
}

static js *row_of(const selftest_delay *d) {
    char name[48];
    (void)snprintf(name, sizeof name, d->delay_pct > 0 ? "delayed by %g %%" : "equal arms",
                   d->delay_pct);
    verdict_record v = verdict_start("selftest", name, "ok", NULL, VERDICT_DELAY);
    v.delay_pct = d->delay_pct;
    v.runs = (int64_t)d->runs;
    v.alarms = (int64_t)d->alarms;
    v.cells = (int64_t)d->cells;
    v.found = (int64_t)d->found;
    v.estimate_pct = d->estimate_pct;
    v.simulated = (int64_t)d->simulated.comparisons;
    v.simulated_alarms = rate(d->simulated.alarms, d->simulated.comparisons);
    v.simulated_sessions = d->simulated.sessions;
    return record_write(&verdict_type, &v);
}

/* The probability of @k or more alarms in @n runs at a rate of @p. */
static double binomial_tail(size_t k, size_t n, double p) {
    double term = pow(1 - p, (double)n), sum = 0;
    for (size_t i = 0; i <= n; i++) {
        sum += i >= k ? term : 0;
        term *= (double)(n - i) / (double)(i + 1) * p / (1 - p);
    }
    return sum;
}

/* The verdict of the whole selftest: from the alarms of equal arms and the smallest effect. */
static const char *judge(const selftest *s, const gate_limits *l, const char **reason) {
    const selftest_delay *equal = &s->delays[0];
    bool too_many = binomial_tail(equal->alarms, equal->runs, l->alpha) < kSuspicious ||
                    rate(equal->simulated.alarms, equal->simulated.comparisons) > l->alpha;
    bool blind = !(s->smallest_pct <= 5);
    *reason = too_many ? "equal arms differ too often: this machine cannot be used as a gate"
              : blind  ? "this machine's noise hides a slow-down of 5 % in a cell"
                       : NULL;
    return too_many ? "invalid" : blind ? "inconclusive" : "ok";
}

js *selftest_rows(const selftest *s, const gate_limits *l) {
    js *rows = js_new_array();
    const char *reason, *verdict = judge(s, l, &reason);
    bool ok = rows != NULL;
    for (int d = 0; d < SELFTEST_DELAYS && ok; d++)
        ok = js_push_new(rows, row_of(&s->delays[d]));
    verdict_record v =
        verdict_start("selftest", "smallest effect", verdict, reason, VERDICT_SMALLEST);
    v.smallest_pct = s->smallest_pct;
    v.power = kPower;
    v.spread_pct = s->spread_pct;
    v.seconds = s->seconds;
    v.noise = s->noise;
    ok = ok && js_push_new(rows, record_write(&verdict_type, &v));
    if (ok)
        return rows;
    js_free(rows);
    return NULL;
}
