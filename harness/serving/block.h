/* block.h - one turn of an arm at a load point: sends requests and records what happened.
 *
 * One thread sends all requests and receives all answers. A request is sent when it is due. None is
 * repeated. In a closed loop, each of a number of users sends its next request when its last one
 * has ended and its think time has passed. In an open loop, conversations start at the times of an
 * arrival process or of a trace, and later turns follow after the think time.
 *
 * No request is due after duration_s, and no more than `requests` are sent. The block then lasts
 * until the requests in flight have ended, but no longer than drain_s; those still in flight are
 * cut. */
#ifndef SNAPMLA_HARNESS_SERVING_BLOCK_H
#define SNAPMLA_HARNESS_SERVING_BLOCK_H

#include <signal.h>

#include "base/http.h"
#include "generator/http/chat_answer.h"
#include "harness/serving/arrivals.h"
#include "harness/serving/request.h"
#include "harness/serving/target.h"
#include "harness/serving/work.h"

typedef struct {
    int64_t users;           /* number of users of a closed loop; 0: open loop */
    double rate;             /* conversations per second; 0: the times of the trace */
    double from_rate;        /* > 0: the rate rises or falls from here to `rate` over duration_s */
    double speed;            /* the trace's times are divided by it */
    arrival_pattern pattern; /* gaps between the arrivals of an open loop with a rate */
} serving_load;

/* What one arm does in a block. */
typedef struct {
    serving_target *target;
    int arm, point, block;
    serving_load load;
    double duration_s; /* 0 = no limit */
    int64_t requests;  /* 0 = no limit */
    double drain_s;
    /* Part `part` (1 .. parts) of the block; 0 and 0: all of it. Conversation c belongs to part
     * c % parts + 1. An open loop leaves out the arrivals of the other parts, so that all parts
     * together have the arrivals of one process. A closed loop has its share of the users. */
    int part, parts;
} block_plan;

/* The number of users in the part of the block that the plan names. */
int64_t block_users(const block_plan *plan);

/* Takes a request that has ended or was cut. Everything is borrowed. @problem: that of a task, or
 * NULL. @answer: its text may be missing, unless block_options.keep_text is set or conversations
 * have several turns. */
typedef snap_status (*block_sink_fn)(void *ctx, const serving_request *r,
                                     const task_problem *problem, const chat_answer *answer,
                                     snap_err *err);

typedef struct {
    const serving_work *work;
    http *engine; /* must have no running transfers; it keeps its connections for the next block */
    bool keep_text;
    block_sink_fn sink;
    void *sink_ctx;
} block_options;

/* The largest number of requests in flight. Requests beyond it wait, which counts as lag in an open
 * loop. */
enum { BLOCK_IN_FLIGHT_MAX = 16384 };

/**
 * block_run - run a block; several plans run at the same time
 *
 * @plans: [n]; drain_s of the first counts for all
 *
 * SNAP_E_NET with the last failure if the first BLOCK_GIVE_UP requests of an arm all fail;
 * SNAP_E_CANCELLED; errors of the sink, http_start() and http_step(); SNAP_E_NOMEM. After an error
 * no transfer is running.
 */
enum { BLOCK_GIVE_UP = 32 };
snap_status block_run(const block_plan *plans, int n, const block_options *opt,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
