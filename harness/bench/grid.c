#include "harness/bench/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

int64_t bench_shape_length(const bench_shape *s, int b) {
    return s->lengths ? s->lengths[b] : s->context;
}

int64_t bench_shape_tokens(const bench_shape *s) {
    int64_t tokens = 0;
    for (int b = 0; b < s->batch; b++)
        tokens += bench_shape_length(s, b);
    return tokens;
}

void bench_shape_text(const bench_shape *s, char out[96]) {
    (void)snprintf(out, 96, "H %d, s_q %d, batch %d, context %lld", s->heads, s->s_q, s->batch,
                   (long long)s->context);
}

/* ---- lists ---- */

typedef struct {
    const char *option;
    int64_t low, high, *out;
    int max, n;
} int_list;

static snap_status add_int(void *ctx, const char *part, snap_err *err) {
    int_list *list = ctx;
    int64_t v;
    if (!text_to_int(part, &v) || v < list->low || v > list->high)
        return err_set(err, SNAP_E_USAGE, "%s must list integers within %lld..%lld, got '%s'",
                       list->option, (long long)list->low, (long long)list->high, part);
    for (int i = 0; i < list->n; i++)
        if (list->out[i] == v)
            return err_set(err, SNAP_E_USAGE, "%s lists '%s' twice", list->option, part);
    if (list->n == list->max)
        return err_set(err, SNAP_E_USAGE, "%s lists more than %d numbers", list->option, list->max);
    list->out[list->n++] = v;
    return SNAP_OK;
}

snap_status bench_parse_list(const char *list, const char *option, int64_t low, int64_t high,
                             int64_t *out, int max, int *n, snap_err *err) {
    int_list l = {.option = option, .low = low, .high = high, .out = out, .max = max};
    snap_status st = text_split(list, ',', option, add_int, &l, err);
    *n = l.n;
    return st;
}

typedef struct {
    const char *option;
    const char *const *names; /* [2] */
    bool *on;
} name_list;

static snap_status add_name(void *ctx, const char *part, snap_err *err) {
    name_list *list = ctx;
    for (int i = 0; i < 2; i++)
        if (strcmp(part, list->names[i]) == 0) {
            list->on[i] = true;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE, "%s must list %s or %s, got '%s'", list->option,
                   list->names[0], list->names[1], part);
}

static snap_status parse_names(const char *text, const char *option, const char *const names[2],
                               bool *on, snap_err *err) {
    name_list list = {.option = option, .names = names, .on = on};
    return text_split(text, ',', option, add_name, &list, err);
}

static snap_status parse_small(const char *text, const char *option, int64_t high, int *out, int *n,
                               snap_err *err) {
    int64_t wide[GRID_AXIS];
    snap_status st = bench_parse_list(text, option, 1, high, wide, GRID_AXIS, n, err);
    for (int i = 0; i < *n; i++)
        out[i] = (int)wide[i];
    return st;
}

/* ---- the grid ---- */

static snap_status check_width(const char *option, int64_t width, int64_t high, snap_err *err) {
    if (width >= 32 && width <= high && width % 32 == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "%s must be a multiple of 32 up to %lld, got '%lld'", option,
                   (long long)high, (long long)width);
}

/* "H/s_q/batch/context" */
static snap_status add_shape(void *ctx, const char *part, snap_err *err) {
    bench_grid *g = ctx;
    const char *at = part;
    int64_t v[4];
    for (int i = 0; i < 4; i++) {
        char number[24];
        size_t n = strcspn(at, "/");
        bool last = at[n] == '\0';
        (void)snprintf(number, sizeof number, "%.*s", (int)n, at);
        if (last != (i == 3) || !text_to_int(number, &v[i]))
            return err_set(err, SNAP_E_USAGE, "--shapes must list H/s_q/batch/context, got '%s'",
                           part);
        at += n + !last;
    }
    bench_shape s = {.d_c = g->d_c, .d_r = g->d_r};
    if (v[0] < 1 || v[0] > MLA_MAX_HEADS || v[1] < 1 || v[1] > MLA_MAX_SQ || v[2] < 1 ||
        v[2] > BENCH_MAX_BATCH || v[3] < 1 || v[3] > MLA_MAX_CONTEXT)
        return err_set(
            err, SNAP_E_USAGE,
            "--shapes: H must be 1..%d, s_q 1..%d, batch 1..%d, context 1..%lld, got '%s'",
            MLA_MAX_HEADS, MLA_MAX_SQ, BENCH_MAX_BATCH, (long long)MLA_MAX_CONTEXT, part);
    if (g->n_list == GRID_LIST)
        return err_set(err, SNAP_E_USAGE, "--shapes lists more than %d", GRID_LIST);
    s.heads = (int)v[0];
    s.s_q = (int)v[1];
    s.batch = (int)v[2];
    s.context = v[3];
    g->list[g->n_list++] = s;
    return SNAP_OK;
}

snap_status bench_grid_parse(bench_grid *out, const bench_grid_text *t, snap_err *err) {
    static const char *const arms[] = {"bf16", "fp8"}, *const scopes[] = {"kernel", "served"};
    *out = (bench_grid){0};
    snap_status st = SNAP_OK;
    TRY(parse_names(t->arms, "--arms", arms, out->arm, err));
    TRY(parse_names(t->scopes, "--scope", scopes, out->scope, err));
    TRY(parse_small(t->heads, "--heads", MLA_MAX_HEADS, out->heads, &out->n_heads, err));
    TRY(parse_small(t->s_q, "--s-q", MLA_MAX_SQ, out->s_q, &out->n_s_q, err));
    TRY(parse_small(t->batch, "--batch", BENCH_MAX_BATCH, out->batch, &out->n_batch, err));
    TRY(bench_parse_list(t->context, "--context", 1, MLA_MAX_CONTEXT, out->context, GRID_AXIS,
                         &out->n_context, err));
    TRY(check_width("--d-c", t->d_c, MLA_MAX_CONTENT, err));
    TRY(check_width("--d-r", t->d_r, MLA_MAX_ROPE, err));
    for (int k = BENCH_COMPARED; k < BENCH_ARMS; k++)
        out->arm[k] = t->ablation;
    out->d_c = (int)t->d_c;
    out->d_r = (int)t->d_r;
    if (t->shapes && t->shapes[0])
        TRY(text_split(t->shapes, ',', "--shapes", add_shape, out, err));
cleanup:
    return st;
}

int bench_grid_shapes(const bench_grid *g) {
    if (g->n_list)
        return g->n_list;
    return g->n_heads * g->n_s_q * g->n_batch * g->n_context;
}

bench_shape bench_grid_shape(const bench_grid *g, int i) {
    if (g->n_list)
        return g->list[i];
    bench_shape s = {.d_c = g->d_c, .d_r = g->d_r};
    s.context = g->context[i % g->n_context];
    i /= g->n_context;
    s.batch = g->batch[i % g->n_batch];
    i /= g->n_batch;
    s.s_q = g->s_q[i % g->n_s_q];
    s.heads = g->heads[i / g->n_s_q];
    return s;
}
