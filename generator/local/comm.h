/* comm.h - what the ranks exchange if a model is divided over several devices: sums over the ranks
 * of a split model (TP), and rows on their way to experts and back (EP).
 *
 * TP. A rank holds a model of a smaller shape (ranks/layout.h). It has its part of the heads (rows
 * of W_Q, W_UK and W_UV, columns of W_O) and its part of the inner width of every feed-forward
 * layer, routed and shared experts included (rows of gate and up, columns of down). Everything else
 * is complete on every rank, for example embedding, norms, the latent and its cache, router and
 * logits. So all ranks run the same steps. The output of W_O and the output of the down projections
 * are partial sums, so they are added up over the ranks: two sums per block, three in a LongCat
 * block that has experts beside its dense feed-forward. A zero-computation expert returns its input
 * and has no weights to split, so rank 0 alone adds that input.
 *
 * EP. Each rank has its part of the routed experts, whole, and everything else of its replica. If
 * there are several replicas (DP), a layer with experts has two exchanges between ranks that have
 * different rows:
 *
 *   all-gather      each rank normalises its rows and chooses their experts. Then all ranks get all
 *                   rows, with the chosen experts and their weights
 *   reduce-scatter  each rank computes its own experts for all rows. The outputs are added up over
 *                   the ranks, and each rank gets the sums of its own rows
 *
 * All ranks run the same steps with the same number of rows, so the host knows all sizes. Shared
 * experts, zero-computation experts and dense layers only concern the rows of a rank.
 *
 * TP and EP together. The ranks of one replica have the same rows. Each rank computes the routed
 * experts that it has, and its part of the shared experts. Their outputs are partial sums, which
 * are added up over the ranks of the replica, as with TP alone. With several replicas, the two
 * exchanges above come before this sum. They connect the ranks that have the same part of their
 * replicas.
 *
 * This file defines the interface between a model and a communicator. cuda/sums.h implements it for
 * GPUs, and ranks/host_sums.h for processes on the CPU. */
#ifndef SNAPMLA_GENERATOR_LOCAL_COMM_H
#define SNAPMLA_GENERATOR_LOCAL_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct comm comm;

/* The norm (RMS) of the rows of a residual stream x, for add_sum_norm(): to [rows][width] = BF16 of
 * x * factor * weight / sqrt(mean of x^2 + eps). */
typedef struct {
    const float *weight; /* [width] */
    float eps, factor;
    void *to;
    int rows, width;
} comm_norm;

struct comm {
    int rank, size;
    /* x [n] = the sum of x [n] over all ranks, with the same bits on each rank. All ranks call this
     * equally often, with the same n, from the thread that runs their step. It returns when x holds
     * the sum. An error ends the step. NULL for models on a GPU. */
    snap_status (*all_reduce)(comm *c, float *x, int64_t n, snap_err *err);

    /* The next four functions are for models on a GPU, and NULL for models on the CPU.
     *
     * add_sum() enqueues x [n] += factor * (the sum of part [n] over all ranks). Both arrays are
     * device memory, aligned to 16 bytes, and n is a multiple of 4. @part is undefined afterwards.
     * The stream may be recording a CUDA graph. All ranks make the same calls in the same order.
     *
     * add_sum_norm() enqueues add_sum() of norm->rows * norm->width numbers. If one kernel can also
     * compute the norm in less time than a second one, *normed is true afterwards, and that kernel
     * writes norm->to. Otherwise *normed is false, and norm->to is not written.
     *
     * wait() waits for the work on the stream. If another rank has failed, it ends the work that
     * waits for that rank, and returns the failure. All ranks call it equally often.
     *
     * stop() ends work of this communicator that waits for other ranks, for a step that has failed
     * elsewhere. The communicator can then only be closed. */
    snap_status (*add_sum)(comm *c, float *x, float *part, int64_t n, float factor, void *stream,
                           snap_err *err);
    snap_status (*add_sum_norm)(comm *c, float *x, float *part, float factor, const comm_norm *norm,
                                bool *normed, void *stream, snap_err *err);
    snap_status (*wait)(comm *c, void *stream, snap_err *err);
    void (*stop)(comm *c);

    /* For EP on the CPU, else NULL: all [size][bytes] = mine [bytes] of each rank. Called like
     * all_reduce(), which EP uses, too. */
    snap_status (*all_gather)(comm *c, const void *mine, void *all, int64_t bytes, snap_err *err);

    /* For EP on a GPU, else NULL. Called like add_sum().
     *
     * gather() enqueues all [size][bytes] = mine [bytes] of each rank, a multiple of 16 bytes.
     *
     * scatter_sum() enqueues x [n] += the sum over all ranks of part [r], where r is the number of
     * this rank. part is [size][n], and undefined afterwards. */
    snap_status (*gather)(comm *c, const void *mine, void *all, int64_t bytes, void *stream,
                          snap_err *err);
    snap_status (*scatter_sum)(comm *c, float *x, float *part, int64_t n, void *stream,
                               snap_err *err);
};

/* Whether there are other ranks to exchange numbers with. */
static inline bool comm_splits(const comm *c) {
    return c && c->size > 1;
}

/* Sums @x over the ranks. Does nothing for a model that is not split (NULL, or one rank). */
static inline snap_status comm_sum(comm *c, float *x, int64_t n, snap_err *err) {
    return comm_splits(c) ? c->all_reduce(c, x, n, err) : SNAP_OK;
}

#endif
