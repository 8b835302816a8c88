#include "kernels/test/amx_vectors_once.h"

#if defined __x86_64__
#include "kernels/cpu/isa.h"
#include "kernels/cpu/target.h"
TARGET_BEGIN("gfni,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma")
#include <immintrin.h>

#define LANES           16
#define VF_FMA(a, b, c) ((vf)_mm512_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm512_max_ps((a), (b)))
#include "kernels/cpu/amx_vectors.h"

void decode_once(uint16_t *out, const uint8_t *in, size_t n, bool sorted) {
    _Alignas(64) uint8_t bytes[kTableBytes];
    make_tables(bytes);
    decode_e4m3(bytes, out, in, n, sorted);
}

void interleave_once(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                     bool sorted) {
    interleave(to, even, odd, tiles, sorted);
}

void sort_once(float *o, size_t n, bool decoded) {
    sort_columns(o, n, decoded);
}
TARGET_END

bool vectors_usable(void) {
    return !cpu_avx512.lacks() && __builtin_cpu_supports("gfni");
}
#else
bool vectors_usable(void) {
    return false;
}

void decode_once(uint16_t *out, const uint8_t *in, size_t n, bool sorted) {
    (void)out, (void)in, (void)n, (void)sorted;
}

void interleave_once(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                     bool sorted) {
    (void)to, (void)even, (void)odd, (void)tiles, (void)sorted;
}

void sort_once(float *o, size_t n, bool decoded) {
    (void)o, (void)n, (void)decoded;
}
#endif
