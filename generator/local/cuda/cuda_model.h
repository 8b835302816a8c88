/* cuda_model.h - the forward pass of a model on a CUDA device: weights resident in BF16, the cache in the
 * arm's format, attention of decoding through kernels/mla.h.
 *
 * A step of one new token for each sequence is recorded once for every number of sequences (a CUDA graph)
 * and replayed; nothing in it depends on what the host learns from the device. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_MODEL_H

#include "generator/local/model/runner.h"

typedef struct cuda_model cuda_model;

/**
 * cuda_model_create - weights and buffers on the device
 *
 * @out:   caller owns it, cuda_model_free() before the cache and the backend
 * @be:    of cuda_backend_open(), borrowed; all work goes to its stream
 * @w:     borrowed during the call; without a checkpoint (weights_outline()) they are drawn at random
 * @cache: borrowed
 *
 * SNAP_E_UNSUPPORTED for a shape or format that this does not take, SNAP_E_NOMEM, SNAP_E_DEVICE; builds
 * without CUDA: SNAP_E_UNSUPPORTED.
 */
snap_status cuda_model_create(cuda_model **out, mla_backend *be, const model_weights *w,
                              kv_cache *cache, const runner_options *opt,
                              snap_err *err) SNAP_CHECK_RESULT;
void cuda_model_free(cuda_model *m); /* NULL is allowed */

/* The version of cuBLASLt that does dense products, as 130100; 0 = ours do all. */
int cuda_model_cublaslt(const cuda_model *m);

/* What a step is to give; any may be NULL. */
typedef struct {
    float *logits; /* [sum of piece.logits][vocab] */
    int32_t *next; /* [the same] the likeliest token of each */
    int32_t
        *experts; /* [rows][MoE layers][experts a token], ascending; pieces of one token first */
    const reading *
        wanted; /* [the same] what of them, reading.h; then only rows that *got says are in logits */
    reading_answer *got; /* [the same] */
} cuda_model_results;

/* The pieces are within the limits (runner.h). SNAP_E_SHAPE for more pieces than fit. */
snap_status cuda_model_step(cuda_model *m, const model_piece *pieces, int count,
                            const cuda_model_results *out, snap_err *err) SNAP_CHECK_RESULT;

/* Page @to of all layers = page @from, in stream order. SNAP_E_DEVICE. */
snap_status cuda_model_copy_page(cuda_model *m, int32_t from, int32_t to,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Random contents for all pages: for timing without a prompt. */
snap_status cuda_model_fill_cache(cuda_model *m, uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

#endif
