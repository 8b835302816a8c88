#include "harness/bench/predict_links.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "generator/local/cuda/sums.h"
#include "harness/bench/exchange_bench.h"

/* ---- measured curves ---- */

/* The rows of each kind of curve, and whether such an exchange is one launch of our own kernel. */
static const struct {
    const char *operation, *path;
    bool one_launch;
} kKinds[CURVE_KINDS] = {
    [CURVE_ONE_SHOT] = {"all_reduce", "one_shot", true},
    [CURVE_ALL_REDUCE] = {"all_reduce", "nccl", false},
    [CURVE_ALL_GATHER] = {"all_gather", "nccl", false},
    [CURVE_REDUCE_SCATTER] = {"reduce_scatter", "nccl", false},
    [CURVE_ALL_TO_ALL] = {"all_to_all", "nccl", false},
    [CURVE_STEP_SUM] = {"all_reduce", "step", true},
    [CURVE_STEP_GATHER] = {"all_gather", "step", true},
    [CURVE_STEP_SCATTER] = {"reduce_scatter", "step", true},
};

/* NULL for an exchange that no step has. */
static exchange_curve *curve_of(predict_links *l, const exchange_record *row) {
    for (int k = 0; k < CURVE_KINDS; k++)
        if (strcmp(row->operation, kKinds[k].operation) == 0 &&
            strcmp(row->path, kKinds[k].path) == 0)
            return &l->curves[k][row->ranks];
    return NULL;
}

void predict_links_add(predict_links *l, const exchange_record *row) {
    bool timed = row->parts & EXCHANGE_TIMED && strcmp(row->launch, "graph") == 0;
    if (!timed || row->ranks < 2 || row->ranks > PREDICT_NODE)
        return;
    exchange_curve *c = curve_of(l, row);
    curve_point p = {
        (double)row->bytes,
        {row->median_ns, row->best_ns, isfinite(row->p99_ns) ? row->p99_ns : row->median_ns}};
    int at = 0;
    while (c && at < c->n && c->of[at].bytes < p.bytes)
        at++;
    bool same = c && at < c->n && c->of[at].bytes == p.bytes;
    if (!c || (same && strcmp(row->type, "fp32") != 0) || (!same && c->n == PREDICT_CURVE))
        return;
    if (!same)
        memmove(&c->of[at + 1], &c->of[at], (size_t)(c->n++ - at) * sizeof c->of[0]);
    c->of[at] = p;
}

/* The number of ranks whose curve an exchange of @size ranks uses; 0 = there is no curve. */
static int measured_ranks(const predict_links *l, curve_kind kind, int size) {
    for (int r = size; r >= 2; r--)
        if (l->curves[kind][r].n)
            return r;
    for (int r = size + 1; r <= PREDICT_NODE; r++)
        if (l->curves[kind][r].n)
            return r;
    return 0;
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

static void add_times(predict_time *to, double n, predict_time each) {
    to->ns += n * each.ns;
    to->low_ns += n * each.low_ns;
    to->high_ns += n * each.high_ns;
}

/* The place of a curve of @measured ranks in the order in which measured_ranks() takes them. */
static int order_of(int measured, int size) {
    if (!measured)
        return INT_MAX;
    return measured <= size ? size - measured : size + measured;
}

/* The curve that gives the times of the one-shot kernel: @step, the operation's curve on the path
 * `step`, or CURVE_ONE_SHOT if that was measured with a number of ranks that comes earlier in the
 * order of measured_ranks(). */
static curve_kind kernel_curve(const predict_links *l, curve_kind step, int size) {
    int own = order_of(measured_ranks(l, step, size), size),
        stored = order_of(measured_ranks(l, CURVE_ONE_SHOT, size), size);
    return own <= stored ? step : CURVE_ONE_SHOT;
}

/* The time of an exchange of @size ranks in the one-shot kernel. @step: the curve of this operation
 * that was measured on the path `step`. @part: bytes that a rank sends to each other rank, at most
 * @most. false = the exchange does not take this kernel. */
static bool by_one_shot(const predict_links *l, curve_kind step, int size, double part,
                        int64_t most, predict_time *out) {
    curve_kind kind = kernel_curve(l, step, size);
    int measured = measured_ranks(l, kind, size);
    if (l->has_link || part > (double)most || !measured)
        return false;
    bool parts = kind == CURVE_STEP_GATHER || kind == CURVE_STEP_SCATTER;
    double bytes = part * (size - 1) / (measured - 1); /* bytes that a rank sends to each other
                                                          rank */
    *out = read_curve(&l->curves[kind][measured], parts ? bytes * measured : bytes);
    return true;
}

/* An operation of NCCL over @size ranks of one node. @carried: bytes that each link carries in one
 * direction. */
static snap_status nccl_time(const predict_links *l, curve_kind kind, int size, double carried,
                             predict_time *out, snap_err *err) {
    exchange_operation op = kind == CURVE_ALL_REDUCE ? EXCHANGE_ALL_REDUCE : EXCHANGE_ALL_GATHER;
    int measured = measured_ranks(l, kind, size);
    if (l->has_link) {
        *out = link_time(&l->link, carried);
        return SNAP_OK;
    }
    if (!measured)
        return err_set(err, SNAP_E_USAGE,
                       "no measured %s inside a graph: --measured needs a result file of 'bench "
                       "exchange', or --link a link",
                       kKinds[kind].operation);
    *out = read_curve(&l->curves[kind][measured], carried / exchange_bus_factor(op, measured));
    return SNAP_OK;
}

/* The time of a launch that moves next to nothing: the shortest measured exchange in one launch. 0
 * if there is none. */
static double launch_time(const predict_links *l) {
    double least = (double)INFINITY;
    for (int k = 0; k < CURVE_KINDS; k++)
        for (int r = 2; r <= PREDICT_NODE && kKinds[k].one_launch; r++)
            if (l->curves[k][r].n)
                least = fmin(least, l->curves[k][r].of[0].at.ns);
    return isfinite(least) ? least : 0;
}

/* The kernel that adds @results results of @bytes to the residual stream is a launch of its own. It
 * reads them and the numbers of the stream, and writes these. */
static predict_time adding_time(const predict_links *l, double results, double bytes) {
    double ns = launch_time(l) + (2 + results) * bytes / l->read_rate * 1e9;
    return (predict_time){ns, ns, ns};
}

/* A sum of @bytes of FP32 numbers over the ranks of a replica. */
static snap_status sum_time(const predict_links *l, int size, double bytes, predict_time *out,
                            snap_err *err) {
    if (by_one_shot(l, CURVE_STEP_SUM, size, bytes, sums_one_shot(size), out))
        return SNAP_OK;
    snap_status st = nccl_time(l, CURVE_ALL_REDUCE, size,
                               bytes * exchange_bus_factor(EXCHANGE_ALL_REDUCE, size), out, err);
    add_times(out, 1, adding_time(l, 1, bytes));
    return st;
}

static predict_time shorter(predict_time a, predict_time b) {
    return a.ns <= b.ns ? a : b;
}

/* The ranks that gather rows. */
typedef struct {
    int size, near; /* all; those of one node */
    double part;    /* bytes of a rank's part */
} gathering;

/* NCCL's time. @reach, @node_reach: shares of the bytes, as in predict_work. */
static snap_status gather_by_nccl(const predict_links *l, curve_kind kind, const gathering *g,
                                  double reach, double node_reach, predict_time *out,
                                  snap_err *err) {
    snap_status st = SNAP_OK;
    *out = (predict_time){0};
    if (g->near > 1)
        st = nccl_time(l, kind, g->near, reach * g->part * (g->size - 1), out, err);
    if (g->size > g->near)
        *out = longer(*out,
                      link_time(&l->network, node_reach * g->part * (g->size - g->near) / g->near));
    return st;
}

/* An all-gather or a reduce-scatter over the replicas. */
static snap_status gather_time(const predict_links *l, curve_kind kind, const predict_work *w,
                               const rank_layout *layout, predict_time *out, snap_err *err) {
    snap_status st = SNAP_OK;
    bool scatters = kind == CURVE_REDUCE_SCATTER;
    int size = layout->replicas, room = PREDICT_NODE / layout->parts;
    const gathering g = {size, size < room ? size : room,
                         scatters ? w->scatter_bytes : w->gather_bytes};
    predict_time exact;
    if (!(size == g.near && by_one_shot(l, scatters ? CURVE_STEP_SCATTER : CURVE_STEP_GATHER, size,
                                        g.part, SUMS_ONE_SHOT, out))) {
        TRY(gather_by_nccl(l, kind, &g, 1, 1, out, err));
        if (scatters)
            add_times(out, 1, adding_time(l, 1, g.part));
    }
    if (l->all_to_all) {
        TRY(gather_by_nccl(l, CURVE_ALL_TO_ALL, &g, w->reach, w->node_reach, &exact, err));
        if (scatters)
            add_times(&exact, 1, adding_time(l, w->reach * (size - 1), g.part));
        *out = shorter(*out, exact);
    }
cleanup:
    return st;
}

snap_status predict_links_time(const predict_links *l, const predict_work *w,
                               const predict_layout *layout, predict_time *out, snap_err *err) {
    snap_status st = SNAP_OK;
    const rank_layout *of = &layout->ranks;
    predict_time each = {0};
    *out = each;
    if (w->sums > 0) {
        TRY(sum_time(l, of->parts, w->sum_bytes, &each, err));
        add_times(out, w->sums, each);
    }
    if (w->gathers > 0) {
        TRY(gather_time(l, CURVE_ALL_GATHER, w, of, &each, err));
        add_times(out, w->gathers, each);
        TRY(gather_time(l, CURVE_REDUCE_SCATTER, w, of, &each, err));
        add_times(out, w->gathers, each);
    }
cleanup:
    return st;
}
