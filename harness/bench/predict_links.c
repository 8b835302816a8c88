#include "harness/bench/predict_links.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "harness/bench/exchange_bench.h"

/* ---- measured curves ---- */

static exchange_curve *curve_of(predict_links *l, const exchange_record *row) {
    bool one_shot = strcmp(row->path, "one_shot") == 0;
    if (strcmp(row->operation, "all_reduce") == 0)
        return one_shot ? &l->one_shot : &l->all_reduce;
    if (strcmp(row->operation, "all_gather") == 0)
        return &l->all_gather;
    return strcmp(row->operation, "all_to_all") == 0 ? &l->all_to_all : NULL;
}

void predict_links_add(predict_links *l, const exchange_record *row) {
    exchange_curve *c = curve_of(l, row);
    bool timed = row->parts & EXCHANGE_TIMED && strcmp(row->launch, "graph") == 0;
    if (!c || !timed || row->ranks < 2 || (c->n && c->ranks != row->ranks))
        return;
    curve_point p = {
        (double)row->bytes,
        {row->median_ns, row->best_ns, isfinite(row->p99_ns) ? row->p99_ns : row->median_ns}};
    int at = 0;
    while (at < c->n && c->of[at].bytes < p.bytes)
        at++;
    bool same = at < c->n && c->of[at].bytes == p.bytes;
    if ((same && strcmp(row->type, "fp32") != 0) || (!same && c->n == PREDICT_CURVE))
        return;
    if (!same)
        memmove(&c->of[at + 1], &c->of[at], (size_t)(c->n++ - at) * sizeof c->of[0]);
    c->of[at] = p;
    c->ranks = (int)row->ranks;
}

static double between(double x, double x0, double x1, double y0, double y1) {
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

static predict_time scaled(predict_time t, double by) {
    return (predict_time){t.ns * by, t.low_ns * by, t.high_ns * by};
}

static predict_time read_curve(const exchange_curve *c, double bytes) {
    const curve_point *p = c->of, *last = &p[c->n - 1];
    if (bytes <= p[0].bytes)
        return p[0].at;
    if (bytes >= last->bytes)
        return scaled(last->at, bytes / last->bytes);
    int i = 1;
    while (p[i].bytes < bytes)
        i++;
    double x0 = p[i - 1].bytes, x1 = p[i].bytes;
    const predict_time *a = &p[i - 1].at, *b = &p[i].at;
    return (predict_time){between(bytes, x0, x1, a->ns, b->ns),
                          between(bytes, x0, x1, a->low_ns, b->low_ns),
                          between(bytes, x0, x1, a->high_ns, b->high_ns)};
}

/* ---- links with a latency and a bandwidth ---- */

static snap_status read_three(const js *link, const char *key, const char *name, double out[3],
                              snap_err *err) {
    const js *list = js_get_array(link, key);
    for (size_t i = 0; i < 3; i++) {
        out[i] = js_len(list) == 3 ? js_num(js_at(list, i)) : 0;
        if (!(out[i] > 0))
            return err_set(err, SNAP_E_INPUT,
                           "link '%s': %s must be three numbers above 0: best, expected, worst",
                           name, key);
    }
    return SNAP_OK;
}

static snap_status no_such_link(const char *name, const js *list, snap_err *err) {
    buf names = {0};
    for (size_t i = 0; i < js_len(list); i++) {
        const char *other = js_get_str(js_at(list, i), "name");
        (void)buf_printf(&names, "%s%.32s", i ? ", " : "", other ? other : "?");
    }
    snap_status st = buf_check(&names, "the names of links", err);
    if (st == SNAP_OK)
        st = err_set(err, SNAP_E_USAGE, "no link '%s' (%s)", name, buf_str(&names));
    buf_release(&names);
    return st;
}

snap_status predict_link_find(predict_link *out, const char *name, const js *links, snap_err *err) {
    snap_status st;
    const js *list = js_get_array(links, "links");
    for (size_t i = 0; i < js_len(list); i++) {
        const js *link = js_at(list, i);
        const char *called = js_get_str(link, "name");
        if (!called || strcmp(called, name) != 0)
            continue;
        if (!js_get_str(link, "source") || !js_get_str(link, "date"))
            return err_set(err, SNAP_E_INPUT, "link '%s' has no source or no date", name);
        (void)snprintf(out->name, sizeof out->name, "%s", name);
        TRY(read_three(link, "latency_us", name, out->latency_us, err));
        TRY(read_three(link, "gb_s", name, out->gb_s, err));
        return SNAP_OK;
    }
    return no_such_link(name, list, err);
cleanup:
    return st;
}

/* @bytes: what each link carries. */
static predict_time link_time(const predict_link *l, double bytes) {
    double ns[3];
    for (int i = 0; i < 3; i++)
        ns[i] = l->latency_us[i] * 1e3 + bytes / l->gb_s[i];
    return (predict_time){ns[1], ns[0], ns[2]};
}

/* ---- one exchange ---- */

static predict_time longer(predict_time a, predict_time b) {
    return (predict_time){fmax(a.ns, b.ns), fmax(a.low_ns, b.low_ns), fmax(a.high_ns, b.high_ns)};
}

/* An operation of NCCL over @size ranks of one node. */
static snap_status in_node(const predict_links *l, const exchange_curve *c, exchange_operation op,
                           const char *name, int size, double bytes, predict_time *out,
                           snap_err *err) {
    double factor = exchange_bus_factor(op, size);
    if (l->has_link) {
        *out = link_time(&l->link, bytes * factor);
        return SNAP_OK;
    }
    if (!c->n)
        return err_set(err, SNAP_E_USAGE,
                       "no measured %s inside a graph: --measured needs a result file of 'bench "
                       "exchange', or --link a link",
                       name);
    *out = read_curve(c, bytes * factor / exchange_bus_factor(op, c->ranks));
    return SNAP_OK;
}

/* A sum of NCCL is followed by a kernel that adds it to the residual stream: it reads two numbers
 * and writes one. */
static snap_status nccl_sum_time(const predict_links *l, int size, double bytes, predict_time *out,
                                 snap_err *err) {
    snap_status st =
        in_node(l, &l->all_reduce, EXCHANGE_ALL_REDUCE, "all_reduce", size, bytes, out, err);
    double add = 3 * bytes / l->read_rate * 1e9;
    *out = (predict_time){out->ns + add, out->low_ns + add, out->high_ns + add};
    return st;
}

/* A sum of FP32 numbers over a replica. A sum in one shot reads the numbers of all other ranks, so
 * with more ranks it is faster than NCCL for short messages only. The faster of both is taken. */
static snap_status sum_time(const predict_links *l, int size, double bytes, predict_time *out,
                            snap_err *err) {
    const exchange_curve *one = &l->one_shot;
    bool usable = !l->has_link && one->n && bytes <= one->of[one->n - 1].bytes;
    if (!usable)
        return nccl_sum_time(l, size, bytes, out, err);
    predict_time nccl;
    *out = read_curve(one, bytes * (size - 1) / (one->ranks - 1));
    if (l->all_reduce.n && nccl_sum_time(l, size, bytes, &nccl, err) == SNAP_OK &&
        nccl.ns < out->ns)
        *out = nccl;
    return SNAP_OK;
}

/* An all-to-all over all ranks. @bytes: what a rank sends to other ranks. */
static snap_status move_time(const predict_links *l, int size, double bytes, predict_time *out,
                             snap_err *err) {
    int near = size < PREDICT_NODE ? size : PREDICT_NODE;
    double others = size - 1, inside = bytes * (near - 1) / others,
           /* bytes of nccl-tests include the part that a rank keeps */
        buffer = inside / exchange_bus_factor(EXCHANGE_ALL_TO_ALL, near);
    snap_status st =
        in_node(l, &l->all_to_all, EXCHANGE_ALL_TO_ALL, "all_to_all", near, buffer, out, err);
    if (st == SNAP_OK && size > near)
        *out = longer(*out, link_time(&l->network, bytes - inside));
    return st;
}

static void add_times(predict_time *to, double n, predict_time each) {
    to->ns += n * each.ns;
    to->low_ns += n * each.low_ns;
    to->high_ns += n * each.high_ns;
}

snap_status predict_links_time(const predict_links *l, const predict_work *w,
                               const predict_layout *layout, predict_time *out, snap_err *err) {
    snap_status st = SNAP_OK;
    predict_time each = {0};
    int parts = layout->ranks.parts, gpus = predict_gpus(layout);
    *out = each;
    if (w->sums > 0) {
        TRY(sum_time(l, parts, w->sum_bytes, &each, err));
        add_times(out, w->sums, each);
    }
    if (w->moves > 0) {
        TRY(move_time(l, gpus, w->out_bytes, &each, err));
        add_times(out, w->moves, each);
        TRY(move_time(l, gpus, w->back_bytes, &each, err));
        add_times(out, w->moves, each);
    }
    if (w->gathers > 0) {
        TRY(in_node(l, &l->all_gather, EXCHANGE_ALL_GATHER, "all_gather", parts, w->gather_bytes,
                    &each, err));
        add_times(out, w->gathers, each);
    }
cleanup:
    return st;
}
