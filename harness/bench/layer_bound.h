/* layer_bound.h - what rounding cached rows may cost a layer by the norms of its weights, and what
 * it does cost; model_layers.h derives it. */
#ifndef SNAPMLA_HARNESS_BENCH_LAYER_BOUND_H
#define SNAPMLA_HARNESS_BENCH_LAYER_BOUND_H

#include "generator/local/model/weights.h"
#include "harness/bench/oracle.h"

typedef struct {
    double logit_error, logit_bound; /* of the worst head and token; in the softmax's units */
    double value_error, value_bound; /* norm of an output behind W_UV, of the worst head */
} layer_bound;

/**
 * layer_bound_measure - both sides
 *
 * @s:     query (rounded to bf16) and rows
 * @nope:  [heads] the norms of the queries before W_UK was absorbed
 * @truth: oracle_exact() of @s
 *
 * SNAP_E_NOMEM.
 */
snap_status layer_bound_measure(layer_bound *out, const oracle_step *s, const double *nope,
                                const attention_weights *a, const model_shape *shape,
                                const oracle_result *truth, snap_err *err) SNAP_CHECK_RESULT;

/* The largest singular value of @m, from below, to about 1e-6 of it. SNAP_E_NOMEM. */
snap_status spectral_norm(double *out, const mat *m, snap_err *err) SNAP_CHECK_RESULT;

#endif
