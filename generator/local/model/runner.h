/* runner.h - one model, its cache, and the forward pass over it.
 *
 * A step takes pieces: new tokens of some sequences. A piece of one token is a decode step:
 * absorbed attention through kernels/mla.h. A longer piece is a chunk of a prompt: its tokens enter
 * the cache first, and then attend to what the cache holds, their own chunk included, with K and V
 * expanded block by block. So prefill reads the arm's own cache, and agrees with decoding up to
 * rounding.
 *
 * Weights are shared, borrowed, and read-only. Sums and everything between the products is FP32;
 * operands of products are BF16, or FP32 with CACHE_F32.
 *
 * A sequence's numbers do not depend on the other pieces of a step, nor on the threads. They do
 * depend on how a prompt is cut into pieces of one token and of more. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_RUNNER_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_RUNNER_H

#include "base/parallel.h"
#include "generator/local/comm.h"
#include "generator/local/model/cache.h"
#include "generator/local/model/reading.h"
#include "generator/local/model/weights.h"

/* Devices: NULL or "cpu"; "cuda", which does all; "opencl" and "plugin:PATH", which hold the cache
 * and do the attention, all else being the processor's. */
typedef struct {
    cache_format format;
    int64_t pages;      /* in the cache */
    int64_t context;    /* longest sequence, tokens */
    int max_rows;       /* tokens of a step */
    int max_decode;     /* pieces of one token in a step */
    int threads;        /* 0 = all; beside a device at most RUNNER_HOST_THREADS */
    const char *device; /* "cuda": weights, cache and products there */
    const char *isa;    /* gemm_create()'s and the backend's choice; NULL = the best */
    comm *
        comm; /* of a rank's share, borrowed; NULL = the model is whole. "cuda" takes one rank only */
} runner_options;

typedef struct runner runner;

/* Beside a device threads only draw tokens, and the engines of several arms share the
 * processors. */
enum { RUNNER_HOST_THREADS = 4 };

/* @w must outlive *out, which the caller owns: runner_free(). On "cuda" it may be weights_outline()'s.
 * SNAP_E_USAGE for an unknown device; what opening it, and SNAP_E_UNSUPPORTED what it lacks. */
snap_status runner_create(runner **out, const model_weights *w, const runner_options *opt,
                          snap_err *err) SNAP_CHECK_RESULT;
void runner_free(runner *r); /* NULL is allowed */

kv_cache *runner_cache(runner *r);
const model_shape *runner_shape(const runner *r);
const runner_options *runner_limits(const runner *r);
parallel *runner_pool(runner *r); /* idle between steps */

typedef struct {
    const int32_t *tokens; /* [count] */
    int count;             /* >= 1 */
    int64_t position;      /* of the first: what the cache holds before */
    const int32_t *pages;  /* [ceil((position + count) / MLA_PAGE)] */
    int logits;            /* of the last so many tokens, 0 .. count */
    bool chunk;            /* a prompt's, even where it is one token */
} model_piece;

/**
 * runner_step - run all pieces through the model
 *
 * @logits: [sum of piece.logits][vocab_size], pieces in order
 *
 * SNAP_E_SHAPE for a token, position or page out of range, or more rows than the limits; the cache
 * may then hold anything at the new positions. */
snap_status runner_step(runner *r, const model_piece *pieces, int count, float *logits,
                        snap_err *err) SNAP_CHECK_RESULT;

/* The same, but only the likeliest token of each [sum of piece.logits] comes back; of equals the
 * lower id. On a device the logits stay there. */
snap_status runner_step_greedy(runner *r, const model_piece *pieces, int count, int32_t *next,
                               snap_err *err) SNAP_CHECK_RESULT;

/* The same, but of each row only what is wanted of it (@wanted and @got [sum of piece.logits]).
 * Rows of @logits are filled where the answer is READ_LOGITS, which on a processor it always is. */
snap_status runner_step_read(runner *r, const model_piece *pieces, int count, const reading *wanted,
                             reading_answer *got, float *logits, snap_err *err) SNAP_CHECK_RESULT;

/* Page @to of all layers = page @from. On a device in stream order, without waiting for it. */
snap_status runner_copy_page(runner *r, int32_t from, int32_t to, snap_err *err) SNAP_CHECK_RESULT;

/* Random contents for all pages of the cache, for timing without a prompt. Only on a device that
 * can: SNAP_E_UNSUPPORTED. */
snap_status runner_fill_cache(runner *r, uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

/* The version of cuBLASLt that does dense products on a device, as 130100; 0 = none does. */
int runner_cublaslt(const runner *r);

/* What the last step's tokens were sent to: [rows][MoE layers][experts a token], ascending; pieces
 * of one token first. For tests and statistics; NULL stops it. The memory is the caller's. */
void runner_watch_experts(runner *r, int32_t *experts);

/* A row when a block is done with it; nothing of it is rounded. */
typedef struct {
    int block, row;
    const float *query;    /* [heads][nope + rope], the position turned in */
    const float *absorbed; /* [heads][d_c + d_r]; NULL for a row that was not decoded */
    const float *x;        /* [hidden] the residual stream behind the block */
} runner_block_view;

/* Called on the CPU for each of them. For tests and statistics; NULL stops it. */
typedef void (*runner_block_fn)(void *ctx, const runner_block_view *v);
void runner_watch_blocks(runner *r, runner_block_fn fn, void *ctx);

#endif
