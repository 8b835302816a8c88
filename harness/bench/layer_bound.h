/* layer_bound.h - how much the rounding of cached rows changes a layer's output: a bound from the
 * norms of its weights, and the measured change. model_layers.h derives the bound. */
#ifndef SNAPMLA_HARNESS_BENCH_LAYER_BOUND_H
#define SNAPMLA_HARNESS_BENCH_LAYER_BOUND_H

#include "generator/local/model/weights.h"
#include "harness/bench/oracle.h"

typedef struct {
    double logit_error, logit_bound; /* largest of all heads and tokens, in units of the softmax's
                                        argument */
    double value_error, value_bound; /* norm of the change of an output after W_UV; largest over
                                        heads */
} layer_bound;

/**
 * layer_bound_measure - compute the bounds and the measured errors of a layer
 *
 * @s:     queries (rounded to bf16) and cached rows
 * @nope:  [heads] the norms of the queries without their RoPE part, before they are rounded to bf16
 *         and multiplied by W_UK
 * @truth: oracle_exact() of @s
 *
 * Errors: those of cache_format_load() for the format "snapmla", SNAP_E_SHAPE, SNAP_E_NOMEM.
 */
snap_status layer_bound_measure(layer_bound *out, const oracle_step *s, const double *nope,
                                const attention_weights *a, const model_shape *shape,
                                const oracle_result *truth, snap_err *err) SNAP_CHECK_RESULT;

/* The largest singular value of @m by power iteration, which approaches it from below. The
 * iteration stops when a step gains less than 1e-9 of the value, or after 500 steps.
 * SNAP_E_NOMEM. */
snap_status spectral_norm(double *out, const mat *m, snap_err *err) SNAP_CHECK_RESULT;

#endif
