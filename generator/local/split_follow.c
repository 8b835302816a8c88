/* split_follow.c - a rank of a split model other than rank 0: opens its share of the model, and
 * repeats the calls of its replica's runner. The first rank of a replica also answers them. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "generator/local/random_model.h"
#include "generator/local/split_order.h"

typedef struct {
    channel lead; /* to rank 0 */
    split_order order;
    ranks *group;
    checkpoint *files;
    model_weights weights;
    split_comms comms;
    runner *runner;
} split_rank;

/* ---- the order ---- */

static bool ends_within(const char text[SPLIT_PATH]) {
    return memchr(text, '\0', SPLIT_PATH) != NULL;
}

static bool is_valid(const split_order *o) {
    const rank_layout *l = &o->layout;
    return l->replicas >= 1 && l->replicas <= RANKS_MOST && l->parts >= 1 &&
           l->parts <= RANKS_MOST && rank_layout_size(l) >= 2 &&
           rank_layout_size(l) <= RANKS_MOST && (l->replicas == 1 || l->whole_experts) &&
           o->rank >= 1 && o->rank < rank_layout_size(l) && o->port >= 1 && o->port <= 65535 &&
           o->device >= 0 && o->threads >= 0 && o->max_rows >= 1 && o->hidden_size >= 1 &&
           o->experts_per_token >= 0 && o->format >= 0 && o->format < CACHE_FORMATS &&
           ends_within(o->dir) && ends_within(o->precision);
}

static snap_status receive_order(split_rank *k, snap_err *err) {
    snap_status st;
    wire_message m;
    TRY(channel_send(&k->lead, WIRE_HELLO, NULL, 0, err));
    TRY(channel_receive(&k->lead, WIRE_ORDER, split_start_s, &m, err));
    if (m.n == sizeof k->order)
        memcpy(&k->order, m.bytes, m.n);
    if (m.n != sizeof k->order || !is_valid(&k->order))
        TRY(err_set(err, SNAP_E_INPUT, "the order from rank 0 is malformed"));
cleanup:
    return st;
}

static snap_status join(split_rank *k, void (*end)(const snap_err *), snap_err *err) {
    snap_status st;
    buf facts = {0};
    ranks_options how = ranks_defaults;
    rank_place place = {.rank = k->order.rank,
                        .size = rank_layout_size(&k->order.layout),
                        .address = split_address,
                        .port = k->order.port,
                        .listener = -1};
    how.arrive_s = split_start_s;
    how.on_stuck = end;
    TRY(split_facts(&facts, &k->order, err));
    TRY(ranks_join(&k->group, &place, buf_str(&facts), &how, err));
    k->lead.group = k->group;
cleanup:
    buf_release(&facts);
    return st;
}

/* ---- the share of the model ---- */

static snap_status bind(split_rank *k, snap_err *err) {
    snap_status st;
    const split_order *o = &k->order;
    weights_share share = split_share(&o->layout, o->rank);
    model_shape whole = o->shape, part;
    if (!o->random)
        TRY(model_shape_open(&whole, o->dir, err));
    part = whole;
    TRY(rank_layout_shape(&part, &o->layout, err));
    if (o->random && o->cuda) {
        st = weights_outline(&k->weights, &part, err);
        k->weights.share = share;
        return st;
    }
    TRY(o->random ? random_checkpoint(&k->files, &whole, err)
                  : checkpoint_open(&k->files, o->dir, err));
    TRY(weights_bind_share(&k->weights, &part, &share, k->files, err));
cleanup:
    return st;
}

static snap_status open_share(split_rank *k, snap_err *err) {
    snap_status st;
    const split_order *o = &k->order;
    double limit = ranks_set_limit(k->group, split_weights_s);
    runner_options r = {.format = o->format,
                        .precision = o->precision,
                        .pages = o->pages,
                        .context = o->context,
                        .max_rows = o->max_rows,
                        .max_decode = o->max_decode,
                        .threads = o->threads,
                        .device = o->cuda ? "cuda" : "cpu",
                        .device_number = o->device};
    TRY(bind(k, err));
    TRY(split_open_comms(&k->comms, o, k->group, &k->lead, err));
    r.comm = k->comms.sums;
    r.experts = k->comms.experts;
    TRY(runner_create(&k->runner, &k->weights, &r, err));
    TRY(ranks_all_gather(k->group, "opening the shares of a model", NULL, 0, NULL, err));
cleanup:
    (void)ranks_set_limit(k->group, limit);
    return st;
}

static snap_status send_answer(void *ctx, const void *bytes, size_t n, snap_err *err) {
    split_rank *k = ctx;
    return channel_send(&k->lead, WIRE_ANSWER, bytes, n, err);
}

static snap_status repeat_calls(split_rank *k, snap_err *err) {
    bool answers = k->order.rank % k->order.layout.parts == 0;
    k->lead.spin_s = k->order.cuda ? split_spin_s : 0;
    for (;;) {
        wire_message m;
        snap_status st = channel_receive(&k->lead, WIRE_CALL, 0, &m, err);
        if (st == SNAP_OK && m.type == WIRE_CALL)
            st = runner_answer(k->runner, m.bytes, m.n, answers ? send_answer : NULL, k, err);
        if (st != SNAP_OK || m.type == WIRE_BYE)
            return st;
    }
}

static void release(split_rank *k) {
    runner_free(k->runner);
    split_close_comms(&k->comms, &k->order);
    weights_release(&k->weights);
    checkpoint_close(k->files);
    channel_close(&k->lead);
}

static snap_status run(split_rank *k, void (*end)(const snap_err *), snap_err *err) {
    snap_status st;
    TRY(receive_order(k, err));
    TRY(join(k, end, err));
    TRY(open_share(k, err));
    TRY(repeat_calls(k, err));
cleanup:
    return st;
}

bool split_follow(void (*end)(const snap_err *), snap_err *err) {
    struct stat in;
    split_rank k = {0};
    if (fstat(STDIN_FILENO, &in) != 0 || !S_ISSOCK(in.st_mode))
        return false;
    (void)signal(SIGINT, SIG_IGN); /* rank 0 gets both signals, too, and ends all ranks */
    (void)signal(SIGTERM, SIG_IGN);
    k.lead = channel_of(STDIN_FILENO, 0);
    snap_status st = run(&k, end, err);
    if (st != SNAP_OK && k.group)
        ranks_fail(k.group, err);
    release(&k);
    (void)!ranks_close(k.group, err);
    return true;
}
