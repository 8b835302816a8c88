/* planning.h - from options to a plan: tasks with their data, arms, controls, shard. */
#ifndef SNAPMLA_HARNESS_EVAL_PLANNING_H
#define SNAPMLA_HARNESS_EVAL_PLANNING_H

#include "base/arena.h"
#include "harness/eval/eval_run.h"

/**
 * planning_make - everything that a run asks, and of whom
 *
 * @plan:    plan_release() also after a failure; its texts are borrowed from @options and @mem
 * @options: where it names no data folder it does afterwards
 *
 * SNAP_E_USAGE naming the option that is wrong; what reading data and judging programs need.
 */
snap_status planning_make(eval_plan *plan, eval_options *options, arena *mem,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
