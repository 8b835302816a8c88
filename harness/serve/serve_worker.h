/* serve_worker.h - a thread that reads large requests, so that the server's thread can go on with
 * all others. It runs one task after the other, in the order in which they were put in. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_WORKER_H
#define SNAPMLA_HARNESS_SERVE_SERVE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A task belongs to the worker until it is collected or taken back. */
typedef struct serve_task {
    void (*run)(struct serve_task *t); /* called in the worker's thread */
    void *user;
    int64_t bytes; /* memory that counts against a limit while the task waits or runs */

    /* used by serve_worker.c only */
    struct serve_task *next;
} serve_task;

typedef struct serve_worker serve_worker;

/* Starts the thread. @wake: an eventfd that is written when a task has run. @most: bytes of all
 * tasks that are not collected. SNAP_E_NOMEM, SNAP_E_IO. */
snap_status serve_worker_start(serve_worker **out, int wake, int64_t most,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Waits for the task that runs, joins the thread and frees @w. Tasks that were not collected are
 * the caller's again. NULL is allowed. */
void serve_worker_stop(serve_worker *w);

/* Queues a task. False if the tasks would then exceed the limit on bytes. A single task may. */
bool serve_worker_put(serve_worker *w, serve_task *t);

/* Takes a task back that has not begun. False: it has, and it will be collected. */
bool serve_worker_take_back(serve_worker *w, serve_task *t);

/* The next task that has run, in their order; NULL = none. */
serve_task *serve_worker_collect(serve_worker *w);

/* The number of tasks that wait or run. */
int serve_worker_pending(serve_worker *w);

#endif
