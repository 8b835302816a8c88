/* host_sums.h - the communicators (comm.h) of a model that is divided over processes on the CPU.
 *
 * Each rank sends its numbers to rank 0. For the sums of some ranks, rank 0 adds the numbers of
 * these ranks in their order, in FP32, and sends each of them the sum. So they have the same bits,
 * and a run can be repeated. For an all-gather, it sends each rank the numbers of the ranks that
 * the rank exchanges numbers with. All numbers pass through rank 0. This is for tests of split
 * models without a GPU, and not for speed. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_HOST_SUMS_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_HOST_SUMS_H

#include "generator/local/comm.h"
#include "generator/local/ranks/channel.h"

/* All ranks of the group call the functions of their communicators at the same time. Each rank
 * exchanges numbers with the ranks first, first + step, ..., as many as `size`, of which it is one.
 * Either step is 1 and first is a multiple of `size`, or first is less than `step`. */
typedef struct {
    ranks *group;
    int first, step, size;
} host_sums_options;

/* Connects this rank with the others. @to: [ranks of the group], borrowed. On rank 0, to[r] is the
 * channel to rank r. On the others, to[0] is the channel to rank 0. Close with host_sums_close().
 * SNAP_E_NOMEM. */
snap_status host_sums_open(comm **out, const host_sums_options *opt, channel *to,
                           snap_err *err) SNAP_CHECK_RESULT;
void host_sums_close(comm *c); /* NULL is allowed */

#endif
