/* comm.h - where the ranks of a model that is split among devices meet.
 *
 * A rank's share is a checkpoint of a smaller shape: its part of the heads (rows of W_Q and of W_UK and W_UV, columns of
 * W_O) and of the inner width of every feed-forward, experts and shared ones alike (rows of gate and up, columns of
 * down). All else is whole on every rank: embedding, norms, the latent and its cache, router, logits. So ranks run the
 * same steps, and what W_O and the down projections give is a part of a sum: it is added up over ranks there, twice a
 * block. What needs no share, the input that a zero-computation expert gives back, rank 0 adds alone.
 *
 * There is no communicator between processes or devices here: this is what one has to give. */
#ifndef SNAPMLA_GENERATOR_LOCAL_COMM_H
#define SNAPMLA_GENERATOR_LOCAL_COMM_H

#include <stdint.h>

#include "base/err.h"

typedef struct comm comm;

struct comm {
    int rank, size;
    /* x [n] = the sum of every rank's x [n], the same bits on each. All ranks call it equally often, with the same
     * n, from the thread that runs their step; it returns when x is there. An error ends the step. */
    snap_status (*all_reduce)(comm *c, float *x, int64_t n, snap_err *err);
};

/* Nothing to do for a model that is whole: NULL, or one rank. */
static inline snap_status comm_sum(comm *c, float *x, int64_t n, snap_err *err) {
    return c && c->size > 1 ? c->all_reduce(c, x, n, err) : SNAP_OK;
}

#endif
