/* The kernel for x86-64 with AVX2 and FMA, in 256-bit vectors of FP32. Every processor with AVX2
 * also has F16C. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx2,fma,f16c")
#include <immintrin.h>

#define LANES           8
#define VF_FMA(a, b, c) ((vf)_mm256_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm256_max_ps((a), (b)))

#include "kernels/cpu/e4m3_half.h"

#include "kernels/cpu/fp32.h" /* needs the one above */

static const char *lacks(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               ? NULL
               : "the processor has no AVX2 and FMA";
}

const cpu_isa cpu_avx2 = {
    .name = "avx2",
    .kernel = "avx2",
    .lacks = lacks,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "vfmadd ymm on converted operands",
};

TARGET_END
#endif
