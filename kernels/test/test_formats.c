#include <CUnit/CUnit.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/formats.h"

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Decodes e4m3 by the OCP definition, in powers of two. */
static long double e4m3_defined(unsigned code) {
    unsigned e = code >> 3 & 15u, m = code & 7u;
    long double v =
        e ? ldexpl(1.0L + (long double)m / 8, (int)e - 7) : ldexpl((long double)m / 8, -6);
    return code & 0x80u ? -v : v;
}

/* Finds the nearest of the non-negative codes 0 .. last by search; ties go to the even code. */

static unsigned nearest(long double x, const long double *value, unsigned last) {
    unsigned best = 0;
    for (unsigned c = 1; c <= last; c++) {
        long double d = fabsl(value[c] - x), best_d = fabsl(value[best] - x);
        if (d < best_d || (d == best_d && c % 2 == 0))
            best = c;
    }
    return best;
}

static void test_e4m3_every_code(void) {
    for (unsigned c = 0; c < 256; c++) {
        float v = e4m3_to_f32((uint8_t)c);
        if ((c & 0x7fu) == 0x7fu) {
            CU_ASSERT(isnan(v));
            CU_ASSERT_EQUAL(e4m3_from_f32(v) & 0x7fu, 0x7fu);
            continue;
        }
        CU_ASSERT((long double)v == e4m3_defined(c));
        CU_ASSERT_EQUAL(e4m3_from_f32(v), c);
        CU_ASSERT_EQUAL(e4m3_from_f64((double)v), c);
    }
}

static void check_e4m3(double x, const long double *value) {
    unsigned want = nearest(fabsl((long double)x), value, 0x7e) | (signbit(x) ? 0x80u : 0u);
    if (e4m3_from_f64(x) != want)
        CU_FAIL("e4m3_from_f64 is not the nearest");
    if ((double)(float)x == x && e4m3_from_f32((float)x) != want)
        CU_FAIL("e4m3_from_f32 is not the nearest");
}

/* Tests the values below 448, every midpoint of two neighbours, the numbers next to the midpoints,
 * and random numbers. */
static void test_e4m3_rounds_to_nearest_even(void) {
    long double value[0x7f];
    for (unsigned c = 0; c < 0x7f; c++)
        value[c] = e4m3_defined(c);
    for (unsigned c = 0; c + 1 < 0x7f; c++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double mid = (double)((value[c] + value[c + 1]) / 2) * sign;
            check_e4m3((double)value[c] * sign, value);
            check_e4m3(mid, value);
            check_e4m3(nextafter(mid, INFINITY), value);
            check_e4m3(nextafter(mid, -(double)INFINITY), value);
            check_e4m3((double)nextafterf((float)mid, INFINITY), value);
            check_e4m3((double)nextafterf((float)mid, -INFINITY), value);
        }
    rng r = rng_make(3, 0);
    for (int i = 0; i < 20000; i++)
        check_e4m3(ldexp(rng_normal(&r), (int)rng_below(&r, 24) - 14), value);
}

static void test_e4m3_saturates(void) {
    static const double kLarge[] = {448.0, 463.999, 464.0, 465.0, 1e9, 1e300};
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_EQUAL(e4m3_from_f64(kLarge[i]), 0x7e);
        CU_ASSERT_EQUAL(e4m3_from_f64(-kLarge[i]), 0xfe);
    }
    CU_ASSERT_EQUAL(e4m3_from_f32(INFINITY), 0x7e);
    CU_ASSERT_EQUAL(e4m3_from_f32(-INFINITY), 0xfe);
    CU_ASSERT_EQUAL(e4m3_from_f32(float_of(1)), 0);
    CU_ASSERT_EQUAL(e4m3_from_f32(-float_of(1)), 0x80);
    CU_ASSERT_EQUAL(e4m3_from_f64((double)NAN) & 0x7f, 0x7f);
}

static void test_bf16_every_value(void) {
    int wrong = 0;
    for (uint32_t b = 0; b < 65536; b++) {
        float v = bf16_to_f32((uint16_t)b);
        if ((b & 0x7fffu) > 0x7f80u) {
            wrong += !isnan(v) || !isnan(bf16_to_f32(bf16_from_f32(v)));
            continue;
        }
        int e = (int)(b >> 7 & 255u), m = (int)(b & 127u);
        double defined = e == 255 ? (double)INFINITY
                         : e      ? ldexp(1.0 + m / 128.0, e - 127)
                                  : ldexp(m / 128.0, -126);
        wrong += (double)v != (b & 0x8000u ? -defined : defined);
        wrong += bf16_from_f32(v) != b || bf16_from_f64((double)v) != b;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Between two neighbours, the midpoint rounds to the even one, any other number to the nearer
 * one. */
static void test_bf16_rounds_to_nearest_even(void) {
    int wrong = 0;
    for (uint32_t b = 0; b < 0x7f7f; b++) {
        double low = (double)bf16_to_f32((uint16_t)b),
               high = (double)bf16_to_f32((uint16_t)(b + 1));
        double mid = (low + high) / 2;
        wrong += bf16_from_f64(mid) != b + (b & 1u);
        wrong += bf16_from_f64(-mid) != (0x8000u | (b + (b & 1u)));
        wrong += bf16_from_f64(nextafter(mid, 0.0)) != b;
        wrong += bf16_from_f64(nextafter(mid, high)) != b + 1;
        float m = (float)mid; /* exact: 9 bits */
        wrong += bf16_from_f32(m) != b + (b & 1u);
        wrong += bf16_from_f32(nextafterf(m, 0.0f)) != b;
        wrong += bf16_from_f32(nextafterf(m, INFINITY)) != b + 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(bf16_from_f64(0x1.ffp127), 0x7f80); /* halfway between the largest number and
                                                           2^128 */
    CU_ASSERT_EQUAL(bf16_from_f64(nextafter(0x1.ffp127, 0.0)), 0x7f7f);
    CU_ASSERT_EQUAL(bf16_from_f64(-1e300), 0xff80);
    CU_ASSERT_EQUAL(bf16_from_f32(INFINITY), 0x7f80);
}

/* 1 + 2^-8 + 2^-40 rounds up. Rounded to FP32 first, it would become a tie and round down. */
static void test_f64_is_rounded_once(void) {
    CU_ASSERT_EQUAL(bf16_from_f64(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
    CU_ASSERT_EQUAL(bf16_from_f64(1.0 + 0x1p-8), 0x3f80);
    CU_ASSERT_EQUAL(e4m3_from_f64(1.0 + 0x1p-4 + 0x1p-40), 0x39);
    CU_ASSERT_EQUAL(e4m3_from_f64(1.0 + 0x1p-4), 0x38);
}

static void test_quant_row(void) {
    enum { kC = 64, kR = 32 };
    uint16_t row[kC + kR] = {0}, rope[kR], back[kC + kR];
    uint8_t c8[kC];
    for (int d = 0; d < kC + kR; d++)
        row[d] = bf16_from_f32((float)(d % 7) - 3.0f);
    row[5] = bf16_from_f32(-14.0f);
    row[kC + 1] = bf16_from_f32(1000.0f);
    float a = quant_row(row, kC, kR, MLA_SCALE_MAX, c8, rope);
    CU_ASSERT_EQUAL(a, 14.0f / 448.0f);
    CU_ASSERT_EQUAL(c8[5], 0xfe);
    CU_ASSERT_EQUAL(rope[1], bf16_from_f32(1000.0f / a));
    dequant_row(c8, rope, a, kC, kR, back);
    for (int d = 0; d < kC; d++)
        CU_ASSERT(fabsf(bf16_to_f32(back[d]) - bf16_to_f32(row[d])) <= 3.0f / 16 + 3.0f / 256);
    CU_ASSERT_EQUAL(back[5], row[5]);
}

/* A row with all-zero content and a RoPE part of 1e3 stays finite. */
static void test_quant_row_of_zeros(void) {
    uint16_t row[64] = {0}, rope[32];
    uint8_t c8[32];
    row[40] = bf16_from_f32(1000.0f);
    float a = quant_row(row, 32, 32, MLA_SCALE_MAX, c8, rope);
    CU_ASSERT_EQUAL(a, 1e-10f / 448.0f);
    for (int d = 0; d < 32; d++)
        CU_ASSERT_EQUAL(c8[d], 0);
    CU_ASSERT(isfinite(bf16_to_f32(rope[8])));
    CU_ASSERT_DOUBLE_EQUAL((double)bf16_to_f32(rope[8]) * (double)a, 1000.0, 4.0);
}

static void test_slot_is_clamped(void) {
    static const int32_t kTable[] = {3, -7, 900};
    CU_ASSERT_EQUAL(mla_slot(kTable, 10, 5), 3 * 64 + 5);
    CU_ASSERT_EQUAL(mla_slot(kTable, 10, 64 + 63), 63);
    CU_ASSERT_EQUAL(mla_slot(kTable, 10, 128), 9 * 64);
}

/* The scale of the largest e4m3 number is 1, a power of two. Any larger maximum needs the next one,
 * and powers of two stay as they are. */
static void test_scales_of_powers_of_two(void) {
    CU_ASSERT_EQUAL(quant_scale(448.0f, MLA_SCALE_POW2), 1.0f);
    CU_ASSERT_EQUAL(quant_scale(nextafterf(448.0f, 0), MLA_SCALE_POW2), 1.0f);
    CU_ASSERT_EQUAL(quant_scale(450.0f, MLA_SCALE_POW2), 2.0f);
    CU_ASSERT_EQUAL(quant_scale(0, MLA_SCALE_POW2), 0x1p-42f);
    CU_ASSERT(isinf(quant_scale(INFINITY, MLA_SCALE_POW2)));
    rng r = rng_make(5, 0);
    for (int i = 0; i < 1000; i++) {
        float most = (float)ldexp(rng_uniform(&r), (int)rng_below(&r, 120) - 60);
        float max = quant_scale(most, MLA_SCALE_MAX), a = quant_scale(most, MLA_SCALE_POW2);
        int e;
        CU_ASSERT_EQUAL(frexpf(a, &e), 0.5f);
        CU_ASSERT(a >= max && a < 2 * max);
    }
}

/* Dividing by a power of two and multiplying again changes no RoPE number. */
static void test_rope_with_powers_of_two(void) {
    enum { kC = 32, kR = 32 };
    uint16_t row[kC + kR], rope[kR], back[kC + kR];
    uint8_t c8[kC];
    rng r = rng_make(6, 0);
    for (int d = 0; d < kC + kR; d++)
        row[d] = bf16_from_f64(rng_normal(&r) * (d < kC ? 1 : 30));
    float a = quant_row(row, kC, kR, MLA_SCALE_POW2, c8, rope);
    dequant_row(c8, rope, a, kC, kR, back);
    CU_ASSERT_EQUAL(memcmp(back + kC, row + kC, kR * sizeof *row), 0);
}

CU_TestInfo tests_formats[] = {
    {"e4m3: every code both ways", test_e4m3_every_code},
    {"e4m3: nearest, ties to even, by search", test_e4m3_rounds_to_nearest_even},
    {"e4m3: saturation and NaN", test_e4m3_saturates},
    {"bf16: every value both ways", test_bf16_every_value},
    {"bf16: nearest, ties to even, between all neighbours", test_bf16_rounds_to_nearest_even},
    {"doubles are rounded once", test_f64_is_rounded_once},
    {"a token's quantisation", test_quant_row},
    {"a token of zeros", test_quant_row_of_zeros},
    {"scales that are powers of two", test_scales_of_powers_of_two},
    {"RoPE with such scales", test_rope_with_powers_of_two},
    {"slots outside the pool", test_slot_is_clamped},
    CU_TEST_INFO_NULL,
};
