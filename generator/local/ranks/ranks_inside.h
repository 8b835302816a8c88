/* ranks_inside.h - the struct of a group, for the files that implement ranks.h. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_RANKS_INSIDE_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_RANKS_INSIDE_H

#include <pthread.h>

#include "generator/local/ranks/ranks.h"
#include "generator/local/ranks/wire.h"

enum { RANKS_WHAT = 64 };

/* The state of one rank, as this process has received it. Rank 0 has a connection to each other
 * rank, and each other rank has one to rank 0. */
typedef struct {
    wire w;
    bool here;             /* the rank has arrived */
    bool left;             /* the rank has ended its work without a failure */
    int64_t received_ns;   /* time of its last message */
    uint64_t begun, ended; /* how many exchanges the rank has begun and ended */
    int64_t begun_ns;      /* when the last exchange began, or when its message arrived */
    char what[RANKS_WHAT];
    uint8_t *data; /* [data_room]; if has_data is set, holds the data_n bytes of a
                      WIRE_DATA message that no all-gather has taken yet */
    size_t data_room, data_n;
    bool has_data;
} rank_state;

struct ranks {
    ranks_options opt;
    int rank, size;
    pthread_t thread;
    int wake; /* eventfd that ends the thread's waiting */

    pthread_mutex_t lock; /* protects opt.exchange_s, opt.stuck_s and everything below */
    pthread_cond_t changed;
    bool stop;
    snap_err failure;           /* the first one; its code is SNAP_OK while there is none */
    int64_t failed_ns, beat_ns; /* times of the failure and of the last WIRE_BEAT sent */
    rank_state *of;             /* [size]; of[rank] is this process */
};

/* Records the first failure of the group, as "rank N: text", and sends it to the ranks that this
 * process has a connection to. The caller holds the lock, or the thread does not run yet. */
void ranks_fail_locked(ranks *g, int rank, snap_status code, const char *text);

/* Sends the failure of the group over one connection. */
void ranks_send_failure(ranks *g, wire *w);

/* Calls opt.on_failure() with g->failure, and sends it to the ranks that this process has a
 * connection to. */
void ranks_spread_failure(ranks *g, bool from_rank_0);

/* Records the failure that another rank has sent, and sends it on. */
void ranks_take_failure(ranks *g, const wire_message *m);

/* Connects the group: rank 0 waits for the other ranks and compares their facts with its own, and
 * each other rank connects to rank 0 and waits for its answer. Fills g->of. */
snap_status ranks_rendezvous(ranks *g, const rank_place *place, const char *facts,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
