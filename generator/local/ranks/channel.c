#include "generator/local/ranks/channel.h"

#include <poll.h>

#include "base/clock.h"

enum { kPollMs = 100, kNoticeMs = 2000 };
static const double kSendLimit = 15; /* seconds; the group finds a silent rank before */

channel channel_of(int fd, int peer, double limit_s) {
    return (channel){.w = wire_of(fd, CHANNEL_MOST, kSendLimit), .peer = peer, .limit_s = limit_s};
}

void channel_close(channel *c) {
    wire_close(&c->w);
}

static snap_status failure(const channel *c, snap_err *err) {
    return c->group ? ranks_check(c->group, err) : SNAP_OK;
}

/* The error of a connection that cannot be used any more. The group's thread usually finds out more
 * about the cause, so this waits for it for a while. */
static snap_status broken(const channel *c, const char *why, snap_err *err) {
    snap_status st = failure(c, err);
    for (int ms = 0; st == SNAP_OK && c->group && ms < kNoticeMs; ms += 10) {
        clock_sleep_ns(10000000);
        st = failure(c, err);
    }
    return st != SNAP_OK ? st : err_set(err, SNAP_E_NET, "rank %d: %s", c->peer, why);
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
 * failed. @end_ns: 0 = no limit. */
static snap_status wait_for_bytes(channel *c, int64_t end_ns, snap_err *err) {
    struct pollfd at = {.fd = c->w.fd, .events = POLLIN};
    int64_t spin_ns = c->spin_s > 0 ? clock_now_ns() + (int64_t)(c->spin_s * 1e9) : 0;
    while (spin_ns && poll(&at, 1, 0) == 0 && clock_now_ns() < spin_ns)
        continue;
    while (poll(&at, 1, kPollMs) <= 0) {
        snap_status st = failure(c, err);
        if (st != SNAP_OK)
            return st;
        if (end_ns && clock_now_ns() > end_ns)
            return err_set(err, SNAP_E_NET, "rank %d did not answer within %g s", c->peer,
                           c->limit_s);
    }
    if (wire_read(&c->w))
        return SNAP_OK;
    if (c->w.no_memory)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a message from rank %d", c->peer);
    return broken(c, "its process has ended", err);
}

snap_status channel_receive(channel *c, wire_type type, bool ends, wire_message *out,
                            snap_err *err) {
    int64_t end_ns = c->group ? 0 : clock_now_ns() + (int64_t)(c->limit_s * 1e9);
    wire_result got;
    if (c->w.fd < 0)
        return err_set(err, SNAP_E_NET, "the connection to rank %d is closed", c->peer);
    while ((got = wire_next(&c->w, out)) == WIRE_NOTHING) {
        snap_status st = wait_for_bytes(c, end_ns, err);
        if (st != SNAP_OK)
            return st;
    }
    if (got == WIRE_MESSAGE && (out->type == type || (ends && out->type == WIRE_BYE)))
        return SNAP_OK;
    return err_set(err, SNAP_E_NET, "rank %d has sent a message out of turn", c->peer);
}
