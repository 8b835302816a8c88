/* host_sums.h - the communicator (comm.h) of a model that is split over processes on the CPU.
 *
 * Each rank sends its numbers to rank 0. Rank 0 adds them in the order of the ranks, in FP32, and
 * sends the sum to all. So all ranks have the same bits, and a run can be repeated. All numbers
 * pass through rank 0. This is for tests of split models without a GPU, and not for speed. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_HOST_SUMS_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_HOST_SUMS_H

#include "generator/local/comm.h"
#include "generator/local/ranks/channel.h"

/* Connects this rank of @group with the others. @to: [size], borrowed. On rank 0, to[r] is the
 * channel to rank r. On the others, to[0] is the channel to rank 0. Close with host_sums_close().
 * SNAP_E_NOMEM. */
snap_status host_sums_open(comm **out, ranks *group, channel *to, snap_err *err) SNAP_CHECK_RESULT;
void host_sums_close(comm *c); /* NULL is allowed */

#endif
