/* dataflow.h - rows through the formats, written so that the compiler vectorises the loops for the
 * including file's instruction set: no branch, no call, one statement a step. The definitions are
 * formats.h's; tests hold these to them bit for bit. */
#ifndef SNAPMLA_KERNELS_CPU_DATAFLOW_H
#define SNAPMLA_KERNELS_CPU_DATAFLOW_H

#include <stdint.h>
#include <string.h>

#include "kernels/formats.h"

static inline uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* All ones where the condition holds. */
static inline uint32_t mask_of(int condition) {
    return (uint32_t)-condition;
}

static inline uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no) {
    return (mask & yes) | (~mask & no);
}

static inline uint16_t bf16_round(uint32_t u) {
    uint32_t nan = mask_of((u & 0x7fffffffu) > 0x7f800000u);
    return (uint16_t)(choose(nan, u | 0x400000u, u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* The code of |x| as e4m3, x given by its bits: the addition of vf_round_e4m3(), then the exponent
 * rebased; a subnormal's code is its count of 2^-9 steps. */
static inline uint32_t e4m3_code(uint32_t u) {
    uint32_t magnitude = u & 0x7fffffffu, sign = u >> 24 & 0x80u;
    uint32_t nan = mask_of(magnitude > 0x7f800000u);
    magnitude = choose(mask_of(magnitude > 0x43e00000u), 0x43e00000u, magnitude); /* 448 */
    uint32_t power = magnitude & 0x7f800000u, smallest = 0x3c800000u;             /* 2^-6 */
    uint32_t shift = choose(mask_of(power > smallest), power, smallest) + (20u << 23);
    float y = (float_of(magnitude) + float_of(shift)) - float_of(shift);
    uint32_t normal = (bits_of(y) >> 20) - (120u << 3), subnormal = (uint32_t)(int32_t)(y * 512.0f);
    uint32_t code = choose(mask_of(y < 0x1p-6f), subnormal, normal);
    return sign | choose(nan, 0x7fu, code);
}

static float quant(const uint16_t *row, int d_c, int d_r, uint8_t *c8, uint16_t *rope) {
    uint32_t largest = bits_of(QUANT_MIN_MAX);
    for (int d = 0; d < d_c; d++) {
        uint32_t u = ((uint32_t)row[d] << 16) & 0x7fffffffu;
        u = choose(mask_of(u > 0x7f800000u), 0, u);
        largest = u > largest ? u : largest;
    }
    float a = float_of(largest) / E4M3_MAX;
    for (int d = 0; d < d_c; d++)
        c8[d] = (uint8_t)e4m3_code(bits_of(float_of((uint32_t)row[d] << 16) / a));
    for (int d = 0; d < d_r; d++)
        rope[d] = bf16_round(bits_of(float_of((uint32_t)row[d_c + d] << 16) / a));
    return a;
}

/* An exact product, rounded once: to FP32 towards zero with the last bit set if anything was lost
 * ("round to odd"), which the rounding to bf16 then sees. */
static inline uint16_t bf16_product(float x, float a) {
    double exact = (double)x * (double)a;
    float near = (float)exact;
    double back = (double)near;
    uint32_t lost = mask_of(back != exact);
    uint32_t above = mask_of((back > exact) == (exact > 0.0)) & lost;
    uint32_t odd = bits_of(near) - (above & 1u);
    return bf16_round(odd | (lost & 1u));
}

/* The seven bits, moved to where FP32 keeps exponent and mantissa, are the value times 2^-120,
 * subnormals included. */
static inline float e4m3_value(uint8_t code) {
    uint32_t c = code, nan = mask_of((c & 0x7fu) == 0x7fu) & 0x7fc00000u;
    float magnitude = float_of((c & 0x7fu) << 20) * 0x1p120f;
    return float_of(bits_of(magnitude) | nan | (c & 0x80u) << 24);
}

static void dequant(const uint8_t *c8, const uint16_t *rope, float a, int d_c, int d_r,
                    uint16_t *row) {
    for (int d = 0; d < d_c; d++)
        row[d] = bf16_product(e4m3_value(c8[d]), a);
    for (int d = 0; d < d_r; d++)
        row[d_c + d] = bf16_product(float_of((uint32_t)rope[d] << 16), a);
}

static void combine(uint16_t *out, const float *o, int64_t stride, const float *weight, int parts,
                    int d_c) {
    float sum[MLA_MAX_CONTENT];
    for (int d = 0; d < d_c; d++)
        sum[d] = weight[0] * o[d];
    for (int i = 1; i < parts; i++)
        for (int d = 0; d < d_c; d++)
            sum[d] += weight[i] * o[i * stride + d];
    for (int d = 0; d < d_c; d++)
        out[d] = bf16_round(bits_of(sum[d]));
}

#endif
