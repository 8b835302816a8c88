#include "harness/serving/slice_series.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

const double slice_test_level = 0.05;

/* The correlation of neighbours within a block around the mean of all blocks, in standard errors;
 * -INFINITY if it is not known. */
static double correlation(const slice_series *s, size_t blocks, size_t each) {
    double x[SLICES_MOST], mean = 0, squares = 0, products = 0;
    size_t n = blocks * each, pairs = 0, known = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = s->under[i] > 0 ? s->over[i] / s->under[i] : (double)NAN;
        mean += s->under[i] > 0 ? x[i] : 0;
        known += s->under[i] > 0;
    }
    mean /= (double)known;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            continue;
        squares += (x[i] - mean) * (x[i] - mean);
        if (i % each && !isnan(x[i - 1])) {
            products += (x[i] - mean) * (x[i - 1] - mean);
            pairs++;
        }
    }
    if (pairs < 3 || !(squares > 0))
        return -(double)INFINITY;
    return products / (double)pairs / (squares / (double)known) * sqrt((double)pairs);
}

static double largest_correlation(const slice_series *series, size_t n, size_t blocks,
                                  size_t each) {
    double largest = -(double)INFINITY;
    for (size_t s = 0; s < n; s++)
        largest = fmax(largest, correlation(&series[s], blocks, each));
    return largest;
}

static void merge_neighbours(slice_series *series, size_t n, size_t slices) {
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < slices / 2; i++) {
            slice_series *c = &series[s];
            c->over[i] = c->over[2 * i] + c->over[2 * i + 1];
            c->under[i] = c->under[2 * i] + c->under[2 * i + 1];
        }
}

static bool can_merge(size_t blocks, size_t each) {
    return each > 1 && each * blocks / 2 >= SLICES_FEWEST;
}

/* ---- the test of independence ---- */

/* The largest correlation of all series and divisions. Merges the series as far as possible. */
static double statistic(slice_series *series, size_t n, size_t blocks, size_t each) {
    double largest = largest_correlation(series, n, blocks, each);
    for (; can_merge(blocks, each); each /= 2) {
        merge_neighbours(series, n, blocks * each);
        largest = fmax(largest, largest_correlation(series, n, blocks, each / 2));
    }
    return largest;
}

static void permute(const slice_series *from, size_t n, size_t slices, rng *r, slice_series *to) {
    size_t order[SLICES_MOST];
    for (size_t i = 0; i < slices; i++) { /* inside-out shuffle */
        size_t k = rng_below(r, (uint32_t)i + 1);
        order[i] = i;
        order[i] = order[k];
        order[k] = i;
    }
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < slices; i++) {
            to[s].over[i] = from[s].over[order[i]];
            to[s].under[i] = from[s].under[order[i]];
        }
}

/* The p value of "the slices are independent". The permutations depend on nothing but the number of
 * slices, so that the same requests always give the same value. */
static double independence_p(const slice_series *series, size_t n, size_t blocks, size_t each) {
    enum { kPermutations = 399 };
    const double rounding = 1e-9;
    slice_series work[SLICE_SERIES_MOST];
    rng r = rng_make(1, rng_stream_of("slices"));
    int reached = 0;
    memcpy(work, series, n * sizeof *work);
    double seen = statistic(work, n, blocks, each);
    if (!isfinite(seen))
        return (double)NAN;
    for (int i = 0; i < kPermutations; i++) {
        permute(series, n, blocks * each, &r, work);
        reached += statistic(work, n, blocks, each) >= seen - rounding;
    }
    return (1.0 + reached) / (1.0 + kPermutations);
}

size_t slice_series_merge(slice_series *series, size_t n, size_t blocks, size_t each,
                          slice_dependence *out) {
    out->p = independence_p(series, n, blocks, each);
    while ((out->left = largest_correlation(series, n, blocks, each) > 1) &&
           can_merge(blocks, each)) {
        merge_neighbours(series, n, each * blocks);
        each /= 2;
    }
    return each;
}
