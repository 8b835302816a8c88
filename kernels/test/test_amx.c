/* The tile product in software equals its definition and, on machines with AMX, the processor's
 * product, bit for bit. The vector functions of the kernel that need AVX-512 keep every column and
 * every code. (The kernel itself is tested by test_cpu.c and test_conformance.c.) */
#include <CUnit/CUnit.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/amx_detect.h"
#include "kernels/cpu/isa.h"
#include "kernels/formats.h"
#include "kernels/test/amx_product.h"
#include "kernels/test/amx_vectors_once.h"

#if defined __x86_64__
#include "kernels/cpu/target.h"
TARGET_BEGIN("avx2,fma,f16c")
#include <immintrin.h>

#define LANES           8
#define VF_FMA(a, b, c) ((vf)_mm256_fmadd_ps((a), (b), (c)))
#define VF_MAX(a, b)    ((vf)_mm256_max_ps((a), (b)))
#include "kernels/cpu/amx_emulated_tiles.h"

static void emulated_once(float *c, const uint16_t *a, const uint16_t *b) {
    tiles_begin();
    TILE_LOAD(3, c, 64);
    TILE_LOAD(1, a, 64);
    TILE_LOAD(2, b, 64);
    TILE_PRODUCT(3, 1, 2);
    TILE_STORE(3, c, 64);
    tiles_end();
}
TARGET_END

/* Subnormal numbers become zero. */
static float flush(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static float number(uint16_t u) {
    return flush(bf16_to_f32(u));
}

/* The definition in the manual of the instruction, one element at a time. */
static void defined_once(float *c, const uint16_t *a, const uint16_t *b) {
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float even = 0.0f, odd = 0.0f;
            for (int k = 0; k < 16; k++) {
                const uint16_t *x = a + m * 32 + 2 * k, *y = b + k * 32 + 2 * n;
                even = flush(fmaf(number(x[0]), number(y[0]), even));
                odd = flush(fmaf(number(x[1]), number(y[1]), odd));
            }
            float *to = c + m * 16 + n;
            *to = flush(flush(*to) + flush(even + odd));
        }
}

/* Numbers whose magnitudes lie around 2^@middle, over 2^@spread. About one in ten is zero. */
static void draw(rng *r, uint16_t *out, int n, int middle, unsigned spread) {
    for (int i = 0; i < n; i++) {
        int exponent = middle + (int)rng_below(r, spread) - (int)spread / 2;
        double x = rng_below(r, 10) ? rng_normal(r) : 0.0;
        out[i] = bf16_from_f64(ldexp(x, exponent));
    }
}

/* The cases differ in the magnitudes: usual ones, sums that lose small terms, products that are
 * subnormal, and operands that are subnormal. */
static void test_product(void) {
    static const struct {
        int middle_a, middle_b, middle_c;
        unsigned spread;
    } kCases[] = {{0, 0, 0, 2}, {0, 0, 10, 24}, {-64, -64, -127, 8}, {-127, 60, -70, 12}};
    if (cpu_amx_emulated.lacks()) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: %s\n", cpu_amx_emulated.lacks());
        return;
    }
    rng r = rng_make(31, 0);
    for (int i = 0; i < 80; i++) {
        uint16_t a[512], b[512], start[256];
        float want[256], got[256], hardware[256];
        draw(&r, a, 512, kCases[i % 4].middle_a, kCases[i % 4].spread);
        draw(&r, b, 512, kCases[i % 4].middle_b, kCases[i % 4].spread);
        draw(&r, start, 256, kCases[i % 4].middle_c, kCases[i % 4].spread);
        for (int j = 0; j < 256; j++)
            want[j] = got[j] = hardware[j] = bf16_to_f32(start[j]);
        defined_once(want, a, b);
        emulated_once(got, a, b);
        CU_ASSERT_EQUAL(memcmp(want, got, sizeof want), 0);
        if (amx_lacks())
            continue;
        amx_product(hardware, a, b);
        CU_ASSERT_EQUAL(memcmp(got, hardware, sizeof got), 0);
    }
}

/* Even and odd terms have separate sums: a one that is lost in the even sum stays lost, although
 * the odd sum cancels the large term. */
static void test_order(void) {
    uint16_t a[512] = {0}, b[512] = {0};
    float c[256] = {0};
    if (cpu_amx_emulated.lacks())
        return;
    for (int k = 0; k < 4; k++)
        a[k] = bf16_from_f32(1.0f);
    b[0] = bf16_from_f32(0x1p24f);  /* term 0, even */
    b[1] = bf16_from_f32(-0x1p24f); /* term 1, odd */
    b[32] = bf16_from_f32(1.0f);    /* term 2, even */
    emulated_once(c, a, b);
    CU_ASSERT_EQUAL(c[0], 0.0f);
    b[32] = bf16_from_f32(2.0f);
    emulated_once(c, a, b);
    CU_ASSERT_EQUAL(c[0], 2.0f);
}
#else
static void test_product(void) {
    CU_ASSERT_PTR_NOT_NULL(amx_lacks());
}

static void test_order(void) {
}
#endif

/* ---- vectors -------------------------------------------------------------------------------- */

enum { kColumns = 96 }; /* 64 columns that are decoded together, and 32 more */

/* Codes of two tokens. With @all, they are drawn from all 256 codes; otherwise they are normal
 * numbers. */
static void draw_codes(rng *r, uint8_t *codes, bool all) {
    for (int i = 0; i < 2 * kColumns; i++) {
        uint8_t sign = rng_below(r, 2) ? 0x80 : 0, magnitude = (uint8_t)(8 + rng_below(r, 119));
        codes[i] = all ? (uint8_t)rng_below(r, 256) : sign | magnitude;
    }
}

/* Decodes and interleaves two tokens, and sorts the columns of the result. Each column must then be
 * where it was, and have the values that e4m3_to_f32() gives. */
static void expect_pairs(const uint8_t *codes, bool sorted) {
    uint16_t rows[2 * kColumns];
    _Alignas(64) uint32_t tiles[kColumns / 16][256] = {{0}};
    float pairs[kColumns];
    for (int i = 0; i < 2; i++)
        decode_once(rows + i * kColumns, codes + i * kColumns, kColumns, sorted);
    interleave_once(tiles[0], rows, rows + kColumns, kColumns / 16, sorted);
    for (int i = 0; i < kColumns; i++)
        memcpy(&pairs[i], &tiles[i / 16][i % 16], sizeof pairs[i]);
    if (!sorted)
        sort_once(pairs, kColumns, true);
    for (int i = 0; i < kColumns; i++) {
        uint32_t want = bf16_from_f32(e4m3_to_f32(codes[i])) |
                        (uint32_t)bf16_from_f32(e4m3_to_f32(codes[kColumns + i])) << 16;
        uint32_t got;
        memcpy(&got, &pairs[i], sizeof got);
        CU_ASSERT_EQUAL(got, want);
    }
}

static void test_decoding(void) {
    uint8_t codes[2 * kColumns];
    rng r = rng_make(32, 0);
    if (!vectors_usable()) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: no AVX-512 with GFNI\n");
        return;
    }
    for (int i = 0; i < 200; i++) {
        draw_codes(&r, codes, i % 2);
        expect_pairs(codes, i % 4 < 2);
    }
    for (int code = 0; code < 256; code++) {
        draw_codes(&r, codes, false);
        codes[code % kColumns] = (uint8_t)code; /* the only one that may not be normal */
        expect_pairs(codes, code % 2);
    }
}

/* Content of bf16 is interleaved only. */
static void test_interleaving(void) {
    uint16_t rows[2 * kColumns];
    if (!vectors_usable())
        return;
    for (int i = 0; i < 2 * kColumns; i++)
        rows[i] = (uint16_t)(i + 1);
    for (int sorted = 0; sorted < 2; sorted++) {
        _Alignas(64) uint32_t tiles[kColumns / 16][256] = {{0}};
        float pairs[kColumns];
        interleave_once(tiles[0], rows, rows + kColumns, kColumns / 16, sorted);
        for (int i = 0; i < kColumns; i++)
            memcpy(&pairs[i], &tiles[i / 16][i % 16], sizeof pairs[i]);
        if (!sorted)
            sort_once(pairs, kColumns, false);
        for (int i = 0; i < kColumns; i++) {
            uint32_t want = rows[i] | (uint32_t)rows[kColumns + i] << 16;
            uint32_t got;
            memcpy(&got, &pairs[i], sizeof got);
            CU_ASSERT_EQUAL(got, want);
        }
    }
}

CU_TestInfo tests_amx[] = {
    {"the tile product in software", test_product},
    {"the order of its sums", test_order},
    {"decoding and interleaving pairs of tokens", test_decoding},
    {"interleaving pairs of tokens", test_interleaving},
    CU_TEST_INFO_NULL,
};
