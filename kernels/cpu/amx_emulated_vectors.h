/* amx_emulated_vectors.h - the vector operations of amx_vectors.h, without AVX-512. Columns are
 * always sorted. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_EMULATED_VECTORS_H
#define SNAPMLA_KERNELS_CPU_AMX_EMULATED_VECTORS_H

#include <stdbool.h>
#include <string.h>

#include "kernels/cpu/cpu_dataflow.h"

enum { kTableBytes = 64 };

/* This decoder needs no table. */
static void make_tables(uint8_t *tables) {
    (void)tables;
}

static void decode_e4m3(const uint8_t *tables, uint16_t *out, const uint8_t *in, size_t n,
                        bool sorted) {
    (void)tables;
    (void)sorted;
    for (size_t i = 0; i < n; i += LANES)
        store_bf16(out + i, (vu)load_e4m3(in + i));
}

static void interleave(uint32_t *to, const uint16_t *even, const uint16_t *odd, size_t tiles,
                       bool sorted) {
    (void)sorted;
    for (size_t i = 0; i < tiles; i++, to += 256)
        for (size_t c = 0; c < 16; c++)
            to[c] = even[i * 16 + c] | (uint32_t)odd[i * 16 + c] << 16;
}

static void sort_columns(float *o, size_t n, bool decoded) {
    (void)o;
    (void)n;
    (void)decoded;
}

static void transpose(uint32_t *to, const uint32_t *from, size_t apart) {
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < LANES; j++)
            to[j * 16 + i] = from[i * apart + j];
}

enum { kTransposeSteps = 4 };
INLINE void transpose_step(uint32_t *to, vu *half, const uint32_t *from, size_t apart, int step) {
    (void)half;
    if (step == 0)
        transpose(to, from, apart);
}

INLINE vu bf16_pairs(vf even, vf odd) {
    vu low = (vu)even, high = (vu)odd;
    low = vu_select(is_nan(low), low | 0x400000u, low + 0x7fffu + (low >> 16 & 1u));
    high = vu_select(is_nan(high), high | 0x400000u, high + 0x7fffu + (high >> 16 & 1u));
    return low >> 16 | (high & 0xffff0000u);
}

INLINE vf fraction_of(vf x) {
    x = VF_MAX(vf_set(-127.0f), x);
    return x - (vf)_mm256_floor_ps((__m256)x);
}

INLINE vf scale_by_floor(vf y, vf x) {
    vf n = (vf)_mm256_floor_ps((__m256)VF_MAX(vf_set(-127.0f), x));
    return y * (vf)(((vu) __builtin_convertvector(n, vi) + 127u) << 23);
}

#endif
