/* bench_arm_packed.c - an arm with a cache format: the host packs the tokens and copies the pages
 * to the device, and a plugin reads them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "harness/bench/bench_arm_inside.h"
#include "kernels/formats.h"

enum {
    kSharedTokens = 1024, /* tokens from which the values are chosen that all tokens share */
    kChunkPages = 8,      /* most pages that a thread packs at a time */
};
static const double kStandsOut = 100; /* least logit that a planted token must have; it is about
                                         148 if the format holds the token exactly */

static int width_of(const bench_arm *arm) {
    return arm->shape.d_c + arm->shape.d_r;
}

/* ---- memory ---- */

/* Chooses the values that all tokens share from the first kSharedTokens random tokens. */
static snap_status choose_shared(bench_arm *arm, snap_err *err) {
    int width = width_of(arm);
    float *x = malloc((size_t)kSharedTokens * (size_t)width * sizeof *x);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for packing tokens");
    for (int i = 0; i < kSharedTokens; i++) {
        numbers_token(arm->from, (uint64_t)i, row);
        for (int d = 0; d < width; d++)
            x[i * width + d] = bf16_to_f32(row[d]);
    }
    snap_status st = cache_format_pack(&arm->shared, &arm->format->format, x, kSharedTokens, err);
    free(x);
    return st;
}

snap_status packed_arm_alloc(bench_arm *arm, snap_err *err) {
    const cache_format *f = &arm->format->format;
    snap_status st = choose_shared(arm, err);
    arm->packed.pages = arm->cache.pages;
    for (int i = 0; i < f->pools && st == SNAP_OK; i++) {
        int64_t bytes = cache_format_pool_bytes(f, i, arm->packed.pages);
        void *at = mla_alloc(arm->be, bytes > 0 ? (size_t)bytes : 1, err);
        if (!at)
            return SNAP_E_NOMEM;
        arm->packed.pool[i] = at;
        st = f->pool[i].paged
                 ? lab_fill(arm->be, at, 0xff, (size_t)bytes, err) /* NaN in most types */
                 : mla_copy_in(arm->be, at, arm->shared.pool[i], (size_t)bytes, err);
    }
    return st;
}

void packed_arm_release(bench_arm *arm) {
    for (int i = 0; i < CACHE_POOLS; i++)
        mla_free(arm->be, arm->packed.pool[i]);
    cache_bytes_release(&arm->shared);
    free(arm->planted_rows);
}

/* ---- filling a packed cache ---- */

/* Pages that follow each other in one sequence. */
typedef struct {
    int64_t first; /* counted over sets, sequences and pages of a sequence */
    int pages;
    cache_bytes bytes;
    snap_status st;
    snap_err err;
} chunk;

typedef struct {
    bench_arm *arm;
    chunk *chunks;
    bool planted;
} filling;

static bool has_planted(const bench_arm *arm, page_place at) {
    return at.set == 0 && at.page < arm_planted_pages(arm, at.b);
}

static int tokens_of_chunk(const bench_arm *arm, const chunk *c) {
    page_place last = arm_place(arm, c->first + c->pages - 1);
    bool whole = last.page + 1 < arm_pages_of(arm, last.b);
    return (c->pages - 1) * arm->page_tokens + (whole ? arm->page_tokens : arm_tail(arm, last.b));
}

static void draw_chunk(const filling *f, const chunk *c, int tokens, float *x) {
    const bench_arm *arm = f->arm;
    page_place at = arm_place(arm, c->first);
    int width = width_of(arm), slot = f->planted ? arm_planted_slot(arm) : 0;
    uint64_t first = bench_arm_token_index(arm, (int64_t)at.set * arm->shape.batch + at.b,
                                           at.page * arm->page_tokens);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    for (int i = 0; i < tokens; i++) {
        page_place here = {at.set, at.b, at.page + i / arm->page_tokens};
        if (f->planted && i % arm->page_tokens == slot && has_planted(arm, here))
            arm_planted_row(arm, c->first + i / arm->page_tokens, row);
        else
            numbers_token(arm->from, first + (uint64_t)i, row);
        for (int d = 0; d < width; d++)
            x[(int64_t)i * width + d] = bf16_to_f32(row[d]);
    }
}

/* Keeps the planted tokens of a chunk as the cache holds them. */
static void keep_planted(const filling *f, const chunk *c) {
    const bench_arm *arm = f->arm;
    int slot = arm_planted_slot(arm);
    for (int i = 0; i < c->pages; i++)
        if (has_planted(arm, arm_place(arm, c->first + i)))
            cache_format_unpack(arm->planted_rows + (c->first + i) * width_of(arm),
                                &arm->format->format, &c->bytes, NULL,
                                (int64_t)i * arm->page_tokens + slot, 1);
}

static void pack_chunk(void *ctx, int worker, int64_t index) {
    const filling *f = ctx;
    chunk *c = &f->chunks[index];
    int tokens = tokens_of_chunk(f->arm, c);
    float *x = malloc((size_t)tokens * (size_t)width_of(f->arm) * sizeof *x);
    (void)worker;
    if (!x) {
        c->st = err_set(&c->err, SNAP_E_NOMEM, "out of memory for packing tokens");
        return;
    }
    draw_chunk(f, c, tokens, x);
    c->st = cache_format_pack_like(&c->bytes, &f->arm->format->format, &f->arm->shared, x, tokens,
                                   &c->err);
    free(x);
    if (f->planted && c->st == SNAP_OK)
        keep_planted(f, c);
}

/* Copies the pages of a chunk to their places in the pools. */
static snap_status store_chunk(bench_arm *arm, const chunk *c, const int32_t *order,
                               snap_err *err) {
    const cache_format *f = &arm->format->format;
    if (c->st != SNAP_OK)
        return err_set(err, c->st, "%s", c->err.text);
    for (int i = 0; i < f->pools; i++) {
        size_t bytes = (size_t)f->pool[i].bytes;
        for (int k = 0; f->pool[i].paged && k < c->pages; k++) {
            snap_status st = mla_copy_in(
                arm->be, (uint8_t *)arm->packed.pool[i] + (size_t)order[c->first + k] * bytes,
                c->bytes.pool[i] + (size_t)k * bytes, bytes, err);
            if (st != SNAP_OK)
                return st;
        }
    }
    return SNAP_OK;
}

/* Cuts the next pages into at most @most chunks, and returns how many there are. */
static int cut_chunks(const bench_arm *arm, chunk *chunks, int most, int64_t *next, int64_t pages) {
    int n = 0;
    for (; n < most && *next < pages; n++) {
        page_place at = arm_place(arm, *next);
        int64_t left = arm_pages_of(arm, at.b) - at.page;
        chunks[n] =
            (chunk){.first = *next, .pages = (int)(left < kChunkPages ? left : kChunkPages)};
        *next += chunks[n].pages;
    }
    return n;
}

snap_status packed_arm_fill(bench_arm *arm, const int32_t *order, int64_t pages, bool planted,
                            snap_err *err) {
    parallel *pool = NULL;
    filling f = {.arm = arm, .planted = planted};
    int64_t next = 0;
    snap_status st = SNAP_OK;
    TRY(parallel_create(&pool, 0, err));
    int most = 2 * parallel_threads(pool);
    f.chunks = calloc((size_t)most, sizeof *f.chunks);
    if (planted && !arm->planted_rows)
        arm->planted_rows =
            calloc((size_t)arm_pages(arm) * (size_t)width_of(arm), sizeof *arm->planted_rows);
    if (!f.chunks || (planted && !arm->planted_rows)) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for packing tokens");
        goto cleanup;
    }
    while (next < pages && st == SNAP_OK) {
        int n = cut_chunks(arm, f.chunks, most, &next, pages);
        parallel_for(pool, n, pack_chunk, &f);
        for (int i = 0; i < n; i++) {
            if (st == SNAP_OK)
                st = store_chunk(arm, &f.chunks[i], order, err);
            cache_bytes_release(&f.chunks[i].bytes);
        }
    }
    if (st == SNAP_OK)
        st = mla_sync(arm->be, err);
cleanup:
    free(f.chunks);
    parallel_free(pool);
    return st;
}

/* ---- steps ---- */

snap_status packed_arm_enqueue(bench_arm *arm, int set, snap_err *err) {
    mla_step step = arm_step(arm, set);
    mla_attn attn = arm_attn(arm, set);
    if (arm->served[set])
        return lab_replay(arm->be, arm->served[set], err);
    return packed_run(arm->plan, &step, &arm->packed, &attn, err);
}

/* Records the step of a set. If that fails, later steps run without a recording. */
static void record(bench_arm *arm, int set) {
    lab_recording *made = NULL;
    if (lab_record(arm->be, NULL) != SNAP_OK) {
        arm->uncaptured = true;
        return;
    }
    snap_status st = packed_arm_enqueue(arm, set, NULL);
    snap_status end = lab_record_end(arm->be, &made, NULL);
    if (st == SNAP_OK && end == SNAP_OK) {
        arm->served[set] = made;
        return;
    }
    lab_recording_free(arm->be, made);
    arm->uncaptured = true;
}

/* The first step of a set is not recorded, because a kernel may be compiled or loaded then. */
snap_status packed_arm_step(bench_arm *arm, int set, double *ns, snap_err *err) {
    mla_step step = arm_step(arm, set);
    mla_attn attn = arm_attn(arm, set);
    snap_status st = SNAP_OK;
    TRY(packed_schedule(arm->plan, &step, &arm->packed, &attn, err));
    if (lab_can_record(arm->be) && arm->ran[set] && !arm->served[set] && !arm->uncaptured)
        record(arm, set);
    TRY(arm_start_clock(arm, err));
    TRY(packed_arm_enqueue(arm, set, err));
    TRY(arm_stop_clock(arm, ns, err));
    arm->ran[set] = true;
cleanup:
    return st;
}

/* ---- planted tokens ---- */

/* The query of the planted tokens as the kernel multiplies it: packed and unpacked again if the
 * format packs queries. */
static snap_status planted_query(const bench_arm *arm, double *q) {
    const cache_format *f = &arm->format->format;
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    float x[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    int width = width_of(arm);
    arm_planted_query(arm, row);
    for (int d = 0; d < width; d++)
        x[d] = bf16_to_f32(row[d]);
    if (f->queries == QUERIES_FORMAT) {
        cache_bytes one = {0};
        snap_status st = cache_format_pack(&one, f, x, 1, NULL);
        if (st != SNAP_OK)
            return st;
        cache_format_unpack(x, f, &one, NULL, 0, 1);
        cache_bytes_release(&one);
    }
    for (int d = 0; d < width; d++)
        q[d] = (double)x[d];
    return SNAP_OK;
}

static double logit_of(const bench_arm *arm, const double *q, int64_t page) {
    const float *k = arm->planted_rows + page * width_of(arm);
    double sum = 0;
    for (int d = 0; d < width_of(arm); d++)
        sum += q[d] * (double)k[d];
    return sum * (double)bench_softmax_scale();
}

/* Softmax over the planted tokens alone. The others have much lower logits. */
int64_t packed_arm_planted(const bench_arm *arm, int b, double *want, double *lse) {
    int n = arm_planted_pages(arm, b), d_c = arm->shape.d_c;
    double q[MLA_MAX_CONTENT + MLA_MAX_ROPE], least = INFINITY, most = -INFINITY, sum = 0;
    memset(want, 0, (size_t)d_c * sizeof *want);
    if (planted_query(arm, q) != SNAP_OK)
        return 0;
    for (int i = 0; i < n; i++) {
        double l = logit_of(arm, q, arm->first_page[b] + i);
        least = fmin(least, l);
        most = fmax(most, l);
    }
    if (!(least >= kStandsOut) || !isfinite(most))
        return 0;
    for (int i = 0; i < n; i++) {
        int64_t page = arm->first_page[b] + i;
        double p = exp(logit_of(arm, q, page) - most);
        sum += p;
        for (int d = 0; d < d_c; d++)
            want[d] += p * (double)arm->planted_rows[page * width_of(arm) + d];
    }
    for (int d = 0; d < d_c; d++)
        want[d] *= n / sum;
    *lse = most + log(sum);
    return n;
}
