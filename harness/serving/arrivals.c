#include "harness/serving/arrivals.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

snap_status arrival_pattern_parse(const char *text, arrival_pattern *out, snap_err *err) {
    static const char kGamma[] = "gamma:";
    *out = (arrival_pattern){0};
    if (strcmp(text, "constant") == 0)
        return SNAP_OK;
    if (strcmp(text, "poisson") == 0) {
        out->shape = 1;
        return SNAP_OK;
    }
    if (text_starts(text, kGamma) && text_to_double(text + sizeof kGamma - 1, &out->shape) &&
        out->shape >= 0.01 && out->shape <= 1000)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "arrivals '%s' must be constant, poisson or gamma:SHAPE with SHAPE from 0.01 to "
                   "1000",
                   text);
}

arrivals arrivals_make(arrival_pattern pattern, double from, double to, double over_s,
                       uint64_t seed, uint64_t stream) {
    return (arrivals){.pattern = pattern,
                      .from = from,
                      .to = to,
                      .over_s = over_s,
                      .random = rng_make(seed, stream)};
}

/* Uniform in (0, 1]. */
static double positive(rng *r) {
    return 1 - rng_uniform(r);
}

/* Gamma with this shape and scale 1 (Marsaglia and Tsang 2000). A shape below 1 is raised by 1, and
 * the result multiplied by U^(1/shape). */
static double draw_gamma(rng *r, double shape) {
    double raise = shape < 1 ? pow(positive(r), 1 / shape) : 1;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = rng_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(positive(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * raise;
    }
}

/* Draws a gap with mean 1. */
static double draw_gap(arrivals *a) {
    double shape = a->pattern.shape;
    if (shape <= 0)
        return 1;
    bool exponential = shape >= 1 && shape <= 1;
    return exponential ? -log(positive(&a->random)) : draw_gamma(&a->random, shape) / shape;
}

double arrivals_next(arrivals *a) {
    a->expected += draw_gap(a);
    double in_ramp = (a->from + a->to) / 2 * a->over_s; /* arrivals expected during the ramp */
    if (a->expected >= in_ramp)
        return a->over_s + (a->expected - in_ramp) / a->to;
    /* solve from * t + (to - from) / (2 over_s) * t^2 = expected, in the form without
     * cancellation */
    double slope = (a->to - a->from) / a->over_s;
    return 2 * a->expected / (a->from + sqrt(a->from * a->from + 2 * slope * a->expected));
}
