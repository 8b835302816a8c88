#include "harness/bench/arm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum {
    kFillPages = 256,   /* pages filled at a time, where the host does it */
    kFillMany = 8192,   /* and where a device does */
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
    bool flush;       /* before each step, instead of many sets */
    bool host_memory;
    lab_recording **served; /* [sets] a served step each, recorded when it is first taken */
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

bool bench_arm_is_large(const bench_shape *s, mla_precision p, size_t cache_bytes) {
    return cache_bytes && set_bytes(s, p) >= kCacheTurnover * (double)cache_bytes;
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

const char *bench_arm_kernel(const bench_arm *arm) {
    return lab_plan_kernel(arm->plan);
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
    return device ? lab_fill(arm->be, device, 0xff, bytes, err) : SNAP_OK;
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

/* Filling appends MLA_MAX_SQ tokens at a time to many pages at once, each page as a sequence of its
 * own: the backend's own quantiser at the speed of its largest batch. */
typedef struct {
    mla_plan *plan;
    int many;                 /* pages at once */
    int32_t *lengths, *pages; /* device [many] */
    uint64_t *first;          /* device [many]: the token that each page's next ones begin with */
    void *kv;                 /* device bf16 [many][MLA_MAX_SQ][d_c + d_r] */
    int32_t *host_lengths;
    uint64_t *host_first;
} filler;

static snap_status filler_create(filler *f, const bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t pages = arm->cache.pages - 1, many = arm->host_memory ? kFillPages : kFillMany;
    f->many = (int)(pages < many ? pages : many);
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

/* Tokens of logical page @page that its sequence has. */
static int tokens_on_page(const bench_arm *arm, int64_t page) {
    int64_t left = arm->shape.context - page % arm->pages_a_sequence * MLA_PAGE;
    return left < MLA_PAGE ? (int)left : MLA_PAGE;
}

/* The MLA_MAX_SQ tokens that bring a page on from @had: its new length, 0 = nothing to do, and the
 * first of them, which lies before the page where it has fewer: nobody reads that one. */
static int next_tokens(const bench_arm *arm, int64_t page, int had, uint64_t *first) {
    int all = tokens_on_page(arm, page), now = had + MLA_MAX_SQ < all ? had + MLA_MAX_SQ : all;
    int64_t token = page % arm->pages_a_sequence * MLA_PAGE + now - MLA_MAX_SQ;
    *first = token_index(arm, page / arm->pages_a_sequence, token);
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

static snap_status fill_cache(bench_arm *arm, const int32_t *order, snap_err *err) {
    int64_t pages = arm->cache.pages - 1;
    filler f = {0};
    snap_status st = SNAP_OK;
    TRY(poison_cache(arm, err));
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

/* Rows @first .. of a source, in order, to device memory. */
static snap_status draw_run(bench_arm *arm, draw_source from, uint64_t first, int64_t rows,
                            uint64_t *scratch, void *out, snap_err *err) {
    snap_status st = mla_copy_in(arm->be, scratch, &first, sizeof first, err);
    return st == SNAP_OK ? lab_draw(arm->be, &from, scratch, 1, rows, out, err) : st;
}

static snap_status make_queries(bench_arm *arm, int set, uint64_t *scratch, snap_err *err) {
    const bench_shape *s = &arm->shape;
    int64_t rows = rows_of(s);
    snap_status st = draw_run(arm, numbers_queries(arm->from), (uint64_t)(set * rows), rows,
                              scratch, slice(&arm->q, set), err);
    if (st == SNAP_OK && arm->precision == MLA_FP8)
        st = mla_quant_q(arm->be, rows, s->d_c, s->d_r, slice(&arm->q, set), slice(&arm->q8, set),
                         slice(&arm->q_rope, set), slice(&arm->q_scale, set), err);
    return st;
}

/* The step's own tokens, which the served scope appends: the last s_q of each sequence. What would lie
 * before a sequence's first token is drawn and not appended. */
static snap_status make_new_tokens(bench_arm *arm, int set, uint64_t *host, uint64_t *scratch,
                                   snap_err *err) {
    const bench_shape *s = &arm->shape;
    draw_source tokens = numbers_tokens(arm->from);
    for (int b = 0; b < s->batch; b++)
        host[b] = token_index(arm, (int64_t)set * s->batch + b, s->context - s->s_q);
    snap_status st = mla_copy_in(arm->be, scratch, host, (size_t)s->batch * sizeof *host, err);
    return st == SNAP_OK
               ? lab_draw(arm->be, &tokens, scratch, s->batch, s->s_q, slice(&arm->kv, set), err)
               : st;
}

static snap_status fill_steps(bench_arm *arm, snap_err *err) {
    size_t bytes = (size_t)arm->shape.batch * sizeof(uint64_t);
    uint64_t *host = malloc(bytes), *scratch = mla_alloc(arm->be, bytes, err);
    snap_status st =
        host && scratch ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for queries");
    for (int set = 0; set < arm->sets && st == SNAP_OK; set++) {
        st = make_queries(arm, set, scratch, err);
        if (st == SNAP_OK)
            st = make_new_tokens(arm, set, host, scratch, err);
    }
    if (st == SNAP_OK)
        st = poison(arm, arm->out.at, arm->out.stride * (size_t)arm->sets, err);
    if (st == SNAP_OK)
        st = mla_sync(arm->be, err);
    mla_free(arm->be, scratch);
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

static bool has_host_memory(const mla_backend *be) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    return info.host_memory;
}

snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             mla_precision p, const numbers *from, int sets, bool flush,
                             snap_err *err) {
    *out = NULL;
    bench_arm *arm = calloc(1, sizeof *arm);
    if (!arm)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
    arm->be = be;
    arm->from = from;
    arm->shape = *shape;
    arm->precision = p;
    arm->sets = sets;
    arm->flush = flush;
    arm->host_memory = has_host_memory(be);
    arm->pages_a_sequence = pages_of(shape);
    arm->table_width = arm->pages_a_sequence + kSpareEntries;
    snap_status st = SNAP_OK;
    arm->served = calloc((size_t)sets, sizeof(lab_recording *));
    if (!arm->served)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for an arm"));
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
    for (int i = 0; i < arm->sets && arm->served; i++)
        lab_recording_free(arm->be, arm->served[i]);
    free(arm->served);
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

/* The clock starts behind the flush, which leaves the device busy while the host enqueues the step; or
 * else on an idle device. */
static snap_status start_clock(bench_arm *arm, snap_err *err) {
    snap_status st = arm->flush ? lab_flush(arm->be, err) : mla_sync(arm->be, err);
    return st == SNAP_OK ? mla_timer_start(arm->be, err) : st;
}

static snap_status enqueue_kernel(bench_arm *arm, int set, snap_err *err) {
    mla_step step = step_of(arm, set);
    mla_attn attn = attn_of(arm, set);
    return mla_run(arm->plan, &step, &arm->cache, &attn, err);
}

static snap_status enqueue_served(bench_arm *arm, int set, snap_err *err) {
    const bench_shape *s = &arm->shape;
    mla_step step = step_of(arm, set);
    snap_status st = SNAP_OK;
    if (arm->precision == MLA_FP8)
        TRY(mla_quant_q(arm->be, rows_of(s), s->d_c, s->d_r, slice(&arm->q, set),
                        slice(&arm->q8, set), slice(&arm->q_rope, set), slice(&arm->q_scale, set),
                        err));
    TRY(mla_append_kv(arm->plan, &step, &arm->cache, slice(&arm->kv, set), err));
    TRY(mla_schedule(arm->plan, &step, err));
    TRY(enqueue_kernel(arm, set, err));
cleanup:
    return st;
}

/* What a recording fails of is not enqueued: the stream must leave the recording all the same. */
static snap_status record_served(bench_arm *arm, int set, snap_err *err) {
    lab_recording *made = NULL;
    snap_err ignored = {0};
    snap_status st = lab_record(arm->be, err);
    if (st != SNAP_OK)
        return st;
    st = enqueue_served(arm, set, err);
    snap_status end = lab_record_end(arm->be, &made, st == SNAP_OK ? err : &ignored);
    if (st == SNAP_OK && end == SNAP_OK)
        arm->served[set] = made;
    else
        lab_recording_free(arm->be, made);
    return st == SNAP_OK ? end : st;
}

static snap_status step_kernel(bench_arm *arm, int set, double *ns, snap_err *err) {
    mla_step step = step_of(arm, set);
    snap_status st = SNAP_OK;
    TRY(mla_schedule(arm->plan, &step, err));
    TRY(start_clock(arm, err));
    TRY(enqueue_kernel(arm, set, err));
    TRY(mla_timer_stop(arm->be, ns, err));
cleanup:
    return st;
}

static snap_status step_served(bench_arm *arm, int set, double *ns, snap_err *err) {
    snap_status st = SNAP_OK;
    if (lab_can_record(arm->be) && !arm->served[set])
        TRY(record_served(arm, set, err));
    TRY(start_clock(arm, err));
    if (arm->served[set])
        TRY(lab_replay(arm->be, arm->served[set], err));
    else
        TRY(enqueue_served(arm, set, err));
    TRY(mla_timer_stop(arm->be, ns, err));
cleanup:
    return st;
}

snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns, snap_err *err) {
    int set = arm->next;
    arm->next = (set + 1) % arm->sets;
    return scope == BENCH_KERNEL ? step_kernel(arm, set, ns, err) : step_served(arm, set, ns, err);
}

static snap_status enqueue(bench_arm *arm, bench_scope scope, snap_err *err) {
    int set = arm->next;
    arm->next = (set + 1) % arm->sets;
    if (scope == BENCH_KERNEL)
        return enqueue_kernel(arm, set, err);
    return arm->served[set] ? lab_replay(arm->be, arm->served[set], err)
                            : enqueue_served(arm, set, err);
}

snap_status bench_arm_loop(bench_arm *arm, bench_scope scope, int steps, double *ns,
                           snap_err *err) {
    snap_status st = bench_arm_step(arm, scope, ns, err); /* metadata, recordings */
    if (st != SNAP_OK)
        return st;
    TRY(mla_timer_start(arm->be, err));
    for (int i = 0; i < steps; i++)
        TRY(enqueue(arm, scope, err));
    TRY(mla_timer_stop(arm->be, ns, err));
    *ns /= steps;
cleanup:
    return st;
}

snap_status bench_arm_result(bench_arm *arm, uint16_t *out, float *lse, snap_err *err) {
    size_t rows = (size_t)rows_of(&arm->shape);
    snap_status st = mla_copy_out(arm->be, out, slice(&arm->out, 0),
                                  rows * (size_t)arm->shape.d_c * sizeof *out, err);
    if (st == SNAP_OK)
        st = mla_copy_out(arm->be, lse, slice(&arm->lse, 0), rows * sizeof *lse, err);
    return st;
}
