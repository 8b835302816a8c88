/* Tests the statistical test of independent slices: how often it finds a correlation that is not
 * there, and one that is there, in simulated series. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/test/sanitized.h"
#include "harness/serving/slice_series.h"

enum { kSeries = 8 }; /* of two arms */

typedef struct {
    size_t blocks, each;
} division;

typedef struct {
    double phi;    /* correlation of neighbours in a block: autoregressive process of order 1 */
    double spread; /* standard deviation between blocks, where that of the slices of a block is 1 */
} process;

static void simulate(slice_series *s, division d, process p, rng *r) {
    for (int k = 0; k < kSeries; k++)
        for (size_t b = 0; b < d.blocks; b++) {
            double x = rng_normal(r), shift = p.spread * rng_normal(r);
            for (size_t i = 0; i < d.each; i++) {
                s[k].over[b * d.each + i] = 10 + x + shift;
                s[k].under[b * d.each + i] = 1;
                x = p.phi * x + sqrt(1 - p.phi * p.phi) * rng_normal(r);
            }
        }
}

/* Shares of runs. */
typedef struct {
    double flagged; /* by both conditions */
    double left;    /* the correlation exceeds one standard error after merging */
} rates;

static rates rates_of(division d, process p, int runs) {
    rng r = rng_make(d.blocks, d.each);
    rates out = {0, 0};
    for (int i = 0; i < runs; i++) {
        slice_series s[kSeries] = {{{0}, {0}}};
        slice_dependence found;
        simulate(s, d, p, &r);
        size_t after = slice_series_merge(s, kSeries, d.blocks, d.each, &found);
        CU_ASSERT(after * d.blocks >= SLICES_FEWEST && after <= d.each);
        out.left += found.left ? 1.0 / runs : 0;
        out.flagged += found.left && found.p <= slice_test_level ? 1.0 / runs : 0;
    }
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n%zu x %2zu slices, phi %.1f, spread %.1f: %.1f %% flagged, %.1f %% left",
                     d.blocks, d.each, p.phi, p.spread, 100 * out.flagged, 100 * out.left);
    return out;
}

/* Of independent slices at most 5 % have the flag. The limit is 6 % of the mean over divisions, and
 * 8 % of each one, which 400 runs exceed with a probability of 0.3 % if the rate is 5 %. One
 * standard error alone would give far more. */
static void test_independent_slices(void) {
    static const division divisions[] = {{1, 32}, {2, 16}, {4, 8}, {5, 4}, {7, 4},
                                         {1, 8},  {2, 4},  {4, 2}, {2, 8}};
    const int n = sizeof divisions / sizeof *divisions;
    const int runs = getenv("SHOW_FIGURES") ? 2000 : SIMULATED_RUNS(400);
    rates mean = {0, 0};
    for (int i = 0; i < n; i++) {
        rates r = rates_of(divisions[i], (process){0, 0}, runs);
        CU_ASSERT(kSanitized || r.flagged <= 0.08);
        mean.flagged += r.flagged / n;
        mean.left += r.left / n;
    }
    if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
        return;
    CU_ASSERT(mean.flagged <= 0.06);
    CU_ASSERT(mean.left > 0.25);
}

/* With 28 slices or more, most runs have the flag if neighbours have a correlation of 0.5, and
 * nearly all if the blocks differ as much as slices do. Eight slices show less. */
static void test_dependent_slices(void) {
    static const struct {
        division of;
        double correlated, differing; /* smallest allowed shares of runs with the flag */
    } cases[] = {
        {{2, 16}, 0.55, 0.9}, {{4, 8}, 0.55, 0.9}, {{7, 4}, 0.55, 0.9}, {{2, 4}, 0.3, 0.35}};
    const int runs = getenv("SHOW_FIGURES") ? 2000 : SIMULATED_RUNS(100);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double correlated = rates_of(cases[i].of, (process){0.5, 0}, runs).flagged;
        double differing = rates_of(cases[i].of, (process){0, 1}, runs).flagged;
        if (kSanitized) /* too few runs for the limits: see SIMULATED_RUNS() */
            continue;
        CU_ASSERT(correlated > cases[i].correlated);
        CU_ASSERT(differing > cases[i].differing);
    }
}

/* ---- series computed by hand ---- */

enum { kBlocks = 2, kEach = 16, kSlices = kBlocks * kEach };

static slice_dependence merged(slice_series *s, size_t blocks, size_t each, size_t *after) {
    slice_dependence found;
    *after = slice_series_merge(s, 1, blocks, each, &found);
    return found;
}

/* No order of the values has neighbours that are more alike than a rising one, so no permutation
 * reaches its correlation. Alternating values are never merged. Equal values and blocks of one
 * slice have no correlation. */
static void test_by_hand(void) {
    slice_series rising, alternating, equal;
    size_t after;
    for (int i = 0; i < kSlices; i++) {
        rising.over[i] = i;
        alternating.over[i] = i % 2;
        equal.over[i] = 3;
        rising.under[i] = alternating.under[i] = equal.under[i] = 1;
    }
    slice_series short_blocks = rising;
    slice_dependence found = merged(&rising, kBlocks, kEach, &after);
    CU_ASSERT(found.left && after == 4);
    CU_ASSERT_DOUBLE_EQUAL(found.p, 1.0 / 400, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(rising.over[0], 0 + 1 + 2 + 3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(rising.under[7], 4, 1e-12);
    found = merged(&alternating, kBlocks, kEach, &after);
    CU_ASSERT(!found.left && after == kEach && found.p > 0.5);
    found = merged(&equal, kBlocks, kEach, &after);
    CU_ASSERT(!found.left && after == kEach && isnan(found.p));
    found = merged(&short_blocks, kSlices, 1, &after);
    CU_ASSERT(!found.left && after == 1 && isnan(found.p));
}

/* A slice without a value takes part in the permutations, but in no pair. */
static void test_slices_without_values(void) {
    slice_series s = {{0}, {0}};
    size_t after;
    for (int i = 0; i < kSlices; i++) {
        s.over[i] = i % 4 == 3 ? 0 : i;
        s.under[i] = i % 4 == 3 ? 0 : 1;
    }
    slice_dependence found = merged(&s, kBlocks, kEach, &after);
    CU_ASSERT(found.left && found.p <= slice_test_level);
    for (int i = 0; i < kSlices; i++)
        s.under[i] = 0;
    found = merged(&s, kBlocks, kEach, &after);
    CU_ASSERT(!found.left && isnan(found.p));
}

CU_TestInfo tests_slice_series[] = {{"independent slices", test_independent_slices},
                                    {"dependent slices", test_dependent_slices},
                                    {"series whose p value is known", test_by_hand},
                                    {"slices without values", test_slices_without_values},
                                    CU_TEST_INFO_NULL};
