/* shard.h - parses "2/4": the part of a run that one of several processes takes. */
#ifndef SNAPMLA_HARNESS_EVAL_SHARD_H
#define SNAPMLA_HARNESS_EVAL_SHARD_H

#include "base/err.h"

enum { SHARDS_MAX = 4096 };

typedef struct {
    int index, of; /* index: 1..of; both 0: the whole run */
} eval_shard;

/* Reads "2/4"; NULL is the whole run. SNAP_E_USAGE for anything but I/N with I in 1..N and N at
 * most SHARDS_MAX. */
snap_status shard_parse(const char *text, eval_shard *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
