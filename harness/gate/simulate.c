#include "harness/gate/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum { kRunLength = 4, kBisections = 9 };

typedef struct {
    const gate_noise *from;
    size_t at;
    double sign;
} resampler;

static void restart(resampler *t, rng *r) {
    t->at = rng_below(r, (uint32_t)t->from->n);
    t->sign = rng_u32(r) & 1 ? 1.0 : -1.0;
}

static double next_session(resampler *t, rng *r) {
    if (rng_below(r, kRunLength) == 0)
        restart(t, r);
    double x = t->from->x[t->at] * t->sign;
    t->at = (t->at + 1) % t->from->n;
    return x;
}

/* Makes one comparison in the same way as gate_run(), with sessions from the recorded noise. */
static void compare(gate_cell *cells, resampler *resamplers, double *sessions,
                    const double *effects, size_t n, const gate_limits *l, rng *r) {
    for (int look = 0; look < l->looks && gate_open(cells, n); look++) {
        for (size_t i = 0; i < n; i++) {
            double *x = sessions + i * RANK_MAX;
            if (cells[i].state != GATE_INCONCLUSIVE)
                continue;
            for (; cells[i].n < gate_sessions_at(l, look); cells[i].n++)
                x[cells[i].n] = next_session(&resamplers[i], r) + effects[i];
        }
        gate_look(cells, n, l);
    }
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
    double *sessions = malloc((n + 1) * RANK_MAX * sizeof *sessions);
    bool ok = cells && resamplers && sessions;
    *out = (gate_rates){0};
    for (size_t k = 0; k < comparisons && ok; k++) {
        rng r = rng_make(seed, k);
        for (size_t i = 0; i < n; i++) {
            resamplers[i].from = &noise[i];
            restart(&resamplers[i], &r);
            cells[i] = (gate_cell){.x = sessions + i * RANK_MAX,
                                   .threshold = gate_threshold(l, noise[i].baseline_ns)};
        }
        compare(cells, resamplers, sessions, effects, n, l, &r);
        count(cells, n, out);
    }
    out->sessions /= comparisons ? (double)comparisons : 1;
    free(cells);
    free(resamplers);
    free(sessions);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
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
    snap_status st = SNAP_OK;
    *share = (double)NAN;
    if (!effects)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a simulation");
    TRY(power_of(noise, effects, n, l, log1p(hi), comparisons, seed, &reached, err));
    if (reached < power)
        goto cleanup;
    for (int i = 0; i < kBisections; i++) {
        double mid = (lo + hi) / 2;
        TRY(power_of(noise, effects, n, l, log1p(mid), comparisons, seed, &reached, err));
        if (reached < power)
            lo = mid;
        else
            hi = mid;
    }
    *share = hi;
cleanup:
    free(effects);
    return st;
}
