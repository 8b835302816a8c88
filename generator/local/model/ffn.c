#include <math.h>
#include <string.h>

#include "generator/local/model/model_parts.h"

/* ---- gated feed-forward ---------------------------------------------------------------------- */

typedef struct {
    runner *r;
    int64_t inner;
} gate_context;

static void apply_gate(void *ctx, int worker, int64_t i) {
    (void)worker;
    const gate_context *c = ctx;
    runner *r = c->r;
    float *gate = r->e.gate + i * c->inner;
    const float *up = r->e.up + i * c->inner;
    for (int64_t j = 0; j < c->inner; j++)
        gate[j] = gate[j] / (1.0f + expf(-gate[j])) * up[j];
    gemm_pack(r->g, (char *)r->e.inner + (size_t)(i * c->inner) * r->element, gate, c->inner);
}

snap_status ffn_forward(runner *r, const ffn_weights *f, int64_t inner, float *out, snap_err *err) {
    snap_status st;
    int64_t rows = r->step.rows, hidden = r->s->hidden_size;
    gate_context ctx = {r, inner};
    gemm_job both[2] = {
        {.w = f->gate, .x = r->b.packed, .ldx = hidden, .m = rows, .y = r->e.gate, .ldy = inner},
        {.w = f->up, .x = r->b.packed, .ldx = hidden, .m = rows, .y = r->e.up, .ldy = inner},
    };
    gemm_job down = {
        .w = f->down, .x = r->e.inner, .ldx = inner, .m = rows, .y = r->e.down, .ldy = hidden};
    TRY(gemm_run(r->g, both, 2, err));
    runner_rows(r, rows, apply_gate, &ctx);
    TRY(gemm_run(r->g, &down, 1, err));
    for (int64_t i = 0; i < rows * hidden; i++)
        out[i] += r->e.down[i];
cleanup:
    return st;
}

/* ---- experts --------------------------------------------------------------------------------- */

static void choose(const runner *r, const moe_weights *m) {
    int k = r->router.chosen;
    for (int i = 0; i < r->step.rows; i++) {
        int32_t *expert = r->b.chosen + (int64_t)i * k;
        router_choose(&r->router, r->b.scores + (int64_t)i * r->router.experts, m->bias, expert,
                      r->b.weight + (int64_t)i * k);
        if (r->watch)
            memcpy(r->watch + ((int64_t)i * r->moe_layers + r->moe_layer) * k, expert,
                   (size_t)k * sizeof *expert);
    }
}

/* Replaces the choices of padding rows by none, so that no rank computes experts for them. */
static void drop_padding(const runner *r) {
    int64_t k = r->router.chosen;
    for (int i = 0; i < r->step.pieces; i++) {
        const step_piece *p = &r->step.piece[i];
        for (int64_t c = p->first * k; p->padding && c < (p->first + p->count) * k; c++)
            r->b.chosen[c] = -1;
    }
}

/* The rows that the experts of this rank get, with their choices. */
typedef struct {
    runner *r;
    const moe_weights *m;
    const void *x; /* packed */
    const int32_t *chosen;
    const float *weight;
    int64_t rows;     /* rows of all ranks if they were gathered, else of this rank */
    int64_t own;      /* index of this rank's first row */
    int first, count; /* the routed experts of this rank */
    float *out;       /* [rows][hidden] gets the outputs of the experts added */
} expert_rows;

/* The place of a choice before sorting: the number of one of this rank's experts, or one of the
 * negative numbers of model_parts.h. */
static int expert_of(const expert_rows *a, int64_t pair) {
    int e = a->chosen[pair];
    if (e >= a->r->s->n_routed_experts)
        return PLACE_ZERO;
    return e >= a->first && e < a->first + a->count ? e - a->first : PLACE_ELSEWHERE;
}

/* Sorts the (row, expert) pairs by expert and returns their number. */
static int sort_pairs(const expert_rows *a) {
    runner *r = a->r;
    int k = r->router.chosen, *first = r->e.first;
    int64_t all = a->rows * k;
    memset(first, 0, (size_t)(a->count + 1) * sizeof *first);
    for (int64_t p = 0; p < all; p++) {
        int e = expert_of(a, p);
        if (e >= 0)
            first[e + 1]++;
    }
    for (int e = 0; e < a->count; e++)
        first[e + 1] += first[e];
    for (int64_t p = 0; p < all; p++) {
        int e = expert_of(a, p);
        r->e.place[p] = e >= 0 ? first[e]++ : e;
        if (e >= 0)
            r->e.row[r->e.place[p]] = (int)(p / k);
    }
    for (int e = a->count; e > 0; e--)
        first[e] = first[e - 1];
    first[0] = 0;
    return first[a->count];
}

static void gather_row(void *ctx, int worker, int64_t pair) {
    (void)worker;
    const expert_rows *a = ctx;
    size_t bytes = (size_t)a->r->s->hidden_size * a->r->element;
    memcpy((char *)a->r->e.x + (size_t)pair * bytes,
           (const char *)a->x + (size_t)a->r->e.row[pair] * bytes, bytes);
}

static snap_status run_experts(expert_rows *a, int pairs, snap_err *err) {
    snap_status st;
    runner *r = a->r;
    int64_t hidden = r->s->hidden_size, inner = r->s->moe_intermediate_size;
    gate_context ctx = {r, inner};
    int jobs = 0;
    runner_rows(r, pairs, gather_row, a);
    r->stats.layers++;
    for (int e = 0; e < a->count; e++) {
        int first = r->e.first[e], rows = r->e.first[e + 1] - first;
        if (!rows)
            continue;
        r->stats.experts++;
        gemm_job job = {.w = a->m->expert[a->first + e].gate,
                        .x = (const char *)r->e.x + (size_t)(first * hidden) * r->element,
                        .ldx = hidden,
                        .m = rows,
                        .y = r->e.gate + first * inner,
                        .ldy = inner};
        r->e.jobs[jobs++] = job;
        job.w = a->m->expert[a->first + e].up;
        job.y = r->e.up + first * inner;
        r->e.jobs[jobs++] = job;
    }
    TRY(gemm_run(r->g, r->e.jobs, jobs, err));
    runner_rows(r, pairs, apply_gate, &ctx);
    jobs = 0;
    for (int e = 0; e < a->count; e++) {
        int first = r->e.first[e], rows = r->e.first[e + 1] - first;
        if (rows)
            r->e.jobs[jobs++] =
                (gemm_job){.w = a->m->expert[a->first + e].down,
                           .x = (const char *)r->e.inner + (size_t)(first * inner) * r->element,
                           .ldx = inner,
                           .m = rows,
                           .y = r->e.down + first * hidden,
                           .ldy = hidden};
    }
    TRY(gemm_run(r->g, r->e.jobs, jobs, err));
cleanup:
    return st;
}

/* Adds up a row's expert outputs, in the order of its experts. A zero-computation expert returns
 * the row's input. It must be added once, so only the first rank of the row's replica does it. */
static void combine_row(void *ctx, int worker, int64_t i) {
    (void)worker;
    const expert_rows *a = ctx;
    const runner *r = a->r;
    int k = r->router.chosen;
    int64_t hidden = r->s->hidden_size, own = i - a->own;
    float *out = a->out + i * hidden;
    bool gives_back =
        own >= 0 && own < r->step.rows && (!comm_splits(r->opt.comm) || r->opt.comm->rank == 0);
    for (int p = 0; p < k; p++) {
        int place = r->e.place[i * k + p];
        if (place == PLACE_ELSEWHERE || (place == PLACE_ZERO && !gives_back))
            continue;
        const float *from = place >= 0 ? r->e.down + place * hidden : r->b.h + own * hidden;
        float weight = a->weight[i * k + p];
        for (int64_t j = 0; j < hidden; j++)
            out[j] += weight * from[j];
    }
}

static snap_status compute_experts(expert_rows *a, snap_err *err) {
    snap_status st = run_experts(a, sort_pairs(a), err);
    if (st == SNAP_OK)
        runner_rows(a->r, a->rows, combine_row, a);
    return st;
}

/* Computes the experts of this rank for the rows of all ranks, and adds the sums of this rank's own
 * rows to @out (comm.h). */
static snap_status exchange_rows(expert_rows *a, float *out, snap_err *err) {
    snap_status st;
    runner *r = a->r;
    comm *c = r->opt.experts;
    int64_t rows = r->step.rows, hidden = r->s->hidden_size, choices = rows * r->router.chosen;
    TRY(c->all_gather(c, a->x, r->all.x, rows * hidden * (int64_t)r->element, err));
    TRY(c->all_gather(c, a->chosen, r->all.chosen, choices * (int64_t)sizeof *a->chosen, err));
    TRY(c->all_gather(c, a->weight, r->all.weight, choices * (int64_t)sizeof *a->weight, err));
    a->x = r->all.x;
    a->chosen = r->all.chosen;
    a->weight = r->all.weight;
    a->rows = rows * c->size;
    a->own = rows * c->rank;
    a->out = r->all.sum;
    memset(a->out, 0, (size_t)(a->rows * hidden) * sizeof *a->out);
    TRY(compute_experts(a, err));
    TRY(c->all_reduce(c, a->out, a->rows * hidden, err));
    for (int64_t i = 0; i < rows * hidden; i++)
        out[i] += a->out[a->own * hidden + i];
cleanup:
    return st;
}

snap_status moe_forward(runner *r, const moe_weights *m, float *out, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    expert_rows rows = {.r = r,
                        .m = m,
                        .x = r->b.packed,
                        .chosen = r->b.chosen,
                        .weight = r->b.weight,
                        .rows = r->step.rows,
                        .first = weights_first_expert(r->w),
                        .count = weights_experts(r->w),
                        .out = out};
    gemm_job scores = {.w = m->router,
                       .x = r->b.h,
                       .ldx = s->hidden_size,
                       .m = r->step.rows,
                       .y = r->b.scores,
                       .ldy = r->router.experts};
    TRY(gemm_run(r->g32, &scores, 1, err));
    choose(r, m);
    drop_padding(r);
    r->moe_layer++;
    if (comm_splits(r->opt.experts))
        TRY(exchange_rows(&rows, out, err));
    else
        TRY(compute_experts(&rows, err));
    if (s->n_shared_experts)
        TRY(ffn_forward(r, &m->shared, weights_shared_inner(r->w), out, err));
cleanup:
    return st;
}
