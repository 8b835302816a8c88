#include "generator/local/ranks/host_sums.h"

#include <stdlib.h>
#include <string.h>

enum { kPart = 1 << 20 /* bytes of one message, at most; a multiple of 4 */ };

typedef struct {
    comm base;
    ranks *group;
    int step, size, ranks; /* ranks: of the group */
    channel *to;
    uint8_t *all; /* on rank 0: [ranks][kPart], the messages of all ranks */
    uint8_t *out; /* on rank 0: [kPart], a sum */
} host_sums;

/* The first of the ranks that rank @r exchanges numbers with. */
static int first_of(const host_sums *s, int r) {
    return s->step == 1 ? r / s->size * s->size : r % s->step;
}

static int place_of(const host_sums *s, int r) {
    return (r - first_of(s, r)) / s->step;
}

/* Receives @n bytes. */
static snap_status receive(channel *from, void *to, size_t n, snap_err *err) {
    wire_message m;
    snap_status st = channel_receive(from, WIRE_SUM, 0, &m, err);
    if (st != SNAP_OK)
        return st;
    if (m.n != n)
        return err_set(err, SNAP_E_NET, "rank %d has sent %zu bytes of a sum, not %zu", from->peer,
                       m.n, n);
    memcpy(to, m.bytes, n);
    return SNAP_OK;
}

/* On rank 0: gets the messages of @n bytes of all ranks. */
static snap_status collect(host_sums *s, const void *mine, size_t n, snap_err *err) {
    snap_status st = SNAP_OK;
    memcpy(s->all, mine, n);
    for (int r = 1; r < s->ranks; r++)
        TRY(receive(&s->to[r], s->all + (size_t)r * kPart, n, err));
cleanup:
    return st;
}

/* ---- sums ---- */

/* out [n] = the sum over the ranks with which rank @r exchanges numbers */
static void add_up(const host_sums *s, int r, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < s->size; k++) {
            int from = first_of(s, r) + k * s->step;
            float x;
            memcpy(&x, s->all + (size_t)from * kPart + i * sizeof x, sizeof x);
            sum = k ? sum + x : x;
        }
        memcpy(s->out + i * sizeof sum, &sum, sizeof sum);
    }
}

static snap_status sum_on_rank_0(host_sums *s, float *x, size_t n, snap_err *err) {
    snap_status st;
    TRY(collect(s, x, n * sizeof *x, err));
    for (int first = 0; first < s->ranks; first++) {
        if (place_of(s, first) != 0)
            continue;
        add_up(s, first, n);
        for (int k = 0; k < s->size; k++) {
            int r = first + k * s->step;
            if (r)
                TRY(channel_send(&s->to[r], WIRE_SUM, s->out, n * sizeof *x, err));
            else
                memcpy(x, s->out, n * sizeof *x);
        }
    }
cleanup:
    return st;
}

static snap_status sum_elsewhere(const host_sums *s, float *x, size_t n, snap_err *err) {
    snap_status st;
    TRY(channel_send(&s->to[0], WIRE_SUM, x, n * sizeof *x, err));
    TRY(receive(&s->to[0], x, n * sizeof *x, err));
cleanup:
    return st;
}

static snap_status all_reduce(comm *c, float *x, int64_t n, snap_err *err) {
    enum { kMost = kPart / sizeof *x };
    host_sums *s = (host_sums *)c;
    snap_status st = ranks_begin(s->group, "a sum of the model", err);
    for (int64_t at = 0; at < n && st == SNAP_OK; at += kMost) {
        size_t now = (size_t)(n - at < kMost ? n - at : kMost);
        st = ranks_rank(s->group) == 0 ? sum_on_rank_0(s, x + at, now, err)
                                       : sum_elsewhere(s, x + at, now, err);
    }
    return st == SNAP_OK ? ranks_end(s->group, err) : st;
}

/* ---- all-gathers ---- */

/* Gathers a message of @n bytes of each rank. Those of the ranks lie @each bytes apart in @all. */
static snap_status gather_on_rank_0(host_sums *s, const void *mine, char *all, size_t n,
                                    size_t each, snap_err *err) {
    snap_status st;
    TRY(collect(s, mine, n, err));
    for (int r = 0; r < s->ranks; r++)
        for (int k = 0; k < s->size; k++) {
            const uint8_t *from = s->all + (size_t)(first_of(s, r) + k * s->step) * kPart;
            if (r)
                TRY(channel_send(&s->to[r], WIRE_SUM, from, n, err));
            else
                memcpy(all + (size_t)k * each, from, n);
        }
cleanup:
    return st;
}

static snap_status gather_elsewhere(const host_sums *s, const void *mine, char *all, size_t n,
                                    size_t each, snap_err *err) {
    snap_status st;
    TRY(channel_send(&s->to[0], WIRE_SUM, mine, n, err));
    for (int k = 0; k < s->size; k++)
        TRY(receive(&s->to[0], all + (size_t)k * each, n, err));
cleanup:
    return st;
}

static snap_status all_gather(comm *c, const void *mine, void *all, int64_t bytes, snap_err *err) {
    host_sums *s = (host_sums *)c;
    snap_status st = ranks_begin(s->group, "an all-gather of the model", err);
    for (int64_t at = 0; at < bytes && st == SNAP_OK; at += kPart) {
        size_t now = (size_t)(bytes - at < kPart ? bytes - at : kPart);
        const char *from = (const char *)mine + at;
        char *to = (char *)all + at;
        st = ranks_rank(s->group) == 0 ? gather_on_rank_0(s, from, to, now, (size_t)bytes, err)
                                       : gather_elsewhere(s, from, to, now, (size_t)bytes, err);
    }
    return st == SNAP_OK ? ranks_end(s->group, err) : st;
}

/* ---- opening and closing ---- */

static void release(host_sums *s) {
    free(s->all);
    free(s->out);
    free(s);
}

snap_status host_sums_open(comm **out, const host_sums_options *opt, channel *to, snap_err *err) {
    host_sums *s = calloc(1, sizeof *s);
    int rank = ranks_rank(opt->group), all = ranks_size(opt->group);
    *out = NULL;
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a communicator");
    *s = (host_sums){.base = {.size = opt->size,
                              .rank = (rank - opt->first) / opt->step,
                              .all_reduce = all_reduce,
                              .all_gather = all_gather},
                     .group = opt->group,
                     .step = opt->step,
                     .size = opt->size,
                     .ranks = all,
                     .to = to};
    if (rank == 0) {
        s->all = calloc((size_t)all, kPart);
        s->out = calloc(1, kPart);
    }
    if (rank == 0 && !(s->all && s->out)) {
        release(s);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a communicator");
    }
    *out = (comm *)(void *)s;
    return SNAP_OK;
}

void host_sums_close(comm *c) {
    if (c)
        release((host_sums *)(void *)c);
}
