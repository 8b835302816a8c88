/* Tests sums of few bits: they are compared with results by hand for a few numbers, and with FP64
 * where the bits suffice. How a real device sums is checked in kernels/cuda/test/check_fp8.cu. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cut_sums.h"
#include "kernels/formats.h"

enum { kWidth = 64, kRope = 2 };
static const mla_cut_sums kFew = {.bits = 13, .products = 32};
static const mla_cut_sums kMany = {.bits = 45, .products = 8}; /* enough to be exact for all sums in
                                                                  this file */

typedef struct {
    float content[kWidth], rope[kRope], scale;
} row;

static ref_rows rows_of(row *r) {
    return (ref_rows){1,     kWidth,     kRope,   1,         kWidth,   1,
                      kRope, r->content, r->rope, &r->scale, &r->scale};
}

/* The log-sum-exp of a single score is that score. */
static double sum_of(mla_cut_sums how, row *q, row *k) {
    ref_rows x = rows_of(q), y = rows_of(k);
    x.d_r = y.d_r = 0;
    return cut_sums_lse(how, &x, 0, &y, 1, 1);
}

/* With 13 bits and a product of 2^8, addends below 2^-5 are dropped in the same instruction. A sum
 * of 2^8 has the same effect in the next instruction. */
static void test_what_is_dropped(void) {
    row q = {.scale = 1}, k = {.scale = 0.5f};
    q.content[0] = 256;
    k.content[0] = 1;
    for (int d = 1; d < kWidth; d++) {
        q.content[d] = 1.5f;
        k.content[d] = 0x1p-6f;
    }
    CU_ASSERT_EQUAL(sum_of(kFew, &q, &k), 0.5 * 256);
    CU_ASSERT_EQUAL(sum_of(kMany, &q, &k), 0.5 * (256 + 63 * 0x1.8p-6));
    /* Truncation is towards zero. In the first instruction, 1.5 x 2^-5 is cut to 2^-5. After that
     * the sum is below 2^8, so the second instruction keeps one bit more. */
    for (int d = 1; d < kWidth; d++)
        k.content[d] = -0x1p-5f;
    CU_ASSERT_EQUAL(sum_of(kFew, &q, &k), 0.5 * (256 - 31 * 0x1p-5 - 32 * 0x1.8p-5));
    /* The exponent of a product is the sum of its factors' exponents, 0 + 8, although the product
     * is above 2^9. So the first instruction still keeps 2^-5. The second one begins with a sum
     * above 2^9. It drops its own products, and cuts the sum to a multiple of 2^-4. */
    q.content[0] = 1.75f;
    k.content[0] = 448;
    CU_ASSERT_EQUAL(sum_of(kFew, &q, &k), 0.5 * (784 - 31 * 0x1p-5 - 0x1p-5));
    memset(&k.content, 0, sizeof k.content);
    CU_ASSERT_EQUAL(sum_of(kFew, &q, &k), 0);
}

static void random_row(row *r, rng *from) {
    for (int d = 0; d < kWidth; d++) {
        float x = e4m3_to_f32((uint8_t)rng_below(from, 256));
        r->content[d] = isfinite(x) ? x : 0;
    }
    r->rope[0] = 0.5f;
    r->rope[1] = -2;
    r->scale = ldexpf(1, (int)rng_below(from, 20) - 10);
}

static double exact_of(const row *q, const row *k) {
    double sum = 0;
    for (int d = 0; d < kWidth; d++)
        sum += (double)q->content[d] * (double)k->content[d];
    return sum * (double)q->scale * (double)k->scale;
}

/* With enough bits every sum is exact; with 13 bits hardly any is. */
static void test_random_rows(void) {
    rng r = rng_make(5, 0);
    int off = 0;
    for (int i = 0; i < 2000; i++) {
        row q, k;
        random_row(&q, &r);
        random_row(&k, &r);
        CU_ASSERT_EQUAL(sum_of(kMany, &q, &k), exact_of(&q, &k));
        off += sum_of(kFew, &q, &k) != exact_of(&q, &k);
    }
    CU_ASSERT(off > 1900);
}

/* Where no bit is dropped, the log-sum-exp equals that of ref_attend(), for any number of visible
 * tokens. */
static void test_lse(void) {
    enum { kTokens = 5 };
    rng r = rng_make(6, 0);
    row q, token;
    float content[kTokens * kWidth], rope[kTokens * kRope], scale[kTokens];
    double o[kWidth], want;
    random_row(&q, &r);
    q.scale = 0x1p-8f;
    for (int i = 0; i < kTokens; i++) {
        random_row(&token, &r);
        memcpy(content + i * kWidth, token.content, sizeof token.content);
        memcpy(rope + i * kRope, token.rope, sizeof token.rope);
        scale[i] = 0x1p-9f;
    }
    ref_rows k = {kTokens, kWidth, kRope, 1, kWidth, 1, kRope, content, rope, scale, scale};
    ref_rows x = rows_of(&q);
    for (int n = 0; n <= kTokens; n++) {
        ref_attend(&x, 0, &k, n, 0.5, REF_P_EXACT, o, &want);
        double lse = cut_sums_lse(kMany, &x, 0, &k, n, 0.5);
        CU_ASSERT(n == 0 ? isinf(lse) && lse < 0 : fabs(lse - want) < 1e-12);
        CU_ASSERT(n == 0 || fabs(cut_sums_lse(kFew, &x, 0, &k, n, 0.5) - want) > 1e-6);
    }
}

CU_TestInfo tests_cut_sums[] = {
    {"small addends of a sum are dropped", test_what_is_dropped},
    {"sums with enough bits are exact", test_random_rows},
    {"the log-sum-exp equals that of ref_attend()", test_lse},
    CU_TEST_INFO_NULL,
};
