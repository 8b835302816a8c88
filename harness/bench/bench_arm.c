#include "harness/bench/bench_arm_inside.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
    kSpareEntries = 2,  /* block-table entries after a sequence's last page */
    kCacheTurnover = 4, /* between two uses of a set, the steps read or write about this many times
                           the size of the cache */
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

static int pages_of(int64_t tokens, int page_tokens) {
    return (int)((tokens + page_tokens - 1) / page_tokens);
}

static int page_tokens_of(const arm_format *f) {
    return f ? f->format.page_tokens : MLA_PAGE;
}

/* An estimate of the bytes that a step reads and writes in one set: whole pages of the cache, BF16
 * queries, outputs and log-sum-exps. */
static double set_bytes(const bench_shape *s, bench_kind k, const arm_format *f) {
    double token = f ? cache_format_token_bytes(&f->format)
                     : (double)mla_cache_token_bytes(bench_kind_precision(k), s->d_c, s->d_r);
    int page = page_tokens_of(f);
    double tokens = 0;
    for (int b = 0; b < s->batch; b++)
        tokens += (double)pages_of(bench_shape_length(s, b), page) * page;
    return tokens * token + (double)rows_of(s) * (2.0 * (s->d_c + s->d_r) + 2.0 * s->d_c + 4.0);
}

int bench_arm_sets(const bench_shape *s, bench_kind k, const arm_format *f, size_t last_level) {
    if (!last_level)
        return 1;
    return 1 + (int)ceil(kCacheTurnover * (double)last_level / set_bytes(s, k, f));
}

bool bench_arm_is_large(const bench_shape *s, bench_kind k, const arm_format *f,
                        size_t last_level) {
    return last_level && set_bytes(s, k, f) >= kCacheTurnover * (double)last_level;
}

double bench_arm_bytes(const bench_shape *s, bench_kind k, const arm_format *f, int sets) {
    double copy = k == BENCH_COPIED ? set_bytes(s, BENCH_BF16, NULL) : 0;
    return set_bytes(s, k, f) * sets + copy;
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

bench_kind bench_arm_kind(const bench_arm *arm) {
    return arm->kind;
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

const arm_format *bench_arm_format(const bench_arm *arm) {
    return arm->format;
}

const cache_bytes *bench_arm_shared(const bench_arm *arm) {
    return &arm->shared;
}

bool bench_arm_is_captured(const bench_arm *arm) {
    return !arm->uncaptured;
}

bool bench_arm_has_lse(const bench_arm *arm) {
    return !arm->format || packed_has_lse(arm->be);
}

snap_status bench_arm_check(bench_arm *arm, snap_err *err) {
    return packed_check(arm->plan, err);
}

/* The tokens of sequence b of set k begin at index (k * batch + b) * context, also if sequences are
 * shorter than context. */
uint64_t bench_arm_token_index(const bench_arm *arm, int64_t sequence, int64_t token) {
    return (uint64_t)(sequence * arm->shape.context + token);
}

/* ---- memory ---- */

static snap_status alloc_slices(bench_arm *arm, slices *s, size_t bytes_per_set, snap_err *err) {
    s->stride = aligned(bytes_per_set);
    s->at = mla_alloc(arm->be, s->stride * (size_t)arm->sets, err);
    return s->at ? SNAP_OK : SNAP_E_NOMEM;
}

void *arm_slice(const slices *s, int set) {
    return s->at ? s->at + (size_t)set * s->stride : NULL;
}

int64_t arm_pages(const bench_arm *arm) {
    return arm->first_page[arm->shape.batch];
}

int arm_pages_of(const bench_arm *arm, int b) {
    return (int)(arm->first_page[b + 1] - arm->first_page[b]);
}

page_place arm_place(const bench_arm *arm, int64_t page) {
    int64_t in_set = page % arm_pages(arm);
    int low = 0, high = arm->shape.batch; /* the sequence is within low .. high - 1 */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (arm->first_page[middle] <= in_set)
            low = middle;
        else
            high = middle;
    }
    return (page_place){(int)(page / arm_pages(arm)), low, in_set - arm->first_page[low]};
}

/* Sets first_page[b] to the number of pages of all sequences before b. */
static bool place_pages(bench_arm *arm) {
    const bench_shape *s = &arm->shape;
    arm->first_page = calloc((size_t)s->batch + 1, sizeof *arm->first_page);
    for (int b = 0; arm->first_page && b < s->batch; b++)
        arm->first_page[b + 1] =
            arm->first_page[b] + pages_of(bench_shape_length(s, b), arm->page_tokens);
    return arm->first_page != NULL;
}

static snap_status alloc_cache(bench_arm *arm, snap_err *err) {
    mla_page_bytes page = mla_cache_page_bytes(arm->precision, arm->shape.d_c, arm->shape.d_r);
    arm->cache.pages = arm_pages(arm) * arm->sets + 1; /* the last one, in shuffled order, holds
                                                          NaN */
    size_t pages = (size_t)arm->cache.pages;
    if (arm->format)
        return packed_arm_alloc(arm, err);
    arm->cache.content = mla_alloc(arm->be, pages * page.content, err);
    if (!arm->cache.content)
        return SNAP_E_NOMEM;
    if (arm->precision == MLA_BF16)
        return SNAP_OK;
    arm->cache.rope = mla_alloc(arm->be, pages * page.rope, err);
    arm->cache.scale = arm->cache.rope ? mla_alloc(arm->be, pages * page.scale, err) : NULL;
    return arm->cache.scale ? SNAP_OK : SNAP_E_NOMEM;
}

static snap_status make_plan(mla_plan **out, const bench_arm *arm, mla_precision p, lab_ablation a,
                             snap_err *err) {
    const bench_shape *s = &arm->shape;
    mla_capacity cap = {.precision = p,
                        .heads = s->heads,
                        .d_c = s->d_c,
                        .d_r = s->d_r,
                        .batch = s->batch,
                        .s_q = s->s_q,
                        .max_tokens = s->context};
    if (arm->format)
        return packed_plan_create(out, arm->be, &cap, &arm->format->format, arm->format->json, err);
    return lab_plan_create(out, arm->be, &cap, a, err);
}

static snap_status alloc_staged(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t rows = (size_t)s->batch * (size_t)s->s_q;
    lab_rows *to = &arm->staged;
    to->content = mla_alloc(arm->be, rows * (size_t)s->d_c, err);
    to->rope = to->content ? mla_alloc(arm->be, rows * (size_t)s->d_r * 2, err) : NULL;
    to->scale = to->rope ? mla_alloc(arm->be, rows * sizeof(float), err) : NULL;
    return to->scale ? SNAP_OK : SNAP_E_NOMEM;
}

/* Allocates the BF16 copy of one set's cache, its block table and the plan that reads it. */
static snap_status alloc_copy(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t pages = (size_t)arm_pages(arm);
    arm->copy.pages = arm_pages(arm);
    arm->copy.content =
        mla_alloc(arm->be, pages * mla_cache_page_bytes(MLA_BF16, s->d_c, s->d_r).content, err);
    arm->copy_table =
        arm->copy.content ? mla_alloc(arm->be, pages * sizeof *arm->copy_table, err) : NULL;
    if (!arm->copy_table)
        return SNAP_E_NOMEM;
    return make_plan(&arm->copies, arm, MLA_BF16, LAB_WHOLE, err);
}

static snap_status alloc_all(bench_arm *arm, snap_err *err) {
    const bench_shape *s = &arm->shape;
    size_t rows = (size_t)rows_of(s), d_c = (size_t)s->d_c, d_r = (size_t)s->d_r;
    size_t batch = (size_t)s->batch;
    snap_status st = SNAP_OK;
    TRY(alloc_cache(arm, err));
    if (arm->kind == BENCH_UNFUSED)
        TRY(alloc_staged(arm, err));
    if (arm->kind == BENCH_COPIED)
        TRY(alloc_copy(arm, err));
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
    arm->zero = arm->seqlens ? mla_alloc(arm->be, sizeof *arm->zero, err) : NULL;
    st = arm->zero ? SNAP_OK : SNAP_E_NOMEM;
cleanup:
    return st;
}

/* ---- create and free ---- */

static bool has_host_memory(const mla_backend *be) {
    mla_backend_info info;
    mla_backend_describe(be, &info);
    return info.host_memory;
}

snap_status bench_arm_create(bench_arm **out, mla_backend *be, const bench_shape *shape,
                             bench_kind kind, const arm_format *format, const numbers *from,
                             int sets, bool flush, snap_err *err) {
    *out = NULL;
    if (kind >= BENCH_COMPARED && !lab_can_attend(be))
        return err_set(err, SNAP_E_UNSUPPORTED, "the backend has no ablation");
    bench_arm *arm = calloc(1, sizeof *arm);
    if (!arm)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
    arm->be = be;
    arm->from = from;
    arm->shape = *shape;
    arm->kind = kind;
    arm->format = format;
    arm->page_tokens = page_tokens_of(format);
    arm->precision = format ? MLA_BF16 : bench_kind_precision(kind);
    arm->sets = sets;
    arm->flush = flush;
    arm->host_memory = has_host_memory(be);
    arm->pages_per_sequence = pages_of(shape->context, arm->page_tokens);
    arm->table_width = arm->pages_per_sequence + kSpareEntries;
    snap_status st = SNAP_OK;
    arm->served = calloc((size_t)sets, sizeof(lab_recording *));
    arm->query_seed = calloc((size_t)sets, sizeof *arm->query_seed);
    arm->ran = calloc((size_t)sets, sizeof *arm->ran);
    if (!arm->served || !arm->query_seed || !arm->ran || !place_pages(arm))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for an arm"));
    TRY(make_plan(&arm->plan, arm, arm->precision, bench_kind_ablation(kind), err));
    TRY(alloc_all(arm, err));
    TRY(arm_fill(arm, err));
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
    mla_plan_free(arm->copies);
    void *const own[] = {arm->staged.content, arm->staged.rope, arm->staged.scale,
                         arm->copy.content, arm->copy_table};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        mla_free(arm->be, own[i]);
    mla_free(arm->be, arm->cache.content);
    mla_free(arm->be, arm->cache.rope);
    mla_free(arm->be, arm->cache.scale);
    mla_free(arm->be, arm->seqlens);
    mla_free(arm->be, arm->zero);
    packed_arm_release(arm);
    free(arm->query_seed);
    free(arm->ran);
    free(arm->first_page);
    bench_output_release(&arm->kept);
    free(arm);
}

/* ---- steps ---- */

mla_step arm_step(const bench_arm *arm, int set) {
    return (mla_step){.batch = arm->shape.batch,
                      .s_q = arm->shape.s_q,
                      .seqlens = arm->seqlens,
                      .block_table = arm_slice(&arm->table, set),
                      .table_width = arm->table_width};
}

mla_attn arm_attn(const bench_arm *arm, int set) {
    bool fp8 = arm->precision == MLA_FP8 && !bench_kind_plain_queries(arm->kind);
    return (mla_attn){.q = arm_slice(fp8 ? &arm->q8 : &arm->q, set),
                      .q_rope = arm_slice(&arm->q_rope, set),
                      .q_scale = arm_slice(&arm->q_scale, set),
                      .softmax_scale = bench_softmax_scale(),
                      .out = arm_slice(&arm->out, set),
                      .lse = arm_slice(&arm->lse, set)};
}

snap_status arm_start_clock(bench_arm *arm, snap_err *err) {
    snap_status st = arm->flush ? lab_flush(arm->be, err) : mla_sync(arm->be, err);
    return st == SNAP_OK ? mla_timer_start(arm->be, err) : st;
}

/* A step is late if at least this share of its time passed before the host had enqueued all of
 * it. */
static const double kLate = 0.1;

/* @step_ns: the time of a step. @left_ns: the time of the host from the end of its enqueueing to
 * the end of the device's work. If the device was still busy with other work when the host was
 * done, @left_ns is above @step_ns. */
static bool is_late(const bench_arm *arm, double step_ns, int64_t left_ns) {
    return !arm->host_memory && step_ns - (double)left_ns >= kLate * step_ns;
}

snap_status arm_stop_clock(bench_arm *arm, double *ns, snap_err *err) {
    int64_t enqueued = clock_now_ns();
    snap_status st = mla_timer_stop(arm->be, ns, err);
    arm->late = st == SNAP_OK && is_late(arm, *ns, clock_now_ns() - enqueued);
    return st;
}

bool bench_arm_is_host_limited(const bench_arm *arm) {
    return 2 * arm->late_times > arm->times;
}

/* Counts a timed step or loop, and whether it was late. */
static void count_time(bench_arm *arm) {
    arm->times++;
    arm->late_times += arm->late;
}

static snap_status enqueue_kernel(bench_arm *arm, int set, snap_err *err) {
    mla_step step = arm_step(arm, set);
    mla_attn attn = arm_attn(arm, set);
    if (arm->format)
        return packed_arm_enqueue(arm, set, err);
    return mla_run(arm->plan, &step, &arm->cache, &attn, err);
}

/* Appends the new tokens, converts the set's cache to BF16, and runs attention on the copy. */
static snap_status enqueue_copied(bench_arm *arm, int set, snap_err *err) {
    const bench_shape *s = &arm->shape;
    mla_step step = arm_step(arm, set), copy = step;
    mla_attn attn = arm_attn(arm, set);
    size_t stride =
        (size_t)arm->pages_per_sequence * mla_cache_page_bytes(MLA_BF16, s->d_c, s->d_r).content;
    snap_status st = SNAP_OK;
    copy.block_table = arm->copy_table;
    copy.table_width = arm->pages_per_sequence;
    TRY(mla_append_kv(arm->plan, &step, &arm->cache, arm_slice(&arm->kv, set), err));
    for (int b = 0; b < s->batch; b++)
        TRY(mla_fetch_kv(arm->plan, &step, &arm->cache, b, 0, s->context,
                         (unsigned char *)arm->copy.content + (size_t)b * stride, err));
    TRY(mla_schedule(arm->copies, &copy, err));
    TRY(mla_run(arm->copies, &copy, &arm->copy, &attn, err));
cleanup:
    return st;
}

/* Appends the new tokens and schedules the step. If attention reads FP8 queries, it also quantises
 * the queries. */
static snap_status enqueue_dataflow(bench_arm *arm, int set, snap_err *err) {
    mla_step step = arm_step(arm, set);
    const void *q = arm_slice(&arm->q, set), *kv = arm_slice(&arm->kv, set);
    lab_rows q8 = {arm_slice(&arm->q8, set), arm_slice(&arm->q_rope, set),
                   arm_slice(&arm->q_scale, set)};
    bool quantised = arm->precision == MLA_FP8 && !bench_kind_plain_queries(arm->kind);
    mla_fresh fresh = {.kv = kv,
                       .q = quantised ? q : NULL,
                       .q8 = q8.content,
                       .q_rope = q8.rope,
                       .q_scale = q8.scale};
    if (arm->kind != BENCH_UNFUSED)
        return mla_prepare(arm->plan, &step, &arm->cache, &fresh, err);
    snap_status st = lab_unfused(arm->plan, &step, &arm->cache, q, kv, &q8, &arm->staged, err);
    return st == SNAP_OK ? mla_schedule(arm->plan, &step, err) : st;
}

static snap_status enqueue_served(bench_arm *arm, int set, snap_err *err) {
    snap_status st = SNAP_OK;
    if (arm->kind == BENCH_COPIED)
        return enqueue_copied(arm, set, err);
    TRY(enqueue_dataflow(arm, set, err));
    TRY(enqueue_kernel(arm, set, err));
cleanup:
    return st;
}

/* Records one served step. The recording is ended even if enqueueing failed, because the stream
 * must leave recording mode. A failed recording is freed. */
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
    mla_step step = arm_step(arm, set);
    snap_status st = SNAP_OK;
    TRY(mla_schedule(arm->plan, &step, err));
    TRY(arm_start_clock(arm, err));
    TRY(enqueue_kernel(arm, set, err));
    TRY(arm_stop_clock(arm, ns, err));
cleanup:
    return st;
}

static snap_status step_served(bench_arm *arm, int set, double *ns, snap_err *err) {
    snap_status st = SNAP_OK;
    if (lab_can_record(arm->be) && !arm->served[set])
        TRY(record_served(arm, set, err));
    TRY(arm_start_clock(arm, err));
    if (arm->served[set])
        TRY(lab_replay(arm->be, arm->served[set], err));
    else
        TRY(enqueue_served(arm, set, err));
    TRY(arm_stop_clock(arm, ns, err));
cleanup:
    return st;
}

snap_status bench_arm_step(bench_arm *arm, bench_scope scope, double *ns, snap_err *err) {
    if (arm->format && scope == BENCH_SERVED)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the program packs the cache of format %s, so there is no step that appends "
                       "to it",
                       arm->format->format.name);
    int set = arm->last = arm->next;
    arm->next = (set + 1) % arm->sets;
    if (arm->format)
        return packed_arm_step(arm, set, ns, err);
    return scope == BENCH_KERNEL ? step_kernel(arm, set, ns, err) : step_served(arm, set, ns, err);
}

static snap_status enqueue(bench_arm *arm, bench_scope scope, snap_err *err) {
    int set = arm->last = arm->next;
    arm->next = (set + 1) % arm->sets;
    if (scope == BENCH_KERNEL)
        return enqueue_kernel(arm, set, err);
    return arm->served[set] ? lab_replay(arm->be, arm->served[set], err)
                            : enqueue_served(arm, set, err);
}

snap_status bench_arm_loop(bench_arm *arm, bench_scope scope, int steps, double *ns,
                           snap_err *err) {
    snap_status st = bench_arm_step(arm, scope, ns, err); /* the untimed step; in the kernel scope
                                                             it makes the schedule */
    if (st != SNAP_OK)
        return st;
    TRY(mla_timer_start(arm->be, err));
    for (int i = 0; i < steps; i++)
        TRY(enqueue(arm, scope, err));
    int64_t enqueued = clock_now_ns();
    TRY(mla_timer_stop(arm->be, ns, err));
    *ns /= steps;
    /* A host that enqueues faster than the device works is several steps ahead at the end. The
     * device then works on for longer than the time of one step, so the loop is not late. */
    arm->late = is_late(arm, *ns, clock_now_ns() - enqueued);
    count_time(arm);
cleanup:
    return st;
}

/* ---- outputs ---- */

void bench_output_release(bench_output *o) {
    free(o->out);
    free(o->lse);
    *o = (bench_output){0};
}

snap_status bench_arm_output(bench_arm *arm, bench_output *o, snap_err *err) {
    size_t rows = (size_t)rows_of(&arm->shape), d_c = (size_t)arm->shape.d_c;
    int set = arm->last;
    snap_status st = SNAP_OK;
    o->set = set;
    o->query_seed = arm->query_seed[set];
    o->out = o->out ? o->out : malloc(rows * d_c * sizeof *o->out);
    o->lse = o->lse ? o->lse : malloc(rows * sizeof *o->lse);
    if (!o->out || !o->lse)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %zu output rows", rows));
    TRY(mla_copy_out(arm->be, o->out, arm_slice(&arm->out, set), rows * d_c * sizeof *o->out, err));
    TRY(mla_copy_out(arm->be, o->lse, arm_slice(&arm->lse, set), rows * sizeof *o->lse, err));
cleanup:
    return st;
}

const bench_output *bench_arm_kept(const bench_arm *arm) {
    return arm->samples ? &arm->kept : NULL;
}

/* Sample n replaces the kept one with probability 1 / n, so that each is kept with the same
 * probability. */
static bool is_chosen(const bench_arm *arm, int64_t n) {
    return draw_mix(draw_mix(arm->from->seed ^ arm->drawn) ^ (uint64_t)n) % (uint64_t)n == 0;
}

snap_status bench_arm_sample(bench_arm *arm, bench_scope scope, double *ns, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(bench_arm_step(arm, scope, ns, err));
    count_time(arm);
    bool fresh = arm->query_seed[arm->last] != arm->from->seed;
    arm->fresh_samples += fresh;
    if (!arm->samples || (fresh && is_chosen(arm, arm->fresh_samples)))
        TRY(bench_arm_output(arm, &arm->kept, err));
    arm->samples++;
    TRY(arm_draw_queries(arm, arm->last, draw_mix(arm->from->seed + arm->drawn), err));
cleanup:
    return st;
}

snap_status bench_arm_reset(bench_arm *arm, snap_err *err) {
    snap_status st = SNAP_OK;
    arm->next = 0;
    arm->samples = arm->fresh_samples = 0;
    arm->times = arm->late_times = 0;
    if (arm->planted)
        TRY(arm_refill(arm, err));
    arm->planted = false;
    if (arm->query_seed[0] != arm->from->seed)
        TRY(arm_draw_queries(arm, 0, arm->from->seed, err));
cleanup:
    return st;
}
