/* test_lengths.c - sequences of different lengths: the option, the distributions against their
 * closed forms, and a sweep whose work is computed from the real lengths. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/bench/sweep.h"

enum { MANY = 20000 };

static int32_t drawn[MANY];

static void draw(const char *text, uint64_t seed) {
    lengths_spec s;
    CU_ASSERT_FATAL(lengths_parse(&s, text, NULL) == SNAP_OK);
    int64_t longest = lengths_draw(&s, seed, MANY, drawn), most = 0;
    for (int i = 0; i < MANY; i++)
        most = drawn[i] > most ? drawn[i] : most;
    CU_ASSERT(longest == most);
    CU_ASSERT_STRING_EQUAL(s.text, text);
    lengths_release(&s);
}

/* The share of lengths within [low, high]. */
static double share(double low, double high) {
    int n = 0;
    for (int i = 0; i < MANY; i++)
        n += drawn[i] >= low && drawn[i] <= high;
    return (double)n / MANY;
}

/* Shares of 20,000 draws deviate from their expectation by less than 0.02, which is more than five
 * standard deviations. */
static void test_distributions(void) {
    draw("uniform:10-19", 1);
    CU_ASSERT(share(10, 19) == 1);
    for (int v = 10; v <= 19; v++)
        CU_ASSERT_DOUBLE_EQUAL(share(v, v), 0.1, 0.02);
    draw("lognormal:1000,0.5", 1);
    CU_ASSERT_DOUBLE_EQUAL(share(0, 1000), 0.5, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(share(1000 * exp(-0.5), 1000 * exp(0.5)), 0.6827, 0.02);
    draw("lognormal:1048576,5", 1);
    CU_ASSERT(share(1, 1048576) == 1);
    draw("bimodal:7,900,0.25", 1);
    CU_ASSERT_DOUBLE_EQUAL(share(7, 7), 0.25, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(share(900, 900), 0.75, 0.02);
    CU_ASSERT(share(7, 7) + share(900, 900) == 1);
    draw("uniform:5-5", 1);
    CU_ASSERT(share(5, 5) == 1);
}

/* A smaller batch has the first lengths of a larger one. Another seed gives other lengths. */
static void test_seed(void) {
    static int32_t first[MANY];
    lengths_spec s;
    CU_ASSERT_FATAL(lengths_parse(&s, "uniform:1-1000000", NULL) == SNAP_OK);
    (void)lengths_draw(&s, 5, MANY, first);
    (void)lengths_draw(&s, 5, 100, drawn);
    CU_ASSERT(memcmp(first, drawn, 100 * sizeof *drawn) == 0);
    (void)lengths_draw(&s, 6, 100, drawn);
    CU_ASSERT(memcmp(first, drawn, 100 * sizeof *drawn) != 0);
}

static void write_file(const char *path, const char *text, size_t n) {
    FILE *f = fopen(path, "w");
    CU_ASSERT_FATAL(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

static void test_file(void) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "no line has a length"}, {"\n\n", "no line has a length"}, {"12\nx\n", ":2: a line"},
        {"0\n", "within 1..1048576"}, {"1048577", "within 1..1048576"}, {"1 2\n", ":1: a line"},
    };
    char path[64];
    lengths_spec s;
    snap_err err = {0};
    (void)snprintf(path, sizeof path, "/tmp/snapmla-lengths-%d", (int)getpid());
    write_file(path, "3\r\n\n40", 6);
    CU_ASSERT_FATAL(lengths_parse(&s, path, NULL) == SNAP_OK);
    CU_ASSERT(s.n == 2 && lengths_draw(&s, 1, MANY, drawn) == 40);
    CU_ASSERT_DOUBLE_EQUAL(share(3, 3), 0.5, 0.02);
    CU_ASSERT_PTR_NULL(strstr(s.text, "/"));
    lengths_release(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (snap_err){0};
        write_file(path, bad[i].text, strlen(bad[i].text));
        CU_ASSERT(lengths_parse(&s, path, &err) == SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].says));
        lengths_release(&s);
    }
    write_file(path, "5\n\0\n6\n", 7);
    CU_ASSERT(lengths_parse(&s, path, NULL) == SNAP_E_INPUT);
    lengths_release(&s);
    (void)unlink(path);
}

static void test_refused(void) {
    static const char *const bad[] = {
        "uniform:",       "uniform:5",        "uniform:9-5",     "uniform:0-5",
        "uniform:1-2-3",  "uniform:1.5-2",    "uniform:1-1e7",   "lognormal:5",
        "lognormal:5,-1", "lognormal:5,6",    "lognormal:nan,1", "lognormal:5,1,1",
        "bimodal:1,2",    "bimodal:1,2,1.1",  "bimodal:1,2,nan", "bimodal:0,2,0.5",
        "bimodal:1,,0.5", "bimodal:1,2,0.5,", "uniform:1 -2",    "lognormal:inf,1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lengths_spec s;
        snap_err err = {0};
        CU_ASSERT(lengths_parse(&s, bad[i], &err) == SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--lengths: "));
        lengths_release(&s);
    }
    lengths_spec s;
    snap_err err = {0};
    CU_ASSERT(lengths_parse(&s, "unifrom:1-2", &err) == SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--lengths must be uniform:LO-HI"));
    lengths_release(&s);
}

/* ---- a sweep ---- */

/* Counts the sequences that are shorter than 3 tokens, that fill at most one page, and that need
 * several pages. */
static void count_sorts(const cell_record *c, int *shorter, int *one_page, int *several) {
    for (size_t b = 0; b < c->lengths.each.n; b++) {
        *shorter += c->lengths.each.at[b] < 3;
        *one_page += c->lengths.each.at[b] <= MLA_PAGE;
        *several += c->lengths.each.at[b] > MLA_PAGE;
    }
}

/* All outputs pass their checks, and FLOP follow from the lengths and from what each new token
 * sees. Some sequences have one page, some have several, and some are shorter than the three new
 * tokens of a step. */
static void test_sweep(void) {
    static const mla_ceilings plenty = {
        .read = {.rate = 1e15}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};
    bench_grid_text text = {.arms = "bf16,fp8",
                            .scopes = "kernel,served",
                            .heads = "3",
                            .s_q = "1,3",
                            .batch = "12",
                            .context = "1",
                            .d_c = 128,
                            .d_r = 32};
    bench_grid grid;
    lengths_spec lengths;
    mla_backend *be;
    arena mem = {0};
    cell_list all;
    mla_backend_options two = {.threads = 2};
    js *rows = js_new_array();
    CU_ASSERT_FATAL(bench_grid_parse(&grid, &text, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(lengths_parse(&lengths, "lognormal:20,1.5", NULL) == SNAP_OK);
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &two, NULL) == SNAP_OK);
    sweep_options o = {
        .backend = be,
        .grid = &grid,
        .distribution = NUMBERS_NORMAL,
        .lengths = &lengths,
        .seed = 4,
        .limits = {.noise = 1, .min_samples = 3, .max_samples = 3, .timeout_s = 1e9}};
    CU_ASSERT(sweep_run(&o, rows, NULL) == SNAP_OK);
    CU_ASSERT(sweep_derive(rows, NULL, &plenty, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(record_read_all(&cell_type, rows, &mem, &all.at, &all.n) && all.n == 8);
    for (size_t i = 0; i < all.n; i++) {
        const cell_record *c = &all.at[i];
        double pairs = 0, tokens = 0;
        int shorter = 0, one_page = 0, several = 0;
        CU_ASSERT_STRING_EQUAL(c->status, "passed");
        CU_ASSERT_FATAL(c->lengths.each.n == 12);
        count_sorts(c, &shorter, &one_page, &several);
        CU_ASSERT(shorter > 0 && one_page > shorter && several > 0);
        for (size_t b = 0; b < 12; b++) {
            tokens += c->lengths.each.at[b];
            /* query token s attends to all tokens except the last s_q - 1 - s */
            for (int s = 0; s < c->shape.s_q; s++)
                pairs += fmax(c->lengths.each.at[b] - (double)(c->shape.s_q - 1 - s), 0);
        }
        CU_ASSERT((double)c->lengths.tokens == tokens);
        CU_ASSERT_DOUBLE_EQUAL(c->performance.tflops * c->performance.median_ns * 1e3,
                               2 * pairs * 3 * (2 * 128 + 32), 1);
    }
    js_free(rows);
    arena_release(&mem);
    lengths_release(&lengths);
    mla_backend_close(be);
}

CU_TestInfo tests_lengths[] = {
    {"the distributions of lengths", test_distributions},
    {"lengths follow from the seed", test_seed},
    {"a file of lengths", test_file},
    {"bad options --lengths are refused", test_refused},
    {"a sweep over sequences of different lengths", test_sweep},
    CU_TEST_INFO_NULL,
};
