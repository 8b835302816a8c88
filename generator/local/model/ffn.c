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

/* Sorts the (row, expert) pairs by expert and returns their number. Zero-computation experts have
 * no pairs. */
static int sort_pairs(runner *r) {
    int k = r->router.chosen, experts = r->s->n_routed_experts, *first = r->e.first;
    int pairs = r->step.rows * k;
    memset(first, 0, (size_t)(experts + 1) * sizeof *first);
    for (int p = 0; p < pairs; p++)
        if (r->b.chosen[p] < experts)
            first[r->b.chosen[p] + 1]++;
    for (int e = 0; e < experts; e++)
        first[e + 1] += first[e];
    for (int p = 0; p < pairs; p++) {
        int e = r->b.chosen[p];
        r->e.place[p] = e < experts ? first[e]++ : -1;
        if (e < experts)
            r->e.row[r->e.place[p]] = p / k;
    }
    for (int e = experts; e > 0; e--)
        first[e] = first[e - 1];
    first[0] = 0;
    return first[experts];
}

static void gather_row(void *ctx, int worker, int64_t pair) {
    (void)worker;
    const runner *r = ctx;
    size_t bytes = (size_t)r->s->hidden_size * r->element;
    memcpy((char *)r->e.x + (size_t)pair * bytes,
           (const char *)r->b.packed + (size_t)r->e.row[pair] * bytes, bytes);
}

static snap_status run_experts(runner *r, const moe_weights *m, int pairs, snap_err *err) {
    snap_status st;
    int64_t hidden = r->s->hidden_size, inner = r->s->moe_intermediate_size;
    gate_context ctx = {r, inner};
    int jobs = 0;
    runner_rows(r, pairs, gather_row, r);
    r->stats.layers++;
    for (int e = 0; e < r->s->n_routed_experts; e++) {
        int first = r->e.first[e], rows = r->e.first[e + 1] - first;
        if (!rows)
            continue;
        r->stats.experts++;
        gemm_job job = {.w = m->expert[e].gate,
                        .x = (const char *)r->e.x + (size_t)(first * hidden) * r->element,
                        .ldx = hidden,
                        .m = rows,
                        .y = r->e.gate + first * inner,
                        .ldy = inner};
        r->e.jobs[jobs++] = job;
        job.w = m->expert[e].up;
        job.y = r->e.up + first * inner;
        r->e.jobs[jobs++] = job;
    }
    TRY(gemm_run(r->g, r->e.jobs, jobs, err));
    runner_rows(r, pairs, apply_gate, &ctx);
    jobs = 0;
    for (int e = 0; e < r->s->n_routed_experts; e++) {
        int first = r->e.first[e], rows = r->e.first[e + 1] - first;
        if (rows)
            r->e.jobs[jobs++] =
                (gemm_job){.w = m->expert[e].down,
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

typedef struct {
    const runner *r;
    float *out;
} combine_context;

/* Adds up a row's expert outputs, in the order of its experts. A zero-computation expert returns
 * the row's input; only rank 0 adds it, so that it counts once. */
static void combine_row(void *ctx, int worker, int64_t i) {
    (void)worker;
    const combine_context *c = ctx;
    const runner *r = c->r;
    int k = r->router.chosen;
    int64_t hidden = r->s->hidden_size;
    float *out = c->out + i * hidden;
    bool gives_back = !r->opt.comm || r->opt.comm->rank == 0;
    for (int p = 0; p < k; p++) {
        int place = r->e.place[i * k + p];
        if (place < 0 && !gives_back)
            continue;
        const float *from = place >= 0 ? r->e.down + place * hidden : r->b.h + i * hidden;
        float weight = r->b.weight[i * k + p];
        for (int64_t j = 0; j < hidden; j++)
            out[j] += weight * from[j];
    }
}

snap_status moe_forward(runner *r, const moe_weights *m, float *out, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    combine_context ctx = {r, out};
    gemm_job scores = {.w = m->router,
                       .x = r->b.h,
                       .ldx = s->hidden_size,
                       .m = r->step.rows,
                       .y = r->b.scores,
                       .ldy = r->router.experts};
    TRY(gemm_run(r->g32, &scores, 1, err));
    choose(r, m);
    r->moe_layer++;
    TRY(run_experts(r, m, sort_pairs(r), err));
    runner_rows(r, r->step.rows, combine_row, &ctx);
    if (s->n_shared_experts)
        TRY(ffn_forward(r, &m->shared, (int64_t)s->n_shared_experts * s->moe_intermediate_size, out,
                        err));
cleanup:
    return st;
}
