/* verify_steps.c - checks the rows of measured steps of whole models: the order of their times, and
 * the rates and energies that follow from other numbers of the row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/step_energy.h"

static const double kMostWatts = 3000; /* more than any GPU uses */

/* Tokens of a step. */
static double tokens_of(const step_record *row) {
    bool prompt = strcmp(row->step, "prompt") == 0;
    return (double)row->batch * (prompt ? (double)row->context : 1);
}

static void check_times(verify_findings *f, const step_record *row, const char *where) {
    double rate = tokens_of(row) / row->median_ns * 1e9;
    f->checks += 2;
    if (row->best_ns > row->median_ns || row->worst_ns < row->median_ns)
        verify_add(f, VERIFY_FORM, where, "its times are not in order");
    if (!verify_is_near(row->tokens_s, rate))
        verify_add(f, VERIFY_PHYSICS, where, "tokens_s is %.10g, but batch and time give %.10g",
                   row->tokens_s, rate);
}

static void check_energy(verify_findings *f, const step_record *row, const char *where) {
    size_t gpus = row->rank_joules.n ? row->rank_joules.n : 1;
    double sum = row->rank_joules.n ? 0 : row->joules_step,
           watts = row->joules_step * (double)row->energy_steps / row->energy_s;
    for (size_t i = 0; i < row->rank_joules.n; i++)
        sum += row->rank_joules.at[i];
    f->checks += 6;
    if (row->energy_steps < 1)
        verify_add(f, VERIFY_FORM, where, "its energy has no number of steps");
    if (row->rank_median_ns.n && row->rank_joules.n != row->rank_median_ns.n)
        verify_add(f, VERIFY_FORM, where, "it has times of %zu ranks, and the energy of %zu",
                   row->rank_median_ns.n, row->rank_joules.n);
    if (!(row->energy_s >= STEP_ENERGY_LEAST_S))
        verify_add(f, VERIFY_FORM, where, "its energy is of %.3g s, and the least is %g s",
                   row->energy_s, STEP_ENERGY_LEAST_S);
    if (!verify_is_near(row->joules_step, sum))
        verify_add(f, VERIFY_PHYSICS, where, "joules_step is %.10g, but its ranks add up to %.10g",
                   row->joules_step, sum);
    if (!verify_is_near(row->joules_token * tokens_of(row), row->joules_step))
        verify_add(f, VERIFY_PHYSICS, where, "joules_token is %.10g, but the step gives %.10g",
                   row->joules_token, row->joules_step / tokens_of(row));
    if (!(watts <= kMostWatts * (double)gpus))
        verify_add(f, VERIFY_PHYSICS, where, "its energy means %.0f W for %zu GPUs", watts, gpus);
}

static bool has_energy(const step_record *row) {
    return isfinite(row->joules_step) || isfinite(row->joules_token) || isfinite(row->energy_s) ||
           row->rank_joules.n || row->energy_steps != RECORD_NO_COUNT;
}

void verify_steps(const run_record *r, verify_findings *f) {
    for (size_t i = 0; i < r->e2e.n; i++) {
        const step_record *row = &r->e2e.at[i];
        char where[64];
        (void)snprintf(where, sizeof where, "e2e[%zu]", i);
        if (row->parts & STEP_TIMED)
            check_times(f, row, where);
        if (has_energy(row))
            check_energy(f, row, where);
    }
}
