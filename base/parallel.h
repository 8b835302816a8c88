/* parallel.h - a pool of threads that run one function over a range.
 *
 * The pool's threads wait spinning for a short while and then sleep, so that back-to-back kernels
 * don't pay a wake-up each. */
#ifndef SNAPMLA_BASE_PARALLEL_H
#define SNAPMLA_BASE_PARALLEL_H

#include <stdint.h>

#include "base/err.h"

typedef struct parallel parallel;

/* What one worker does: @worker is 0 .. threads-1 (0 is the caller), @index the item. */
typedef void (*parallel_fn)(void *ctx, int worker, int64_t index);

/* @threads: 0 = the processors this process may run on. Caller owns *out: parallel_free(). */
snap_status parallel_create(parallel **out, int threads, snap_err *err) SNAP_CHECK_RESULT;
void parallel_free(parallel *p); /* NULL is allowed */
int parallel_threads(const parallel *p);

/* Runs fn for index 0 .. count-1, handed out one by one in order, and returns when all are done.
 * Not reentrant: one caller at a time. */
void parallel_for(parallel *p, int64_t count, parallel_fn fn, void *ctx);

/* Processors that this process may use (affinity mask), at least 1. */
int parallel_cpus(void);

#endif
