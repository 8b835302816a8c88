/* shard.h - parses "2/4": the part of a run that one of several processes takes. */
#ifndef SNAPMLA_HARNESS_EVAL_SHARD_H
#define SNAPMLA_HARNESS_EVAL_SHARD_H

#include <stddef.h>

#include "base/err.h"

enum { SHARDS_MAX = 4096 };

typedef struct {
    int index, of; /* index: 1..of; both 0: the whole run */
} eval_shard;

/* Reads "2/4"; NULL is the whole run. SNAP_E_USAGE for anything but I/N with I in 1..N and N at
 * most SHARDS_MAX. */
snap_status shard_parse(const char *text, eval_shard *out, snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_E_USAGE if two of @n folders are the same, or one of them is @out. Call it before locks are
 * taken: the second lock of a folder that is given twice would fail as if another process held
 * it. */
snap_status shard_check_folders(const char *const *folders, size_t n, const char *out,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
