/* For any machine: 128-bit vectors in GNU C. The compiler translates them for any target. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif

#define LANES           4
#define VF_FMA(a, b, c) ((a) * (b) + (c))
#define VF_MAX(a, b)    vf_select((a) > (b), (a), (b))

#include "kernels/cpu/cpu_dataflow.h"

static void decode_e4m3(float *out, const uint8_t *in, int n) {
    for (int i = 0; i < n; i += LANES)
        vf_store(out + i, load_e4m3(in + i));
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
