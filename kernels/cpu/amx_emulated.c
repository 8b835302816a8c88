/* The AMX kernel with tiles in software, on x86-64 with AVX2 and FMA. It computes what amx.c
 * computes, slowly, so that the kernel is tested on machines without AMX. "auto" never chooses
 * it. */
#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx2,fma,f16c")
#include <immintrin.h>

#define LANES           8
#define VF_FMA(a, b, c) ((vf)_mm256_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm256_max_ps((a), (b)))

#include "kernels/cpu/amx_emulated_tiles.h"
#include "kernels/cpu/amx_emulated_vectors.h"

#include "kernels/cpu/amx_kernel.h" /* needs the two above */
#include "kernels/cpu/burst.h"

static const char *lacks(void) {
    return cpu_avx2.lacks();
}

const cpu_isa cpu_amx_emulated = {
    .name = "amx-emulated",
    .kernel = "amx-emulated",
    .lacks = lacks,
    .emulated = true,
    .large_parts_from = kLargePartRows,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "tdpbf16ps in software",
};

TARGET_END
#endif
