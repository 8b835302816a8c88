/* minimal.c - the smallest backend that does something useful: BF16 attention on one thread of the
 * host, with sums in FP64.
 *
 * It has the functions that every backend must have and leaves the optional ones NULL. Copy it to
 * start a backend for a new device, and replace the functions one after the other. example.c beside
 * it also has the FP8 arm, and a plan that owns memory. kernels/mla.h is the contract. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/plugin/plugin.h"

typedef struct {
    mla_backend base; /* first, so that a pointer to it also points to the whole struct */
    double started_ns;
} minimal;

static double now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ---- the device: memory, copies, timer ------------------------------------------------------- */

/* `snapmla bench` rotates over more than four times cache_bytes of inputs, so that no step finds
 * its input in the cache. Without cache_bytes, times are those of a warm cache, and `snapmla
 * compare` shows no relative speed. Shapes that need more than memory_bytes are skipped. */
static void describe(const mla_backend *be, mla_backend_info *out) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_PHYS_PAGES);
    (void)be;
    out->cache_bytes = cache > 0 ? (size_t)cache : 0; /* 0: unknown */
    out->memory_bytes = pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    (void)snprintf(out->name, sizeof out->name, "minimal");
    (void)snprintf(out->device, sizeof out->device, "one thread of the host");
    (void)snprintf(out->kernel, sizeof out->kernel, "fp64");
    out->host_memory = true; /* the host may dereference what alloc() returns */
}

static void *alloc(mla_backend *be, size_t bytes, snap_err *err) {
    (void)be;
    const size_t limit = (size_t)1 << 40; /* bytes; larger requests are refused */
    void *p = NULL;
    if (bytes > limit || posix_memalign(&p, MLA_ALIGN, bytes ? bytes : 1) != 0)
        (void)plugin_fail(err, SNAP_E_NOMEM, "out of memory for %zu bytes", bytes);
    return p;
}

static void release(mla_backend *be, void *device) {
    (void)be;
    free(device);
}

/* Serves both directions, because device memory is host memory. */
static snap_status copy(mla_backend *be, void *to, const void *from, size_t n, snap_err *err) {
    (void)be, (void)err;
    memcpy(to, from, n);
    return SNAP_OK;
}

/* Every function finishes its work before it returns, so there is nothing to wait for. */
static snap_status wait_for_work(mla_backend *be, snap_err *err) {
    (void)be, (void)err;
    return SNAP_OK;
}

static snap_status timer_start(mla_backend *be, snap_err *err) {
    (void)err;
    ((minimal *)be)->started_ns = now_ns();
    return SNAP_OK;
}

static snap_status timer_stop(mla_backend *be, double *ns, snap_err *err) {
    (void)err;
    *ns = now_ns() - ((minimal *)be)->started_ns;
    return SNAP_OK;
}

/* ---- one step -------------------------------------------------------------------------------- */

/* An arm that the device does not have is refused here. `snapmla conformance` then skips the checks
 * of that arm. */
static snap_status plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               snap_err *err) {
    if (cap->precision != MLA_BF16)
        return plugin_fail(err, SNAP_E_UNSUPPORTED, "this backend has no FP8");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for a plan");
    **out = (mla_plan){.be = be, .cap = *cap};
    return SNAP_OK;
}

static void plan_free(mla_plan *plan) {
    free(plan);
}

/* A device with many cores distributes the work of a step here. One thread needs no schedule. */
static snap_status schedule(mla_plan *plan, const mla_step *step, snap_err *err) {
    (void)plan, (void)step, (void)err;
    return SNAP_OK;
}

static double bf16_decode(uint16_t bf16) {
    uint32_t u = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

static uint16_t bf16_encode(double exact) {
    float x = (float)exact;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); /* rounds to nearest, ties to even */
}

/* Lengths and page numbers are device data, which the caller does not check. Values out of range
 * are clamped, so that no memory out of bounds is read. */
static int64_t length_of(const mla_plan *plan, const mla_step *step, int seq) {
    int64_t n = step->seqlens[seq], room = (int64_t)step->table_width * MLA_PAGE;
    room = room < plan->cap.max_tokens ? room : plan->cap.max_tokens;
    return n < 0 ? 0 : n > room ? room : n;
}

static uint16_t *token_at(const mla_plan *plan, const mla_step *step, const mla_cache *cache,
                          int seq, int64_t token) {
    int64_t page = step->block_table[(int64_t)seq * step->table_width + token / MLA_PAGE];
    page = page < 0 ? 0 : page >= cache->pages ? cache->pages - 1 : page;
    int64_t slot = page * MLA_PAGE + token % MLA_PAGE;
    return (uint16_t *)cache->content + slot * (plan->cap.d_c + plan->cap.d_r);
}

/* One row: softmax over the visible tokens, with a running maximum. */
static void attend(const mla_plan *plan, const mla_step *step, const mla_cache *cache,
                   const mla_attn *attn, int seq, int64_t visible, int64_t row) {
    int d_c = plan->cap.d_c, width = d_c + plan->cap.d_r;
    const uint16_t *q = (const uint16_t *)attn->q + row * width;
    uint16_t *out = (uint16_t *)attn->out + row * d_c;
    double o[MLA_MAX_CONTENT] = {0}, most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < visible; j++) {
        const uint16_t *k = token_at(plan, step, cache, seq, j);
        double score = 0;
        for (int d = 0; d < width; d++)
            score += bf16_decode(q[d]) * bf16_decode(k[d]);
        score *= (double)attn->softmax_scale;
        double rescale = exp(most - fmax(most, score)), p = exp(score - fmax(most, score));
        most = fmax(most, score);
        sum = sum * rescale + p;
        for (int d = 0; d < d_c; d++)
            o[d] = o[d] * rescale + p * bf16_decode(k[d]);
    }
    for (int d = 0; d < d_c; d++)
        out[d] = visible > 0 ? bf16_encode(o[d] / sum) : 0;
    if (attn->lse)
        attn->lse[row] = visible > 0 ? (float)(most + log(sum)) : -INFINITY;
}

static snap_status run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err) {
    (void)err;
    int rows = step->s_q * plan->cap.heads; /* rows of one sequence: query token x head */
    for (int64_t row = 0; row < (int64_t)step->batch * rows; row++) {
        int seq = (int)(row / rows), hidden = step->s_q - 1 - (int)(row % rows) / plan->cap.heads;
        attend(plan, step, cache, attn, seq, length_of(plan, step, seq) - hidden, row);
    }
    return SNAP_OK;
}

/* ---- dataflow -------------------------------------------------------------------------------- */

static snap_status quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                           void *q_rope, float *q_scale, snap_err *err) {
    (void)be, (void)rows, (void)d_c, (void)d_r, (void)q, (void)q8, (void)q_rope, (void)q_scale;
    return plugin_fail(err, SNAP_E_UNSUPPORTED, "this backend has no FP8");
}

static snap_status append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                             const void *kv, snap_err *err) {
    (void)err;
    size_t bytes = (size_t)(plan->cap.d_c + plan->cap.d_r) * sizeof(uint16_t);
    for (int i = 0; i < step->batch * step->s_q; i++) {
        int64_t token = length_of(plan, step, i / step->s_q) - step->s_q + i % step->s_q;
        if (token >= 0)
            memcpy(token_at(plan, step, cache, i / step->s_q, token),
                   (const char *)kv + (size_t)i * bytes, bytes);
    }
    return SNAP_OK;
}

static snap_status fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                            int64_t first, int64_t count, void *kv, snap_err *err) {
    (void)err;
    size_t bytes = (size_t)(plan->cap.d_c + plan->cap.d_r) * sizeof(uint16_t);
    memset(kv, 0, (size_t)count * bytes); /* tokens past the end read as zeros */
    for (int64_t i = 0; i < count && first + i < length_of(plan, step, seq); i++)
        memcpy((char *)kv + (size_t)i * bytes, token_at(plan, step, cache, seq, first + i), bytes);
    return SNAP_OK;
}

/* ---- ceilings: the highest rates that the device reaches ------------------------------------- */

static void keep_best(mla_ceiling *c, double rate, const char *how) {
    c->worst_window = c->windows++ && c->worst_window < rate ? c->worst_window : rate;
    c->rate = rate > c->rate ? rate : c->rate;
    (void)snprintf(c->how, sizeof c->how, "%s", how);
}

static snap_status ceilings(mla_backend *be, double seconds, mla_ceilings *out, snap_err *err) {
    enum { kBytes = 64 << 20, kTurns = 1 << 20, kLanes = 16 };
    static volatile float sink = 0.999f; /* volatile: the compiler cannot remove the loops */
    char *x = malloc(kBytes);
    if (!x)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for the read probe");
    (void)be;
    memset(x, 1, kBytes);
    for (double end = now_ns() + 1e9 * seconds; out->bf16.windows == 0 || now_ns() < end;) {
        float sum[kLanes] = {0}, factor = sink;
        double start = now_ns();
        sink = (float)memcmp(x, x + kBytes / 2, kBytes / 2);
        keep_best(&out->read, 1e9 * kBytes / (now_ns() - start), "memcmp");
        start = now_ns();
        for (int i = 0; i < kTurns; i++)
            for (int l = 0; l < kLanes; l++)
                sum[l] = sum[l] * factor + 1.0f;
        keep_best(&out->bf16, 2e9 * kTurns * kLanes / (now_ns() - start), "FP32 multiply and add");
        for (int l = 0; l < kLanes; l++)
            sink = sink + sum[l];
    }
    out->fp8 = out->bf16;
    out->read_bytes = kBytes;
    free(x);
    return SNAP_OK;
}

/* ---- what the program loads ------------------------------------------------------------------ */

static void close_backend(mla_backend *be) {
    free(be);
}

static const mla_backend_ops kOps = {
    .close = close_backend,
    .describe = describe,
    .alloc = alloc,
    .free = release,
    .copy_in = copy,
    .copy_out = copy,
    .sync = wait_for_work,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .plan_create = plan_create,
    .plan_free = plan_free,
    .schedule = schedule,
    .run = run,
    .quant_q = quant_q,
    .append_kv = append_kv,
    .fetch_kv = fetch_kv,
    .ceilings = ceilings,
    .host_memory = true,
};

static snap_status open_minimal(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    (void)opt;
    minimal *be = calloc(1, sizeof *be);
    if (!be)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for a backend");
    *be = (minimal){.base = {.ops = &kOps}};
    *out = (mla_backend *)be; /* its first member */
    return SNAP_OK;
}

const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "minimal", open_minimal};
