/* serve_replicas.h - distributes the jobs of a server over the replicas of a model. Each replica
 * has an engine with a thread of its own (serve_engine.h). Only the server's thread calls these
 * functions.
 *
 * With one replica, jobs go to its engine at once. With several, there is one queue. Its first job
 * goes to a replica as soon as one of them holds fewer than twice as many sequences as it decodes
 * at once. So each engine has the prompts of its next sequences early, and no replica is idle while
 * jobs wait for another one. The replica is chosen by the rules of balance.h. Of each replica,
 * the last SERVE_PROMPTS prompts count as those that it has.
 *
 * All sequences of a job go to the same replica. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_REPLICAS_H
#define SNAPMLA_HARNESS_SERVE_SERVE_REPLICAS_H

#include "harness/serve/serve_engine.h"

enum { SERVE_PROMPTS = 64, SERVE_AHEAD = 8 };

typedef struct serve_replicas serve_replicas;

/* The state of all replicas: sums over them. */
typedef struct {
    serve_load all;
    int replicas;
    int64_t begun[LOCAL_REPLICAS]; /* sequences that each replica has begun */
} serve_totals;

/* Starts an engine for each replica of @m, which is borrowed until serve_replicas_stop(). @wake: an
 * eventfd that is written when there is news. SNAP_E_NOMEM, SNAP_E_IO. */
snap_status serve_replicas_start(serve_replicas **out, local_model *m, int wake,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Calls serve_engine_stop() for each engine. NULL is allowed. */
void serve_replicas_stop(serve_replicas *r);

/* Queues a job that is prepared. */
void serve_replicas_submit(serve_replicas *r, serve_job *j);

/* Drops the sequences of a job. A later serve_replicas_collect() releases it. */
void serve_replicas_cancel(serve_replicas *r, serve_job *j);

/* Calls serve_engine_collect() for all engines. In *out, `broken` is true if one engine has
 * failed. */
serve_job *serve_replicas_collect(serve_replicas *r, serve_totals *out);

#endif
