#include <CUnit/CUnit.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"

/* Known answers that Random123 publishes for philox4x32-10. */
static void test_philox_known_answers(void) {
    static const struct {
        uint32_t key[2], counter[4], out[4];
    } kat[] = {
        {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0xa4093822, 0x299f31d0},
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        rng_philox(kat[i].key, kat[i].counter, out);
        CU_ASSERT_EQUAL(memcmp(out, kat[i].out, sizeof out), 0);
    }
}

/* Fills of even and odd lengths, between other draws, give the numbers of single draws. */
static void test_fill_is_single_draws(void) {
    rng one = rng_make(9, 4), many = rng_make(9, 4);
    for (size_t n = 0; n < 7; n++) {
        uint64_t out[7];
        rng_fill(&many, out, n);
        for (size_t i = 0; i < n; i++)
            CU_ASSERT_EQUAL(out[i], rng_u64(&one));
        if (n % 3 == 2)
            CU_ASSERT_EQUAL(rng_u32(&many), rng_u32(&one));
    }
}

/* The first, second and fourth moments of a million draws lie within five standard errors of the
 * exact ones. */
static void test_normal_moments(void) {
    enum { N = 1000000 };
    rng r = rng_make(1, 2);
    double m1 = 0, m2 = 0, m4 = 0;
    for (int i = 0; i < N; i++) {
        double x = rng_normal(&r);
        m1 += x;
        m2 += x * x;
        m4 += x * x * x * x;
    }
    CU_ASSERT_DOUBLE_EQUAL(m1 / N, 0, 5 * sqrt(1.0 / N));
    CU_ASSERT_DOUBLE_EQUAL(m2 / N, 1, 5 * sqrt(2.0 / N));
    CU_ASSERT_DOUBLE_EQUAL(m4 / N, 3, 5 * sqrt(96.0 / N));
}

static void test_below_is_uniform(void) {
    enum { BINS = 7, N = 70000 };
    rng r = rng_make(3, rng_stream_of("bins"));
    int seen[BINS] = {0};
    for (int i = 0; i < N; i++)
        seen[rng_below(&r, BINS)]++;
    double chi2 = 0;
    for (int i = 0; i < BINS; i++)
        chi2 += (seen[i] - N / BINS) * (double)(seen[i] - N / BINS) / ((double)N / BINS);
    CU_ASSERT(chi2 < 22.46); /* 0.999 quantile of chi-square with 6 degrees of freedom */
}

static void test_streams_do_not_overlap(void) {
    rng a = rng_make(5, 0), b = rng_make(5, 1), again = rng_make(5, 0);
    int same = 0, replayed = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = rng_u32(&a);
        same += x == rng_u32(&b);
        replayed += x == rng_u32(&again);
    }
    CU_ASSERT(same < 3);
    CU_ASSERT_EQUAL(replayed, 1000);
}

typedef struct {
    atomic_int hits[1000];
    atomic_int bad_worker;
    int threads;
} coverage;

static void touch(void *ctx, int worker, int64_t index) {
    coverage *c = ctx;
    atomic_fetch_add(&c->hits[index], 1);
    if (worker < 0 || worker >= c->threads)
        atomic_fetch_add(&c->bad_worker, 1);
}

static void test_parallel_covers_every_index_once(void) {
    for (int threads = 1; threads <= 5; threads++) {
        parallel *p = NULL;
        CU_ASSERT_EQUAL_FATAL(parallel_create(&p, threads, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(parallel_threads(p), threads);
        static coverage c;
        memset(&c, 0, sizeof c);
        c.threads = threads;
        for (int64_t n = 0; n <= 1000; n += 50)
            parallel_for(p, n, touch, &c);
        for (int i = 0; i < 1000; i++)
            CU_ASSERT_EQUAL(atomic_load(&c.hits[i]), 20 - i / 50);
        CU_ASSERT_EQUAL(atomic_load(&c.bad_worker), 0);
        parallel_free(p);
    }
    snap_err err = {0};
    parallel *p = NULL;
    CU_ASSERT_EQUAL(parallel_create(&p, -1, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NULL(p);
}

CU_TestInfo tests_random[] = {
    {"Philox known answers", test_philox_known_answers},
    {"rng_fill() gives the numbers of single draws", test_fill_is_single_draws},
    {"normal moments", test_normal_moments},
    {"rng_below() is uniform", test_below_is_uniform},
    {"streams don't overlap", test_streams_do_not_overlap},
    {"parallel_for covers every index once", test_parallel_covers_every_index_once},
    CU_TEST_INFO_NULL};
