#include "harness/gate/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness/gate/verdicts.h"

enum { kSimulated = 2000, kSearched = 400, kMostRuns = 200 };
static const selftest_case kCases[SELFTEST_CASES] = {
    {.name = "equal arms"},
    {.name = "delayed by 1 %", .slowing = {.delay_pct = 1}},
    {.name = "delayed by 2 %", .slowing = {.delay_pct = 2}},
    {.name = "delayed by 5 %", .slowing = {.delay_pct = 5}},
    {.name = "20 ms in every 97th step", .slowing = {.spike_ms = 20, .spike_every = 97}},
    {.name = "8 % in every 10th turn", .slowing = {.slow_pct = 8, .slow_every = 10}},
};
static const double kPower = 0.95;
static const double kOver = 1.2;        /* limit of the total time, as a multiple of @seconds */
static const double kSuspicious = 0.01; /* a smaller probability of the observed false alarms is
                                           suspicious */

void selftest_release(selftest *s) {
    arena_release(&s->mem);
    *s = (selftest){0};
}

/* ---- gate runs and their noise ---- */

/* The sessions of one cell, from all runs of equal arms, slowed as one case says: each session once
 * with the arms as they were, and once with the arms exchanged. */
typedef struct {
    double *x[GATE_STATISTICS]; /* owned */
    size_t n;
    bool has_p99;
    double mean_limit;
} case_noise;

typedef struct {
    char name[GATE_NAME];
    double baseline_ns;
    case_noise cases[SELFTEST_CASES];
} cell_noise;

typedef struct {
    cell_noise *cells; /* owned */
    size_t n;
} noise_log;

static void noise_log_release(noise_log *rec) {
    for (size_t i = 0; i < rec->n; i++)
        for (int c = 0; c < SELFTEST_CASES; c++)
            for (int s = 0; s < GATE_STATISTICS; s++)
                free(rec->cells[i].cases[c].x[s]);
    free(rec->cells);
}

/* Appends the sessions of a cell to the noise of a case. */
static snap_status append(case_noise *to, gate_timed *t, const gate_limits *l, snap_err *err) {
    gate_cell tests = {0};
    snap_status st = gate_timed_tests(t, l, &tests, err);
    for (int s = 0; s < GATE_STATISTICS && st == SNAP_OK; s++) {
        double *x = realloc(to->x[s], (to->n + t->n + 1) * sizeof *x);
        if (!x)
            return err_set(err, SNAP_E_NOMEM, "out of memory for the noise");
        memcpy(x + to->n, t->x[s], t->n * sizeof *x);
        to->x[s] = x;
    }
    to->n += t->n;
    to->has_p99 = tests.test[GATE_P99].x != NULL;
    to->mean_limit = fmax(to->mean_limit, t->limit[GATE_MEAN]);
    return st;
}

/* Adds the sessions of a cell, measured with equal arms, to the noise of each case: slowed as the
 * case says, once as they are and once with the arms exchanged. */
static snap_status keep_cell(cell_noise *to, const gate_timed *t, const gate_limits *l,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    to->baseline_ns = gate_timed_median(t, 0);
    memcpy(to->name, t->name, GATE_NAME);
    for (int i = 0; i < 2 * SELFTEST_CASES && st == SNAP_OK; i++) {
        case_noise *noise = &to->cases[i / 2];
        gate_timed slowed;
        st = gate_timed_slowed(t, i % 2, &kCases[i / 2].slowing, noise->n, &slowed, err);
        if (st == SNAP_OK)
            st = append(noise, &slowed, l, err);
        gate_timed_free_one(&slowed);
    }
    return st;
}

static snap_status keep_noise(noise_log *rec, const gate_measured *m, const gate_limits *l,
                              snap_err *err) {
    snap_status st = SNAP_OK;
    if (!rec->cells) {
        rec->cells = calloc(m->n + 1, sizeof *rec->cells);
        rec->n = rec->cells ? m->n : 0;
    }
    for (size_t i = 0; i < rec->n && st == SNAP_OK; i++)
        st = keep_cell(&rec->cells[i], &m->timed[i], l, err);
    return rec->cells ? st : err_set(err, SNAP_E_NOMEM, "out of memory for the noise");
}

static double estimated_pct(const gate_measured *m, size_t i) {
    return 100 * expm1(m->estimates[i][GATE_QUARTILE].ratio.centre);
}

static void count_run(selftest_case *d, const gate_measured *m) {
    size_t found = 0, sessions = 0;
    for (size_t i = 0; i < m->n; i++) {
        sessions = m->timed[i].n > sessions ? m->timed[i].n : sessions;
        found += m->cells[i].state == GATE_REGRESSED;
        d->estimate_pct += estimated_pct(m, i);
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
    now.arms[1].slowing = kCases[which].slowing;
    TRY(gate_run(&now, &m, err));
    TRY(check_passed(&m, err));
    s->about = m.about[1];
    count_run(&s->cases[which], &m);
    for (size_t i = 0; i < m.n && which == 0; i++)
        s->spread_pct = fmax(s->spread_pct, fabs(estimated_pct(&m, i)));
    if (which == 0)
        st = keep_noise(rec, &m, &opt->limits, err);
cleanup:
    gate_measured_release(&m);
    return st;
}

/* Whether @seconds have not passed yet, and another run at the pace so far would end before kOver
 * times @seconds. A run with a delay near the threshold is assumed to need all looks, and any other
 * run one look. */
static bool fits_in_time(const gate_limits *l, int which, const selftest *s, double elapsed,
                         double seconds) {
    size_t so_far = 0;
    for (int c = 0; c < SELFTEST_CASES; c++)
        so_far += s->cases[c].sessions;
    double delay = kCases[which].slowing.delay_pct / 100;
    bool open = delay > 0 && delay < 2 * l->share;
    size_t sessions = gate_sessions_at(l, open ? l->looks - 1 : 0);
    double pace = elapsed / (double)(so_far ? so_far : 1);
    return elapsed < seconds && elapsed + pace * (double)sessions < kOver * seconds;
}

/* Alternates runs of equal arms with runs of the other cases. A case for which there is no time is
 * only simulated. */
static snap_status all_runs(const gate_run_options *opt, double seconds, selftest *s,
                            noise_log *rec, snap_err *err) {
    static const int order[] = {0, 4, 0, 3, 0, 5, 0, 2, 0, 1};
    enum { kOrder = sizeof order / sizeof *order };
    int64_t from = clock_now_ns();
    gate_run_options now = *opt;
    now.deadline_ns = from + (int64_t)(kOver * seconds * 1e9);
    for (int i = 0; i < kMostRuns; i++) {
        double elapsed = (double)(clock_now_ns() - from) / 1e9;
        if (i && !fits_in_time(&opt->limits, order[i % kOrder], s, elapsed, seconds))
            continue;
        snap_status st = one_run(&now, s, order[i % kOrder], rec, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* ---- the noise: copied, and used for simulations ---- */

/* Copies the recorded noise of equal arms to s->noise. */
static bool copy_noise(selftest *s, const noise_log *rec) {
    noise_record *all = arena_alloc(&s->mem, rec->n + 1, sizeof *all);
    bool ok = all != NULL;
    for (size_t i = 0; i < rec->n && ok; i++) {
        const cell_noise *c = &rec->cells[i];
        const case_noise *from = &c->cases[0];
        double *x = arena_alloc(&s->mem, GATE_STATISTICS * (from->n + 1), sizeof *x);
        const char *name = arena_strdup(&s->mem, c->name);
        ok = x && name;
        for (int k = 0; k < GATE_STATISTICS && ok; k++)
            memcpy(x + (size_t)k * from->n, from->x[k], from->n * sizeof *x);
        if (ok)
            all[i] = (noise_record){.name = name,
                                    .baseline_ns = c->baseline_ns,
                                    .mean_limit = from->mean_limit,
                                    .log_ratios = {x, from->n},
                                    .mean_log_ratios = {x + from->n, from->n},
                                    .slow_shares = {x + 2 * from->n, from->has_p99 ? from->n : 0}};
    }
    s->noise = (noise_list){all, ok ? rec->n : 0};
    return ok;
}

static gate_noise noise_of(const cell_noise *c, int which) {
    const case_noise *n = &c->cases[which];
    return (gate_noise){
        .x = {n->x[GATE_QUARTILE], n->x[GATE_MEAN], n->has_p99 ? n->x[GATE_P99] : NULL},
        .n = n->n,
        .baseline_ns = c->baseline_ns,
        .mean_limit = n->mean_limit};
}

static snap_status simulate(const noise_log *rec, const gate_limits *l, uint64_t seed, selftest *s,
                            snap_err *err) {
    gate_noise *noise = calloc(rec->n + 1, sizeof *noise);
    double *effects = calloc(rec->n + 1, sizeof *effects), share;
    snap_status st = SNAP_OK;
    if (!noise || !effects) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
        goto cleanup;
    }
    for (int c = SELFTEST_CASES; c-- > 0;) { /* the noise of equal arms, case 0, is used last */
        for (size_t i = 0; i < rec->n; i++)
            noise[i] = noise_of(&rec->cells[i], c);
        TRY(gate_simulate(noise, effects, rec->n, l, kSimulated, seed, &s->cases[c].simulated,
                          err));
    }
    TRY(gate_smallest_effect(noise, rec->n, l, kPower, kSearched, seed, &share, err));
    s->smallest_pct = 100 * share;
cleanup:
    free(noise);
    free(effects);
    return st;
}

snap_status selftest_run(const gate_run_options *opt, double seconds, selftest *s, snap_err *err) {
    noise_log rec = {0};
    int64_t from = clock_now_ns();
    snap_status st = SNAP_OK;
    *s = (selftest){0};
    memcpy(s->cases, kCases, sizeof kCases);
    TRY(all_runs(opt, seconds, s, &rec, err));
    for (int c = 0; c < SELFTEST_CASES; c++)
        s->cases[c].estimate_pct /= (double)s->cases[c].cells;
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

static js *row_of(const selftest_case *d) {
    verdict_record v = verdict_start("selftest", d->name, NULL, NULL, VERDICT_CASE);
    v.delay_pct = d->slowing.delay_pct;
    v.spike_ms = d->slowing.spike_ms;
    v.spike_every = d->slowing.spike_every;
    v.slow_pct = d->slowing.slow_pct;
    v.slow_every = d->slowing.slow_every;
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

/* The verdict over all cases. */
static const char *judge(const selftest *s, const gate_limits *l, const char **reason) {
    const selftest_case *equal = &s->cases[0];
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
    for (int c = 0; c < SELFTEST_CASES && ok; c++)
        ok = js_push_new(rows, row_of(&s->cases[c]));
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
