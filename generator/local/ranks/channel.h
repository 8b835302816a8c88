/* channel.h - messages between rank 0 of a split model and one of its other ranks.
 *
 * A channel is a socket of its own, beside the control connection of the group (ranks.h). The
 * control connection has a thread that reads at once whatever arrives. A channel is read only by
 * the thread that runs the model. So a sender waits until the other side has read, and messages may
 * be long, such as the numbers of a sum. The group finds a rank that has died, and one that hangs
 * in an exchange. All functions here then return its failure. If they find the failure of the other
 * side themselves, they end the group with it. The message names the rank at the other end. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_CHANNEL_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_CHANNEL_H

#include "generator/local/ranks/ranks.h"
#include "generator/local/ranks/wire.h"

enum { CHANNEL_MOST = 64 << 20 /* bytes of a message */ };

typedef struct {
    wire w;
    int peer;      /* the rank at the other end */
    ranks *group;  /* borrowed; NULL = the ranks have not joined a group yet */
    double spin_s; /* seconds of polling at the beginning of a wait, which save the time in which
                      the kernel wakes the thread; 0 at first */
} channel;

/* Takes over the socket @fd. */
channel channel_of(int fd, int peer);
void channel_close(channel *c); /* may be called twice */

/* Sends a message and waits until the other side has room for it. SNAP_E_SHAPE: it is longer than
 * CHANNEL_MOST. SNAP_E_NET: the other side has ended, or does not read. If the group has failed,
 * returns its failure. */
snap_status channel_send(channel *c, wire_type type, const void *bytes, size_t n,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Waits for a message, which must have the type @type. In place of a call, WIRE_BYE may come.
 * @limit_s: the longest wait in seconds; 0 = no limit, for calls, which rank 0 may send at any
 * time, and for exchanges, which the group watches. @out: valid until the next call for this
 * channel. SNAP_E_NET: the other side has ended, has sent nothing in time, or has sent something
 * else. SNAP_E_NOMEM. If the group has failed, returns its failure. */
snap_status channel_receive(channel *c, wire_type type, double limit_s, wire_message *out,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
