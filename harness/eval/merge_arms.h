/* merge_arms.h - the arms of a run that was asked at several places. */
#ifndef SNAPMLA_HARNESS_EVAL_MERGE_ARMS_H
#define SNAPMLA_HARNESS_EVAL_MERGE_ARMS_H

#include "base/json.h"

/**
 * merge_arms - add the arms of another shard
 *
 * @all:    array of "NAME=GENERATOR[,key=value...]", owned by the caller; NULL before the first
 *          shard
 * @arms:   those of a shard
 * @folder: of the shard, for messages
 *
 * The same server stays one; several become "NAME=URL|URL,...", as an arm of several servers is
 * written. SNAP_E_USAGE when the arms differ in more than their servers.
 */
snap_status merge_arms(js **all, const js *arms, const char *folder,
                       snap_err *err) SNAP_CHECK_RESULT;

#endif
