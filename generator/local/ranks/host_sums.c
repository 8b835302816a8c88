#include "generator/local/ranks/host_sums.h"

#include <stdlib.h>
#include <string.h>

enum { kPart = 1 << 20 /* numbers of one message, at most */ };

typedef struct {
    comm base;
    ranks *group;
    channel *to;
} host_sums;

/* Receives @n numbers. *out points to their bytes. */
static snap_status receive(channel *from, size_t n, const uint8_t **out, snap_err *err) {
    wire_message m;
    snap_status st = channel_receive(from, WIRE_SUM, false, &m, err);
    if (st != SNAP_OK)
        return st;
    *out = m.bytes;
    return m.n == n * sizeof(float)
               ? SNAP_OK
               : err_set(err, SNAP_E_NET, "rank %d has sent %zu bytes of a sum, not %zu",
                         from->peer, m.n, n * sizeof(float));
}

static void add(float *x, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float y;
        memcpy(&y, bytes + i * sizeof y, sizeof y);
        x[i] += y;
    }
}

static snap_status sum_on_rank_0(const host_sums *s, float *x, size_t n, snap_err *err) {
    snap_status st = SNAP_OK;
    const uint8_t *bytes;
    for (int r = 1; r < s->base.size; r++) {
        TRY(receive(&s->to[r], n, &bytes, err));
        add(x, bytes, n);
    }
    for (int r = 1; r < s->base.size; r++)
        TRY(channel_send(&s->to[r], WIRE_SUM, x, n * sizeof *x, err));
cleanup:
    return st;
}

static snap_status sum_elsewhere(const host_sums *s, float *x, size_t n, snap_err *err) {
    snap_status st;
    const uint8_t *bytes;
    TRY(channel_send(&s->to[0], WIRE_SUM, x, n * sizeof *x, err));
    TRY(receive(&s->to[0], n, &bytes, err));
    memcpy(x, bytes, n * sizeof *x);
cleanup:
    return st;
}

static snap_status all_reduce(comm *c, float *x, int64_t n, snap_err *err) {
    const host_sums *s = (const host_sums *)c;
    snap_status st = ranks_begin(s->group, "a sum of the model", err);
    for (int64_t at = 0; at < n && st == SNAP_OK; at += kPart) {
        size_t now = (size_t)(n - at < kPart ? n - at : kPart);
        st = c->rank == 0 ? sum_on_rank_0(s, x + at, now, err) : sum_elsewhere(s, x + at, now, err);
    }
    return st == SNAP_OK ? ranks_end(s->group, err) : st;
}

snap_status host_sums_open(comm **out, ranks *group, channel *to, snap_err *err) {
    host_sums *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a communicator");
    *s = (host_sums){
        .base = {.rank = ranks_rank(group), .size = ranks_size(group), .all_reduce = all_reduce},
        .group = group,
        .to = to};
    *out = (comm *)(void *)s;
    return SNAP_OK;
}

void host_sums_close(comm *c) {
    free(c);
}
