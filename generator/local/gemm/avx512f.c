/* Products for x86-64 with AVX-512 but without its BF16 dot products. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))
#define VF_SUM(a)       _mm512_reduce_add_ps(a)

#include "generator/local/gemm/tile.h"

static void rows_bf16(const gemm_tile *t) {
    walk_rows(t, IN_BF16, rows_block);
}

static bool usable(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

const gemm_isa gemm_avx512f = {
    .name = "avx512f",
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
