#include "generator/local/ranks/channel.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"

enum { kPollMs = 100, kNoticeMs = 2000 };
static const double kSendLimit = 15; /* seconds; the group finds a silent rank before */

channel channel_of(int fd, int peer) {
    return (channel){.w = wire_of(fd, CHANNEL_MOST, kSendLimit), .peer = peer};
}

void channel_close(channel *c) {
    wire_close(&c->w);
}

static snap_status failure(const channel *c, snap_err *err) {
    return c->group ? ranks_check(c->group, err) : SNAP_OK;
}

/* Returns the failure of the rank at the other end, and ends the group with it. If the group has
 * failed before, returns that failure. */
static snap_status peer_failed(const channel *c, const char *why, snap_err *err) {
    snap_err found = {0};
    (void)err_set(&found, SNAP_E_NET, "%s", why);
    if (c->group)
        ranks_fail_other(c->group, c->peer, &found);
    else
        err_prefix(&found, "rank %d", c->peer);
    if (err)
        *err = found;
    return found.code;
}

/* The error of a connection that cannot be used any more. The group's thread usually finds out more
 * about the cause, so this waits for it for a while. */
static snap_status broken(const channel *c, const char *why, snap_err *err) {
    snap_status st = failure(c, err);
    for (int ms = 0; st == SNAP_OK && c->group && ms < kNoticeMs; ms += 10) {
        clock_sleep_ns(10000000);
        st = failure(c, err);
    }
    return st != SNAP_OK ? st : peer_failed(c, why, err);
}

snap_status channel_send(channel *c, wire_type type, const void *bytes, size_t n, snap_err *err) {
    snap_err why = {0};
    snap_status st = failure(c, err);
    if (st != SNAP_OK)
        return st;
    if (n > CHANNEL_MOST)
        return err_set(err, SNAP_E_SHAPE,
                       "a message of %zu bytes to rank %d is too long: at most %d are possible, so "
                       "make the chunks of prompts, the context or the number of sequences smaller",
                       n, c->peer, (int)CHANNEL_MOST);
    return wire_send(&c->w, type, bytes, n, &why) == SNAP_OK ? SNAP_OK : broken(c, why.text, err);
}

/* Waits until something has arrived, the other side has closed the connection, or the group has
 * failed. It is an error if @limit_s seconds have passed since @begun_ns; 0 = no limit. */
static snap_status wait_for_bytes(channel *c, int64_t begun_ns, double limit_s, snap_err *err) {
    struct pollfd at = {.fd = c->w.fd, .events = POLLIN};
    int64_t spin_ns = c->spin_s > 0 ? clock_now_ns() + (int64_t)(c->spin_s * 1e9) : 0;
    while (spin_ns && poll(&at, 1, 0) == 0 && clock_now_ns() < spin_ns)
        continue;
    while (poll(&at, 1, kPollMs) <= 0) {
        snap_status st = failure(c, err);
        if (st != SNAP_OK)
            return st;
        if (limit_s > 0 && (double)(clock_now_ns() - begun_ns) > limit_s * 1e9) {
            char late[64];
            (void)snprintf(late, sizeof late, "it did not answer within %g s", limit_s);
            return peer_failed(c, late, err);
        }
    }
    if (wire_read(&c->w))
        return SNAP_OK;
    if (c->w.no_memory)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a message from rank %d", c->peer);
    return broken(c, "its process has ended", err);
}

snap_status channel_receive(channel *c, wire_type type, double limit_s, wire_message *out,
                            snap_err *err) {
    int64_t begun_ns = clock_now_ns();
    wire_result got;
    if (c->w.fd < 0)
        return peer_failed(c, "its connection is closed", err);
    while ((got = wire_next(&c->w, out)) == WIRE_NOTHING) {
        snap_status st = wait_for_bytes(c, begun_ns, limit_s, err);
        if (st != SNAP_OK)
            return st;
    }
    if (got == WIRE_MESSAGE && (out->type == type || (type == WIRE_CALL && out->type == WIRE_BYE)))
        return SNAP_OK;
    return peer_failed(c, "it has sent a message out of turn", err);
}
