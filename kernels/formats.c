#include "kernels/formats.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Encodes the magnitude @x, which is finite and below 2^128, in a format with @mantissa stored
 * bits. Its smallest normal number is 2^e_min, at least 2^-126. The exponent and mantissa fields
 * together count steps of the format. So a carry out of the mantissa increments the exponent, and
 * subnormal numbers need no special case. The exponents are read and written as bits of an FP64
 * number, because ilogb() and ldexp() would take most of the time. */
static uint32_t round_magnitude(double x, int mantissa, int e_min) {
    if (x == 0.0)
        return 0;
    uint64_t bits;
    double per_step; /* the inverse of a step: a power of two, so the product is exact */
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    e = e < e_min ? e_min : e;
    bits = (uint64_t)(1023 + mantissa - e) << 52;
    memcpy(&per_step, &bits, sizeof per_step);
    uint32_t steps = (uint32_t)nearbyint(x * per_step);
    return ((uint32_t)(e - e_min) << mantissa) + steps;
}

float bf16_to_f32(uint16_t b) {
    return float_of((uint32_t)b << 16);
}

uint16_t bf16_from_f32(float x) {
    uint32_t u = bits_of(x);
    if (isnan(x))
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

uint16_t bf16_from_f64(double x) {
    uint32_t sign = signbit(x) ? 0x8000u : 0u;
    if (isnan(x))
        return (uint16_t)(sign | 0x7fc0u);
    if (fabs(x) >= 0x1p128)
        return (uint16_t)(sign | 0x7f80u);
    return (uint16_t)(sign | round_magnitude(fabs(x), 7, -126));
}

float e4m3_to_f32(uint8_t b) {
    uint32_t sign = (uint32_t)(b & 0x80u) << 24, e = b >> 3 & 15u, m = b & 7u;
    if (e == 15 && m == 7)
        return float_of(sign | 0x7fc00000u);
    float magnitude = e ? float_of((e + 120u) << 23 | m << 20) : (float)m * 0x1p-9f;
    return float_of(bits_of(magnitude) | sign);
}

uint8_t e4m3_from_f64(double x) {
    uint32_t sign = signbit(x) ? 0x80u : 0u;
    if (isnan(x))
        return (uint8_t)(sign | 0x7fu);
    double magnitude = fabs(x) < (double)E4M3_MAX ? fabs(x) : (double)E4M3_MAX;
    return (uint8_t)(sign | round_magnitude(magnitude, 3, -6));
}

uint8_t e4m3_from_f32(float x) {
    return e4m3_from_f64((double)x);
}

float quant_scale(float most, mla_scale rule) {
    float a = (most > QUANT_MIN_MAX ? most : QUANT_MIN_MAX) / E4M3_MAX;
    /* Adding all bits of a mantissa carries into the exponent unless the mantissa is zero. */
    return rule == MLA_SCALE_POW2 ? float_of((bits_of(a) + 0x7fffffu) & 0x7f800000u) : a;
}

float quant_row(const uint16_t *row, int d_c, int d_r, mla_scale rule, uint8_t *c8,
                uint16_t *rope) {
    uint16_t largest = 0; /* The bits of magnitudes have the order of the magnitudes. */
    for (int d = 0; d < d_c; d++) {
        uint16_t magnitude = row[d] & 0x7fffu;
        bool larger = magnitude > largest && magnitude <= 0x7f80u; /* false for any NaN */
        largest = larger ? magnitude : largest;
    }
    float a = quant_scale(bf16_to_f32(largest), rule);
    for (int d = 0; d < d_c; d++) { /* a zero keeps its sign; rows of tests have many zeros */
        bool zero = (row[d] & 0x7fffu) == 0;
        c8[d] = zero ? (uint8_t)(row[d] >> 8) : e4m3_from_f32(bf16_to_f32(row[d]) / a);
    }
    for (int d = 0; d < d_r; d++)
        rope[d] = bf16_from_f32(bf16_to_f32(row[d_c + d]) / a);
    return a;
}

void dequant_row(const uint8_t *c8, const uint16_t *rope, float a, int d_c, int d_r,
                 uint16_t *row) {
    for (int d = 0; d < d_c; d++)
        row[d] = bf16_from_f64((double)e4m3_to_f32(c8[d]) * (double)a);
    for (int d = 0; d < d_r; d++)
        row[d_c + d] = bf16_from_f64((double)bf16_to_f32(rope[d]) * (double)a);
}

int64_t mla_slot(const int32_t *table_row, int64_t pages, int64_t token) {
    int64_t page = table_row[token / MLA_PAGE];
    page = page < 0 ? 0 : page >= pages ? pages - 1 : page;
    return page * MLA_PAGE + token % MLA_PAGE;
}
