/* amx.c - computes one part with the BF16 tile products of Intel AMX, from 16 query rows on. Fewer
 * rows would leave part of a tile empty, so they run on AVX-512. The kernel is in amx_kernel.h. */
#if defined __x86_64__
#include "kernels/cpu/amx_detect.h"
#include "kernels/cpu/target.h"
TARGET_BEGIN(
    "amx-tile,amx-bf16,gfni,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))
#define VF_ROUND(x)     ((vf)_mm512_roundscale_ps((x), _MM_FROUND_TO_NEAREST_INT))
#define VF_SCALE(x, p, n)                                                                          \
    ((vf)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((x), _mm512_set1_ps(-126.0f), _CMP_NLT_UQ),     \
                                (p), (n)))

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/amx_vectors.h"

#include "kernels/cpu/amx_kernel.h" /* needs the two above */
#include "kernels/cpu/burst.h"

static size_t larger_scratch(int rows, int d_c, int d_r) {
    size_t tiles = scratch_bytes(rows, d_c, d_r), other = cpu_avx512.scratch_bytes(rows, d_c, d_r);
    return tiles > other ? tiles : other;
}

static void attend_rows(const cpu_part *part, void *memory, float *o, float *m, float *l) {
    if (part->rows < kTile)
        cpu_avx512.attend(part, memory, o, m, l);
    else
        attend(part, memory, o, m, l);
}

static const char *lacks(void) {
    const char *lacks = amx_lacks();
    lacks = lacks ? lacks : cpu_avx512.lacks();
    return lacks || __builtin_cpu_supports("gfni") ? lacks : "the processor has no GFNI";
}

const cpu_isa cpu_amx = {
    .name = "amx",
    .kernel = "amx-bf16",
    .lacks = lacks,
    .large_parts_from = kLargePartRows,
    .scratch_bytes = larger_scratch,
    .attend = attend_rows,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "tdpbf16ps, tiles from L1",
};

TARGET_END
#endif
