#include "harness/gate/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { kFewest = 3, kPermutations = 199 };

/* Sums of |x_i - x_j| over the pairs within the left side, within the right side, and between
 * them. */
typedef struct {
    double left, right, across;
} sums;

static double distance_of(const sums *s, size_t n, size_t at) {
    double a = (double)at, b = (double)(n - at);
    double within_a = at > 1 ? s->left / (a * (a - 1) / 2) : 0;
    double within_b = n - at > 1 ? s->right / (b * (b - 1) / 2) : 0;
    return a * b / (a + b) * (2 * s->across / (a * b) - within_a - within_b);
}

/* Moves value @at from the right side to the left. */
static void move_left(sums *s, const double *x, size_t n, size_t at) {
    double to_left = 0, to_right = 0;
    for (size_t i = 0; i < at; i++)
        to_left += fabs(x[i] - x[at]);
    for (size_t i = at + 1; i < n; i++)
        to_right += fabs(x[i] - x[at]);
    s->left += to_left;
    s->right -= to_right;
    s->across += to_right - to_left;
}

static sums all_right(const double *x, size_t n) {
    sums s = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            s.right += fabs(x[i] - x[j]);
    return s;
}

double change_distance(const double *x, size_t n, size_t at) {
    sums s = all_right(x, n);
    for (size_t i = 0; i < at; i++)
        move_left(&s, x, n, i);
    return distance_of(&s, n, at);
}

/* Finds the best split of a segment with at least kFewest values on each side. Returns 0 if there
 * is none. */
static size_t best_split(const double *x, size_t n, double *distance) {
    sums s = all_right(x, n);
    size_t best = 0;
    *distance = 0;
    for (size_t at = 1; at + kFewest <= n; at++) {
        move_left(&s, x, n, at - 1);
        double d = distance_of(&s, n, at);
        if (at >= kFewest && d > *distance) {
            *distance = d;
            best = at;
        }
    }
    return best;
}

static void shuffle(double *x, size_t n, rng *r) {
    for (size_t i = n; i > 1; i--) {
        size_t k = rng_below(r, (uint32_t)i);
        double swapped = x[i - 1];
        x[i - 1] = x[k];
        x[k] = swapped;
    }
}

/* The share of the permutations, including the observed order, that have a split at least as
 * good. */
static double permutation_p(const double *x, size_t n, double distance, double *scratch, rng *r) {
    size_t reached = 1;
    memcpy(scratch, x, n * sizeof *scratch);
    for (int i = 0; i < kPermutations; i++) {
        double d;
        shuffle(scratch, n, r);
        (void)best_split(scratch, n, &d);
        reached += d >= distance;
    }
    return (double)reached / (kPermutations + 1);
}

typedef struct {
    const double *x;
    double alpha, *scratch;
    rng random;
    change_point *out;
    size_t found;
} finder;

/* Splits x[from .. to) and then both parts recursively. */
static void divide(finder *f, size_t from, size_t to) {
    double distance;
    size_t n = to - from, at = n >= 2 * kFewest ? best_split(f->x + from, n, &distance) : 0;
    if (!at || f->found == CHANGE_MAX)
        return;
    double p = permutation_p(f->x + from, n, distance, f->scratch, &f->random);
    if (p > f->alpha)
        return;
    f->out[f->found++] = (change_point){from + at, p};
    divide(f, from, from + at);
    divide(f, from + at, to);
}

static int by_place(const void *a, const void *b) {
    const change_point *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

snap_status change_find(const double *x, size_t n, double alpha, uint64_t seed, change_point *out,
                        size_t *found, snap_err *err) {
    size_t skipped = n > CHANGE_SERIES ? n - CHANGE_SERIES : 0;
    finder f = {.x = x, .alpha = alpha, .random = rng_make(seed, 0), .out = out};
    *found = 0;
    f.scratch = malloc((n - skipped + 1) * sizeof *f.scratch);
    if (!f.scratch)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a series");
    divide(&f, skipped, n);
    qsort(out, f.found, sizeof *out, by_place);
    *found = f.found;
    free(f.scratch);
    return SNAP_OK;
}
