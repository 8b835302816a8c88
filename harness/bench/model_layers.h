/* model_layers.h - studies the layers of a model at one moment of a text: what they cache, and what
 * the cache formats do to it. The numbers are a real query and the real cached rows up to it.
 *
 * For each layer there are up to four kinds of rows for the section `model_fidelity`:
 *   layer    the error of each config of the ablation, compared with FP64 attention over the same
 *            BF16 numbers
 *   values   magnitudes of the cached numbers, separately for content and RoPE
 *   bound    how much rounding the cached rows as snapmla does changes the logits and the output
 *            after W_UV, and the largest change that the norms of W_UK and W_UV allow
 *   depth    how far the residual stream of a format's own run is from that of the first format
 *
 * The bound. Rounding moves content c_j by d_j, |d_j| <= 2^-4 |c_j| + 2^-10 a_j sqrt(d_c): half a
 * step of e4m3, and half a step of its subnormals in units of the scale a_j. It moves the RoPE part
 * r_j (BF16) by at most 2^-8 |r_j|. The query q_nope is rounded to BF16 before its product with
 * W_UK, and the product is rounded again. So the logit j of a head moves by at most
 *     e_j = scale (|q_nope| |W_UK| (1 + 2^-8)^2 |d_j| + |q_r| 2^-8 |r_j|)
 * its probabilities move by at most t = min(2, exp(2 max e_j) - 1) in sum, and its output
 * after W_UV by
 *     |W_UV| (max |d_j| + t max |c_j - mean c|),
 * with the spectral norms of the head's own rows. layer_bound.c takes the largest |d_j| and |r_j|
 * over all tokens and adds a small slack for rounding in the computation. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_LAYERS_H
#define SNAPMLA_HARNESS_BENCH_MODEL_LAYERS_H

#include <signal.h>

#include "generator/local/local.h"
#include "harness/bench/oracle.h"
#include "harness/record/model_record.h"

/* Receives a row, which is borrowed during the call. */
typedef snap_status (*model_fidelity_emit)(void *ctx, const model_record *row, snap_err *err);

/* The formats of the rows "layer": bf16, snapmla, A to F, noPV. One that does not have the model's
 * widths is left out. */
enum { MODEL_LAYERS_FORMATS = 9 };

typedef struct model_layers model_layers;

/**
 * model_layers_create - prepare to study several runs of one model
 *
 * @models: [n] borrowed, in the order of @names, which are borrowed, too; each has its sequence in
 *          the pages 0, 1, 2, ...
 * @source: index of the model in BF16 that provides queries and cached rows; -1 = there is none,
 *          and only rows of kind `depth` are emitted
 *
 * SNAP_E_NOMEM.
 */
snap_status model_layers_create(model_layers **out, local_model *models, const char *const *names,
                                int n, int source, int threads, snap_err *err) SNAP_CHECK_RESULT;
void model_layers_free(model_layers *l); /* NULL is allowed; stops watching the models */

/* Between start and stop the caller lets each model decode one token. */
void model_layers_start(model_layers *l);
void model_layers_stop(model_layers *l);

/* Emits the rows of the token that was decoded between start and stop. @context: tokens in the
 * cache, including this one. SNAP_E_NOMEM. SNAP_E_CANCELLED: *cancel is set. Also the errors of
 * @emit and of cache_format_load(). */
snap_status model_layers_emit(const model_layers *l, int64_t context, model_fidelity_emit emit,
                              void *ctx, const volatile sig_atomic_t *cancel,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
