#include "generator/local/ranks/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { kHeader = 16, kMagic = 0x4b524e53 /* "SNRK" */, kChunk = 4096 };

void wire_put32(uint8_t *to, uint32_t x) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(x >> 8 * i);
}

void wire_put64(uint8_t *to, uint64_t x) {
    wire_put32(to, (uint32_t)x);
    wire_put32(to + 4, (uint32_t)(x >> 32));
}

uint32_t wire_get32(const uint8_t *from) {
    uint32_t x = 0;
    for (int i = 0; i < 4; i++)
        x |= (uint32_t)from[i] << 8 * i;
    return x;
}

uint64_t wire_get64(const uint8_t *from) {
    return wire_get32(from) | (uint64_t)wire_get32(from + 4) << 32;
}

wire wire_of(int fd, size_t most, double send_s) {
    const int one = 1;
    struct timeval limit = {.tv_sec = (time_t)send_s,
                            .tv_usec = (suseconds_t)((send_s - (double)(time_t)send_s) * 1e6)};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return (wire){.fd = fd, .most = most};
}

void wire_close(wire *w) {
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w->in);
    *w = WIRE_CLOSED;
}

static snap_status send_all(int fd, const uint8_t *bytes, size_t n, int more, snap_err *err) {
    while (n > 0) {
        ssize_t k = send(fd, bytes, n, MSG_NOSIGNAL | more);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(err, SNAP_E_NET, "%s",
                           errno == EAGAIN ? "it does not read from its connection"
                                           : strerror(errno));
        bytes += k;
        n -= (size_t)k;
    }
    return SNAP_OK;
}

snap_status wire_send(wire *w, wire_type type, const void *bytes, size_t n, snap_err *err) {
    uint8_t head[kHeader] = {0};
    if (w->fd < 0)
        return err_set(err, SNAP_E_NET, "its connection is closed");
    wire_put32(head, kMagic);
    wire_put32(head + 4, type);
    wire_put32(head + 8, (uint32_t)n);
    snap_status st = send_all(w->fd, head, sizeof head, n ? MSG_MORE : 0, err);
    return st == SNAP_OK ? send_all(w->fd, bytes, n, 0, err) : st;
}

/* Removes the message that wire_next() returned last from the buffer. */
static void drop_taken(wire *w) {
    if (w->taken)
        memmove(w->in, w->in + w->taken, w->n - w->taken);
    w->n -= w->taken;
    w->taken = 0;
}

bool wire_read(wire *w) {
    drop_taken(w);
    for (;;) {
        if (w->room - w->n < kChunk && w->n < w->most + kHeader) {
            uint8_t *grown = realloc(w->in, w->room + (w->room > kChunk ? w->room : kChunk));
            w->no_memory = !grown;
            if (!grown)
                return false;
            w->in = grown;
            w->room += w->room > kChunk ? w->room : kChunk;
        }
        if (w->n == w->room)
            return true; /* full: wire_next() has to take a message first */
        ssize_t k = recv(w->fd, w->in + w->n, w->room - w->n, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (k <= 0)
            return false;
        w->n += (size_t)k;
        if (w->n >= w->most + kHeader)
            return true;
    }
}

wire_result wire_next(wire *w, wire_message *out) {
    drop_taken(w);
    if (w->n >= 4 && wire_get32(w->in) != kMagic)
        return WIRE_GARBAGE;
    if (w->n < kHeader)
        return WIRE_NOTHING;
    uint32_t type = wire_get32(w->in + 4), n = wire_get32(w->in + 8);
    if (type < WIRE_HELLO || type >= WIRE_TYPES || n > w->most)
        return WIRE_GARBAGE;
    if (w->n < kHeader + (size_t)n)
        return WIRE_NOTHING;
    *out = (wire_message){.type = (wire_type)type, .n = n, .bytes = w->in + kHeader};
    w->taken = kHeader + (size_t)n;
    return WIRE_MESSAGE;
}
