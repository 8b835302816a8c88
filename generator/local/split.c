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

/* The connection to the ranks of one replica, except this process. */
typedef struct {
    call_link link;
    split *s;
    int first; /* rank */
} replica_link;

struct split {
    replica_link replica[RANKS_MOST];
    split_order order; /* of rank 0 */
    char name[64];
    ranks *group;
    split_comms comms;
    channel to[RANKS_MOST];
    pid_t pid[RANKS_MOST];
    double limit; /* exchange_s of the group for steps, which holds for answers, too */
    bool failed;
};

static split_program program;

void split_set_program(const split_program *p) {
    program = *p;
}

void split_end_program(const snap_err *error) {
    if (program.end)
        program.end(error);
}

static int ranks_of(const split *s) {
    return rank_layout_size(&s->order.layout);
}

void split_connect(split *s, runner_options *r) {
    r->comm = s->comms.sums;
    r->experts = s->comms.experts;
    r->calls = &s->replica[0].link.sender;
}

call_link *split_link(split *s, int i) {
    return &s->replica[i].link;
}

/* ---- calls ---- */

static replica_link *replica_of(call_sender *c) {
    return (replica_link *)(void *)c;
}

/* Records that the caller has the failure of the group. It then has time to answer open requests
 * before split_close(). */
static void deliver_failure(split *s) {
    s->failed = true;
    ranks_set_stuck(s->group, kNever);
}

/* An error about another rank, such as one that does not answer, names that rank already. So the
 * caller keeps it, without the name of rank 0 before it. */
void split_fail(split *s, snap_err *err) {
    snap_err own = err ? *err : (snap_err){0};
    bool others = ranks_check(s->group, NULL) != SNAP_OK;
    ranks_fail(s->group, &own);
    if (err && (others || !text_starts(err->text, "rank ")))
        *err = own;
    deliver_failure(s);
}

static void fail(call_sender *c, snap_err *err) {
    split_fail(replica_of(c)->s, err);
}

/* Sends a call to the ranks of a replica. */
static snap_status send_call(call_sender *c, const void *bytes, size_t n, snap_err *err) {
    const replica_link *l = replica_of(c);
    split *s = l->s;
    snap_err own = {0};
    snap_status st = SNAP_OK;
    if (!err)
        err = &own;
    for (int r = l->first; r < l->first + s->order.layout.parts && st == SNAP_OK; r++)
        if (r)
            st = channel_send(&s->to[r], WIRE_CALL, bytes, n, err);
    if (st != SNAP_OK)
        split_fail(s, err);
    return st == SNAP_OK ? SNAP_OK : err->code;
}

static snap_status receive_answer(call_link *c, const void **bytes, size_t *n, snap_err *err) {
    const replica_link *l = replica_of(&c->sender);
    wire_message m;
    snap_status st = channel_receive(&l->s->to[l->first], WIRE_ANSWER, l->s->limit, &m, err);
    if (st != SNAP_OK)
        return st;
    *bytes = m.bytes;
    *n = m.n;
    return SNAP_OK;
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
    *out = (split_order){.layout = o->layout,
                         .device = o->devices[0],
                         .cuda = text_equal(r->device, "cuda"),
                         .random = o->random != NULL,
                         .hidden_size = o->shape->hidden_size,
                         .experts_per_token = o->shape->num_experts_per_tok,
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
    s->to[r] = channel_of(fd, r);
    TRY(channel_receive(&s->to[r], WIRE_HELLO, split_start_s, &hello, err));
    TRY(channel_send(&s->to[r], WIRE_ORDER, &order, sizeof order, err));
cleanup:
    return st;
}

static snap_status join(split *s, int listener, snap_err *err) {
    snap_status st;
    buf facts = {0};
    ranks_options how = ranks_defaults;
    rank_place place = {
        .size = ranks_of(s), .address = split_address, .port = s->order.port, .listener = listener};
    how.arrive_s = split_start_s;
    how.on_stuck = program.end;
    how.name = s->name;
    st = split_facts(&facts, &s->order, err);
    if (st == SNAP_OK)
        st = ranks_join(&s->group, &place, buf_str(&facts), &how, err);
    else
        (void)close(listener);
    for (int r = 1; r < ranks_of(s); r++) {
        s->to[r].group = s->group;
        s->to[r].spin_s = s->order.cuda ? split_spin_s : 0;
    }
    buf_release(&facts);
    return st;
}

static snap_status start_all(split *s, const split_options *o, snap_err *err) {
    snap_status st;
    int listener = -1;
    TRY(ranks_listen(split_address, &s->order.port, &listener, err));
    for (int r = 1; r < ranks_of(s); r++)
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
    (void)snprintf(s->name, sizeof s->name, "%s", o->name);
    for (int i = 0; i < RANKS_MOST; i++) {
        s->to[i].w = WIRE_CLOSED;
        s->replica[i] = (replica_link){
            .link = {.sender = {.send = send_call, .fail = fail}, .receive = receive_answer},
            .s = s,
            .first = i * o->layout.parts};
    }
    if (!program.argv)
        TRY(err_set(
            err, SNAP_E_UNSUPPORTED,
            "this program cannot start the ranks of a model that is divided over processes"));
    TRY(write_order(&s->order, o, err));
    TRY(start_all(s, o, err));
    s->limit = ranks_set_limit(s->group, split_weights_s);
    TRY(split_open_comms(&s->comms, &s->order, s->group, s->to, err));
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
    for (int r = 1; r < ranks_of(s) && !s->failed; r++)
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
    split_close_comms(&s->comms, &s->order);
    if (ranks_close(s->group, NULL) != SNAP_OK || !s->group)
        s->failed = true;
    for (int r = 1; r < RANKS_MOST; r++)
        channel_close(&s->to[r]);
    spawn_end(s->pid, RANKS_MOST, s->failed ? kGraceFailed : kGrace);
    free(s);
}
