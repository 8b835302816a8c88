#include "harness/bench/arm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum {
    kFillPages = 256,   /* pages filled at a time */
    kSpareEntries = 2,  /* table entries past a sequence's last page */
    kCacheTurnover = 4, /* last-level caches read between two uses of a set */
};

/* Device memory that holds one slice a set. */
typedef struct {
    unsigned char *at;
    size_t stride; /* bytes from set to set, a multiple of MLA_ALIGN */
} slices;

struct bench_arm {
    mla_backend *be; /* borrowed, as is numbers */
    const numbers *from;
    bench_shape shape;
    mla_precision precision;
    int sets, next;
    int pages_a_sequence, table_width;
    mla_plan *plan;
    mla_cache cache;
    slices table, q, q8, q_rope, q_scale, kv, out, lse;
    int32_t *seqlens; /* device [batch], the same for all sets */
};

float bench_softmax_scale(void) {
    return 1.0f / sqrtf(192.0f);
}

/* ---- sizes ---- */

static size_t aligned(size_t n) {
    return (n + MLA_ALIGN - 1) / MLA_ALIGN * MLA_ALIGN;
}

static int64_t rows_of(const bench_shape *s) {
    return (int64_t)s->batch * s->s_q * s->heads;
}

static int pages_of(const bench_shape *s) {
    return (int)((s->context + MLA_PAGE - 1) / MLA_PAGE);
}

/* Bytes that one step reads from the cache and writes; pages count whole. */
static double set_bytes(const bench_shape *s, mla_precision p) {
    double tokens = (double)s->batch * pages_of(s) * MLA_PAGE;
    return tokens * (double)mla_cache_token_bytes(p, s->d_c, s->d_r) +
           (double)rows_of(s) * (2.0 * (s->d_c + s->d_r) + 2.0 * s->d_c + 4.0);
}

int bench_arm_sets(const bench_shape *s, mla_precision p, size_t cache_bytes) {
    if (!cache_bytes)
        return 1;
    return 1 + (int)ceil(kCacheTurnover * (double)cache_bytes / set_bytes(s, p));
}

double bench_arm_bytes(const bench_shape *s, mla_precision p, int sets) {
    return set_bytes(s, p) * sets;
}

int64_t bench_arm_rows(const bench_arm *arm) {
    return rows_of(&arm->shape);
}

mla_backend *bench_arm_backend(const bench_arm *arm) {
    return arm->be;
}

mla_precision bench_arm_precision(const bench_arm *arm) {
    return arm->precision;
}

const bench_shape *bench_arm_shape(const bench_arm *arm) {
    return &arm->shape;
}

const numbers *bench_arm_numbers(const bench_arm *arm) {
    return arm->from;
}

/* ---- names of numbers: set 0's sequence b has the tokens b * context ... ---- */

static uint64_t token_index(const bench_arm *arm, int64_t sequence, int64_t token) {
    return (uint64_t)(sequence * arm->shape.context + token);
}

uint64_t bench_arm_token_index(const bench_arm *arm, int b, int64_t token) {
    return token_index(arm, b, token);
}

uint64_t bench_arm_query_index(const bench_arm *arm, int64_t row) {
    (void)arm; /* set k's queries start at k * rows */
    return (uint64_t)row;
}

/* ---- memory ---- */

static snap_status alloc_slices(bench_arm *arm, slices *s, size_t bytes_a_set, snap_err *err) {
    s->stride = aligned(bytes_a_set);
    s->at = mla_alloc(arm->be, s->stride * (size_t)arm->sets, err);
    return s->at ? SNAP_OK : SNAP_E_NOMEM;
}

static void *slice(const slices *s, int set) {
    return s->at ? s->at + (size_t)set * s->stride : NULL;
}

static int64_t set_pages(const bench_arm *arm) {
    return (int64_t)arm->shape.batch * arm->pages_a_sequence;
}

static snap_status alloc_cache(bench_arm *arm, snap_err *err) {
    mla_page_bytes page = mla_cache_page_bytes(arm->precision, arm->shape.d_c, arm->shape.d_r);
    arm->cache.pages = set_pages(arm) * arm->sets + 1; /* the last one shuffled holds NaN */
    size_t pages = (size_t)arm->cache.pages;
    arm->cache.content = mla_alloc(arm->be, pages * page.content, err);
    if (!arm->cache.content)
        return SNAP_E_NOMEM;
    if (arm->precision == MLA_BF16)
        return SNAP_OK;
    arm->cache.rope = mla_alloc(arm->be, pages * page.rope, err);
    arm->cache.scale = arm->cache.rope ? mla_alloc(arm->be, pages * page.scale, err) : NULL;
    return arm->cache.scale ? SNAP_OK : SNAP_E_NOMEM;
}

static snap_status alloc_all(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t rows = (size_t)rows_of(s), d_c = (size_t)s->d_c, d_r = (size_t)s->d_r;
    size_t batch = (size_t)s->batch;
    snap_status st = SNAP_OK;
    TRY(alloc_cache(arm, err));
    TRY(alloc_slices(arm, &arm->table, batch * (size_t)arm->table_width * sizeof(int32_t), err));
    TRY(alloc_slices(arm, &arm->q, rows * (d_c + d_r) * 2, err));
    TRY(alloc_slices(arm, &arm->kv, batch * (size_t)s->s_q * (d_c + d_r) * 2, err));
    TRY(alloc_slices(arm, &arm->out, rows * d_c * 2, err));
    TRY(alloc_slices(arm, &arm->lse, rows * sizeof(float), err));
    if (arm->precision == MLA_FP8) {
        TRY(alloc_slices(arm, &arm->q8, rows * d_c, err));
        TRY(alloc_slices(arm, &arm->q_rope, rows * d_r * 2, err));
        TRY(alloc_slices(arm, &arm->q_scale, rows * sizeof(float), err));
    }
    arm->seqlens = mla_alloc(arm->be, batch * sizeof(int32_t), err);
    st = arm->seqlens ? SNAP_OK : SNAP_E_NOMEM;
cleanup:
    return st;
}

/* ---- filling ---- */

/* Every byte 0xff: NaN in bf16, e4m3 and fp32 alike. */
static snap_status poison(bench_arm *arm, void *device, size_t bytes, snap_err *err) {
    enum { kChunk = 1 << 20 };
    if (!device)
        return SNAP_OK;
    unsigned char *ones = malloc(kChunk);
    if (!ones)
        return err_set(err, SNAP_E_NOMEM, "out of memory for filling the cache");
    memset(ones, 0xff, kChunk);
    snap_status st = SNAP_OK;
    for (size_t at = 0; at < bytes && st == SNAP_OK; at += kChunk) {
        size_t n = bytes - at < kChunk ? bytes - at : kChunk;
        st = mla_copy_in(arm->be, (unsigned char *)device + at, ones, n, err);
    }
    free(ones);
    return st;
}

static snap_status poison_cache(bench_arm *arm, snap_err *err) {
    mla_page_bytes page = mla_cache_page_bytes(arm->precision, arm->shape.d_c, arm->shape.d_r);
    size_t pages = (size_t)arm->cache.pages;
    snap_status st = SNAP_OK;
    TRY(poison(arm, arm->cache.content, pages * page.content, err));
    TRY(poison(arm, arm->cache.rope, pages * page.rope, err));
    TRY(poison(arm, arm->cache.scale, pages * page.scale, err));
cleanup:
    return st;
}

/* The pool's page numbers in random order: logical page i is page order[i]. */
static int32_t *shuffled_pages(const bench_arm *arm) {
    size_t n = (size_t)arm->cache.pages;
    int32_t *order = malloc(n * sizeof *order);
    rng r = rng_make(arm->from->seed, rng_stream_of("bench pages"));
    for (size_t i = 0; order && i < n; i++) {
        size_t j = rng_below(&r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

/* What stands in a table past a sequence's last page. */
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
        int64_t first = ((int64_t)set * arm->shape.batch + b) * arm->pages_a_sequence;
        for (int i = 0; i < arm->table_width; i++)
            row[i] =
                i < arm->pages_a_sequence ? order[first + i] : garbage_entry(arm, b + i, nan_page);
    }
}

static snap_status upload_tables(bench_arm *arm, const int32_t *order, snap_err *err) {
    size_t batch = (size_t)arm->shape.batch, entries = batch * (size_t)arm->table_width;
    int32_t *host = malloc((entries + batch) * sizeof *host);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for block tables");
    snap_status st = SNAP_OK;
    for (int set = 0; set < arm->sets; set++) {
        fill_table(arm, set, order, host);
        TRY(mla_copy_in(arm->be, slice(&arm->table, set), host, entries * sizeof *host, err));
    }
    for (size_t b = 0; b < batch; b++)
        host[b] = (int32_t)arm->shape.context;
    TRY(mla_copy_in(arm->be, arm->seqlens, host, batch * sizeof *host, err));
cleanup:
    free(host);
    return st;
}

/* Filling appends MLA_MAX_SQ tokens at a time to kFillPages pages at once, each page as a sequence
 * of its own: the backend's own quantiser at the speed of its largest batch. */
typedef struct {
    mla_plan *plan;
    int32_t *lengths, *pages; /* device [kFillPages] */
    void *kv;                 /* device bf16 [kFillPages][MLA_MAX_SQ][d_c + d_r] */
    int32_t host_lengths[kFillPages];
    uint16_t *host_kv;
} filler;

static snap_status filler_create(filler *f, const bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t kv_bytes = (size_t)kFillPages * MLA_MAX_SQ * (size_t)(s->d_c + s->d_r) * 2;
    mla_capacity cap = {.precision = arm->precision,
                        .heads = 1,
                        .d_c = s->d_c,
                        .d_r = s->d_r,
                        .batch = kFillPages,
                        .s_q = MLA_MAX_SQ,
                        .max_tokens = MLA_PAGE,
                        .splits = 1};
    snap_status st = SNAP_OK;
    TRY(mla_plan_create(&f->plan, arm->be, &cap, err));
    f->lengths = mla_alloc(arm->be, sizeof f->host_lengths, err);
    f->pages = f->lengths ? mla_alloc(arm->be, kFillPages * sizeof *f->pages, err) : NULL;
    f->kv = f->pages ? mla_alloc(arm->be, kv_bytes, err) : NULL;
    f->host_kv = malloc(kv_bytes);
    if (!f->kv || !f->host_kv)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for filling the cache");
cleanup:
    return st;
}

static void filler_release(filler *f, mla_backend *be) {
    mla_plan_free(f->plan);
    mla_free(be, f->lengths);
    mla_free(be, f->pages);
    mla_free(be, f->kv);
    free(f->host_kv);
}

/* Tokens of logical page @page that its sequence has. */
static int tokens_on_page(const bench_arm *arm, int64_t page) {
    int64_t left = arm->shape.context - page % arm->pages_a_sequence * MLA_PAGE;
    return left < MLA_PAGE ? (int)left : MLA_PAGE;
}

/* The tokens that bring a page from @had tokens on; returns its new length, 0 = nothing to do. */
static int next_tokens(const bench_arm *arm, int64_t page, int had, uint16_t *kv) {
    int all = tokens_on_page(arm, page), now = had + MLA_MAX_SQ < all ? had + MLA_MAX_SQ : all;
    int64_t sequence = page / arm->pages_a_sequence;
    int64_t first = page % arm->pages_a_sequence * MLA_PAGE;
    int width = arm->shape.d_c + arm->shape.d_r;
    if (now <= had)
        return 0;
    for (int t = 0; t < MLA_MAX_SQ; t++) {
        int64_t slot = now - MLA_MAX_SQ + t;
        if (slot >= 0)
            numbers_token(arm->from, token_index(arm, sequence, first + slot), kv + t * width);
    }
    return now;
}

static snap_status fill_pages(bench_arm *arm, filler *f, const int32_t *order, int64_t first, int n,
                              snap_err *err) {
    int width = arm->shape.d_c + arm->shape.d_r;
    size_t token_set = (size_t)MLA_MAX_SQ * (size_t)width;
    mla_step step = {.batch = n,
                     .s_q = MLA_MAX_SQ,
                     .seqlens = f->lengths,
                     .block_table = f->pages,
                     .table_width = 1};
    size_t lengths_bytes = (size_t)n * sizeof *f->lengths;
    snap_status st = mla_copy_in(arm->be, f->pages, order + first, lengths_bytes, err);
    for (int had = 0; had < MLA_PAGE && st == SNAP_OK; had += MLA_MAX_SQ) {
        for (int i = 0; i < n; i++)
            f->host_lengths[i] =
                next_tokens(arm, first + i, had, f->host_kv + (size_t)i * token_set);
        TRY(mla_copy_in(arm->be, f->lengths, f->host_lengths, lengths_bytes, err));
        TRY(mla_copy_in(arm->be, f->kv, f->host_kv, (size_t)n * token_set * 2, err));
        TRY(mla_append_kv(f->plan, &step, &arm->cache, f->kv, err));
        TRY(mla_sync(arm->be, err)); /* the staging memory is used again */
    }
cleanup:
    return st;
}

static snap_status fill_cache(bench_arm *arm, const int32_t *order, snap_err *err) {
    int64_t pages = arm->cache.pages - 1;
    filler f = {0};
    snap_status st = SNAP_OK;
    TRY(poison_cache(arm, err));
    TRY(filler_create(&f, arm, err));
    for (int64_t first = 0; first < pages; first += kFillPages) {
        int64_t n = pages - first < kFillPages ? pages - first : kFillPages;
        TRY(fill_pages(arm, &f, order, first, (int)n, err));
    }
cleanup:
    filler_release(&f, arm->be);
    return st;
}

static snap_status upload_queries(bench_arm *arm, int set, uint16_t *host, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t rows = rows_of(s), width = s->d_c + s->d_r;
    for (int64_t i = 0; i < rows; i++)
        numbers_query(arm->from, (uint64_t)(set * rows + i), host + i * width);
    snap_status st =
        mla_copy_in(arm->be, slice(&arm->q, set), host, (size_t)(rows * width) * 2, err);
    if (st == SNAP_OK && arm->precision == MLA_FP8)
        st = mla_quant_q(arm->be, rows, s->d_c, s->d_r, slice(&arm->q, set), slice(&arm->q8, set),
                         slice(&arm->q_rope, set), slice(&arm->q_scale, set), err);
    return st == SNAP_OK ? mla_sync(arm->be, err) : st;
}

/* The step's own tokens, which the served scope appends: the last s_q of each sequence. */
static snap_status upload_new_tokens(bench_arm *arm, int set, uint16_t *host, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t width = s->d_c + s->d_r;
    for (int b = 0; b < s->batch; b++)
        for (int t = 0; t < s->s_q; t++) {
            int64_t token = s->context - s->s_q + t;
            uint16_t *row = host + ((int64_t)b * s->s_q + t) * width;
            memset(row, 0, (size_t)width * sizeof *row);
            if (token >= 0)
                numbers_token(arm->from, token_index(arm, (int64_t)set * s->batch + b, token), row);
        }
    return mla_copy_in(arm->be, slice(&arm->kv, set), host,
                       (size_t)(s->batch * s->s_q * width) * sizeof *host, err);
}

static snap_status fill_steps(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    uint16_t *host = malloc((size_t)rows_of(s) * (size_t)(s->d_c + s->d_r) * sizeof *host);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for queries");
    snap_status st = SNAP_OK;
    for (int set = 0; set < arm->sets && st == SNAP_OK; set++) {
        st = upload_queries(arm, set, host, err);
        if (st == SNAP_OK)
            st = upload_new_tokens(arm, set, host, err);
    }
    free(host);
    return st;
}

static snap_status fill(bench_arm *arm, snap_err *err) {
    int32_t *order = shuffled_pages(arm);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld pages",
                       (long long)arm->cache.pages);
    snap_status st = SNAP_OK;
    TRY(upload_tables(arm, order, err));
    TRY(fill_cache(arm, order, err));
    TRY(fill_steps(arm, err));
cleanup:
    free(order);
    return st;
}

/* ---- life ---- */

static snap_status make_plan(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    mla_capacity cap = {.precision = arm->precision,
                        .heads = s->heads,
                        .d_c = s->d_c,
                        .d_r = s->d_r,
                        .batch = s->batch,
                        .s_q = s->s_q,
                        .max_tokens = s->context};
    return mla_plan_create(&arm->plan, arm->be, &cap, err);
}

snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             mla_precision p, const numbers *from, int sets, snap_err *err) {
    *out = NULL;
    bench_arm *arm = calloc(1, sizeof *arm);
    if (!arm)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
    arm->be = be;
    arm->from = from;
    arm->shape = *shape;
    arm->precision = p;
    arm->sets = sets;
    arm->pages_a_sequence = pages_of(shape);
    arm->table_width = arm->pages_a_sequence + kSpareEntries;
    snap_status st = SNAP_OK;
    TRY(make_plan(arm, err));
    TRY(alloc_all(arm, err));
    TRY(fill(arm, err));
    *out = arm;
    arm = NULL;
cleanup:
    bench_arm_free(arm);
    return st;
}

void bench_arm_free(bench_arm *arm) {
    if (!arm)
        return;
    const slices *all[] = {&arm->table,   &arm->q,  &arm->q8,  &arm->q_rope,
                           &arm->q_scale, &arm->kv, &arm->out, &arm->lse};
    mla_plan_free(arm->plan);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        mla_free(arm->be, all[i]->at);
    mla_free(arm->be, arm->cache.content);
    mla_free(arm->be, arm->cache.rope);
    mla_free(arm->be, arm->cache.scale);
    mla_free(arm->be, arm->seqlens);
    free(arm);
}

/* ---- a step ---- */

void bench_arm_rewind(bench_arm *arm) {
    arm->next = 0;
}

static mla_step step_of(const bench_arm *arm, int set) {
    return (mla_step){.batch = arm->shape.batch,
                      .s_q = arm->shape.s_q,
                      .seqlens = arm->seqlens,
                      .block_table = slice(&arm->table, set),
                      .table_width = arm->table_width};
}

static mla_attn attn_of(const bench_arm *arm, int set) {
    bool fp8 = arm->precision == MLA_FP8;
    return (mla_attn){.q = slice(fp8 ? &arm->q8 : &arm->q, set),
                      .q_rope = slice(&arm->q_rope, set),
                      .q_scale = slice(&arm->q_scale, set),
                      .softmax_scale = bench_softmax_scale(),
                      .out = slice(&arm->out, set),
                      .lse = slice(&arm->lse, set)};
}

static snap_status step_kernel(bench_arm *arm, int set, double *ns, snap_err *err) {
    mla_step step = step_of(arm, set);
    mla_attn attn = attn_of(arm, set);
    snap_status st = SNAP_OK;
    TRY(mla_schedule(arm->plan, &step, err));
    TRY(mla_sync(arm->be, err));
    TRY(mla_timer_start(arm->be, err));
    TRY(mla_run(arm->plan, &step, &arm->cache, &attn, err));
    TRY(mla_timer_stop(arm->be, ns, err));
cleanup:
    return st;
}

static snap_status step_served(bench_arm *arm, int set, double *ns, snap_err *err) {
    const bench_shape *s = &arm->shape;
    mla_step step = step_of(arm, set);
    mla_attn attn = attn_of(arm, set);
    snap_status st = SNAP_OK;
    TRY(mla_sync(arm->be, err));
    TRY(mla_timer_start(arm->be, err));
    if (arm->precision == MLA_FP8)
        TRY(mla_quant_q(arm->be, rows_of(s), s->d_c, s->d_r, slice(&arm->q, set),
                        slice(&arm->q8, set), slice(&arm->q_rope, set), slice(&arm->q_scale, set),
                        err));
    TRY(mla_append_kv(arm->plan, &step, &arm->cache, slice(&arm->kv, set), err));
    TRY(mla_schedule(arm->plan, &step, err));
    TRY(mla_run(arm->plan, &step, &arm->cache, &attn, err));
    TRY(mla_timer_stop(arm->be, ns, err));
cleanup:
    return st;
}

snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns, snap_err *err) {
    int set = arm->next;
    arm->next = (set + 1) % arm->sets;
    return scope == BENCH_KERNEL ? step_kernel(arm, set, ns, err) : step_served(arm, set, ns, err);
}

snap_status bench_arm_result(bench_arm *arm, uint16_t *out, float *lse, snap_err *err) {
    size_t rows = (size_t)rows_of(&arm->shape);
    snap_status st = mla_copy_out(arm->be, out, slice(&arm->out, 0),
                                  rows * (size_t)arm->shape.d_c * sizeof *out, err);
    if (st == SNAP_OK)
        st = mla_copy_out(arm->be, lse, slice(&arm->lse, 0), rows * sizeof *lse, err);
    return st;
}
