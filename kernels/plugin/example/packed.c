/* packed.c - a plugin that reads a packed cache: attention over fp8_ds_mla, the format of 656 bytes
 * per token that vLLM and FlashMLA share, on one thread of the host with sums in FP64. The planes
 * are found by name, so that it also reads other formats with e4m3 content and a bf16 RoPE part. */
#include <math.h>
#include <string.h>

#include "kernels/plugin/attention.h"

static double decode_bf16(uint16_t code) {
    uint32_t u = (uint32_t)code << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

static uint16_t encode_bf16(double exact) {
    float x = (float)exact;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); /* rounds to nearest, ties to even */
}

static double decode_e4m3(uint8_t code) {
    int exponent = code >> 3 & 15, mantissa = code & 7;
    double x = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    if ((code & 127) == 127)
        x = NAN;
    return code & 128 ? -x : x;
}

static const snapmla_plane *find(const snapmla_format *f, const char *name, const char *type) {
    for (int i = 0; i < f->planes; i++)
        if (strcmp(f->plane[i].name, name) == 0 && strcmp(f->plane[i].type, type) == 0)
            return &f->plane[i];
    return NULL;
}

/* The values of a plane for one token. */
static const unsigned char *at(const snapmla_packed *c, const snapmla_plane *p, int64_t page,
                               int64_t slot) {
    const snapmla_pool *pool = &c->format->pool[p->pool];
    return (const unsigned char *)c->pool[p->pool] + (pool->paged ? page * pool->bytes : 0) +
           p->offset + slot * p->stride;
}

/* The planes that this plugin reads. */
typedef struct {
    const snapmla_plane *content, *rope, *scales;
} planes;

static bool find_planes(const snapmla_format *f, planes *out) {
    *out = (planes){.content = find(f, "content", "e4m3fn"),
                    .rope = find(f, "rope", "bf16"),
                    .scales = find(f, "content.scale", "fp32")};
    return out->content && out->rope && out->scales;
}

/* One cached token, content first. */
static void read_token(const snapmla_packed *c, const planes *p, int64_t page, int64_t slot,
                       double *k) {
    const snapmla_plane *content = p->content, *rope = p->rope, *scales = p->scales;
    int group = content->columns / scales->columns; /* columns that share a scale */
    for (int d = 0; d < content->columns; d++) {
        float scale;
        memcpy(&scale, at(c, scales, page, slot) + d / group * (int)sizeof scale, sizeof scale);
        k[d] = decode_e4m3(at(c, content, page, slot)[d]) * (double)scale;
    }
    for (int d = 0; d < rope->columns; d++) {
        uint16_t code;
        memcpy(&code, at(c, rope, page, slot) + d * (int)sizeof code, sizeof code);
        k[content->columns + d] = decode_bf16(code);
    }
}

/* One row: softmax over the visible tokens of a sequence, with a running maximum. */
static void attend_row(const snapmla_step *s, const snapmla_packed *cache,
                       const planes *planes_read, const int32_t *pages, int64_t visible,
                       const uint16_t *q, double factor, uint16_t *out, float *lse) {
    double k[MLA_MAX_CONTENT + MLA_MAX_ROPE] = {0}, o[MLA_MAX_CONTENT] = {0}, most = -INFINITY,
                               sum = 0;
    int page_tokens = cache->format->page_tokens;
    for (int64_t j = 0; j < visible; j++) {
        double score = 0;
        read_token(cache, planes_read, pages[j / page_tokens], j % page_tokens, k);
        for (int d = 0; d < s->d_c + s->d_r; d++)
            score += decode_bf16(q[d]) * k[d];
        double top = fmax(most, score * factor), p = exp(score * factor - top),
               fade = exp(most - top);
        most = top;
        sum = sum * fade + p;
        for (int d = 0; d < s->d_c; d++)
            o[d] = o[d] * fade + p * k[d];
    }
    for (int d = 0; d < s->d_c; d++)
        out[d] = visible > 0 ? encode_bf16(o[d] / sum) : 0;
    *lse = visible > 0 ? (float)(most + log(sum)) : -INFINITY;
}

static snap_status plan(void *self, void **state, const mla_capacity *cap,
                        const snapmla_format *format, snap_err *err) {
    (void)self, (void)state, (void)cap;
    bool rotated = strstr(format->json, "hadamard") != NULL;
    planes read;
    if (rotated || !find_planes(format, &read) || find(format, "content.mean", "fp32") ||
        strstr(format->json, "\"scale\":\"content\""))
        return plugin_fail(err, SNAP_E_UNSUPPORTED,
                           "format %s: it reads e4m3 content with fp32 scales and an unscaled bf16 "
                           "RoPE part",
                           format->name);
    return SNAP_OK;
}

static snap_status attend(void *state, const snapmla_step *s, const snapmla_queries *q,
                          const snapmla_packed *cache, void *out, float *lse, void *stream,
                          snap_err *err) {
    int rows = s->s_q * s->heads; /* rows of one sequence: query token x head */
    planes read;
    (void)state, (void)stream;
    if (!find_planes(cache->format, &read)) /* plan() has refused such a format */
        return plugin_fail(err, SNAP_E_UNSUPPORTED, "format %s lacks a plane", cache->format->name);
    for (int64_t row = 0; row < (int64_t)s->batch * rows; row++) {
        int seq = (int)(row / rows), hidden = s->s_q - 1 - (int)(row % rows) / s->heads;
        float unused;
        attend_row(s, cache, &read, s->block_table + (int64_t)seq * s->table_width,
                   s->seqlens[seq] - hidden, (const uint16_t *)q->q + row * (s->d_c + s->d_r),
                   (double)q->softmax_scale, (uint16_t *)out + row * s->d_c,
                   lse ? lse + row : &unused);
    }
    return SNAP_OK;
}

const snapmla_attention snapmla_attention_v1 = {
    SNAPMLA_ATTENTION,      .name = "packed",    .kernel = "fp64",       .device = "host",
    .format = "fp8_ds_mla", .plan_packed = plan, .attend_packed = attend};
