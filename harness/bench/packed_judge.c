#include "harness/bench/packed_judge.h"

#include "base/arena.h"
#include "kernels/formats.h"

/* Numbers as the oracle takes them, and its results. */
typedef struct {
    arena memory; /* owns the five arrays */
    float *tokens, *queries;
    int64_t *row; /* [rows] within the sequence: query token * heads + head */
    double *ref, *lse;
    cache_bytes cache;
    cache_oracle oracle;
} work;

static void work_release(work *w) {
    arena_release(&w->memory);
    cache_oracle_release(&w->oracle);
    cache_bytes_release(&w->cache);
}

static void widen(const uint16_t *row, int width, float *out) {
    for (int d = 0; d < width; d++)
        out[d] = bf16_to_f32(row[d]);
}

static void draw_all(work *w, const packed_sequence *in, int64_t tokens) {
    const bench_shape *s = bench_arm_shape(in->arm);
    const numbers *from = bench_arm_numbers(in->arm);
    draw_source queries = {from->queries, s->d_c, s->d_r, in->o->query_seed};
    int width = s->d_c + s->d_r;
    int64_t all = (int64_t)s->s_q * s->heads, sequence = (int64_t)in->o->set * s->batch + in->b;
    uint64_t first = bench_arm_token_index(in->arm, sequence, 0);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    for (int64_t i = 0; i < tokens; i++) {
        numbers_token(from, first + (uint64_t)i, row);
        widen(row, width, w->tokens + i * width);
    }
    int64_t start = (int64_t)(draw_mix(in->seed) % (uint64_t)all);
    for (int64_t i = 0; i < in->rows; i++) {
        w->row[i] = (start + i * all / in->rows) % all;
        draw_row(&queries, (uint64_t)(in->b * all + w->row[i]), row);
        widen(row, width, w->queries + i * width);
    }
}

/* If the format quantises queries, each row is quantised by itself, also where the format has one
 * scale for a page or tensor. The oracle then takes the rows as they are. */
static snap_status quantise_queries(work *w, cache_format *f, int64_t rows, snap_err *err) {
    int width = f->d_c + f->d_r;
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < rows && st == SNAP_OK && f->queries == QUERIES_FORMAT; i++) {
        cache_bytes one = {0};
        st = cache_format_pack(&one, f, w->queries + i * width, 1, err);
        if (st == SNAP_OK)
            cache_format_unpack(w->queries + i * width, f, &one, NULL, 0, 1);
        cache_bytes_release(&one);
    }
    if (f->queries == QUERIES_FORMAT)
        f->queries = QUERIES_EXACT;
    return st;
}

static bool work_alloc(work *w, const bench_shape *s, int64_t tokens, int64_t rows) {
    size_t width = (size_t)s->d_c + (size_t)s->d_r, n = (size_t)rows;
    w->tokens = arena_alloc(&w->memory, ((size_t)tokens + 1) * width, sizeof *w->tokens);
    w->queries = arena_alloc(&w->memory, n * width, sizeof *w->queries);
    w->row = arena_alloc(&w->memory, n, sizeof *w->row);
    w->ref = arena_alloc(&w->memory, n * (size_t)s->d_c, sizeof *w->ref);
    w->lse = arena_alloc(&w->memory, n, sizeof *w->lse);
    return w->tokens && w->queries && w->row && w->ref && w->lse;
}

snap_status packed_judge(judge_error *out, const packed_sequence *in, snap_err *err) {
    const bench_shape *s = bench_arm_shape(in->arm);
    cache_format format = bench_arm_format(in->arm)->format, *f = &format;
    int64_t tokens = bench_shape_length(s, in->b), all = (int64_t)s->s_q * s->heads;
    work w = {0};
    snap_status st = SNAP_OK;
    if (!work_alloc(&w, s, tokens, in->rows)) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for checking a sequence");
        goto cleanup;
    }
    draw_all(&w, in, tokens);
    TRY(cache_format_pack_like(&w.cache, f, bench_arm_shared(in->arm), w.tokens, tokens, err));
    TRY(quantise_queries(&w, f, in->rows, err));
    TRY(cache_oracle_init(&w.oracle, f, w.queries, in->rows, &w.cache, NULL, tokens, err));
    for (int64_t i = 0; i < in->rows; i++)
        cache_oracle_attend(&w.oracle, i, tokens - (s->s_q - 1 - w.row[i] / s->heads),
                            (double)bench_softmax_scale(), arm_format_pv(f), w.ref + i * s->d_c,
                            &w.lse[i]);
    *out = judge_known_rows(
        &(judge_known){.heads = s->heads,
                       .s_q = s->s_q,
                       .d_c = s->d_c,
                       .out = in->o->out + in->b * all * s->d_c,
                       .lse = bench_arm_has_lse(in->arm) ? in->o->lse + in->b * all : NULL,
                       .row = w.row,
                       .rows = (int)in->rows,
                       .ref = w.ref,
                       .ref_lse = w.lse});
cleanup:
    work_release(&w);
    return st;
}
