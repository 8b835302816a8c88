#include "harness/bench/layer_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { kMostIterations = 500 };
#define SLACK                                                                                      \
    1.001 /* covers FP32 rounding that is not counted, and norms that spectral_norm()
                       finds too small */

/* The query without its RoPE part is rounded to bf16 before it is multiplied by W_UK, and the
 * product is rounded again. Each rounding changes a number by at most 2^-8 of its value. So the
 * norm of the absorbed query is at most this many times |query| |W_UK|. */
#define ABSORBED ((1 + 0x1p-8) * (1 + 0x1p-8))

/* ---- norms ---- */

static double norm(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static double norm_f32(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Computes y = W^T W x for W [rows][cols] and returns |W x|. */
static double apply_gram(const float *w, int64_t rows, int64_t cols, const double *x, double *y) {
    double size = 0;
    memset(y, 0, (size_t)cols * sizeof *y);
    for (int64_t i = 0; i < rows; i++) {
        double dot = 0;
        for (int64_t j = 0; j < cols; j++)
            dot += (double)w[i * cols + j] * x[j];
        size += dot * dot;
        for (int64_t j = 0; j < cols; j++)
            y[j] += dot * (double)w[i * cols + j];
    }
    return sqrt(size);
}

/* Power iteration for the largest singular value. The start vector has no zero component. */
static double power_iteration(const float *w, int64_t rows, int64_t cols, double *x, double *y) {
    double found = 0;
    for (int64_t j = 0; j < cols; j++)
        x[j] = 1 + 0.5 * sin((double)j);
    for (int i = 0; i < kMostIterations; i++) {
        double size = norm(x, cols), before = found;
        for (int64_t j = 0; j < cols && size > 0; j++)
            x[j] /= size;
        found = apply_gram(w, rows, cols, x, y);
        memcpy(x, y, (size_t)cols * sizeof *x);
        if (found <= before * (1 + 1e-9))
            break;
    }
    return found;
}

snap_status spectral_norm(double *out, const mat *m, snap_err *err) {
    float *w = calloc((size_t)(m->rows * m->cols), sizeof *w);
    double *x = calloc((size_t)m->cols * 2, sizeof *x);
    snap_status st = SNAP_OK;
    if (!w || !x) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a matrix of %lld rows",
                     (long long)m->rows);
        goto cleanup;
    }
    for (int64_t i = 0; i < m->rows; i++)
        mat_read_row(m, i, w + i * m->cols);
    *out = power_iteration(w, m->rows, m->cols, x, x + m->cols);
cleanup:
    free(w);
    free(x);
    return st;
}

/* ---- rows ---- */

/* Limits over all tokens j. d_j is the rounding error of the content of token j, and c_j is that
 * content. */
typedef struct {
    double content, rope; /* the largest bound of |d_j|, and of the error of the RoPE part */
    double radius;        /* the largest |c_j - mean c| */
} row_bounds;

static row_bounds bounds_of(const oracle_step *s, double *mean) {
    row_bounds b = {0};
    int width = s->d_c + s->d_r;
    memset(mean, 0, (size_t)s->d_c * sizeof *mean);
    for (int64_t j = 0; j < s->context; j++) {
        const float *row = s->kv + j * width;
        float largest = 0;
        for (int d = 0; d < s->d_c; d++) {
            largest = fmaxf(largest, fabsf(row[d]));
            mean[d] += (double)row[d] / (double)s->context;
        }
        double scale = fmax((double)largest, 1e-10) / 448;
        b.content = fmax(b.content,
                         0x1p-4 * norm_f32(row, s->d_c) + 0x1p-10 * scale * sqrt((double)s->d_c));
        b.rope = fmax(b.rope, 0x1p-8 * norm_f32(row + s->d_c, s->d_r));
    }
    for (int64_t j = 0; j < s->context; j++) {
        double sum = 0;
        for (int d = 0; d < s->d_c; d++)
            sum += pow((double)s->kv[j * width + d] - mean[d], 2);
        b.radius = fmax(b.radius, sqrt(sum));
    }
    return b;
}

/* The largest change of a logit of this head through rounding the cached rows. */
static double logit_error(const oracle_step *s, int head, const ref_rows *k) {
    const float *q = s->q + (int64_t)head * (s->d_c + s->d_r);
    double most = 0;
    for (int64_t j = 0; j < s->context; j++) {
        const float *row = s->kv + j * (s->d_c + s->d_r), *c = k->content + j * s->d_c,
                    *r = k->rope + j * s->d_r;
        double scale = (double)k->scale[j * k->groups], rope = (double)k->rope_scale[j], move = 0;
        for (int d = 0; d < s->d_c; d++)
            move += (double)q[d] * ((double)c[d] * scale - (double)row[d]);
        for (int d = 0; d < s->d_r; d++)
            move += (double)q[s->d_c + d] * ((double)r[d] * rope - (double)row[s->d_c + d]);
        most = fmax(most, fabs(move) * s->softmax_scale);
    }
    return most;
}

/* |W_UV (o - exact)| of one head. */
static double value_error(const mat *w_uv, const double *o, const double *exact, float *row) {
    double sum = 0;
    for (int64_t i = 0; i < w_uv->rows; i++) {
        double dot = 0;
        mat_read_row(w_uv, i, row);
        for (int64_t d = 0; d < w_uv->cols; d++)
            dot += (double)row[d] * (o[d] - exact[d]);
        sum += dot * dot;
    }
    return sqrt(sum);
}

/* ---- one layer ---- */

typedef struct {
    const oracle_step *s;
    const double *nope;
    const attention_weights *a;
    const model_shape *shape;
    const oracle_result *truth, *rounded;
    const ref_rows *k;
    row_bounds rows;
    float *row; /* [d_c] */
} layer_input;

static snap_status measure_head(layer_bound *b, const layer_input *m, int head, snap_err *err) {
    snap_status st;
    const oracle_step *s = m->s;
    int64_t at = (int64_t)head * (m->shape->qk_nope_head_dim + m->shape->v_head_dim);
    mat w_uk = mat_rows(&m->a->kv_b, at, m->shape->qk_nope_head_dim),
        w_uv = mat_rows(&m->a->kv_b, at + m->shape->qk_nope_head_dim, m->shape->v_head_dim);
    const float *q = s->q + (int64_t)head * (s->d_c + s->d_r);
    double uk = 0, uv = 0, move, shift;
    TRY(spectral_norm(&uk, &w_uk, err));
    TRY(spectral_norm(&uv, &w_uv, err));
    move = SLACK * s->softmax_scale *
           (m->nope[head] * uk * ABSORBED * m->rows.content +
            norm_f32(q + s->d_c, s->d_r) * m->rows.rope);
    shift = fmin(2, expm1(2 * move));
    b->logit_bound = fmax(b->logit_bound, move);
    b->value_bound = fmax(b->value_bound, SLACK * uv * (m->rows.content + shift * m->rows.radius));
    b->logit_error = fmax(b->logit_error, logit_error(s, head, m->k));
    b->value_error =
        fmax(b->value_error, value_error(&w_uv, m->rounded->o + (int64_t)head * s->d_c,
                                         m->truth->o + (int64_t)head * s->d_c, m->row));
cleanup:
    return st;
}

snap_status layer_bound_measure(layer_bound *out, const oracle_step *s, const double *nope,
                                const attention_weights *a, const model_shape *shape,
                                const oracle_result *truth, snap_err *err) {
    cache_format rows_only;
    snap_status st;
    oracle_result rounded = {0};
    ref_rows k = {0};
    double *mean = calloc((size_t)s->d_c, sizeof *mean);
    float *row = calloc((size_t)s->d_c, sizeof *row);
    *out = (layer_bound){0};
    if (!mean || !row) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a layer's bound");
        goto cleanup;
    }
    TRY(oracle_result_init(&rounded, s->heads, s->d_c, err));
    TRY(cache_format_load(&rows_only, "snapmla", s->d_c, s->d_r, err));
    rows_only.queries = QUERIES_EXACT;
    rows_only.pv = REF_P_EXACT;
    TRY(oracle_attend(s, &rows_only, &rounded, err));
    TRY(ref_rows_quantise(&k, REF_SNAPMLA, s->kv, s->context, s->d_c, s->d_r, err));
    layer_input m = {.s = s,
                     .nope = nope,
                     .a = a,
                     .shape = shape,
                     .truth = truth,
                     .rounded = &rounded,
                     .k = &k,
                     .rows = bounds_of(s, mean),
                     .row = row};
    for (int h = 0; h < s->heads; h++)
        TRY(measure_head(out, &m, h, err));
cleanup:
    oracle_result_release(&rounded);
    ref_rows_release(&k);
    free(mean);
    free(row);
    return st;
}
