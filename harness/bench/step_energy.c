#include "harness/bench/step_energy.h"

#include <math.h>

#include "base/clock.h"
#include "harness/bench/together.h"

enum { kMostSteps = 1000000 /* of a round */ };

/* Replicas are not equally fast, and one without a sequence runs no step. So the ranks meet after
 * each round, long before the limit of an exchange (ranks_defaults.exchange_s). */
static const double kRound = 2; /* seconds */

/* The number of steps that take about @seconds. */
static int64_t steps_for(double seconds, double step_ns) {
    double n = step_ns > 0 ? ceil(seconds * 1e9 / step_ns) : 1;
    return n < 1 ? 1 : n > kMostSteps ? kMostSteps : (int64_t)n;
}

/* The time since @start on the slowest rank, in seconds. */
static snap_status slowest(const step_energy_options *o, int64_t start, double *seconds,
                           snap_err *err) {
    double all[RANKS_MOST];
    snap_status st = together_meet(o->group, (double)(clock_now_ns() - start), all, err);
    *seconds = 0;
    for (int r = 0; r < (o->group ? ranks_size(o->group) : 1) && st == SNAP_OK; r++)
        *seconds = fmax(*seconds, all[r] / 1e9);
    return st;
}

/* Runs rounds of steps until the slowest rank has used the wanted time. All ranks have the times of
 * all, so they run equally many rounds. */
static snap_status run_loop(step_energy *out, const step_energy_options *o, step_energy_fn step,
                            void *ctx, int64_t start, snap_err *err) {
    snap_status st;
    double wanted = fmax(o->seconds, STEP_ENERGY_LEAST_S);
    do {
        int64_t now = steps_for(fmin(wanted - out->seconds, kRound), o->step_ns);
        for (int64_t i = 0; i < now; i++) {
            if (o->cancel && *o->cancel)
                TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
            TRY(step(ctx, err));
            energy_keep(o->own, clock_now_ns());
        }
        out->steps += now;
        TRY(slowest(o, start, &out->seconds, err));
    } while (out->seconds < wanted);
cleanup:
    return st;
}

snap_status step_energy_measure(step_energy *out, const step_energy_options *o, step_energy_fn step,
                                void *ctx, snap_err *err) {
    snap_status st;
    double all[RANKS_MOST];
    int n = o->group ? ranks_size(o->group) : 1;
    *out = (step_energy){0};
    TRY(together_meet(o->group, 0, all, err));
    int64_t start = clock_now_ns();
    energy_start(o->own, start);
    TRY(run_loop(out, o, step, ctx, start, err));
    all[0] = energy_read(o->own, clock_now_ns()) / (double)out->steps;
    if (o->group) {
        double mine = all[0];
        TRY(ranks_all_gather(o->group, "the energy of a step", &mine, sizeof mine, all, err));
    }
    for (int r = 0; r < n && r < STEP_ENERGY_RANKS; r++) {
        out->rank[r] = all[r];
        out->joules += all[r];
    }
cleanup:
    return st;
}
