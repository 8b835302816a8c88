/* formats.h - the two number formats of the cache, the quantisation of a row, and the address of a
 * token in the cache.
 *
 *   bf16   s eeeeeeee mmmmmmm   bias 127: the upper half of an FP32
 *   e4m3   s eeee mmm           bias 7: largest 448, smallest 2^-9, no infinities, NaN = s1111111
 *          (the "fn" variant of the OCP 8-bit floating point specification 1.0)
 *
 * Conversions round once, to nearest, ties to even. Conversion to e4m3 saturates: values that round
 * above 448, infinities included, become +-448, and a NaN stays a NaN. Conversion to bf16 overflows
 * to infinity as IEEE 754 does, and a NaN becomes a quiet NaN. These scalar functions are the
 * definition. Every vectorised or device version must match them bit for bit, apart from the sign
 * and payload of a NaN. */
#ifndef SNAPMLA_KERNELS_FORMATS_H
#define SNAPMLA_KERNELS_FORMATS_H

#include <stdint.h>

#include "kernels/mla.h"

#define E4M3_MAX 448.0f

/* max|c| is raised to at least this value before the division by E4M3_MAX, so that the scale is
 * never zero. */
#define QUANT_MIN_MAX 1e-10f

float bf16_to_f32(uint16_t b);
uint16_t bf16_from_f32(float x);
uint16_t bf16_from_f64(double x);

float e4m3_to_f32(uint8_t b);
uint8_t e4m3_from_f32(float x);
uint8_t e4m3_from_f64(double x);

/* The scale of a row whose largest content magnitude is @most, NaNs ignored. A smaller magnitude
 * than QUANT_MIN_MAX counts as QUANT_MIN_MAX. */
float quant_scale(float most, mla_scale rule);

/**
 * quant_row - quantise one token or query to the planes of MLA_FP8
 *
 * @row:   bf16 [d_c + d_r], RoPE last
 * @rule:  how the scale a is chosen
 * @c8:    e4m3 [d_c]: c / a, the division in FP32
 * @rope:  bf16 [d_r]: r / a, the division in FP32
 *
 * Returns a = quant_scale(max|c|, rule). The maximum ignores NaNs; a NaN in c stays NaN in c8.
 */
float quant_row(const uint16_t *row, int d_c, int d_r, mla_scale rule, uint8_t *c8, uint16_t *rope);

/* Converts the planes back: bf16 [d_c + d_r] = c8 * a and rope * a. Each product is exact and
 * rounded once. */
void dequant_row(const uint8_t *c8, const uint16_t *rope, float a, int d_c, int d_r, uint16_t *row);

/* The slot of a sequence's token in the pool: page * MLA_PAGE + token % MLA_PAGE. The token lies at
 * element slot * width of a plane. @table_row is the sequence's row of the block table. A page
 * number outside 0..pages-1 is clamped. */
int64_t mla_slot(const int32_t *table_row, int64_t pages, int64_t token);

#endif
