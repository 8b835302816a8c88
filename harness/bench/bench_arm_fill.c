/* bench_arm_fill.c - fills the memory of an arm: cache, block tables, lengths, queries. A "set" is
 * one copy of these data (bench_arm.h). */
#include "harness/bench/bench_arm_inside.h"

#include <stdlib.h>

#include "base/rng.h"

enum {
    kFillPages = 256, /* pages filled at a time, at most, if device memory is host memory */
    kFillMany = 8192, /* most pages filled at a time on other devices */
};

/* Sets every byte to 0xff, which is NaN in bf16, e4m3 and fp32. Does nothing for NULL. */
static snap_status poison(bench_arm *arm, void *device, size_t bytes, snap_err *err) {
    return device ? lab_fill(arm->be, device, 0xff, bytes, err) : SNAP_OK;
}

static snap_status poison_cache(bench_arm *arm, snap_err *err) {
    mla_page_bytes page = mla_cache_page_bytes(arm->precision, arm->shape.d_c, arm->shape.d_r);
    size_t pages = (size_t)arm->cache.pages;
    snap_status st = SNAP_OK;
    if (arm->format)
        return SNAP_OK; /* packed_arm_alloc() has done it */
    TRY(poison(arm, arm->cache.content, pages * page.content, err));
    TRY(poison(arm, arm->cache.rope, pages * page.rope, err));
    TRY(poison(arm, arm->cache.scale, pages * page.scale, err));
cleanup:
    return st;
}

int32_t *arm_page_order(const bench_arm *arm) {
    size_t n = (size_t)arm->cache.pages;
    int32_t *order = calloc(n, sizeof *order);
    rng r = rng_make(arm->from->seed, rng_stream_of("bench pages"));
    if (!order)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t j = rng_below(&r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

/* An entry of a block table after the last page of a sequence: out of range, or the NaN page. */
static int32_t garbage_entry(const bench_arm *arm, int i, int32_t nan_page) {
    switch (i % 4) {
    case 0:
        return -1;
    case 1:
        return nan_page;
    case 2:
        return INT32_MAX;
    default:
        return (int32_t)arm->cache.pages + 7;
    }
}

static void fill_table(const bench_arm *arm, int set, const int32_t *order, int32_t *table) {
    int32_t nan_page = order[arm->cache.pages - 1];
    for (int b = 0; b < arm->shape.batch; b++) {
        int32_t *row = table + (int64_t)b * arm->table_width;
        int64_t first = (int64_t)set * arm_pages(arm) + arm->first_page[b];
        int pages = arm_pages_of(arm, b);
        for (int i = 0; i < arm->table_width; i++)
            row[i] = i < pages ? order[first + i] : garbage_entry(arm, b + i, nan_page);
    }
}

/* Writes the block table of the BF16 copy (BENCH_COPIED). In the copy, the pages lie in the order
 * in which the sequences list them, so entry i of the table is i. */
static snap_status upload_copy_table(bench_arm *arm, int32_t *host, snap_err *err) {
    size_t pages = (size_t)arm_pages(arm);
    for (size_t i = 0; i < pages; i++)
        host[i] = (int32_t)i;
    return mla_copy_in(arm->be, arm->copy_table, host, pages * sizeof *host, err);
}

snap_status arm_upload_table(bench_arm *arm, int set, const int32_t *order, snap_err *err) {
    size_t entries = (size_t)arm->shape.batch * (size_t)arm->table_width;
    int32_t *host = malloc(entries * sizeof *host);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for block tables");
    fill_table(arm, set, order, host);
    snap_status st =
        mla_copy_in(arm->be, arm_slice(&arm->table, set), host, entries * sizeof *host, err);
    free(host);
    return st;
}

static snap_status upload_tables(bench_arm *arm, const int32_t *order, snap_err *err) {
    size_t batch = (size_t)arm->shape.batch, entries = batch * (size_t)arm->table_width;
    int32_t *host =
        malloc(entries * sizeof *host); /* also holds the lengths and the copy's table */
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for block tables");
    snap_status st = SNAP_OK;
    for (int set = 0; set < arm->sets; set++)
        TRY(arm_upload_table(arm, set, order, err));
    for (size_t b = 0; b < batch; b++)
        host[b] = (int32_t)bench_shape_length(&arm->shape, (int)b);
    TRY(mla_copy_in(arm->be, arm->seqlens, host, batch * sizeof *host, err));
    if (arm->copies)
        TRY(upload_copy_table(arm, host, err));
cleanup:
    free(host);
    return st;
}

/* The state of filling the cache. Each append adds up to MLA_MAX_SQ tokens to each of many pages.
 * For this purpose each page is a sequence of its own. */
typedef struct {
    mla_plan *plan;
    int many;                 /* pages filled at the same time */
    int32_t *lengths, *pages; /* device [many] */
    uint64_t *first;          /* device [many]: index of the first token to append to each page */
    void *kv;                 /* device bf16 [many][MLA_MAX_SQ][d_c + d_r] */
    int32_t *host_lengths;
    uint64_t *host_first;
} filler;

static snap_status filler_create(filler *f, const bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t pages = arm->cache.pages - 1, many = arm->host_memory ? kFillPages : kFillMany;
    f->many = (int)(pages < 1 ? 1 : pages < many ? pages : many);
    size_t n = (size_t)f->many, kv_bytes = n * MLA_MAX_SQ * (size_t)(s->d_c + s->d_r) * 2;
    mla_capacity cap = {.precision = arm->precision,
                        .heads = 1,
                        .d_c = s->d_c,
                        .d_r = s->d_r,
                        .batch = f->many,
                        .s_q = MLA_MAX_SQ,
                        .max_tokens = MLA_PAGE,
                        .splits = 1};
    snap_status st = SNAP_OK;
    TRY(mla_plan_create(&f->plan, arm->be, &cap, err));
    f->lengths = mla_alloc(arm->be, n * sizeof *f->lengths, err);
    f->pages = f->lengths ? mla_alloc(arm->be, n * sizeof *f->pages, err) : NULL;
    f->first = f->pages ? mla_alloc(arm->be, n * sizeof *f->first, err) : NULL;
    f->kv = f->first ? mla_alloc(arm->be, kv_bytes, err) : NULL;
    f->host_lengths = malloc(n * sizeof *f->host_lengths);
    f->host_first = malloc(n * sizeof *f->host_first);
    if (!f->kv || !f->host_lengths || !f->host_first)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for filling the cache");
cleanup:
    return st;
}

static void filler_release(filler *f, mla_backend *be) {
    mla_plan_free(f->plan);
    mla_free(be, f->lengths);
    mla_free(be, f->pages);
    mla_free(be, f->first);
    mla_free(be, f->kv);
    free(f->host_lengths);
    free(f->host_first);
}

int arm_tail(const bench_arm *arm, int b) {
    int64_t full = (int64_t)(arm_pages_of(arm, b) - 1) * arm->page_tokens;
    return (int)(bench_shape_length(&arm->shape, b) - full);
}

/* The number of tokens of its sequence on a page. */
static int tokens_on_page(const bench_arm *arm, page_place at) {
    return at.page + 1 == arm_pages_of(arm, at.b) ? arm_tail(arm, at.b) : MLA_PAGE;
}

/* Finds the next MLA_MAX_SQ tokens of a page that holds @had tokens. Returns the page's new length,
 * or 0 if the page is complete. *first is the index of the first token. If fewer tokens are left,
 * *first is lower, so that the MLA_MAX_SQ tokens end with the page's last one. The tokens that the
 * page already holds are then written again. Tokens before the page's first one are not written. */
static int next_tokens(const bench_arm *arm, int64_t page, int had, uint64_t *first) {
    page_place at = arm_place(arm, page);
    int all = tokens_on_page(arm, at), now = had + MLA_MAX_SQ < all ? had + MLA_MAX_SQ : all;
    int64_t token = at.page * MLA_PAGE + now - MLA_MAX_SQ;
    *first = bench_arm_token_index(arm, (int64_t)at.set * arm->shape.batch + at.b, token);
    return now <= had ? 0 : now;
}

static snap_status fill_pages(bench_arm *arm, filler *f, const int32_t *order, int64_t first, int n,
                              snap_err *err) {
    draw_source tokens = numbers_tokens(arm->from);
    mla_step step = {.batch = n,
                     .s_q = MLA_MAX_SQ,
                     .seqlens = f->lengths,
                     .block_table = f->pages,
                     .table_width = 1};
    size_t count = (size_t)n;
    snap_status st = mla_copy_in(arm->be, f->pages, order + first, count * sizeof *f->pages, err);
    for (int had = 0; had < MLA_PAGE && st == SNAP_OK; had += MLA_MAX_SQ) {
        for (int i = 0; i < n; i++)
            f->host_lengths[i] = next_tokens(arm, first + i, had, &f->host_first[i]);
        TRY(mla_copy_in(arm->be, f->lengths, f->host_lengths, count * sizeof *f->lengths, err));
        TRY(mla_copy_in(arm->be, f->first, f->host_first, count * sizeof *f->first, err));
        TRY(lab_draw(arm->be, &tokens, f->first, n, MLA_MAX_SQ, f->kv, err));
        TRY(mla_append_kv(f->plan, &step, &arm->cache, f->kv, err));
    }
cleanup:
    return st;
}

/* Fills the first @pages pages of the arm. */
static snap_status fill_cache(bench_arm *arm, const int32_t *order, int64_t pages, snap_err *err) {
    filler f = {0};
    snap_status st = SNAP_OK;
    if (arm->format)
        return packed_arm_fill(arm, order, pages, false, err);
    TRY(filler_create(&f, arm, err));
    for (int64_t first = 0; first < pages; first += f.many) {
        int64_t n = pages - first < f.many ? pages - first : f.many;
        TRY(fill_pages(arm, &f, order, first, (int)n, err));
    }
    st = mla_sync(arm->be, err);
cleanup:
    filler_release(&f, arm->be);
    return st;
}

snap_status arm_quantise_queries(bench_arm *arm, int set, snap_err *err) {
    const bench_shape *s = &arm->shape;
    if (arm->precision != MLA_FP8)
        return SNAP_OK;
    return mla_quant_q(arm->be, bench_arm_rows(arm), s->d_c, s->d_r, arm_slice(&arm->q, set),
                       arm_slice(&arm->q8, set), arm_slice(&arm->q_rope, set),
                       arm_slice(&arm->q_scale, set), err);
}

snap_status arm_draw_queries(bench_arm *arm, int set, uint64_t seed, snap_err *err) {
    draw_source from = numbers_queries(arm->from);
    from.seed = seed;
    snap_status st =
        lab_draw(arm->be, &from, arm->zero, 1, bench_arm_rows(arm), arm_slice(&arm->q, set), err);
    arm->query_seed[set] = seed;
    arm->drawn++;
    return st == SNAP_OK ? arm_quantise_queries(arm, set, err) : st;
}

/* Draws the tokens that a step of the served scope appends: the last s_q of each sequence. If a
 * sequence has fewer tokens, the extra rows are drawn but not appended. */
static snap_status make_new_tokens(bench_arm *arm, int set, uint64_t *host, uint64_t *scratch,
                                   snap_err *err) {
    const bench_shape *s = &arm->shape;
    draw_source tokens = numbers_tokens(arm->from);
    for (int b = 0; b < s->batch; b++)
        host[b] = bench_arm_token_index(arm, (int64_t)set * s->batch + b,
                                        bench_shape_length(s, b) - s->s_q);
    snap_status st = mla_copy_in(arm->be, scratch, host, (size_t)s->batch * sizeof *host, err);
    return st == SNAP_OK ? lab_draw(arm->be, &tokens, scratch, s->batch, s->s_q,
                                    arm_slice(&arm->kv, set), err)
                         : st;
}

static snap_status fill_steps(bench_arm *arm, snap_err *err) {
    size_t bytes = (size_t)arm->shape.batch * sizeof(uint64_t);
    uint64_t *host = malloc(bytes), *scratch = mla_alloc(arm->be, bytes, err);
    snap_status st = SNAP_OK;
    if (!host || !scratch) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for queries");
        goto cleanup;
    }
    uint64_t seed = arm->from->seed;
    TRY(mla_copy_in(arm->be, arm->zero, &(uint64_t){0}, sizeof *arm->zero, err));
    for (int set = 0; set < arm->sets; set++) {
        TRY(arm_draw_queries(arm, set, set ? draw_mix(seed + arm->drawn) : seed, err));
        TRY(make_new_tokens(arm, set, host, scratch, err));
    }
    TRY(poison(arm, arm->out.at, arm->out.stride * (size_t)arm->sets, err));
    TRY(mla_sync(arm->be, err));
cleanup:
    mla_free(arm->be, scratch);
    free(host);
    return st;
}

snap_status arm_fill(bench_arm *arm, snap_err *err) {
    int32_t *order = arm_page_order(arm);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld pages",
                       (long long)arm->cache.pages);
    snap_status st = SNAP_OK;
    TRY(upload_tables(arm, order, err));
    TRY(poison_cache(arm, err));
    TRY(fill_cache(arm, order, arm->cache.pages - 1, err));
    TRY(fill_steps(arm, err));
cleanup:
    free(order);
    return st;
}

snap_status arm_refill(bench_arm *arm, snap_err *err) {
    int32_t *order = arm_page_order(arm);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld pages",
                       (long long)arm->cache.pages);
    snap_status st = arm_upload_table(arm, 0, order, err);
    if (st == SNAP_OK)
        st = fill_cache(arm, order, arm_pages(arm), err);
    free(order);
    return st;
}
