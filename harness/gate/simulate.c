#include "harness/gate/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum { kRunLength = 4, kBisections = 9 };

typedef struct {
    const gate_noise *from;
    size_t at;
    double *x[GATE_STATISTICS]; /* [RANK_MAX] sessions drawn so far */
} resampler;

static void restart(resampler *t, rng *r) {
    t->at = rng_below(r, (uint32_t)t->from->n);
}

/* Draws session @k of a cell that is slower by @effect. */
static void draw_session(resampler *t, size_t k, double effect, rng *r) {
    if (rng_below(r, kRunLength) == 0)
        restart(t, r);
    for (int s = 0; s < GATE_STATISTICS; s++)
        if (t->from->x[s])
            t->x[s][k] = t->from->x[s][t->at] + (s == GATE_P99 ? 0 : effect);
    t->at = (t->at + 1) % t->from->n;
}

/* Makes one comparison in the same way as gate_run(), with sessions from the recorded noise. */
static snap_status compare(gate_cell *cells, resampler *resamplers, const double *effects, size_t n,
                           const gate_limits *l, rng *r, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int look = 0; look < l->looks && gate_open(cells, n) && st == SNAP_OK; look++) {
        for (size_t i = 0; i < n; i++)
            for (; cells[i].state == GATE_INCONCLUSIVE && cells[i].n < gate_sessions_at(l, look);
                 cells[i].n++)
                draw_session(&resamplers[i], cells[i].n, effects[i], r);
        st = gate_look(cells, n, l, err);
    }
    return st;
}

/* Starts a comparison of one cell. @room: RANK_MAX sessions of each statistic. */
static void start(const gate_noise *noise, const gate_limits *l, double *room, resampler *from,
                  gate_cell *cell, rng *r) {
    double threshold = gate_threshold(l, noise->baseline_ns);
    *cell = (gate_cell){0};
    from->from = noise;
    restart(from, r);
    for (int s = 0; s < GATE_STATISTICS; s++) {
        from->x[s] = room + s * RANK_MAX;
        cell->test[s].x = noise->x[s] ? from->x[s] : NULL;
    }
    cell->test[GATE_QUARTILE].threshold = threshold;
    cell->test[GATE_MEAN].threshold = fmax(threshold, noise->mean_limit);
}

static void count(const gate_cell *cells, size_t n, gate_rates *out) {
    size_t regressed = 0, good = 0;
    for (size_t i = 0; i < n; i++) {
        regressed += cells[i].state == GATE_REGRESSED;
        good += cells[i].state == GATE_OK;
        out->sessions += (double)cells[i].n / (double)n;
    }
    out->comparisons++;
    out->alarms += regressed > 0;
    out->good += good == n;
    out->cells += regressed;
}

snap_status gate_simulate(const gate_noise *noise, const double *effects, size_t n,
                          const gate_limits *l, size_t comparisons, uint64_t seed, gate_rates *out,
                          snap_err *err) {
    gate_cell *cells = calloc(n + 1, sizeof *cells);
    resampler *resamplers = calloc(n + 1, sizeof *resamplers);
    double *sessions = malloc((n + 1) * GATE_STATISTICS * RANK_MAX * sizeof *sessions);
    snap_status st = SNAP_OK;
    *out = (gate_rates){0};
    if (!cells || !resamplers || !sessions) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
        goto cleanup;
    }
    for (size_t k = 0; k < comparisons; k++) {
        rng r = rng_make(seed, k);
        for (size_t i = 0; i < n; i++)
            start(&noise[i], l, sessions + i * GATE_STATISTICS * RANK_MAX, &resamplers[i],
                  &cells[i], &r);
        TRY(compare(cells, resamplers, effects, n, l, &r, err));
        count(cells, n, out);
    }
    out->sessions /= comparisons ? (double)comparisons : 1;
cleanup:
    free(cells);
    free(resamplers);
    free(sessions);
    return st;
}

/* The power to find a slow-down of one cell. It is computed for each cell, and the lowest
 * counts. */
static snap_status power_of(const gate_noise *noise, double *effects, size_t n,
                            const gate_limits *l, double effect, size_t comparisons, uint64_t seed,
                            double *power, snap_err *err) {
    *power = 1;
    for (size_t i = 0; i < n; i++) {
        gate_rates rates;
        for (size_t k = 0; k < n; k++)
            effects[k] = k == i ? effect : 0;
        snap_status st = gate_simulate(noise, effects, n, l, comparisons, seed, &rates, err);
        if (st != SNAP_OK)
            return st;
        *power = fmin(*power, (double)rates.alarms / (double)rates.comparisons);
    }
    return SNAP_OK;
}

snap_status gate_smallest_effect(const gate_noise *noise, size_t n, const gate_limits *l,
                                 double power, size_t comparisons, uint64_t seed, double *share,
                                 snap_err *err) {
    double *effects = calloc(n + 1, sizeof *effects), lo = 0, hi = 1, reached;
    gate_noise *quartiles = calloc(n + 1, sizeof *quartiles);
    snap_status st = SNAP_OK;
    *share = (double)NAN;
    if (!effects || !quartiles) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
        goto cleanup;
    }
    for (size_t i = 0; i < n; i++)
        quartiles[i] = (gate_noise){
            .x = {noise[i].x[GATE_QUARTILE]}, .n = noise[i].n, .baseline_ns = noise[i].baseline_ns};
    TRY(power_of(quartiles, effects, n, l, log1p(hi), comparisons, seed, &reached, err));
    if (reached < power)
        goto cleanup;
    for (int i = 0; i < kBisections; i++) {
        double mid = (lo + hi) / 2;
        TRY(power_of(quartiles, effects, n, l, log1p(mid), comparisons, seed, &reached, err));
        if (reached < power)
            lo = mid;
        else
            hi = mid;
    }
    *share = hi;
cleanup:
    free(effects);
    free(quartiles);
    return st;
}
