/* Products for x86-64 with AVX2 and FMA, in 256-bit vectors. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx2,fma")
#include <immintrin.h>

#define LANES           8
#define VF_FMA(a, b, c) ((vf)_mm256_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm256_max_ps((a), (b)))

static inline float sum_lanes(__m256 x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
#define VF_SUM(a) sum_lanes((__m256)(a))

#include "generator/local/gemm/tile.h"

static void rows_bf16(const gemm_tile *t) {
    walk_rows(t, IN_BF16, rows_block);
}

static bool usable(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const gemm_isa gemm_avx2 = {
    .name = "avx2",
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
