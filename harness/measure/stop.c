#include "harness/measure/stop.h"

#include <math.h>
#include <stdlib.h>

#include "harness/measure/stats.h"

static const double kPlateauGain = 0.9; /* a plateau: the noise is more than this share of the noise
                                           at the previous check */

void stop_init(stop_rule *rule, const stop_limits *limits) {
    *rule = (stop_rule){
        .limits = *limits, .next_check = 2 * limits->min_samples, .check_noise = INFINITY};
}

void stop_release(stop_rule *rule) {
    free(rule->samples);
    free(rule->sorted);
    *rule = (stop_rule){0};
}

static snap_status grow(stop_rule *rule, snap_err *err) {
    size_t capacity = rule->capacity ? 2 * rule->capacity : 64;
    double *samples = realloc(rule->samples, capacity * sizeof *samples);
    if (samples)
        rule->samples = samples;
    double *sorted = samples ? realloc(rule->sorted, capacity * sizeof *sorted) : NULL;
    if (!sorted)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu samples", capacity);
    rule->sorted = sorted;
    rule->capacity = capacity;
    return SNAP_OK;
}

static int on_plateau(stop_rule *rule, double noise) {
    if (rule->n < rule->next_check)
        return 0;
    int flat = noise > kPlateauGain * rule->check_noise;
    rule->check_noise = noise;
    rule->next_check = 2 * rule->n;
    return flat;
}

static stop_reason decide(stop_rule *rule, double wall_s) {
    const stop_limits *lim = &rule->limits;
    double noise = stats_median_noise(rule->sorted, rule->n);
    int flat = on_plateau(rule, noise);
    int enough = rule->n >= lim->min_samples && rule->sum_ns >= lim->min_time_s * 1e9;
    if (enough && noise <= lim->noise)
        return STOP_NOISE;
    if (enough && flat)
        return STOP_PLATEAU;
    if (rule->n >= lim->max_samples)
        return STOP_SAMPLES;
    return wall_s >= lim->timeout_s ? STOP_TIMEOUT : STOP_NOT_YET;
}

snap_status stop_add(stop_rule *rule, double sample_ns, double wall_s, snap_err *err) {
    if (!(sample_ns > 0) || !isfinite(sample_ns))
        return err_set(err, SNAP_E_DEVICE,
                       "the timer gave %g ns for a step: its clock stands still or ran backwards",
                       sample_ns);
    if (rule->n == rule->capacity) {
        snap_status st = grow(rule, err);
        if (st != SNAP_OK)
            return st;
    }
    stats_insert(rule->sorted, rule->n, sample_ns);
    rule->samples[rule->n++] = sample_ns;
    rule->sum_ns += sample_ns;
    if (rule->reason == STOP_NOT_YET)
        rule->reason = decide(rule, wall_s);
    return SNAP_OK;
}

const char *stop_reason_name(stop_reason reason) {
    static const char *const names[] = {NULL, "noise", "plateau", "samples", "timeout"};
    return names[reason];
}
