#include "harness/measure/rank.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    kExact = 25, /* up to this many values in each sample, distributions are exact */
    kSums =
        kExact * kExact + kExact * kExact / 2 /* more than enough for doubled signed ranks (650) and
                                                 rank sums (625) */
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double normal_above(double z) {
    return 0.5 * erfc(z / sqrt(2.0));
}

/* ---- distributions ---- */

/* p[w]: the probability that the n ranks, each included with probability 1/2, have the sum w.
 * Returns the sum of all ranks, which is less than kSums. */
static size_t signed_chances(const size_t *ranks, size_t n, double p[kSums]) {
    size_t most = 0;
    memset(p, 0, kSums * sizeof *p);
    p[0] = 1;
    for (size_t i = 0; i < n; i++) {
        most += ranks[i];
        for (size_t w = most + 1; w-- > 0;)
            p[w] = p[w] / 2 + (w >= ranks[i] ? p[w - ranks[i]] / 2 : 0);
    }
    return most;
}

/* p[u]: the probability that u of the n * m pairs (x, y) have x below y. The recursion takes the
 * values in descending order. With i values of x and j of y left, the largest is a y with
 * probability j / (i + j). That y is then above all i values of x. */
static size_t sum_chances(size_t n, size_t m, double p[kSums]) {
    double row[kExact + 1][kSums] = {{0}}; /* on the stack (195 KB): no allocation */
    for (size_t j = 0; j <= m; j++)
        row[j][0] = 1; /* no x is left */
    for (size_t i = 1; i <= n; i++) {
        /* row[j] is updated from i - 1 values of x to i */
        for (size_t j = 1; j <= m; j++) {
            double share = (double)j / (double)(i + j);
            for (size_t u = i * j + 1; u-- > 0;)
                row[j][u] = (1 - share) * row[j][u] + (u >= i ? share * row[j - 1][u - i] : 0);
        }
    }
    memcpy(p, row[m], sizeof row[m]);
    return n * m;
}

static double tail(const double *p, size_t most, double from) {
    double sum = 0;
    for (size_t w = 0; w <= most; w++)
        if ((double)w >= from)
            sum += p[w];
    return fmin(sum, 1);
}

/* Where the interval ends: at the k-th of the sorted estimates, counted from either end. Returns
 * the largest k with P(statistic < k) <= alpha. @p is the distribution of the statistic. 0: the
 * interval has no ends. */
static size_t depth_exact(const double *p, size_t most, double alpha) {
    double sum = 0;
    for (size_t k = 0; k <= most; k++) {
        sum += p[k];
        if (sum > alpha)
            return k;
    }
    return most;
}

static size_t depth_normal(double mean, double sd, double alpha) {
    double lo = 0, hi = 40;
    for (int i = 0; i < 60; i++) {
        double z = (lo + hi) / 2;
        if (normal_above(z) > alpha)
            lo = z;
        else
            hi = z;
    }
    double k = floor(mean - 0.5 - hi * sd) + 1;
    return k > 0 ? (size_t)k : 0;
}

/* ---- signed ranks of paired samples ---- */

typedef struct {
    double size;
    bool plus;
} signed_value;

static int by_size(const void *a, const void *b) {
    const signed_value *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

/* The ranks of |x - limit|, doubled, because the mean rank of ties may have the fraction 1/2. */
typedef struct {
    size_t doubled[RANK_MAX];
    size_t n;    /* values that differ from the limit; the others are left out */
    size_t plus; /* sum of the doubled ranks of the values above the limit */
    double ties; /* sum of t^3 - t over the groups of t equal ranks, for the tie correction */
} signed_ranks;

static void rank_signed(const double *x, size_t n, double limit, signed_ranks *r) {
    signed_value v[RANK_MAX];
    size_t k = 0;
    r->plus = 0;
    r->ties = 0;
    for (size_t i = 0; i < n && k < RANK_MAX; i++)
        if (x[i] - limit != 0)
            v[k++] = (signed_value){fabs(x[i] - limit), x[i] > limit};
    qsort(v, k, sizeof *v, by_size);
    for (size_t i = 0, end; i < k; i = end) {
        for (end = i + 1; end < k && !(v[end].size > v[i].size);)
            end++;
        double t = (double)(end - i);
        r->ties += t * t * t - t;
        for (size_t j = i; j < end; j++) {
            r->doubled[j] = i + 1 + end;
            r->plus += v[j].plus ? r->doubled[j] : 0;
        }
    }
    r->n = k;
}

/* P value of a sum of signed ranks, by the normal approximation. */
static double p_of_sum(double w, size_t n, double ties) {
    double c = (double)n, mean = c * (c + 1) / 4;
    double sd = sqrt(c * (c + 1) * (2 * c + 1) / 24 - ties / 48);
    return sd > 0 ? normal_above((w - mean - 0.5) / sd) : 1;
}

double rank_p_above(const double *x, size_t n, double limit) {
    signed_ranks r;
    rank_signed(x, n, limit, &r);
    if (!r.n)
        return 1;
    if (r.n > kExact)
        return p_of_sum((double)r.plus / 2, r.n, r.ties);
    double p[kSums];
    size_t most = signed_chances(r.doubled, r.n, p);
    return tail(p, most, (double)r.plus);
}

double rank_least_p(size_t n) {
    return n <= kExact ? ldexp(1, -(int)n) : p_of_sum((double)n * (double)(n + 1) / 2, n, 0);
}

double rank_p_below(const double *x, size_t n, double limit) {
    double negated[RANK_MAX];
    n = n < RANK_MAX ? n : RANK_MAX;
    for (size_t i = 0; i < n; i++)
        negated[i] = -x[i];
    return rank_p_above(negated, n, -limit);
}

/* The estimate and its interval from @n sorted values. The ends are the @depth-th values from
 * either side; they are infinite if @depth is 0 or above n / 2. */
static rank_estimate cut(const double *sorted, size_t n, size_t depth) {
    rank_estimate e = {(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, (double)-INFINITY,
                       (double)INFINITY};
    if (depth && depth <= n / 2) {
        e.lo = sorted[depth - 1];
        e.hi = sorted[n - depth];
    }
    return e;
}

snap_status rank_centre(const double *x, size_t n, double alpha, rank_estimate *out,
                        snap_err *err) {
    size_t pairs = n * (n + 1) / 2, k = 0, depth;
    *out = (rank_estimate){(double)NAN, (double)NAN, (double)NAN};
    if (!n)
        return SNAP_OK;
    double *means = malloc(pairs * sizeof *means);
    if (!means)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an estimate");
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            means[k++] = (x[i] + x[j]) / 2;
    qsort(means, pairs, sizeof *means, by_value);
    if (n <= kExact) {
        double p[kSums];
        size_t ranks[kExact];
        for (size_t i = 0; i < n; i++)
            ranks[i] = i + 1;
        size_t most = signed_chances(ranks, n, p);
        depth = depth_exact(p, most, alpha);
    } else {
        double c = (double)n;
        depth = depth_normal(c * (c + 1) / 4, sqrt(c * (c + 1) * (2 * c + 1) / 24), alpha);
    }
    *out = cut(means, pairs, depth);
    free(means);
    return SNAP_OK;
}

/* ---- two samples ---- */

/* The number of pairs with x + limit below y, where a tie counts half. *ties is the sum of t^3 - t
 * over both samples together. */
static double pairs_above(const double *x, size_t n, const double *y, size_t m, double limit,
                          double *ties) {
    signed_value v[2 * RANK_MAX];
    size_t k = 0;
    double ranks = 0;
    for (size_t i = 0; i < n; i++)
        v[k++] = (signed_value){x[i] + limit, false};
    for (size_t i = 0; i < m; i++)
        v[k++] = (signed_value){y[i], true};
    qsort(v, k, sizeof *v, by_size);
    *ties = 0;
    for (size_t i = 0, end; i < k; i = end) {
        for (end = i + 1; end < k && !(v[end].size > v[i].size);)
            end++;
        double t = (double)(end - i), rank = (double)(i + 1 + end) / 2;
        *ties += t * t * t - t;
        for (size_t j = i; j < end; j++)
            ranks += v[j].plus ? rank : 0;
    }
    return ranks - (double)(m * (m + 1)) / 2;
}

double rank_p_shift_above(const double *x, size_t n, const double *y, size_t m, double limit) {
    n = n < RANK_MAX ? n : RANK_MAX;
    m = m < RANK_MAX ? m : RANK_MAX;
    if (!n || !m)
        return 1;
    double ties, u = pairs_above(x, n, y, m, limit, &ties);
    if (n <= kExact && m <= kExact && ties == 0) {
        double p[kSums];
        size_t most = sum_chances(n, m, p);
        return tail(p, most, u);
    }
    double a = (double)n, b = (double)m, all = a + b;
    double sd = sqrt(a * b / 12 * (all + 1 - ties / (all * (all - 1))));
    return sd > 0 ? normal_above((u - a * b / 2 - 0.5) / sd) : 1;
}

double rank_p_shift_below(const double *x, size_t n, const double *y, size_t m, double limit) {
    return rank_p_shift_above(y, m, x, n, -limit);
}

snap_status rank_shift(const double *x, size_t n, const double *y, size_t m, double alpha,
                       rank_estimate *out, snap_err *err) {
    size_t k = 0, depth;
    *out = (rank_estimate){(double)NAN, (double)NAN, (double)NAN};
    if (!n || !m)
        return SNAP_OK;
    double *shifts = malloc(n * m * sizeof *shifts);
    if (!shifts)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an estimate");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            shifts[k++] = y[j] - x[i];
    qsort(shifts, k, sizeof *shifts, by_value);
    if (n <= kExact && m <= kExact) {
        double p[kSums];
        size_t most = sum_chances(n, m, p);
        depth = depth_exact(p, most, alpha);
    } else {
        double a = (double)n, b = (double)m;
        depth = depth_normal(a * b / 2, sqrt(a * b * (a + b + 1) / 12), alpha);
    }
    *out = cut(shifts, k, depth);
    free(shifts);
    return SNAP_OK;
}
