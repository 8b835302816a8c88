/* ranks.h - a group of processes, one for each GPU, for a model that is split over several GPUs.
 *
 * The group has a control connection over TCP from each rank to rank 0. It carries small numbers
 * only, such as the identifier of an NCCL communicator. What the GPUs send to each other does not
 * go through it.
 *
 *   ranks_join()  ->  ranks_all_gather(), ranks_begin() ... ranks_end()  ->  ranks_close()
 *
 * One failure ends all ranks. Every rank then gets the same message, which names the rank that
 * failed first, and the reason. A failure is
 *
 *   a difference  ranks_join() finds that a rank's facts, such as its build, differ from rank 0's
 *   absence       a rank does not arrive in time
 *   an error      a rank calls ranks_fail()
 *   death         a rank's connection closes before ranks_close()
 *   silence       no message arrives from a rank: its process is stopped, or its machine is gone
 *   a hang        a rank does not begin, or does not end, an exchange in time. The rank that did
 *                 not begin it is named, and not those that wait for it
 *
 * A thread in each rank receives and gives signs of life. It does so even while the main thread
 * waits for the GPU, so only the limit on each exchange finds a GPU that hangs. The main thread
 * gets a failure from the next call, or by polling ranks_check(). If it does not call ranks_close()
 * within stuck_s of a failure, for example because it waits for the GPU for ever, the thread calls
 * on_stuck().
 *
 * Only one thread of a process at a time may call these functions.
 *
 * A second process that arrives with the number of a rank is refused, which is no failure of the
 * group. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_RANKS_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_RANKS_H

#include <signal.h>

#include "generator/local/ranks/place.h"

enum { RANKS_BLOB_MOST = 4096 /* bytes that a rank may give to ranks_all_gather() */ };

typedef struct ranks ranks;

/* Limits in seconds. After ranks_join(), and with the limits of ranks_defaults, all ranks end
 * within 30 s of a failure if on_stuck() ends the process. */
typedef struct {
    double arrive_s;   /* until all ranks have arrived */
    double silence_s;  /* longest time without a message from a rank */
    double exchange_s; /* for one exchange */
    double stuck_s;    /* longest time from a failure to ranks_close() */
    /* Called by the group's thread. The process should end itself. NULL = nothing is done. */
    void (*on_stuck)(const snap_err *why);
    const char *name; /* borrowed; with it and ": " begins the message that on_stuck() gets; NULL or
                         "" = no name */
    const volatile sig_atomic_t *cancel; /* ends ranks_join() when it becomes nonzero; or NULL */
    /* Called once with the failure of the group, from any thread, before it is sent on to other
     * ranks, which must not wait long for it. It must not call functions of this file.
     * @from_rank_0: rank 0 has sent the failure to this rank, after the same call there. NULL =
     * nothing is done. */
    void (*on_failure)(const snap_err *why, bool from_rank_0);
} ranks_options;

extern const ranks_options ranks_defaults;

/* Opens a socket that listens at @address and *port. If *port is 0, it takes a free port and
 * sets *port. The caller owns *fd. SNAP_E_NET, SNAP_E_NOMEM. */
snap_status ranks_listen(const char *address, int *port, int *fd, snap_err *err) SNAP_CHECK_RESULT;

/**
 * ranks_join - wait until all ranks have arrived, and compare them
 *
 * @place: from rank_place_read(); place->listener is closed, also after an error
 * @facts: what must be equal on all ranks, as lines "name=value\n"; at most 4000 bytes
 *
 * SNAP_E_NET: no connection, or a rank does not arrive. SNAP_E_USAGE: ranks differ; the message
 * names the rank and the first fact that differs. SNAP_E_SHAPE: @facts is too long.
 * SNAP_E_CANCELLED, SNAP_E_NOMEM, SNAP_E_IO.
 */
snap_status ranks_join(ranks **out, const rank_place *place, const char *facts,
                       const ranks_options *opt, snap_err *err) SNAP_CHECK_RESULT;

int ranks_rank(const ranks *g);
int ranks_size(const ranks *g);

/* Returns the failure of the group, if there is one. Cheap enough for a loop that waits for the
 * GPU. */
snap_status ranks_check(ranks *g, snap_err *err) SNAP_CHECK_RESULT;

/* Mark the beginning and the end of an exchange, for which the limit exchange_s holds. All ranks
 * must mark the same exchanges in the same order. @what names it in messages; at most 63 bytes of
 * it are kept. Both return the failure of the group, if there is one. */
snap_status ranks_begin(ranks *g, const char *what, snap_err *err) SNAP_CHECK_RESULT;
snap_status ranks_end(ranks *g, snap_err *err) SNAP_CHECK_RESULT;

/* Sets the limit exchange_s for the exchanges that follow, and returns the previous one. Opening
 * devices takes longer than an exchange of numbers. All ranks must make the same calls. Rank 0
 * applies the limit; on the other ranks, it only affects how often they give a sign of life. */
double ranks_set_limit(ranks *g, double exchange_s);

/* Sets the limit stuck_s to @s. If the group has already failed, the time begins again now. This is
 * for a caller that has received the failure and needs time before ranks_close(). */
void ranks_set_stuck(ranks *g, double s);

/**
 * ranks_all_gather - give the same number of bytes to all ranks, and get theirs
 *
 * @what: names the exchange in messages
 * @mine: [n], n <= RANKS_BLOB_MOST; n = 0 only waits for all ranks (@mine, @all: NULL)
 * @all:  [size][n], in the order of the ranks
 *
 * It is an exchange of its own, so it must not lie between ranks_begin() and ranks_end(). Returns
 * the failure of the group, if there is one. It is SNAP_E_SHAPE if ranks give different numbers of
 * bytes. SNAP_E_SHAPE as well if n is too large, which is no failure of the group.
 */
snap_status ranks_all_gather(ranks *g, const char *what, const void *mine, size_t n, void *all,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Ends all ranks with an error of this one. @why: its message, which gets "rank N: " before it. If
 * the group has failed before, @why is replaced by that failure. */
void ranks_fail(ranks *g, snap_err *why);

/* Like ranks_fail(), for an error of rank @rank that this process has found. */
void ranks_fail_other(ranks *g, int rank, snap_err *why);

/* Waits until all ranks have called it, unless the group has failed, and releases the group. The
 * limit exchange_s holds for the wait. NULL is allowed. Returns the failure of the group, if there
 * is one. */
snap_status ranks_close(ranks *g, snap_err *err) SNAP_CHECK_RESULT;

#endif
