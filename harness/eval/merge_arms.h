/* merge_arms.h - joins the arms of shards that used different servers. */
#ifndef SNAPMLA_HARNESS_EVAL_MERGE_ARMS_H
#define SNAPMLA_HARNESS_EVAL_MERGE_ARMS_H

#include "base/json.h"

/**
 * merge_arms - add the arms of another shard
 *
 * @all:    array of "NAME=GENERATOR[,key=value...]", owned by the caller, replaced by the merged
 *          array; NULL before the first shard
 * @arms:   the arms of a shard
 * @folder: the shard's folder, for messages
 *
 * A server that both have is kept once. Different servers become "NAME=URL|URL,...", the usual form
 * of an arm with several servers. SNAP_E_USAGE if the arms differ in more than their servers;
 * SNAP_E_NOMEM.
 */
snap_status merge_arms(js **all, const js *arms, const char *folder,
                       snap_err *err) SNAP_CHECK_RESULT;

#endif
