/* tile.h - products of tiles with sums in FP32, the conversion to BF16, and 2^x, LANES numbers at a
 * time. It uses the definitions of kernels/cpu/vec.h, and VF_SUM, which adds up the lanes of a
 * vector. The order of the additions for a number of y does not depend on the block that computes
 * it. */
#ifndef SNAPMLA_GENERATOR_LOCAL_GEMM_TILE_H
#define SNAPMLA_GENERATOR_LOCAL_GEMM_TILE_H

#include "generator/local/gemm/isa.h"
#include "kernels/cpu/vec.h"

/* Sizes of a block. With AVX-512 the sums of a block and its operands fit into the 32 registers. */
enum { kTallRows = LANES == 16 ? 6 : 4, kBlockRows = 4, kBlockCols = 4, kWideCols = 8 };

typedef enum { IN_BF16, IN_F32 } tile_in;

INLINE vf load_in(const void *p, int64_t i, tile_in in) {
    return in == IN_BF16 ? vf_load_bf16((const uint16_t *)p + i) : vf_load((const float *)p + i);
}

INLINE float read_in(const void *p, int64_t i, tile_in in) {
    if (in == IN_F32)
        return ((const float *)p)[i];
    uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Computes m rows and n columns of y from row i0 and column j0 on. Each lane of a vector sums its
 * own values of k; the lanes are added up at the end. */
INLINE void rows_block(const gemm_tile *t, tile_in in, int64_t i0, int64_t j0, int m, int n) {
    vf sum[kTallRows * kBlockCols > kWideCols ? kTallRows * kBlockCols : kWideCols];
    int64_t k = 0;
    UNROLL
    for (int i = 0; i < m * n; i++)
        sum[i] = vf_set(0.0f);
    for (; k + LANES <= t->k; k += LANES) {
        vf w[kWideCols];
        UNROLL
        for (int j = 0; j < n; j++)
            w[j] = load_in(t->w, (j0 + j) * t->ldw + k, in);
        UNROLL
        for (int i = 0; i < m; i++) {
            vf x = load_in(t->x, (i0 + i) * t->ldx + k, in);
            UNROLL
            for (int j = 0; j < n; j++)
                sum[i * n + j] = VF_FMA(x, w[j], sum[i * n + j]);
        }
    }
    UNROLL
    for (int i = 0; i < m; i++) {
        UNROLL
        for (int j = 0; j < n; j++) {
            float y = VF_SUM(sum[i * n + j]);
            for (int64_t l = k; l < t->k; l++)
                y += read_in(t->x, (i0 + i) * t->ldx + l, in) *
                     read_in(t->w, (j0 + j) * t->ldw + l, in);
            float *to = &t->y[(i0 + i) * t->ldy + j0 + j];
            *to = t->add ? *to + y : y;
        }
    }
}

typedef void (*block_fn)(const gemm_tile *t, tile_in in, int64_t i0, int64_t j0, int m, int n);

/* Computes the rows i .. i + m - 1, all columns. */
INLINE void walk_band(const gemm_tile *t, tile_in in, block_fn block, int64_t i, int m, int n) {
    int64_t j = 0;
    for (; j + n <= t->n; j += n)
        block(t, in, i, j, m, n);
    for (; j < t->n; j++)
        block(t, in, i, j, m, 1);
}

/* Computes a tile block by block. A single row is multiplied with eight rows of weights at a
 * time. */
INLINE void walk_rows(const gemm_tile *t, tile_in in, block_fn block) {
    int64_t i = 0;
    for (; i + kTallRows <= t->m; i += kTallRows)
        walk_band(t, in, block, i, kTallRows, kBlockCols);
    for (; i + kBlockRows <= t->m; i += kBlockRows)
        walk_band(t, in, block, i, kBlockRows, kBlockCols);
    for (; i < t->m; i++)
        walk_band(t, in, block, i, 1, kWideCols);
}

/* Computes m rows and LANES * vecs columns of y from row i0 and column j0 on. Each lane of a vector
 * is one column. */
INLINE void cols_block(const gemm_tile *t, tile_in in, int64_t i0, int64_t j0, int m, int vecs) {
    vf sum[kBlockRows * kBlockCols];
    UNROLL
    for (int i = 0; i < m * vecs; i++)
        sum[i] = vf_set(0.0f);
    for (int64_t k = 0; k < t->k; k++) {
        vf w[kWideCols];
        UNROLL
        for (int v = 0; v < vecs; v++)
            w[v] = load_in(t->w, k * t->ldw + j0 + v * LANES, in);
        UNROLL
        for (int i = 0; i < m; i++) {
            vf x = vf_set(read_in(t->x, (i0 + i) * t->ldx + k, in));
            UNROLL
            for (int v = 0; v < vecs; v++)
                sum[i * vecs + v] = VF_FMA(x, w[v], sum[i * vecs + v]);
        }
    }
    UNROLL
    for (int i = 0; i < m; i++) {
        UNROLL
        for (int v = 0; v < vecs; v++)
            vf_store(t->y + (i0 + i) * t->ldy + j0 + v * LANES, sum[i * vecs + v]);
    }
}

/* One number of y, for columns that don't fill a vector. */
INLINE void cols_single(const gemm_tile *t, tile_in in, int64_t i, int64_t j) {
    float y = 0.0f;
    for (int64_t k = 0; k < t->k; k++)
        y = __builtin_fmaf(read_in(t->x, i * t->ldx + k, in), read_in(t->w, k * t->ldw + j, in), y);
    t->y[i * t->ldy + j] = y;
}

INLINE void walk_cols(const gemm_tile *t, tile_in in, int64_t i, int m) {
    int64_t j = 0;
    for (; m == 1 && j + kWideCols * LANES <= t->n; j += kWideCols * LANES)
        cols_block(t, in, i, j, 1, kWideCols);
    for (; j + kBlockCols * LANES <= t->n; j += kBlockCols * LANES) {
        if (m == kBlockRows)
            cols_block(t, in, i, j, kBlockRows, kBlockCols);
        else
            cols_block(t, in, i, j, 1, kBlockCols);
    }
    for (; j + LANES <= t->n; j += LANES) {
        if (m == kBlockRows)
            cols_block(t, in, i, j, kBlockRows, 1);
        else
            cols_block(t, in, i, j, 1, 1);
    }
    for (; j < t->n; j++)
        for (int r = 0; r < m; r++)
            cols_single(t, in, i + r, j);
}

INLINE void cols_tile(const gemm_tile *t, tile_in in) {
    int64_t i = 0;
    for (; i + kBlockRows <= t->m; i += kBlockRows)
        walk_cols(t, in, i, kBlockRows);
    for (; i < t->m; i++)
        walk_cols(t, in, i, 1);
}

static void rows_f32(const gemm_tile *t) {
    walk_rows(t, IN_F32, rows_block);
}

static void cols_bf16(const gemm_tile *t) {
    cols_tile(t, IN_BF16);
}

static void cols_f32(const gemm_tile *t) {
    cols_tile(t, IN_F32);
}

/* Rounds to nearest, ties to even. A NaN becomes a quiet NaN. */
static void to_bf16(uint16_t *out, const float *in, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vu u = (vu)vf_load(in + i);
        vi nan = (vi)((u & 0x7fffffffu) > 0x7f800000u);
        u = vu_select(nan, u | 0x400000u, u + 0x7fffu + (u >> 16 & 1u));
        *(vu16 *)(out + i) = __builtin_convertvector(u >> 16, vu16);
    }
    for (; i < n; i++)
        out[i] = bf16_from_f32(in[i]);
}

static float exp2_row(float *x, int64_t n, float largest) {
    vf sum = vf_set(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        vf y = vf_exp2(vf_load(x + i) - largest);
        vf_store(x + i, y);
        sum += y;
    }
    return VF_SUM(sum);
}

#endif
