/* cpu_dataflow.h - conversion of rows between the formats, LANES numbers at a time (vec.h), and the
 * weighted sum of partial outputs. Apart from the bits of a NaN, the conversions equal those of
 * formats.h bit for bit; tests check this. Widths are multiples of 32. */
#ifndef SNAPMLA_KERNELS_CPU_CPU_DATAFLOW_H
#define SNAPMLA_KERNELS_CPU_CPU_DATAFLOW_H

#include <stdint.h>

#include "kernels/cpu/vec.h"
#include "kernels/formats.h"

typedef double vd __attribute__((vector_size(8 * LANES), may_alias));

static inline vi is_nan(vu u) {
    return (vi)((u & 0x7fffffffu) > 0x7f800000u);
}

static inline void store_bf16(uint16_t *to, vu u) {
    vu rounded = vu_select(is_nan(u), u | 0x400000u, u + 0x7fffu + (u >> 16 & 1u));
    *(vu16 *)to = __builtin_convertvector(rounded >> 16, vu16);
}

/* The code of a subnormal number is its count of 2^-9 steps. The code of a normal number is its
 * exponent, with the bias changed, and its mantissa. */
static inline void store_e4m3(uint8_t *to, vf x) {
    vu u = (vu)x, magnitude = u & 0x7fffffffu, sign = u >> 24 & 0x80u,
       largest = (vu)vf_set(E4M3_MAX);
    vf y = vf_round_e4m3((vf)vu_select((vi)(magnitude > largest), largest, magnitude));
    vu steps = (vu) __builtin_convertvector(y * 512.0f, vi), normal = ((vu)y >> 20) - (120u << 3);
    vu code = vu_select((vi)(y < 0x1p-6f), steps, normal);
    vu nan = (vu)is_nan(u) & 0x7fu;
    *(vu8 *)to = __builtin_convertvector(sign | nan | code, vu8);
}

/* If the seven magnitude bits of an e4m3 number are moved to the exponent and mantissa of an FP32,
 * the FP32 is the number's magnitude times 2^-120, also if the number is subnormal. NaN (0x7f) is
 * the exception. */
static inline vf load_e4m3(const uint8_t *from) {
    vu c = __builtin_convertvector(*(const vu8 *)from, vu);
    vu magnitude = (vu)((vf)((c & 0x7fu) << 20) * 0x1p120f);
    vu nan = (vu)((c & 0x7fu) == 0x7fu) & 0x7fc00000u;
    return (vf)(magnitude | nan | (c & 0x80u) << 24);
}

static float largest_magnitude(const uint16_t *row, int n) {
    vu largest = {0};
    for (int d = 0; d < n; d += LANES) {
        vu u = (vu)vf_load_bf16(row + d) & 0x7fffffffu;
        largest = vu_select((vi)(u > largest) & ~is_nan(u), u, largest);
    }
    vf all = (vf)largest;
    float m = all[0];
    for (int i = 1; i < LANES; i++)
        m = all[i] > m ? all[i] : m;
    return m;
}

static float quant(const uint16_t *row, int d_c, int d_r, mla_scale rule, uint8_t *c8,
                   uint16_t *rope) {
    float a = quant_scale(largest_magnitude(row, d_c), rule);
    for (int d = 0; d < d_c; d += LANES)
        store_e4m3(c8 + d, vf_load_bf16(row + d) / a);
    for (int d = 0; d < d_r; d += LANES)
        store_bf16(rope + d, (vu)(vf_load_bf16(row + d_c + d) / a));
    return a;
}

/* Rounds an exact product to bf16 once. The first step, to FP32, rounds to odd: towards zero, with
 * the last bit set if anything was lost. The rounding to bf16 then gives the same result as
 * rounding the exact product. */
static inline void store_product(uint16_t *to, vf x, float a) {
    vd exact = __builtin_convertvector(x, vd) * (double)a;
    vf near = __builtin_convertvector(exact, vf);
    vd back = __builtin_convertvector(near, vd);
    vi lost = __builtin_convertvector(back != exact, vi);
    vi larger = __builtin_convertvector((back > exact) == (exact > 0.0), vi) & lost;
    store_bf16(to, ((vu)near - ((vu)larger & 1u)) | ((vu)lost & 1u));
}

static void dequant(const uint8_t *c8, const uint16_t *rope, float a, int d_c, int d_r,
                    uint16_t *row) {
    for (int d = 0; d < d_c; d += LANES)
        store_product(row + d, load_e4m3(c8 + d), a);
    for (int d = 0; d < d_r; d += LANES)
        store_product(row + d_c + d, vf_load_bf16(rope + d), a);
}

static void combine(uint16_t *out, const float *o, int64_t stride, const float *weight, int parts,
                    int d_c) {
    for (int d = 0; d < d_c; d += LANES) {
        vf sum = vf_load(o + d) * weight[0];
        for (int i = 1; i < parts; i++)
            sum += vf_load(o + i * stride + d) * weight[i];
        store_bf16(out + d, (vu)sum);
    }
}

#endif
