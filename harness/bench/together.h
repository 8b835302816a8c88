/* together.h - lets all ranks of a group begin each timed step at the same time, and gives every
 * rank the times of all. */
#ifndef SNAPMLA_HARNESS_BENCH_TOGETHER_H
#define SNAPMLA_HARNESS_BENCH_TOGETHER_H

#include <stdint.h>

#include "generator/local/ranks/ranks.h"

enum { TOGETHER_LEAD_NS = 300000 /* longer than the messages of together_meet() usually take */ };

/* When a rank begins its next step, by its own clock. @now: its clock when together_meet() begins.
 * @latest: the latest such time of all ranks. The ranks of one machine share the clock, so all of
 * them get the same time: TOGETHER_LEAD_NS after @latest. Clocks of different machines usually
 * differ by more than 5 ms. Then only the ranks of the machine with the latest clock wait for that
 * time, and all other ranks begin at once. */
int64_t together_start(int64_t now, int64_t latest);

/**
 * together_meet - wait for all ranks, then for the time at which all of them begin
 *
 * @group: NULL: this process measures alone
 * @mine:  time of the last step on this rank, in ns
 * @ns:    [ranks] gets the times of all ranks
 *
 * Returns the failure of the group, if there is one.
 */
snap_status together_meet(ranks *group, double mine, double *ns, snap_err *err) SNAP_CHECK_RESULT;

#endif
