/* bench_arm_plant.c - planted tokens (bench_arm_plant()). A "set" is one copy of an arm's data
 * (bench_arm.h); tokens are planted in set 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "harness/bench/bench_arm_inside.h"
#include "kernels/formats.h"

/* Powers of two, so that both arms' caches hold them exactly. The logit of a replaced token is
 * (1 + kKey * kQuery) times the softmax scale, about 148. The key lies in the last RoPE column,
 * where no distribution of numbers.h has outliers. */
static const float kKey = 4096, kQuery = 0.5f;

/* The key and the query for an arm with a cache format. e4m3 holds this key beside a content of
 * 1. */
static const float kPackedKey = 256, kPackedQuery = 8;

enum { kRowsAtOnce = 4096 };

/* The new tokens of a step, the last s_q of each sequence, are never replaced. */
int arm_planted_slot(const bench_arm *arm) {
    int page = arm->page_tokens, below = page;
    for (int b = 0; b < arm->shape.batch; b++) {
        int old = arm_tail(arm, b) - arm->shape.s_q;
        old = old > 0 ? old : arm_pages_of(arm, b) > 1 ? page + old : page;
        below = old < below ? old : below;
    }
    return (int)(draw_mix(arm->plant_seed) % (uint64_t)(below > 0 ? below : 1));
}

int arm_planted_pages(const bench_arm *arm, int b) {
    int64_t old = bench_shape_length(&arm->shape, b) - arm->shape.s_q - arm_planted_slot(arm);
    return old > 0 ? (int)((old + arm->page_tokens - 1) / arm->page_tokens) : 0;
}

static int column_of(const bench_arm *arm, int64_t page) {
    return (int)(draw_mix(draw_mix(arm->plant_seed) ^ (uint64_t)page) % (uint64_t)arm->shape.d_c);
}

void arm_planted_row(const bench_arm *arm, int64_t page, uint16_t *row) {
    int width = arm->shape.d_c + arm->shape.d_r;
    memset(row, 0, (size_t)width * sizeof *row);
    row[column_of(arm, page)] = bf16_from_f32(1);
    row[width - 1] = bf16_from_f32(arm->format ? kPackedKey : kKey);
}

void arm_planted_query(const bench_arm *arm, uint16_t *row) {
    int width = arm->shape.d_c + arm->shape.d_r;
    for (int d = 0; d < width; d++)
        row[d] = bf16_from_f32(d < arm->shape.d_c ? 1 : 0);
    row[width - 1] = bf16_from_f32(arm->format ? kPackedQuery : kQuery);
}

/* ---- another block table ---- */

static void swap(int32_t *a, int32_t *b) {
    int32_t held = *a;
    *a = *b;
    *b = held;
}

/* Lists the pages of set 0 that are not the last ones of their sequences: writes their indices to
 * @out, and returns how many there are. */
static uint32_t other_pages(const bench_arm *arm, int64_t *out) {
    uint32_t n = 0;
    for (int b = 0; b < arm->shape.batch; b++)
        for (int64_t page = arm->first_page[b]; page + 1 < arm->first_page[b + 1]; page++)
            out[n++] = page;
    return n;
}

/* Exchanges the pages of set 0. Last pages may hold fewer tokens than the others. So they are
 * exchanged among each other, and only if all sequences have the same length. */
static snap_status shuffle(const bench_arm *arm, int32_t *order, snap_err *err) {
    rng r = rng_make(arm->plant_seed, rng_stream_of("planted pages"));
    int64_t *others = malloc((size_t)arm_pages(arm) * sizeof *others);
    if (!others)
        return err_set(err, SNAP_E_NOMEM, "out of memory for planted tokens");
    uint32_t n = other_pages(arm, others), batch = (uint32_t)arm->shape.batch;
    for (uint32_t i = 1; i < n; i++)
        swap(order + others[i], order + others[rng_below(&r, i + 1)]);
    for (uint32_t b = 1; b < batch && !arm->shape.lengths; b++)
        swap(order + arm->first_page[b + 1] - 1,
             order + arm->first_page[rng_below(&r, b + 1) + 1] - 1);
    free(others);
    return SNAP_OK;
}

/* ---- tokens and queries ---- */

typedef struct {
    mla_plan *plan;
    int32_t *lengths, *pages; /* device [kRowsAtOnce] */
    void *kv;                 /* device bf16 [kRowsAtOnce][d_c + d_r] */
    int32_t *host;            /* [kRowsAtOnce] */
    uint16_t *rows;           /* [kRowsAtOnce][d_c + d_r] */
} planter;

static snap_status planter_create(planter *p, const bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t row = (size_t)(s->d_c + s->d_r) * sizeof *p->rows;
    mla_capacity cap = {.precision = arm->precision,
                        .heads = 1,
                        .d_c = s->d_c,
                        .d_r = s->d_r,
                        .batch = kRowsAtOnce,
                        .s_q = 1,
                        .max_tokens = MLA_PAGE,
                        .splits = 1};
    snap_status st = SNAP_OK;
    TRY(mla_plan_create(&p->plan, arm->be, &cap, err));
    p->lengths = mla_alloc(arm->be, kRowsAtOnce * sizeof *p->lengths, err);
    p->pages = p->lengths ? mla_alloc(arm->be, kRowsAtOnce * sizeof *p->pages, err) : NULL;
    p->kv = p->pages ? mla_alloc(arm->be, kRowsAtOnce * row, err) : NULL;
    p->host = malloc(kRowsAtOnce * sizeof *p->host);
    p->rows = malloc(kRowsAtOnce * row);
    if (!p->kv || !p->host || !p->rows) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for planted tokens");
        goto cleanup;
    }
    for (int i = 0; i < kRowsAtOnce; i++)
        p->host[i] = arm_planted_slot(arm) + 1;
    TRY(mla_copy_in(arm->be, p->lengths, p->host, kRowsAtOnce * sizeof *p->host, err));
cleanup:
    return st;
}

static void planter_release(planter *p, mla_backend *be) {
    mla_plan_free(p->plan);
    mla_free(be, p->lengths);
    mla_free(be, p->pages);
    mla_free(be, p->kv);
    free(p->host);
    free(p->rows);
}

/* Appends the tokens of the pages @page[n]. For this purpose each page is a sequence that ends with
 * the replaced token. */
static snap_status plant_pages(bench_arm *arm, planter *p, const int32_t *order,
                               const int64_t *page, int n, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t width = s->d_c + s->d_r;
    size_t count = (size_t)n;
    mla_step step = {
        .batch = n, .s_q = 1, .seqlens = p->lengths, .block_table = p->pages, .table_width = 1};
    for (int i = 0; i < n; i++) {
        p->host[i] = order[page[i]];
        arm_planted_row(arm, page[i], p->rows + i * width);
    }
    snap_status st = SNAP_OK;
    TRY(mla_copy_in(arm->be, p->pages, p->host, count * sizeof *p->host, err));
    TRY(mla_copy_in(arm->be, p->kv, p->rows, count * (size_t)width * sizeof *p->rows, err));
    TRY(mla_append_kv(p->plan, &step, &arm->cache, p->kv, err));
cleanup:
    return st;
}

/* Lists the pages that have a replaced token: writes their indices within set 0 (the copy of the
 * data that bench_arm_plant() changes) to @out, and returns how many there are. */
static int64_t list_planted(const bench_arm *arm, int64_t *out) {
    int64_t n = 0;
    for (int b = 0; b < arm->shape.batch; b++)
        for (int i = 0; i < arm_planted_pages(arm, b); i++)
            out[n++] = arm->first_page[b] + i;
    return n;
}

static snap_status plant_tokens(bench_arm *arm, const int32_t *order, snap_err *err) {
    int64_t *pages = malloc((size_t)arm_pages(arm) * sizeof *pages);
    if (!pages)
        return err_set(err, SNAP_E_NOMEM, "out of memory for planted tokens");
    int64_t n = list_planted(arm, pages);
    planter p = {0};
    snap_status st = planter_create(&p, arm, err);
    for (int64_t first = 0; first < n && st == SNAP_OK; first += kRowsAtOnce) {
        int64_t left = n - first;
        st = plant_pages(arm, &p, order, pages + first,
                         left < kRowsAtOnce ? (int)left : kRowsAtOnce, err);
    }
    if (st == SNAP_OK)
        st = mla_sync(arm->be, err);
    planter_release(&p, arm->be);
    free(pages);
    return st;
}

static snap_status aim_queries(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t rows = bench_arm_rows(arm), width = s->d_c + s->d_r;
    size_t bytes = (size_t)(rows * width) * sizeof(uint16_t);
    uint16_t *host = malloc(bytes);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for queries");
    for (int64_t i = 0; i < rows; i++)
        arm_planted_query(arm, host + i * width);
    snap_status st = mla_copy_in(arm->be, arm_slice(&arm->q, 0), host, bytes, err);
    free(host);
    arm->query_seed[0] = ~arm->from->seed; /* not the arm's seed, so bench_arm_reset() draws its
                                              queries again */
    return st == SNAP_OK ? arm_quantise_queries(arm, 0, err) : st;
}

snap_status bench_arm_plant(bench_arm *arm, uint64_t seed, snap_err *err) {
    int32_t *order = arm_page_order(arm);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld pages",
                       (long long)arm->cache.pages);
    snap_status st = SNAP_OK;
    arm->planted = true;
    arm->plant_seed = draw_mix(seed + arm->drawn);
    arm->next = 0;
    TRY(shuffle(arm, order, err));
    TRY(arm_upload_table(arm, 0, order, err));
    TRY(arm->format ? packed_arm_fill(arm, order, arm_pages(arm), true, err)
                    : plant_tokens(arm, order, err));
    TRY(aim_queries(arm, err));
cleanup:
    free(order);
    return st;
}

int64_t bench_arm_planted(const bench_arm *arm, int b, double *want, double *lse) {
    int n = arm_planted_pages(arm, b);
    if (arm->format)
        return packed_arm_planted(arm, b, want, lse);
    memset(want, 0, (size_t)arm->shape.d_c * sizeof *want);
    for (int i = 0; i < n; i++)
        want[column_of(arm, arm->first_page[b] + i)]++;
    *lse = (double)bench_softmax_scale() * (1 + (double)(kKey * kQuery)) + log((double)n);
    return n;
}
