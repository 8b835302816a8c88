/* model_layers.h - what the layers of a model hold and how the cache's formats treat it, at one moment of a
 * text: the numbers are a real query and the real rows before it, layer by layer.
 *
 * Of each layer four things, each a row of the result file's `model_fidelity` section:
 *   layer    the error of every config of the ablation against FP64 attention over the same bf16 numbers
 *   values   how large the cached numbers are: content and RoPE apart
 *   bound    what rounding the cached rows as snapmla does costs in the logits and behind W_UV, beside the
 *            largest cost that the norms of W_UK and W_UV allow
 *   depth    how far a format's own run has moved the residual stream from the first one's
 *
 * The bound. Rounding moves content c_j by d_j, |d_j| <= 2^-4 |c_j| + 2^-10 a_j sqrt(d_c) (half a step of e4m3,
 * and of its subnormals in units of the scale a_j), and RoPE r_j by at most 2^-9 |r_j| (bf16). So a head's
 * logit j moves by at most
 *     e_j = scale (|q_nope| |W_UK| |d_j| + |q_r| 2^-9 |r_j|)
 * its probabilities by at most t = min(2, exp(2 max e_j) - 1) in all, and its output behind W_UV by
 *     |W_UV| (max |d_j| + t max |c_j - mean c|),
 * spectral norms of the head's own rows. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_LAYERS_H
#define SNAPMLA_HARNESS_BENCH_MODEL_LAYERS_H

#include <signal.h>

#include "base/json.h"
#include "generator/local/local.h"
#include "harness/bench/oracle.h"

/* Takes a row; it is the callee's. */
typedef snap_status (*model_fidelity_emit)(void *ctx, js *row, snap_err *err);

typedef struct model_layers model_layers;

/**
 * model_layers_create - watch some runs of one model
 *
 * @models: [n] borrowed, in the order of @names; sequences lie in pages 0, 1, 2, ...
 * @source: which of them gives queries and rows: one whose precision is bf16; -1 = only `depth` is told
 */
snap_status model_layers_create(model_layers **out, local_model *models, const char *const *names,
                                int n, int source, int threads, snap_err *err) SNAP_CHECK_RESULT;
void model_layers_free(model_layers *l); /* NULL is allowed; the models are watched no more */

/* Between these the models decode one token each. */
void model_layers_start(model_layers *l);
void model_layers_stop(model_layers *l);

/* Emits what the last such step showed; @context: tokens in the cache, that one included. SNAP_E_NOMEM,
 * SNAP_E_CANCELLED when *cancel is set, and @emit's own. */
snap_status model_layers_tell(const model_layers *l, int64_t context, model_fidelity_emit emit,
                              void *ctx, const volatile sig_atomic_t *cancel,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
