/* Products for x86-64 with AVX-512's BF16 dot products (for example Zen 4, Sapphire Rapids).
 * vdpbf16ps takes both operands with k contiguous, as MAT_ROWS (gemm.h) stores them, so nothing is
 * rearranged. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))
#define VF_SUM(a)       _mm512_reduce_add_ps(a)

#include "generator/local/gemm/tile.h"

enum { kPairs = 32 }; /* bf16 numbers in a vector */

INLINE __m512bh load_pairs(const void *p, int64_t i, __mmask32 mask) {
    return (__m512bh)_mm512_maskz_loadu_epi16(mask, (const uint16_t *)p + i);
}

INLINE void step(const gemm_tile *t, __m512 *sum, int64_t i0, int64_t j0, int m, int n, int64_t k,
                 __mmask32 mask) {
    __m512bh w[kWideCols];
    UNROLL
    for (int j = 0; j < n; j++)
        w[j] = load_pairs(t->w, (j0 + j) * t->ldw + k, mask);
    UNROLL
    for (int i = 0; i < m; i++) {
        __m512bh x = load_pairs(t->x, (i0 + i) * t->ldx + k, mask);
        UNROLL
        for (int j = 0; j < n; j++)
            sum[i * n + j] = _mm512_dpbf16_ps(sum[i * n + j], x, w[j]);
    }
}

INLINE void dot_block(const gemm_tile *t, tile_in in, int64_t i0, int64_t j0, int m, int n) {
    (void)in;
    __m512 sum[kTallRows * kBlockCols];
    int64_t k = 0;
    UNROLL
    for (int i = 0; i < m * n; i++)
        sum[i] = _mm512_setzero_ps();
    for (; k + kPairs <= t->k; k += kPairs)
        step(t, sum, i0, j0, m, n, k, 0xffffffffu);
    if (k < t->k)
        step(t, sum, i0, j0, m, n, k, (__mmask32)((1u << (t->k - k)) - 1u));
    UNROLL
    for (int i = 0; i < m; i++) {
        UNROLL
        for (int j = 0; j < n; j++) {
            float *to = &t->y[(i0 + i) * t->ldy + j0 + j], y = _mm512_reduce_add_ps(sum[i * n + j]);
            *to = t->add ? *to + y : y;
        }
    }
}

static void rows_bf16(const gemm_tile *t) {
    walk_rows(t, IN_BF16, dot_block);
}

static bool usable(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

const gemm_isa gemm_avx512bf16 = {
    .name = "avx512bf16",
    .usable = usable,
    .rows_bf16 = rows_bf16,
    .rows_f32 = rows_f32,
    .cols_bf16 = cols_bf16,
    .cols_f32 = cols_f32,
    .to_bf16 = to_bf16,
    .exp2 = exp2_row,
};

TARGET_END
#endif
