/* parallel.h - a thread pool that runs one function over a range of indices.
 *
 * An idle worker thread first spins for a short time and then sleeps. So calls of parallel_for()
 * that follow each other closely do not pay for waking the threads up. */
#ifndef SNAPMLA_BASE_PARALLEL_H
#define SNAPMLA_BASE_PARALLEL_H

#include <stdint.h>

#include "base/err.h"

typedef struct parallel parallel;

/* The work for one index. @worker is 0 .. threads-1; worker 0 is the thread that calls
 * parallel_for(). */
typedef void (*parallel_fn)(void *ctx, int worker, int64_t index);

/* @threads: 0 = one for each processor that parallel_cpus() counts. The caller owns *out and
 * releases it with parallel_free(). SNAP_E_USAGE unless @threads is 0..1024; SNAP_E_NOMEM. */
snap_status parallel_create(parallel **out, int threads, snap_err *err) SNAP_CHECK_RESULT;
void parallel_free(parallel *p); /* NULL is allowed */
int parallel_threads(const parallel *p);

/* Runs fn for the indices 0 .. count-1 and returns when all calls have returned. Threads take the
 * indices one by one, in order. Not reentrant: only one thread may use the pool at a time. */
void parallel_for(parallel *p, int64_t count, parallel_fn fn, void *ctx);

/* Number of processors that the calling thread may use (affinity mask), at least 1. */
int parallel_cpus(void);

#endif
