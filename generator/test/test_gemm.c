#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "generator/local/gemm/gemm.h"
#include "kernels/formats.h"

enum { kM = 7, kRows = 150, kCols = 165, kMost = 200 };

static const char *const isas[] = {"portable", "avx2", "avx512f", "avx512bf16"};

static float numbers[kMost * kMost];
static uint16_t halves[kMost * kMost];
static uint8_t bytes[kMost * kMost];
static float scales[4];
static tensor weight, scale;

static mat matrix(tensor_dtype type) {
    rng r = rng_make(5, (uint64_t)type);
    for (int i = 0; i < kRows * kCols; i++) {
        float x = (float)rng_normal(&r);
        numbers[i] = x;
        halves[i] = type == DTYPE_F16 ? (uint16_t)(rng_u32(&r) % 0x7c00u | (rng_u32(&r) & 0x8000u))
                                      : bf16_from_f32(x);
        bytes[i] = e4m3_from_f32(x * 30);
    }
    for (int i = 0; i < 4; i++)
        scales[i] = 0.01f * (float)(i + 1);
    const void *data = type == DTYPE_F32       ? (const void *)numbers
                       : type == DTYPE_F8_E4M3 ? (const void *)bytes
                                               : (const void *)halves;
    weight = (tensor){.dtype = type, .n_dims = 2, .shape = {kRows, kCols, 1, 1}, .data = data};
    scale = (tensor){.dtype = DTYPE_F32, .n_dims = 2, .shape = {2, 2, 1, 1}, .data = scales};
    return (mat){.w = &weight, .scale = &scale, .block = 128, .rows = kRows, .cols = kCols};
}

/* IEEE half precision, computed by its definition. */
static double half(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    double x = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -x : x;
}

static double element(tensor_dtype type, int i, int j) {
    int at = i * kCols + j;
    switch (type) {
    case DTYPE_BF16:
        return (double)bf16_to_f32(halves[at]);
    case DTYPE_F16:
        return half(halves[at]);
    case DTYPE_F32:
        return (double)numbers[at];
    case DTYPE_F8_E4M3:
        return (double)(e4m3_to_f32(bytes[at]) * scales[i / 128 * 2 + j / 128]);
    case DTYPE_OTHER:
        break;
    }
    return NAN;
}

static double operand(gemm_arith arith, double x) {
    return arith == GEMM_BF16 ? (double)bf16_to_f32(bf16_from_f32((float)x)) : x;
}

/* Multiplies rows kFirst .. kFirst + kCount - 1 of the matrix, and its columns from @left on, and
 * returns the largest error relative to sum |x w|; 0 if the machine does not support @isa. */
static double worst(const char *isa, gemm_arith arith, tensor_dtype type, mat_side side, int left) {
    enum { kFirst = 20, kCount = 90 };
    mat whole = matrix(type), w = mat_rows(&whole, kFirst, kCount);
    int width = kCols - 2 * left, n = side == MAT_ROWS ? kCount : width,
        k = side == MAT_ROWS ? width : kCount;
    w.first_col = left;
    w.cols = width;
    static float x[kM * kMost], y[kM * kMost];
    static char packed[kM * kMost * sizeof(float)];
    parallel *pool;
    gemm *g;
    double most = 0;
    rng r = rng_make(6, 0);
    for (int i = 0; i < kM * k; i++)
        x[i] = (float)rng_normal(&r);
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, 2, NULL), SNAP_OK);
    if (gemm_create(&g, pool, arith, isa, NULL) == SNAP_OK) {
        gemm_pack(g, packed, x, (int64_t)kM * k);
        gemm_job job = {.w = w, .side = side, .x = packed, .ldx = k, .m = kM, .y = y, .ldy = n};
        CU_ASSERT_EQUAL(gemm_run(g, &job, 1, NULL), SNAP_OK);
        for (int i = 0; i < kM; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0, size = 0;
                for (int l = 0; l < k; l++) {
                    double v = side == MAT_ROWS ? element(type, kFirst + j, left + l)
                                                : element(type, kFirst + l, left + j);
                    double p = operand(arith, (double)x[i * k + l]) * operand(arith, v);
                    sum += p;
                    size += fabs(p);
                }
                most = fmax(most, fabs((double)y[i * n + j] - sum) / size);
            }
        gemm_free(g);
    }
    parallel_free(pool);
    return most;
}

static void test_every_type_and_side(void) {
    enum { kLeft = 19 }; /* columns that are left out on either side */
    for (size_t s = 0; s < sizeof isas / sizeof *isas; s++)
        for (int type = DTYPE_BF16; type <= DTYPE_F8_E4M3; type++)
            for (int side = MAT_ROWS; side <= MAT_COLS; side++)
                for (int left = 0; left <= kLeft; left += kLeft) {
                    CU_ASSERT(worst(isas[s], GEMM_BF16, (tensor_dtype)type, (mat_side)side, left) <
                              1e-6);
                    CU_ASSERT(worst(isas[s], GEMM_F32, (tensor_dtype)type, (mat_side)side, left) <
                              1e-6);
                }
}

/* A row has the same bits alone with one thread as among other rows with three. */
static void test_rows_do_not_depend_on_their_neighbours(void) {
    static float many[kM * kMost], one[kMost];
    static uint16_t x[kM * kMost];
    mat w = matrix(DTYPE_BF16);
    rng r = rng_make(7, 0);
    for (int i = 0; i < kM * kMost; i++)
        x[i] = bf16_from_f32((float)rng_normal(&r));
    for (size_t s = 0; s < sizeof isas / sizeof *isas; s++)
        for (int side = MAT_ROWS; side <= MAT_COLS; side++) {
            parallel *pool[2];
            gemm *g[2];
            CU_ASSERT_EQUAL_FATAL(parallel_create(&pool[0], 1, NULL), SNAP_OK);
            CU_ASSERT_EQUAL_FATAL(parallel_create(&pool[1], 3, NULL), SNAP_OK);
            bool usable = gemm_create(&g[0], pool[0], GEMM_BF16, isas[s], NULL) == SNAP_OK &&
                          gemm_create(&g[1], pool[1], GEMM_BF16, isas[s], NULL) == SNAP_OK;
            int n = side == MAT_ROWS ? kRows : kCols;
            gemm_job job = {w, (mat_side)side, x, kMost, kM, many, n};
            if (usable) {
                CU_ASSERT_EQUAL(gemm_run(g[1], &job, 1, NULL), SNAP_OK);
            }
            for (int i = 0; usable && i < kM; i++) {
                gemm_job alone = {w, (mat_side)side, x + i * kMost, kMost, 1, one, n};
                CU_ASSERT_EQUAL(gemm_run(g[0], &alone, 1, NULL), SNAP_OK);
                CU_ASSERT_EQUAL(memcmp(one, many + i * n, (size_t)n * sizeof *one), 0);
            }
            for (int i = 0; i < 2; i++) {
                if (usable)
                    gemm_free(g[i]);
                parallel_free(pool[i]);
            }
        }
}

static void test_jobs_run_together(void) {
    static float y[3][kM * kMost], want[kM * kMost];
    static uint16_t x[kM * kMost];
    mat w = matrix(DTYPE_BF16);
    parallel *pool;
    gemm *g;
    for (int i = 0; i < kM * kCols; i++)
        x[i] = bf16_from_f32((float)(i % 13) - 6);
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(gemm_create(&g, pool, GEMM_BF16, NULL, NULL), SNAP_OK);
    gemm_job jobs[3];
    for (int i = 0; i < 3; i++)
        jobs[i] = (gemm_job){w, MAT_ROWS, x, kCols, i == 1 ? 0 : kM, y[i], kRows};
    CU_ASSERT_EQUAL(gemm_run(g, jobs, 3, NULL), SNAP_OK);
    jobs[0].y = want;
    CU_ASSERT_EQUAL(gemm_run(g, jobs, 1, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(memcmp(y[0], want, sizeof(float) * kM * kRows), 0);
    CU_ASSERT_EQUAL(memcmp(y[2], want, sizeof(float) * kM * kRows), 0);
    CU_ASSERT_EQUAL(y[1][0], 0);
    gemm_free(g);
    parallel_free(pool);
}

static void test_an_unknown_isa(void) {
    parallel *pool;
    gemm *g;
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, 1, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(gemm_create(&g, pool, GEMM_BF16, "mmx", NULL), SNAP_E_USAGE);
    CU_ASSERT_PTR_NULL(g);
    parallel_free(pool);
}

CU_TestInfo tests_gemm[] = {
    {"every type of weight, either side, all or some columns, every instruction set",
     test_every_type_and_side},
    {"rows do not depend on their neighbours", test_rows_do_not_depend_on_their_neighbours},
    {"jobs run together", test_jobs_run_together},
    {"an unknown instruction set", test_an_unknown_isa},
    CU_TEST_INFO_NULL,
};
