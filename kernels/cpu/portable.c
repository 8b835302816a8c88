/* The kernel for any machine, in 128-bit vectors of GNU C, which the compiler translates for any
 * target. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif

#define LANES           4
#define VF_FMA(a, b, c) ((a) * (b) + (c))
#define VF_MAX(a, b)    vf_select((a) > (b), (a), (b))

#include <string.h>

#include "kernels/cpu/cpu_dataflow.h"

typedef uint8_t codes8 __attribute__((vector_size(8), may_alias, aligned(1)));
typedef uint16_t words8 __attribute__((vector_size(16), may_alias));
typedef uint16_t words4 __attribute__((vector_size(8), may_alias));

/* Decodes @n codes, a multiple of 8, as load_e4m3() does. The upper halves of eight FP32 numbers
 * fit into one vector, so most operations serve eight codes. */
static void decode_e4m3(float *out, const uint8_t *in, int n) {
    for (int i = 0; i < n; i += 8) {
        words8 c = __builtin_convertvector(*(const codes8 *)(in + i), words8), magnitude = c & 0x7f;
        words8 nan = (words8)(magnitude == 0x7f) & 0x7fc0;
        words8 upper = magnitude << 4 | nan | (c & 0x80) << 8;
        words4 half[2];
        memcpy(half, &upper, sizeof half);
        for (int j = 0; j < 2; j++)
            vf_store(out + i + j * LANES,
                     (vf)(__builtin_convertvector(half[j], vu) << 16) * 0x1p120f);
    }
}

#include "kernels/cpu/fp32.h"

static const char *lacks(void) {
    return NULL;
}

const cpu_isa cpu_portable = {
    .name = "portable",
    .kernel = "portable",
    .lacks = lacks,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .combine = combine,
    .quant = quant,
    .dequant = dequant,
    .read = burst_read,
    .multiply = multiply,
    .multiply_how = "FP32 multiply and add, 128-bit",
};
