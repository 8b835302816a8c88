#include "harness/gate/decide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "evals/stats.h"

static const double kZ95 = 1.6448536269514722; /* the 95 % quantile of the normal distribution */

const char *gate_statistic_name(gate_statistic s) {
    static const char *const names[] = {"lower quartile", "mean", "p99"};
    return names[s];
}

double gate_strictest(const gate_limits *l, size_t cells) {
    return l->alpha / l->looks / (double)(GATE_STATISTICS * (cells ? cells : 1));
}

/* The smallest number of sessions of the first look with which the last look can reach the level
 * @p; 0 if no number can. */
static size_t fewest_sessions(const gate_limits *l, double p) {
    gate_limits try = *l;
    for (try.sessions = 1; gate_sessions_at(&try, l->looks - 1) <= RANK_MAX; try.sessions++)
        if (rank_least_p(gate_sessions_at(&try, l->looks - 1)) <= p)
            return try.sessions;
    return 0;
}

/* Refuses limits with which the smallest p value at the last look, @least, is above the level @p.
 */
static snap_status refuse_level(const gate_limits *l, size_t cells, double least, double p,
                                snap_err *err) {
    size_t fewest = fewest_sessions(l, p);
    char advice[100];
    if (fewest)
        (void)snprintf(advice, sizeof advice, "use --sessions %zu or more", fewest);
    else
        (void)snprintf(advice, sizeof advice,
                       "%d sessions, the most, cannot either: use a larger --alpha", RANK_MAX);
    return err_set(err, SNAP_E_USAGE,
                   "%zu sessions after the last look cannot show a regression of one of %zu "
                   "cells: the smallest p value is %.2g, and --alpha and --looks require %.2g; %s",
                   gate_sessions_at(l, l->looks - 1), cells, least, p, advice);
}

snap_status gate_limits_check(const gate_limits *l, size_t cells, snap_err *err) {
    if (!(l->share >= 0 && l->share < 10) || !(l->ns >= 0))
        return err_set(err, SNAP_E_USAGE, "a threshold must be 0 or more");
    if (!(l->alpha > 0 && l->alpha < 0.5))
        return err_set(err, SNAP_E_USAGE, "--alpha must lie between 0 and 50 %%");
    if (l->sessions < 5 || l->looks < 1 || l->looks > 8 ||
        gate_sessions_at(l, l->looks - 1) > RANK_MAX)
        return err_set(err, SNAP_E_USAGE,
                       "--sessions must be at least 5, and at most %d after the last look: %zu "
                       "sessions, doubled for each of %d looks, become %zu",
                       RANK_MAX, l->sessions, l->looks, gate_sessions_at(l, l->looks - 1));
    /* REGRESSED needs the level alpha / looks / tests. OK needs alpha / looks only, so it can be
     * reached whenever REGRESSED can. */
    double p = gate_strictest(l, cells), least = rank_least_p(gate_sessions_at(l, l->looks - 1));
    return least > p ? refuse_level(l, cells, least, p, err) : SNAP_OK;
}

double gate_threshold(const gate_limits *l, double baseline_ns) {
    double time = baseline_ns > 0 ? l->ns / baseline_ns : 0;
    return log1p(fmax(l->share, time));
}

size_t gate_sessions_at(const gate_limits *l, int look) {
    return l->sessions << look;
}

size_t gate_open(const gate_cell *cells, size_t n) {
    size_t open = 0;
    for (size_t i = 0; i < n; i++)
        open += cells[i].state == GATE_INCONCLUSIVE;
    return open;
}

/* Sets p_holm of all tests (Holm). A decided cell takes part with the p values of the look that
 * decided it. */
static snap_status adjust(gate_cell *cells, size_t n, int statistics, snap_err *err) {
    size_t k = 0;
    double *p = malloc((n * GATE_STATISTICS + 1) * sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for p values");
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < statistics; s++)
            p[k++] = cells[i].test[s].p_slower;
    stats_holm(p, k);
    for (size_t i = n; i-- > 0;)
        for (int s = statistics; s-- > 0;)
            cells[i].test[s].p_holm = p[--k];
    free(p);
    return SNAP_OK;
}

static void set_states(gate_cell *c, int statistics, double alpha) {
    gate_state *quartile = &c->test[GATE_QUARTILE].state;
    for (int s = 0; s < statistics; s++)
        if (c->test[s].p_holm <= alpha)
            c->state = c->test[s].state = GATE_REGRESSED;
    if (*quartile == GATE_INCONCLUSIVE && c->p_within <= alpha)
        *quartile = GATE_OK;
    if (c->state == GATE_INCONCLUSIVE)
        c->state = *quartile;
}

snap_status gate_settle(gate_cell *cells, size_t n, int statistics, double alpha, snap_err *err) {
    snap_status st = adjust(cells, n, statistics, err);
    for (size_t i = 0; i < n && st == SNAP_OK; i++)
        if (cells[i].state == GATE_INCONCLUSIVE)
            set_states(&cells[i], statistics, alpha);
    return st;
}

snap_status gate_look(gate_cell *cells, size_t n, const gate_limits *l, snap_err *err) {
    for (size_t i = 0; i < n; i++) {
        gate_cell *c = &cells[i];
        const gate_test *quartile = &c->test[GATE_QUARTILE];
        if (c->state != GATE_INCONCLUSIVE)
            continue;
        for (int s = 0; s < GATE_STATISTICS; s++) {
            gate_test *t = &c->test[s];
            t->p_slower = t->x ? rank_p_above(t->x, c->n, t->threshold) : 1;
        }
        c->p_within = quartile->x ? rank_p_below(quartile->x, c->n, quartile->threshold) : 1;
    }
    return gate_settle(cells, n, GATE_STATISTICS, l->alpha / l->looks, err);
}

gate_mean gate_mean_of(const rank_estimate *cells, size_t n) {
    double sum = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        double se = (cells[i].hi - cells[i].lo) / 2 / kZ95;
        sum += cells[i].centre;
        variance += se * se;
    }
    if (!n)
        return (gate_mean){(double)NAN, (double)NAN, (double)NAN};
    double mean = sum / (double)n, half = kZ95 * sqrt(variance) / (double)n;
    return (gate_mean){exp(mean), exp(mean - half), exp(mean + half)};
}
