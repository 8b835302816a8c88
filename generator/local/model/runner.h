/* runner.h - one model, its cache, and the forward pass over it.
 *
 * A step takes pieces; a piece is one or more new tokens of one sequence. A piece of one token is a
 * decode step (absorbed attention through kernels/mla.h), unless `chunk` is set. Other pieces are
 * chunks of a prompt. The tokens of a chunk are first appended to the cache. Then they attend to
 * what the cache of the sequence contains up to themselves, with K and V expanded. So prefill reads
 * the arm's own cache, and its results agree with those of decoding up to rounding. With CACHE_F32
 * all pieces are treated as chunks.
 *
 * Weights are shared, borrowed, and read-only. The residual stream and the sums of the products are
 * FP32. Operands of products with weights are BF16. They are FP32 for the router, and with
 * CACHE_F32.
 *
 * On the CPU a sequence's numbers do not depend on the other pieces of a step, nor on the number of
 * threads. They do depend on how a prompt is divided into decode steps and chunks. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_RUNNER_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_RUNNER_H

#include "base/parallel.h"
#include "generator/local/comm.h"
#include "generator/local/model/cache.h"
#include "generator/local/model/calls.h"
#include "generator/local/model/reading.h"
#include "generator/local/model/weights.h"
#include "generator/local/watchdog.h"

/* Devices: NULL or "cpu"; "cuda", which runs the whole model; "opencl" and "plugin:PATH", which
 * hold the cache and compute the attention of decode steps, while the CPU does the rest. */
typedef struct {
    kv_format format;
    const char *precision; /* CACHE_ROUNDED: name or path of the format, borrowed while the runner
                              is created. runner_limits() has the name for every format */
    int64_t pages;         /* number of pages in the cache */
    int64_t context;       /* longest sequence in tokens */
    int max_rows;          /* most tokens in a step */
    int max_decode;        /* most decoded sequences in a step */
    int threads;           /* 0 = all cores; with "cuda" at most RUNNER_HOST_THREADS */
    const char *device;    /* NULL, "cpu", "cuda", "opencl" or "plugin:PATH" */
    int device_number;     /* "cuda": number of the device, from 0 */
    const char *isa; /* instruction set for gemm_create() and the backends "cpu" and "cuda"; NULL =
                           the best */
    /* Communicators, borrowed. The devices "cuda" and "cpu" need different ones (comm.h). @comm:
     * for a rank of a split model (TP), else NULL. @experts: if the routed experts are divided over
     * the ranks of several replicas (EP with DP), the ranks that exchange rows with this one, else
     * NULL. @w must have the experts of this rank (weights_share): its number is experts->rank *
     * comm->size + comm->rank. */
    comm *experts, *comm;
    call_sender *calls; /* borrowed; for rank 0 of a split model whose other ranks repeat its
                           calls (calls.h), else NULL */
} runner_options;

/* With "cuda" the threads only draw tokens, and the engines of several arms share the cores. */
enum { RUNNER_HOST_THREADS = 4 };

/* @w must outlive *out, which the caller owns: runner_free(). On "cuda" @w may come from
 * weights_outline(). SNAP_E_USAGE for an unknown device or instruction set; SNAP_E_SHAPE for a
 * context, pages or rows out of range; SNAP_E_UNSUPPORTED for what the device can't do; any error
 * of opening it, and of kv_cache_create(). */
snap_status runner_create(runner **out, const model_weights *w, const runner_options *opt,
                          snap_err *err) SNAP_CHECK_RESULT;
void runner_free(runner *r); /* NULL is allowed */

/* Makes the runner's CUDA device current for the calling thread. A thread calls this before it runs
 * steps. It need not if it created the runner, and no other runner since then. Does nothing for
 * other kinds of devices. SNAP_E_DEVICE. */
snap_status runner_use(runner *r, snap_err *err) SNAP_CHECK_RESULT;

kv_cache *runner_cache(runner *r);
const model_shape *runner_shape(const runner *r);
const runner_options *runner_limits(const runner *r);
parallel *runner_pool(runner *r); /* idle between steps */

typedef struct {
    const int32_t *tokens; /* [count] */
    int count;             /* >= 1 */
    int64_t position;      /* position of the first token; the cache holds this many before it */
    const int32_t *pages;  /* [ceil((position + count) / MLA_PAGE)] */
    int logits;            /* number of tokens at the end of the piece whose logits are computed, 0
                              .. count */
    bool chunk;            /* part of a prompt, even if it is one token */
    bool padding; /* nobody uses the results. Such pieces come last. With EP, the experts of
                              other ranks need not compute them */
} model_piece;

/**
 * runner_step - run all pieces through the model
 *
 * @logits: [sum of piece.logits][vocab_size], in the order of the pieces
 *
 * SNAP_E_SHAPE for a token, position or page out of range, too many rows or too many decode steps;
 * SNAP_E_INPUT if a wanted logit is NaN or infinite (runner_not_finite()); SNAP_E_NOMEM; any error
 * of the device or of comm.h. After an error the cache contents at the new positions are undefined.
 */
snap_status runner_step(runner *r, const model_piece *pieces, int count, float *logits,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Like runner_step(), but returns only the likeliest token of each row, next [sum of piece.logits];
 * of equal ones the lowest id. On "cuda" the logits stay on the device. */
snap_status runner_step_greedy(runner *r, const model_piece *pieces, int count, int32_t *next,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Like runner_step(), but of each row it returns only what @wanted names; @wanted and @got are [sum
 * of piece.logits]. A row of @logits is valid only if the result is READ_LOGITS, which it always
 * is on the CPU if the row is finite. A row that is not finite is READ_NOT_FINITE and no error: the
 * other rows can be used. */
snap_status runner_step_read(runner *r, const model_piece *pieces, int count, const reading *wanted,
                             reading_result *got, float *logits, snap_err *err) SNAP_CHECK_RESULT;

/* From now on, @dog limits the time of each runner_step_read(), runner_write_page() and
 * runner_read_page() (remote.h), without the messages to other ranks about pages. It is borrowed;
 * NULL = no limit. */
void runner_limit_steps(runner *r, watchdog *dog);

/* Writes to @err that the logits after the token at @position are not finite, and what to do.
 * Returns SNAP_E_INPUT. */
snap_status runner_not_finite(const runner *r, int64_t position, snap_err *err);

/* Copies page @from to page @to in all layers. On "cuda", the copy is enqueued in the stream, and
 * the call does not wait for it. */
snap_status runner_copy_page(runner *r, int32_t from, int32_t to, snap_err *err) SNAP_CHECK_RESULT;

/* Writes a page of all layers from host memory [kv_cache_page_bytes()], like
 * kv_cache_write_page(), on all ranks of a split model. */
snap_status runner_write_page(runner *r, int32_t page, const void *host,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Fills all pages with random contents, to time decoding without a prompt. SNAP_E_UNSUPPORTED
 * except on "cuda". Like runner_time_parts() it runs on this rank only: each rank of a split model
 * has to call it. */
snap_status runner_fill_cache(runner *r, uint64_t seed, snap_err *err) SNAP_CHECK_RESULT;

/* The parts of a decode step. */
typedef enum {
    STEP_ATTENTION, /* queries absorbed, rows appended, attention over the cache */
    STEP_EXCHANGE,  /* what the ranks exchange, without waiting for slower ranks */
    STEP_EXPERTS,   /* choice and products of routed and shared experts, joining their outputs */
    STEP_REST,      /* other products, norms, embedding and logits */
    STEP_PARTS
} step_part;

/* Runs a step of one decoded token for each sequence @steps times, and returns the mean time of
 * each part, ns [STEP_PARTS]. The device records an event between two parts, so kernels of
 * different parts do not overlap, and the sum is somewhat longer than a step. The exchanges are
 * timed in two other steps, in which one copy or seventeen copies follow each exchange. The time of
 * the exchange is a sixteenth of the difference of these steps, or NAN if that is not above 0.
 * *waiting_ns = how much longer the exchanges themselves take than one copy of each, because this
 * rank waits for slower ranks. Both times are medians. They are 0 without other ranks.
 * SNAP_E_UNSUPPORTED except on "cuda". */
snap_status runner_time_parts(runner *r, const model_piece *pieces, int count, int steps,
                              double *ns, double *waiting_ns, snap_err *err) SNAP_CHECK_RESULT;

/* Sums over all steps so far. */
typedef struct {
    /* Time of steps on "cuda", in ns; 0 on other devices. */
    int64_t launch_ns; /* time in which the host checks a step, copies its inputs, starts its
                          kernels */
    int64_t wait_ns;   /* time in which the host then waits for the results and copies them */
    /* Steps whose number of sequences had not occurred before, so that a CUDA graph was recorded;
     * the time for that is a part of launch_ns. */
    int64_t recorded, record_ns;
    /* How many different experts the tokens of a layer used. Each layer of a step is counted once
     * in `layers`, and each of its experts that had a token in `experts`. On "cuda" every
     * RUNNER_EXPERTS_EVERY-th step is counted, because the counting costs a copy. Experts that all
     * tokens share, and zero-computation experts, do not count. */
    int64_t layers, experts;
} runner_stats;
enum { RUNNER_EXPERTS_EVERY = 64 };
runner_stats runner_stats_of(const runner *r);

/* The version of cuBLASLt that computes dense products, such as 130100; 0 = not used. */
int runner_cublaslt(const runner *r);

/* Whether matrices of weights are e4m3 in the memory of the device. Then these weights are not
 * rounded to BF16, and products of more than eight rows round their activations to e4m3
 * (generator/local/cuda/README.md). Always false on devices other than "cuda". */
bool runner_holds_e4m3(const runner *r);

/* From now on each step writes the experts of its tokens to @experts: [rows][MoE layers][experts
 * per token], ascending, rows of decoded pieces first. For tests and statistics; NULL stops it. The
 * caller owns the memory. */
void runner_watch_experts(runner *r, int32_t *experts);

/* A row after a block, unrounded. */
typedef struct {
    int block, row;
    const float *query;    /* [heads][nope + rope], after RoPE */
    const float *absorbed; /* [heads][d_c + d_r]; NULL for a row of a chunk */
    const float *x;        /* [hidden] the residual stream after the block */
} runner_block_view;

/* @fn is called for each row and block of a step; never on "cuda". For tests and statistics; NULL
 * stops it. */
typedef void (*runner_block_fn)(void *ctx, const runner_block_view *v);
void runner_watch_blocks(runner *r, runner_block_fn fn, void *ctx);

#endif
