#include "harness/gate/decide.h"

#include <math.h>
#include <stdlib.h>

#include "evals/stats.h"

static const double kZ95 = 1.6448536269514722; /* the 95 % quantile of the normal distribution */

snap_status gate_limits_check(const gate_limits *l, snap_err *err) {
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
    return SNAP_OK;
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

/* Sets p_holm of all cells (Holm). A decided cell takes part with the p_slower of the look that
 * decided it. */
static void adjust(gate_cell *cells, size_t n) {
    double *p = malloc((n + 1) * sizeof *p);
    for (size_t i = 0; i < n; i++) {
        cells[i].p_holm = fmin(cells[i].p_slower * (double)n, 1); /* Bonferroni, if memory is
                                                                     short */
        if (p)
            p[i] = cells[i].p_slower;
    }
    if (p)
        stats_holm(p, n);
    for (size_t i = 0; p && i < n; i++)
        cells[i].p_holm = p[i];
    free(p);
}

void gate_settle(gate_cell *cells, size_t n, double alpha) {
    adjust(cells, n);
    for (size_t i = 0; i < n; i++) {
        gate_cell *c = &cells[i];
        if (c->state != GATE_INCONCLUSIVE)
            continue;
        if (c->p_holm <= alpha)
            c->state = GATE_REGRESSED;
        else if (c->p_within <= alpha)
            c->state = GATE_OK;
    }
}

void gate_look(gate_cell *cells, size_t n, const gate_limits *l) {
    for (size_t i = 0; i < n; i++) {
        gate_cell *c = &cells[i];
        if (c->state != GATE_INCONCLUSIVE)
            continue;
        c->p_slower = rank_p_above(c->x, c->n, c->threshold);
        c->p_within = rank_p_below(c->x, c->n, c->threshold);
    }
    gate_settle(cells, n, l->alpha / l->looks);
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
