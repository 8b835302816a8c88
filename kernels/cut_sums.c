#include "kernels/cut_sums.h"

#include <limits.h>
#include <math.h>

enum { kLeastExponent = -6 }; /* smallest exponent of e4m3, also that of its subnormal numbers */

static int exponent_of(float x) {
    int e;
    (void)frexpf(x, &e);
    return e - 1 < kLeastExponent ? kLeastExponent : e - 1;
}

/* The largest exponent among the addends of one instruction. The exponent of a product is taken as
 * the sum of its factors' exponents. INT_MIN if all addends are zero. */
static int top_of(double sum, const float *q, const float *k, int n) {
    int top = sum == 0.0 ? INT_MIN : ilogb(sum);
    for (int d = 0; d < n; d++) {
        if (q[d] == 0.0f || k[d] == 0.0f)
            continue;
        int e = exponent_of(q[d]) + exponent_of(k[d]);
        top = e > top ? e : top;
    }
    return top;
}

static double cut(double x, double unit) {
    return trunc(x / unit) * unit;
}

/* The scaled dot product of the contents of row i of @q and row j of @k. */
static double content_of(mla_cut_sums how, const ref_rows *q, int64_t i, const ref_rows *k,
                         int64_t j) {
    const float *x = q->content + i * q->d_c, *y = k->content + j * k->d_c;
    double sum = 0;
    for (int d = 0; d < q->d_c; d += how.products) {
        int n = q->d_c - d < how.products ? q->d_c - d : how.products;
        int top = top_of(sum, x + d, y + d, n);
        if (top == INT_MIN)
            continue;
        double unit = ldexp(1.0, top - how.bits);
        sum = cut(sum, unit);
        for (int e = d; e < d + n; e++)
            sum += cut((double)x[e] * (double)y[e], unit);
        if (!isfinite(sum))
            return sum; /* a NaN among the factors: ilogb() below would have no exponent to
                           return */
        sum = sum == 0.0 ? 0.0 : cut(sum, ldexp(1.0, ilogb(sum) - how.bits));
    }
    return sum * (double)q->scale[i * q->groups] * (double)k->scale[j * k->groups];
}

static double rope_of(const ref_rows *q, int64_t i, const ref_rows *k, int64_t j) {
    double sum = 0;
    for (int d = 0; d < q->d_r; d++)
        sum += (double)q->rope[i * q->d_r + d] * (double)k->rope[j * k->d_r + d];
    return sum * (double)q->rope_scale[i] * (double)k->rope_scale[j];
}

double cut_sums_lse(mla_cut_sums how, const ref_rows *q, int64_t i, const ref_rows *k,
                    int64_t visible, double softmax_scale) {
    double most = (double)-INFINITY, sum = 0;
    for (int64_t j = 0; j < visible; j++) {
        double s = (content_of(how, q, i, k, j) + rope_of(q, i, k, j)) * softmax_scale;
        double now = fmax(most, s);
        sum = sum * exp(most - now) + exp(s - now);
        most = now;
    }
    return sum > 0 ? most + log(sum) : (double)-INFINITY;
}
