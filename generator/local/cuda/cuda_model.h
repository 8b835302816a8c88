/* cuda_model.h - the forward pass of a model on a CUDA device. Weight matrices are resident in BF16
 * (the router's in FP32; on Hopper, e4m3 matrices stay e4m3: cuda_weights.h), the cache has the
 * arm's format, and attention of decoding goes through kernels/mla.h.
 *
 * A step with one new token for each sequence, in which the logits of every token are wanted, is
 * recorded as a CUDA graph, once for every number of sequences, and replayed from then on. This
 * works because no launch depends on data that the host would have to read from the device. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_MODEL_H

#include "generator/local/model/runner.h"

typedef struct cuda_model cuda_model;

/**
 * cuda_model_create - allocate the buffers and load the weights on the device
 *
 * @out:   caller owns it; call cuda_model_free() before the cache and the backend are freed
 * @be:    of mla_backend_open("cuda"), borrowed; all work runs on its stream
 * @w:     borrowed during the call; without a checkpoint (weights_outline()) the weights are random
 * @cache: borrowed
 *
 * SNAP_E_UNSUPPORTED for a shape or format that this implementation does not support, and always in
 * builds without CUDA; SNAP_E_NOMEM; SNAP_E_DEVICE.
 */
snap_status cuda_model_create(cuda_model **out, mla_backend *be, const model_weights *w,
                              kv_cache *cache, const runner_options *opt,
                              snap_err *err) SNAP_CHECK_RESULT;
void cuda_model_free(cuda_model *m); /* NULL is allowed */

/* Makes the model's device current for the calling thread: cuda_backend_use(). */
snap_status cuda_model_use(const cuda_model *m, snap_err *err) SNAP_CHECK_RESULT;

/* The version of cuBLASLt that computes dense products, such as 130100; 0 = not used. */
int cuda_model_cublaslt(const cuda_model *m);

/* Whether matrices of weights are e4m3 in device memory (cuda_weights.h). */
bool cuda_model_holds_e4m3(const cuda_model *m);

/* What a step returns. Each pointer but @stats may be NULL, but @wanted needs @got and @logits, and
 * excludes @next and @not_finite. */
typedef struct {
    float *logits;    /* [rows] with rows = the sum of piece.logits; each row has vocab numbers */
    int32_t *next;    /* [rows] the likeliest token of each row; -1 if a logit of the row is NaN or
                         infinite */
    int32_t *experts; /* [all rows][MoE layers][experts per token], ascending; order of rows:
                         cuda_model_step() */
    const reading *wanted; /* [rows] input: what to read of each row (reading.h); changes @logits:
                              cuda_model_step() */
    reading_result *got;   /* [rows] the results of @wanted */
    int64_t *not_finite;   /* the first row with a logit that is NaN or infinite; unchanged if there
                              is none */
    runner_stats *stats;   /* the step is added to it */
} cuda_model_results;

/* Runs one step. In @experts, decoded pieces come first. With @wanted, @logits holds only the rows
 * for which got->kind is READ_LOGITS. The pieces must respect the limits of runner.h. SNAP_E_SHAPE
 * for more decoded pieces than max_decode, too many chunks, or too many rows with @wanted;
 * SNAP_E_DEVICE. */
snap_status cuda_model_step(cuda_model *m, const model_piece *pieces, int count,
                            const cuda_model_results *out, snap_err *err) SNAP_CHECK_RESULT;

/* Times the parts of a step of decoded pieces, as runner_time_parts() says. It records graphs
 * of its own. SNAP_E_SHAPE if a piece is a chunk or its logits are not wanted. */
snap_status cuda_model_time_parts(cuda_model *m, const model_piece *pieces, int count, int steps,
                                  double *ns, double *waiting_ns, snap_err *err) SNAP_CHECK_RESULT;

/* Copies page @from to page @to in all layers, in stream order. SNAP_E_DEVICE. */
snap_status cuda_model_copy_page(cuda_model *m, int32_t from, int32_t to,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Fills all pages with random contents, to time decoding without a prompt. */
snap_status cuda_model_fill_cache(cuda_model *m, uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

#endif
