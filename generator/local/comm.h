/* comm.h - the sum over the ranks of a model that is split over several devices.
 *
 * A rank holds a checkpoint of a smaller shape. It has its part of the heads (rows of W_Q, W_UK and
 * W_UV, columns of W_O) and its part of the inner width of every feed-forward layer, routed and
 * shared experts included (rows of gate and up, columns of down). Everything else is complete on
 * every rank, for example embedding, norms, the latent and its cache, router and logits. So all
 * ranks run the same steps. The output of W_O and the output of the down projections are partial
 * sums, so they are added up over the ranks: two sums per block, three in a LongCat block that has
 * experts beside its dense feed-forward. A zero-computation expert returns its input and has no
 * weights to split, so rank 0 alone adds that input.
 *
 * This file defines the interface that a communicator between processes or devices has to
 * implement, and comm_sum(), which calls it. The project has no such communicator yet. The
 * groups of processes in ranks/ are what one for several GPUs would use. */
#ifndef SNAPMLA_GENERATOR_LOCAL_COMM_H
#define SNAPMLA_GENERATOR_LOCAL_COMM_H

#include <stdint.h>

#include "base/err.h"

typedef struct comm comm;

struct comm {
    int rank, size;
    /* x [n] = the sum of x [n] over all ranks, with the same bits on each rank. All ranks call this
     * equally often, with the same n, from the thread that runs their step. It returns when x holds
     * the sum. An error ends the step. */
    snap_status (*all_reduce)(comm *c, float *x, int64_t n, snap_err *err);
};

/* Sums @x over the ranks. Does nothing for a model that is not split (NULL, or one rank). */
static inline snap_status comm_sum(comm *c, float *x, int64_t n, snap_err *err) {
    return c && c->size > 1 ? c->all_reduce(c, x, n, err) : SNAP_OK;
}

#endif
