#include "kernels/reference.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/formats.h"

ref_pv ref_format_pv(ref_format f) {
    return f == REF_PLAIN ? REF_P_EXACT : f == REF_BF16 ? REF_P_BF16 : REF_P_E4M3;
}

/* ---- rows ---------------------------------------------------------------------------------- */

void ref_rows_release(ref_rows *r) {
    free(r->content);
    free(r->rope);
    free(r->scale);
    free(r->rope_scale);
    *r = (ref_rows){0};
}

static float *alloc_floats(int64_t rows, int width) {
    return calloc((size_t)rows + 1, (size_t)width * sizeof(float));
}

snap_status ref_rows_init(ref_rows *r, int64_t rows, int d_c, int d_r, int dims, int rope_dims,
                          snap_err *err) {
    int groups = d_c / dims, rope_groups = d_r / rope_dims;
    *r = (ref_rows){.rows = rows,
                    .d_c = d_c,
                    .d_r = d_r,
                    .groups = groups,
                    .dims = dims,
                    .rope_groups = rope_groups,
                    .rope_dims = rope_dims};
    r->content = alloc_floats(rows, d_c);
    r->rope = alloc_floats(rows, d_r);
    r->scale = alloc_floats(rows, groups);
    r->rope_scale = alloc_floats(rows, rope_groups);
    if (r->content && r->rope && r->scale && r->rope_scale)
        return SNAP_OK;
    ref_rows_release(r);
    (void)err_set(err, SNAP_E_NOMEM, "out of memory for %lld reference rows", (long long)rows);
    return SNAP_E_NOMEM;
}

static float largest_of(const float *x, int n, float floor) {
    for (int i = 0; i < n; i++)
        floor = fmaxf(floor, fabsf(x[i]));
    return floor;
}

static float scale_of(float largest) {
    return fmaxf(largest, QUANT_MIN_MAX) / E4M3_MAX;
}

/* Sets the scales of every row. */
static void choose_scales(ref_rows *r, ref_format f, const float *x) {
    int width = r->d_c + r->d_r;
    for (int64_t i = 0; i < r->rows; i++) {
        float scale = scale_of(largest_of(x + i * width, r->d_c, 0.0f));
        r->scale[i] = r->rope_scale[i] = f == REF_SNAPMLA ? scale : 1.0f;
    }
}

static float as_bf16(float x) {
    return bf16_to_f32(bf16_from_f32(x));
}

static float as_e4m3(float x) {
    return e4m3_to_f32(e4m3_from_f32(x));
}

static float round_content(ref_format f, float x) {
    return f == REF_PLAIN ? x : f == REF_BF16 ? as_bf16(x) : as_e4m3(x);
}

static float round_rope(ref_format f, float x) {
    return f == REF_PLAIN ? x : as_bf16(x);
}

snap_status ref_rows_quantise(ref_rows *out, ref_format f, const float *x, int64_t rows, int d_c,
                              int d_r, snap_err *err) {
    *out = (ref_rows){0};
    if (rows < 0 || d_c < 1 || d_r < 1)
        return err_set(err, SNAP_E_SHAPE, "a row must have content and rope, got %d + %d", d_c,
                       d_r);
    snap_status st = ref_rows_init(out, rows, d_c, d_r, d_c, d_r, err);
    if (st != SNAP_OK)
        return st;
    choose_scales(out, f, x);
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * (d_c + d_r);
        for (int d = 0; d < d_c; d++)
            out->content[i * d_c + d] = round_content(f, row[d] / out->scale[i]);
        for (int d = 0; d < d_r; d++)
            out->rope[i * d_r + d] = round_rope(f, row[d_c + d] / out->rope_scale[i]);
    }
    return SNAP_OK;
}

/* ---- decoding a backend's planes ------------------------------------------------------------ */

static void decode_bf16(float *out, const uint16_t *in, int n) {
    for (int i = 0; i < n; i++)
        out[i] = bf16_to_f32(in[i]);
}

/* Decodes row @slot of the planes into row i of @r. */
static void decode_row(ref_rows *r, int64_t i, mla_precision p, const void *content,
                       const void *rope, const float *scale, int64_t slot) {
    int d_c = r->d_c, d_r = r->d_r;
    r->scale[i] = r->rope_scale[i] = p == MLA_FP8 ? scale[slot] : 1.0f;
    if (p == MLA_BF16) {
        const uint16_t *row = (const uint16_t *)content + slot * (d_c + d_r);
        decode_bf16(r->content + i * d_c, row, d_c);
        decode_bf16(r->rope + i * d_r, row + d_c, d_r);
        return;
    }
    const uint8_t *c8 = (const uint8_t *)content + slot * d_c;
    for (int d = 0; d < d_c; d++)
        r->content[i * d_c + d] = e4m3_to_f32(c8[d]);
    decode_bf16(r->rope + i * d_r, (const uint16_t *)rope + slot * d_r, d_r);
}

snap_status ref_rows_from_cache(ref_rows *out, mla_precision p, int d_c, int d_r,
                                const mla_cache *cache, const int32_t *table_row, int64_t tokens,
                                snap_err *err) {
    snap_status st = ref_rows_init(out, tokens, d_c, d_r, d_c, d_r, err);
    for (int64_t i = 0; st == SNAP_OK && i < tokens; i++)
        decode_row(out, i, p, cache->content, cache->rope, cache->scale,
                   mla_slot(table_row, cache->pages, i));
    return st;
}

snap_status ref_rows_from_queries(ref_rows *out, mla_precision p, int d_c, int d_r,
                                  const mla_attn *attn, int64_t first, int64_t rows,
                                  snap_err *err) {
    snap_status st = ref_rows_init(out, rows, d_c, d_r, d_c, d_r, err);
    for (int64_t i = 0; st == SNAP_OK && i < rows; i++)
        decode_row(out, i, p, attn->q, attn->q_rope, attn->q_scale, first + i);
    return st;
}

static double dot(const float *a, const float *b, int n) {
    double sum[4] = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int l = 0; l < 4; l++)
            sum[l] += (double)a[i + l] * (double)b[i + l];
    for (; i < n; i++)
        sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Row i of one part, content or RoPE, with its scales. */
typedef struct {
    const float *x, *scale;
    int groups;
} scaled_row;

static scaled_row content_row(const ref_rows *r, int64_t i) {
    return (scaled_row){r->content + i * r->d_c, r->scale + i * r->groups, r->groups};
}

static scaled_row rope_row(const ref_rows *r, int64_t i) {
    return (scaled_row){r->rope + i * r->d_r, r->rope_scale + i * r->rope_groups, r->rope_groups};
}

/* The product of two rows of @width columns, one common group of columns after the other. */
static double product(scaled_row a, scaled_row b, int width) {
    int parts = a.groups > b.groups ? a.groups : b.groups, n = width / parts;
    double sum = 0.0;
    for (int g = 0; g < parts; g++)
        sum += dot(a.x + g * n, b.x + g * n, n) * (double)a.scale[g * a.groups / parts] *
               (double)b.scale[g * b.groups / parts];
    return sum;
}

static double logit(const ref_rows *q, int64_t i, const ref_rows *k, int64_t j) {
    return product(content_row(q, i), content_row(k, j), q->d_c) +
           product(rope_row(q, i), rope_row(k, j), q->d_r);
}

/* Computes weight[j], the factor of the content of token first + j in scale group @g. */
static void block_weights(double *weight, const double *p, int n, const ref_rows *k, int64_t first,
                          int g, ref_pv pv) {
    const float *scale = k->scale + first * k->groups + g;
    double largest = 0.0;
    for (int j = 0; j < n; j++) {
        weight[j] = (pv == REF_P_BF16 ? (double)bf16_to_f32(bf16_from_f64(p[j])) : p[j]) *
                    (double)scale[j * k->groups];
        largest = fmax(largest, weight[j]);
    }
    if (pv != REF_P_E4M3)
        return;
    double sigma = largest / (double)E4M3_MAX;
    for (int j = 0; j < n; j++)
        weight[j] = largest < 0x1p-100
                        ? 0.0
                        : sigma * (double)e4m3_to_f32(e4m3_from_f64(weight[j] / sigma));
}

/* o = o * rescale + sum_j weight_j * content_j, one scale group after the other. */
static void add_block(double *o, double rescale, const double *p, int n, const ref_rows *k,
                      int64_t first, ref_pv pv) {
    int dims = k->dims;
    double weight[MLA_PAGE];
    for (int d = 0; d < k->d_c; d++)
        o[d] *= rescale;
    for (int g = 0; g < k->groups; g++) {
        block_weights(weight, p, n, k, first, g, pv);
        for (int j = 0; j < n; j++) {
            const float *c = k->content + (first + j) * k->d_c + g * dims;
            for (int d = 0; d < dims; d++)
                o[g * dims + d] += weight[j] * (double)c[d];
        }
    }
}

void ref_attend(const ref_rows *q, int64_t query, const ref_rows *k, int64_t visible,
                double softmax_scale, ref_pv pv, double *o, double *lse) {
    double m = -INFINITY, l = 0.0, p[MLA_PAGE];
    for (int d = 0; d < k->d_c; d++)
        o[d] = 0.0;
    for (int64_t first = 0; first < visible; first += MLA_PAGE) {
        int n = visible - first < MLA_PAGE ? (int)(visible - first) : MLA_PAGE;
        double before = m;
        for (int j = 0; j < n; j++) {
            p[j] = softmax_scale * logit(q, query, k, first + j);
            m = fmax(m, p[j]);
        }
        double rescale = exp(before - m);
        l *= rescale;
        for (int j = 0; j < n; j++) {
            p[j] = exp(p[j] - m);
            l += p[j];
        }
        add_block(o, rescale, p, n, k, first, pv);
    }
    bool none = l == 0.0; /* false if l is NaN: then the results become NaN, too */
    for (int d = 0; d < k->d_c && !none; d++)
        o[d] /= l;
    if (lse)
        *lse = none ? -(double)INFINITY : m + log(l);
}
