/* example.c - a complete backend in one file: one thread, FP32 arithmetic, host memory.
 *
 * It is written to be read and copied. It calls no function of the program. It follows the loop of
 * SnapMLA: a running maximum over pages of 64 tokens, and probabilities rounded as each arm rounds
 * them. It passes `snapmla conformance --backend plugin:.../example.so`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/plugin/plugin.h"

enum { kLanes = 16 };
static const float kLargestE4m3 = 448.0f, kSmallestMaximum = 1e-10f;

typedef struct {
    mla_backend base;
    double started_ns;
} example;

typedef struct {
    mla_plan base;
    float *q, *k; /* decoded: the current query [d_c + d_r], the current page [MLA_PAGE][d_c +
                     d_r] */
    float *o;     /* [d_c] output sums of the current row */
} example_plan;

/* ---- formats --------------------------------------------------------------------------------- */

static float bf16_decode(uint16_t b) {
    uint32_t u = (uint32_t)b << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint16_t bf16_encode(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if (isnan(x))
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* Rounds the exact product x * y to bf16 once. FP64 holds the product exactly. The detour through
 * FP32 rounds to odd, so that no tie of the second rounding is decided wrongly. */
static uint16_t bf16_product(float x, float y) {
    double exact = (double)x * (double)y;
    float near = (float)exact;
    uint32_t u;
    memcpy(&u, &near, sizeof u);
    if (isfinite(near) && (double)near != exact && (u & 1u) == 0)
        near = nextafterf(near, exact > (double)near ? INFINITY : -INFINITY);
    return bf16_encode(near);
}

static float e4m3_decode(uint8_t b) {
    uint32_t e = b >> 3 & 15u, m = b & 7u, u = (e + 120u) << 23 | m << 20;
    float magnitude = (float)m * 0x1p-9f;
    if (e == 15 && m == 7)
        magnitude = NAN;
    else if (e)
        memcpy(&magnitude, &u, sizeof u);
    return b & 0x80 ? -magnitude : magnitude;
}

static uint8_t e4m3_encode(float x) {
    uint8_t sign = signbit(x) ? 0x80 : 0;
    if (isnan(x))
        return sign | 0x7f;
    float magnitude = fminf(fabsf(x), kLargestE4m3);
    int e = magnitude > 0x1p-6f ? ilogbf(magnitude) : -6;
    int steps = (int)rintf(ldexpf(magnitude, 3 - e)); /* ties to even; 8..16 for normal numbers */
    return (uint8_t)(sign | ((e + 6) * 8 + steps));
}

static float quantise(const uint16_t *row, int d_c, int d_r, uint8_t *c8, uint16_t *rope) {
    float largest = kSmallestMaximum;
    for (int d = 0; d < d_c; d++) {
        float magnitude = fabsf(bf16_decode(row[d]));
        largest = magnitude > largest ? magnitude : largest; /* false for a NaN */
    }
    float a = largest / kLargestE4m3;
    for (int d = 0; d < d_c; d++)
        c8[d] = e4m3_encode(bf16_decode(row[d]) / a);
    for (int d = 0; d < d_r; d++)
        rope[d] = bf16_encode(bf16_decode(row[d_c + d]) / a);
    return a;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void example_close(mla_backend *be) {
    free(be);
}

/* `snapmla bench` rotates over more than four times cache_bytes of inputs, so that no step finds
 * its input in the cache. Without cache_bytes, times are those of a warm cache, and `snapmla
 * compare` shows no relative speed. Shapes that need more than memory_bytes are skipped. */
static void example_describe(const mla_backend *be, mla_backend_info *out) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_PHYS_PAGES);
    (void)be;
    out->cache_bytes = cache > 0 ? (size_t)cache : 0; /* 0: unknown */
    out->memory_bytes = pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    (void)snprintf(out->name, sizeof out->name, "example");
    (void)snprintf(out->device, sizeof out->device, "one thread of the host");
    (void)snprintf(out->kernel, sizeof out->kernel, "plain");
    out->host_memory = true;
}

static void *example_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    (void)be;
    void *p = bytes < SIZE_MAX / 2
                  ? aligned_alloc(MLA_ALIGN, (bytes + MLA_ALIGN) / MLA_ALIGN * MLA_ALIGN)
                  : NULL;
    if (!p)
        (void)plugin_fail(err, SNAP_E_NOMEM, "out of memory for %zu bytes", bytes);
    return p;
}

static void example_free(mla_backend *be, void *device) {
    (void)be;
    free(device);
}

static snap_status example_copy(mla_backend *be, void *to, const void *from, size_t bytes,
                                snap_err *err) {
    (void)be;
    (void)err;
    memcpy(to, from, bytes);
    return SNAP_OK;
}

static snap_status example_sync(mla_backend *be, snap_err *err) {
    (void)be;
    (void)err;
    return SNAP_OK;
}

static double now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static snap_status example_timer_start(mla_backend *be, snap_err *err) {
    (void)err;
    ((example *)be)->started_ns = now_ns();
    return SNAP_OK;
}

static snap_status example_timer_stop(mla_backend *be, double *ns, snap_err *err) {
    (void)err;
    *ns = now_ns() - ((example *)be)->started_ns;
    return SNAP_OK;
}

/* ---- one step -------------------------------------------------------------------------------- */

static snap_status example_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                                       snap_err *err) {
    example_plan *plan = calloc(1, sizeof *plan);
    size_t width = (size_t)cap->d_c + (size_t)cap->d_r;
    float *memory = calloc((MLA_PAGE + 2) * width, sizeof *memory);
    if (!plan || !memory) {
        free(plan);
        free(memory);
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for a plan");
    }
    plan->base = (mla_plan){.be = be, .cap = *cap};
    plan->q = memory;
    plan->o = memory + width;
    plan->k = memory + 2 * width;
    *out = (mla_plan *)plan;
    return SNAP_OK;
}

static void example_plan_free(mla_plan *base) {
    free(((example_plan *)base)->q);
    free(base);
}

/* There is no work to distribute: one thread computes all rows, one after the other. */
static snap_status example_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    (void)base;
    (void)step;
    (void)err;
    return SNAP_OK;
}

/* Lengths and page numbers are device data, which the caller does not check. Values out of range
 * are clamped. */
static int64_t length_of(const mla_plan *plan, const mla_step *step, int b) {
    int64_t length = step->seqlens[b], room = (int64_t)step->table_width * MLA_PAGE;
    room = room < plan->cap.max_tokens ? room : plan->cap.max_tokens;
    return length < 0 ? 0 : length > room ? room : length;
}

static int64_t slot_of(const mla_step *step, const mla_cache *cache, int b, int64_t token) {
    int64_t page = step->block_table[(int64_t)b * step->table_width + token / MLA_PAGE];
    page = page < 0 ? 0 : page >= cache->pages ? cache->pages - 1 : page;
    return page * MLA_PAGE + token % MLA_PAGE;
}

/* The state of the row (query token x head) that is being computed. */
typedef struct {
    const mla_plan *plan;
    const mla_cache *cache;
    const mla_attn *attn;
    int64_t row;      /* index of the row in q, out and lse */
    float *q, *k, *o; /* as in example_plan */
    float m, l;       /* running maximum, sum of exp(S - m) */
} row_state;

/* Decodes row @i of the query or cache planes to FP32 [d_c + d_r]. */
static void decode(const mla_capacity *cap, const void *content, const void *rope, int64_t i,
                   float *out) {
    int d_c = cap->d_c, d_r = cap->d_r, width = d_c + d_r;
    if (cap->precision == MLA_BF16) {
        for (int d = 0; d < width; d++)
            out[d] = bf16_decode(((const uint16_t *)content)[i * width + d]);
        return;
    }
    for (int d = 0; d < d_c; d++)
        out[d] = e4m3_decode(((const uint8_t *)content)[i * d_c + d]);
    for (int d = 0; d < d_r; d++)
        out[d_c + d] = bf16_decode(((const uint16_t *)rope)[i * d_r + d]);
}

/* Widths are multiples of 32, so the compiler may compute kLanes products at once. */
static float dot(const float *a, const float *b, int n) {
    float sum[kLanes] = {0};
    for (int i = 0; i < n; i += kLanes)
        for (int l = 0; l < kLanes; l++)
            sum[l] += a[i + l] * b[i + l];
    for (int l = 1; l < kLanes; l++)
        sum[0] += sum[l];
    return sum[0];
}

/* The factor of each token's content in the output sum. BF16: its probability, rounded to bf16.
 * FP8: P' = P a_k, rounded to e4m3 with one scale for the page, as the tensor cores would read
 * it. */
static void weigh(const row_state *r, const float *p, const int64_t *slot, int n, float *weight) {
    float largest = 0;
    for (int j = 0; j < n; j++) {
        bool fp8 = r->plan->cap.precision == MLA_FP8;
        weight[j] = fp8 ? p[j] * r->cache->scale[slot[j]] : bf16_decode(bf16_encode(p[j]));
        largest = fmaxf(largest, weight[j]);
    }
    if (r->plan->cap.precision == MLA_BF16)
        return;
    float sigma = largest / kLargestE4m3;
    for (int j = 0; j < n; j++)
        weight[j] = largest < 0x1p-100f ? 0 : sigma * e4m3_decode(e4m3_encode(weight[j] / sigma));
}

/* Adds @n tokens of one page to the row. */
static void add_page(row_state *r, const int64_t *slot, int n) {
    const mla_capacity *cap = &r->plan->cap;
    int width = cap->d_c + cap->d_r;
    float p[MLA_PAGE], weight[MLA_PAGE], before = r->m, factor = r->attn->softmax_scale;
    if (cap->precision == MLA_FP8)
        factor *= r->attn->q_scale[r->row];
    for (int j = 0; j < n; j++) {
        float *k = r->k + (int64_t)j * width;
        decode(cap, r->cache->content, r->cache->rope, slot[j], k);
        p[j] = dot(r->q, k, width) * factor;
        p[j] *= cap->precision == MLA_FP8 ? r->cache->scale[slot[j]] : 1.0f;
        r->m = fmaxf(r->m, p[j]);
    }
    float rescale = expf(before - r->m);
    r->l *= rescale;
    for (int j = 0; j < n; j++) {
        p[j] = expf(p[j] - r->m);
        r->l += p[j];
    }
    weigh(r, p, slot, n, weight);
    for (int d = 0; d < cap->d_c; d++)
        r->o[d] *= rescale;
    for (int j = 0; j < n; j++)
        for (int d = 0; d < cap->d_c; d++)
            r->o[d] += weight[j] * r->k[(int64_t)j * width + d];
}

static void run_row(row_state *r, const mla_step *step, int b, int64_t visible) {
    int d_c = r->plan->cap.d_c;
    decode(&r->plan->cap, r->attn->q, r->attn->q_rope, r->row, r->q);
    r->m = -INFINITY;
    r->l = 0;
    memset(r->o, 0, (size_t)d_c * sizeof *r->o);
    for (int64_t first = 0; first < visible; first += MLA_PAGE) {
        int64_t slot[MLA_PAGE];
        int n = visible - first < MLA_PAGE ? (int)(visible - first) : MLA_PAGE;
        for (int j = 0; j < n; j++)
            slot[j] = slot_of(step, r->cache, b, first + j);
        add_page(r, slot, n);
    }
    uint16_t *out = (uint16_t *)r->attn->out + r->row * d_c;
    for (int d = 0; d < d_c; d++)
        out[d] = visible > 0 ? bf16_encode(r->o[d] / r->l) : 0;
    if (r->attn->lse)
        r->attn->lse[r->row] = visible > 0 ? r->m + logf(r->l) : -INFINITY;
}

static snap_status example_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                               const mla_attn *attn, snap_err *err) {
    (void)err;
    example_plan *plan = (example_plan *)base;
    row_state r = {
        .plan = base, .cache = cache, .attn = attn, .q = plan->q, .k = plan->k, .o = plan->o};
    for (int b = 0; b < step->batch; b++)
        for (int s = 0; s < step->s_q; s++)
            for (int h = 0; h < base->cap.heads; h++, r.row++)
                run_row(&r, step, b, length_of(base, step, b) - (step->s_q - 1 - s));
    return SNAP_OK;
}

/* ---- dataflow -------------------------------------------------------------------------------- */

static snap_status example_quant_q(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q,
                                   void *q8, void *q_rope, float *q_scale, snap_err *err) {
    (void)be;
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        q_scale[i] = quantise((const uint16_t *)q + i * (d_c + d_r), d_c, d_r,
                              (uint8_t *)q8 + i * d_c, (uint16_t *)q_rope + i * d_r);
    return SNAP_OK;
}

static void append_row(const mla_plan *plan, const mla_cache *cache, int64_t slot,
                       const uint16_t *row) {
    int d_c = plan->cap.d_c, d_r = plan->cap.d_r, width = d_c + d_r;
    if (plan->cap.precision == MLA_BF16)
        memcpy((uint16_t *)cache->content + slot * width, row, (size_t)width * sizeof *row);
    else
        cache->scale[slot] = quantise(row, d_c, d_r, (uint8_t *)cache->content + slot * d_c,
                                      (uint16_t *)cache->rope + slot * d_r);
}

static snap_status example_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                     const void *kv, snap_err *err) {
    (void)err;
    int width = plan->cap.d_c + plan->cap.d_r;
    for (int64_t i = 0; i < (int64_t)step->batch * step->s_q; i++) {
        int b = (int)(i / step->s_q);
        int64_t token = length_of(plan, step, b) - step->s_q + i % step->s_q;
        if (token >= 0)
            append_row(plan, cache, slot_of(step, cache, b, token),
                       (const uint16_t *)kv + i * width);
    }
    return SNAP_OK;
}

static void fetch_row(const mla_plan *plan, const mla_cache *cache, int64_t slot, uint16_t *row) {
    int d_c = plan->cap.d_c, d_r = plan->cap.d_r, width = d_c + d_r;
    if (plan->cap.precision == MLA_BF16) {
        memcpy(row, (const uint16_t *)cache->content + slot * width, (size_t)width * sizeof *row);
        return;
    }
    const uint8_t *c8 = (const uint8_t *)cache->content + slot * d_c;
    const uint16_t *rope = (const uint16_t *)cache->rope + slot * d_r;
    for (int d = 0; d < d_c; d++)
        row[d] = bf16_product(e4m3_decode(c8[d]), cache->scale[slot]);
    for (int d = 0; d < d_r; d++)
        row[d_c + d] = bf16_product(bf16_decode(rope[d]), cache->scale[slot]);
}

static snap_status example_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                    int seq, int64_t first, int64_t count, void *kv,
                                    snap_err *err) {
    (void)err;
    int width = plan->cap.d_c + plan->cap.d_r;
    for (int64_t i = 0; i < count; i++) {
        uint16_t *row = (uint16_t *)kv + i * width;
        if (first + i < length_of(plan, step, seq))
            fetch_row(plan, cache, slot_of(step, cache, seq, first + i), row);
        else
            memset(row, 0, (size_t)width * sizeof *row);
    }
    return SNAP_OK;
}

/* ---- ceilings -------------------------------------------------------------------------------- */

enum { kReadFloats = 16 << 20, kTurns = 1 << 20 };

/* FLOP/s of multiply-accumulate in kLanes independent sums. */
static double arithmetic_rate(void) {
    volatile float factor = 0.999f;
    float sum[kLanes] = {0}, f = factor;
    double start = now_ns();
    for (int i = 0; i < kTurns; i++)
        for (int l = 0; l < kLanes; l++)
            sum[l] = sum[l] * f + 1.0f;
    double ns = now_ns() - start;
    for (int l = 1; l < kLanes; l++)
        sum[0] += sum[l];
    factor = sum[0]; /* uses the sums, or the compiler would remove the loop */
    return 2e9 * kTurns * kLanes / ns;
}

static double read_rate(const uint32_t *data) {
    volatile uint32_t sink;
    uint32_t sum = 0;
    double start = now_ns();
    for (int i = 0; i < kReadFloats; i++)
        sum += data[i];
    double ns = now_ns() - start;
    sink = sum;
    (void)sink;
    return 1e9 * sizeof *data * kReadFloats / ns;
}

static void note(mla_ceiling *c, double rate, const char *how) {
    c->worst_window = c->windows++ && c->worst_window < rate ? c->worst_window : rate;
    c->rate = rate > c->rate ? rate : c->rate;
    (void)snprintf(c->how, sizeof c->how, "%s", how);
}

static snap_status example_ceilings(mla_backend *be, double seconds, mla_ceilings *out,
                                    snap_err *err) {
    (void)be;
    uint32_t *data = malloc(sizeof *data * kReadFloats);
    if (!data)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for the read probe");
    memset(data, 1, sizeof *data * kReadFloats);
    double end = now_ns() + 1e9 * seconds;
    do {
        note(&out->read, read_rate(data), "32-bit loads");
        note(&out->bf16, arithmetic_rate(), "FP32 multiply and add");
    } while (now_ns() < end);
    out->fp8 = out->bf16;
    out->read_bytes = sizeof *data * kReadFloats;
    free(data);
    return SNAP_OK;
}

static const mla_backend_ops kOps = {
    .close = example_close,
    .describe = example_describe,
    .alloc = example_alloc,
    .free = example_free,
    .copy_in = example_copy,
    .copy_out = example_copy,
    .sync = example_sync,
    .timer_start = example_timer_start,
    .timer_stop = example_timer_stop,
    .plan_create = example_plan_create,
    .plan_free = example_plan_free,
    .schedule = example_schedule,
    .run = example_run,
    .quant_q = example_quant_q,
    .append_kv = example_append_kv,
    .fetch_kv = example_fetch_kv,
    .ceilings = example_ceilings,
    .host_memory = true,
};

static snap_status example_open(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    (void)opt;
    example *be = calloc(1, sizeof *be);
    if (!be)
        return plugin_fail(err, SNAP_E_NOMEM, "out of memory for a backend");
    be->base.ops = &kOps;
    *out = (mla_backend *)be;
    return SNAP_OK;
}

const snapmla_plugin snapmla_plugin_v1 = {SNAPMLA_PLUGIN, "example", example_open};
