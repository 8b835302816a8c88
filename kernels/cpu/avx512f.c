/* The kernel for x86-64 with AVX-512 (F, BW, VL, DQ), in 512-bit vectors of FP32. It does not use
 * BF16 dot products. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))

#include "kernels/cpu/e4m3_half.h"

#include "kernels/cpu/fp32.h" /* needs the one above */

static const char *lacks(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
               ? NULL
               : "the processor has no AVX-512 F, BW, VL and DQ";
}

const cpu_isa cpu_avx512f = {
    .name = "avx512f",
    .kernel = "avx512f",
    .lacks = lacks,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "vfmadd zmm on converted operands",
};

TARGET_END
#endif
