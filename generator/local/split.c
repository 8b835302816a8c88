#include "generator/local/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "generator/local/ranks/spawn.h"
#include "generator/local/split_order.h"

static const double kGrace = 10; /* seconds for the other ranks to end after all work is done */
static const double kGraceFailed = 2;
static const double kNever = 1e9, kClosing = 15; /* for ranks_set_stuck() */

struct split {
    call_sender calls;
    split_order order; /* of rank 0 */
    ranks *group;
    comm *comm;
    channel to[RANKS_MOST];
    pid_t pid[RANKS_MOST];
    double limit; /* exchange_s of the group for steps */
    bool failed;
};

static split_program program;

void split_set_program(const split_program *p) {
    program = *p;
}

comm *split_comm(split *s) {
    return s->comm;
}

call_sender *split_calls(split *s) {
    return &s->calls;
}

/* ---- calls ---- */

static split *split_of(call_sender *c) {
    return (split *)(void *)c;
}

/* Records that the caller has the failure of the group. It then has time to answer open requests
 * before split_close(). */
static void deliver_failure(split *s) {
    s->failed = true;
    ranks_set_stuck(s->group, kNever);
}

void split_fail(split *s, snap_err *err) {
    snap_err others = {0}, own = err ? *err : (snap_err){0};
    if (ranks_check(s->group, &others) == SNAP_OK)
        ranks_fail(s->group, &own);
    else if (err)
        *err = others;
    deliver_failure(s);
}

static void fail(call_sender *c, snap_err *err) {
    split_fail(split_of(c), err);
}

static snap_status send_call(call_sender *c, const void *bytes, size_t n, snap_err *err) {
    split *s = split_of(c);
    snap_err own = {0};
    snap_status st = SNAP_OK;
    if (!err)
        err = &own;
    for (int r = 1; r < s->order.parts && st == SNAP_OK; r++)
        st = channel_send(&s->to[r], WIRE_CALL, bytes, n, err);
    if (st != SNAP_OK)
        split_fail(s, err);
    return st == SNAP_OK ? SNAP_OK : err->code;
}

/* ---- opening ---- */

static snap_status copy_path(char to[SPLIT_PATH], const char *from, snap_err *err) {
    size_t n = strlen(from);
    if (n >= SPLIT_PATH)
        return err_set(err, SNAP_E_SHAPE, "the path %.40s... is too long for a split model", from);
    memcpy(to, from, n + 1);
    return SNAP_OK;
}

static snap_status write_order(split_order *out, const split_options *o, snap_err *err) {
    const runner_options *r = o->runner;
    snap_status st;
    *out = (split_order){.parts = o->parts,
                         .device = o->devices[0],
                         .cuda = text_equal(r->device, "cuda"),
                         .random = o->random != NULL,
                         .hidden_size = o->hidden_size,
                         .format = r->format,
                         .pages = r->pages,
                         .context = r->context,
                         .max_rows = r->max_rows,
                         .max_decode = r->max_decode,
                         .threads = r->threads};
    if (o->random)
        out->shape = *o->random;
    TRY(copy_path(out->dir, o->dir ? o->dir : "", err));
    TRY(copy_path(out->precision, r->precision, err));
cleanup:
    return st;
}

/* Starts rank @r. It has to introduce itself before it gets its order. */
static snap_status start_rank(split *s, int r, const split_options *o, snap_err *err) {
    snap_status st;
    int fd;
    wire_message hello;
    split_order order = s->order;
    order.rank = r;
    order.device = o->devices[r];
    TRY(spawn_rank(r, program.argv, &fd, &s->pid[r], err));
    s->to[r] = channel_of(fd, r, split_start_s);
    TRY(channel_receive(&s->to[r], WIRE_HELLO, false, &hello, err));
    TRY(channel_send(&s->to[r], WIRE_ORDER, &order, sizeof order, err));
cleanup:
    return st;
}

static snap_status join(split *s, int listener, snap_err *err) {
    snap_status st;
    buf facts = {0};
    ranks_options how = ranks_defaults;
    rank_place place = {.size = s->order.parts,
                        .address = split_address,
                        .port = s->order.port,
                        .listener = listener};
    how.arrive_s = split_start_s;
    how.on_stuck = program.end;
    st = split_facts(&facts, &s->order, err);
    if (st == SNAP_OK)
        st = ranks_join(&s->group, &place, buf_str(&facts), &how, err);
    else
        (void)close(listener);
    for (int r = 1; r < s->order.parts; r++)
        s->to[r].group = s->group;
    buf_release(&facts);
    return st;
}

static snap_status start_all(split *s, const split_options *o, snap_err *err) {
    snap_status st;
    int listener = -1;
    TRY(ranks_listen(split_address, &s->order.port, &listener, err));
    for (int r = 1; r < o->parts; r++)
        TRY(start_rank(s, r, o, err));
    st = join(s, listener, err);
    listener = -1;
cleanup:
    if (listener >= 0)
        (void)close(listener);
    return st;
}

snap_status split_open(split **out, const split_options *o, snap_err *err) {
    snap_status st;
    split *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a split model");
    *s = (split){.calls = {.send = send_call, .fail = fail}};
    for (int r = 0; r < RANKS_MOST; r++)
        s->to[r].w = WIRE_CLOSED;
    if (!program.argv)
        TRY(err_set(err, SNAP_E_UNSUPPORTED,
                    "this program cannot start the ranks of a layout TPn"));
    TRY(write_order(&s->order, o, err));
    TRY(start_all(s, o, err));
    s->limit = ranks_set_limit(s->group, split_weights_s);
    TRY(split_open_comm(&s->comm, &s->order, s->group, s->to, err));
    *out = s;
    s = NULL;
cleanup:
    if (s && s->group)
        split_fail(s, err);
    split_close(s);
    return st;
}

snap_status split_wait(split *s, snap_err *err) {
    snap_status st =
        ranks_all_gather(s->group, "opening the shares of a model", NULL, 0, NULL, err);
    (void)ranks_set_limit(s->group, s->limit);
    return st;
}

/* ---- closing ---- */

static void say_goodbye(split *s) {
    for (int r = 1; r < s->order.parts && !s->failed; r++)
        if (channel_send(&s->to[r], WIRE_BYE, NULL, 0, NULL) != SNAP_OK)
            s->failed = true;
}

void split_begin_close(split *s) {
    if (s && s->failed)
        ranks_set_stuck(s->group, kClosing);
}

void split_close(split *s) {
    if (!s)
        return;
    if (s->group)
        say_goodbye(s);
    if (s->group && s->failed)
        ranks_set_stuck(s->group, kClosing);
    split_close_comm(s->comm, &s->order);
    if (ranks_close(s->group, NULL) != SNAP_OK || !s->group)
        s->failed = true;
    for (int r = 1; r < RANKS_MOST; r++)
        channel_close(&s->to[r]);
    spawn_end(s->pid, RANKS_MOST, s->failed ? kGraceFailed : kGrace);
    free(s);
}
