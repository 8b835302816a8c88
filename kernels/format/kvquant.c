/* kvquant.c - levels at uneven distances, and exact outliers, after KVQuant (arXiv 2401.18079).
 *
 * The 1 % of a token's numbers with the largest magnitudes are stored in bf16 with their column in
 * 16 bits. The range of the others is mapped to -1 .. 1 (middle and half width in bf16), and each
 * is stored as the code of the nearest level. KVQuant finds the levels by k-means over calibration
 * data. These are the levels that k-means finds for a normal distribution without its outer 1 %, so
 * the format needs no calibration. */
#include <math.h>

#include "kernels/format/coded.h"
#include "kernels/formats.h"
#include "kernels/mla.h"

/* The positive levels for 2, 3 and 4 bits. */
static const double levels[][8] = {
    {0.167985, 0.554432},
    {0.088527, 0.272013, 0.478627, 0.744945},
    {0.045118, 0.136178, 0.229812, 0.328142, 0.43406, 0.552038, 0.690053, 0.865545},
};

static int outliers(int d_c) {
    return (d_c + 99) / 100;
}

static double as_bf16(double x) {
    return (double)bf16_to_f32(bf16_from_f64(x));
}

void kvquant_round(float *x, int d_c, int bits) {
    bool exact[MLA_MAX_CONTENT];
    double low = INFINITY, high = -INFINITY;
    coded_mark_largest(exact, x, d_c, outliers(d_c));
    for (int d = 0; d < d_c; d++)
        if (!exact[d]) { /* comparisons with a NaN are false */
            low = (double)x[d] < low ? (double)x[d] : low;
            high = (double)x[d] > high ? (double)x[d] : high;
        }
    double middle = as_bf16((low + high) / 2.0), half = as_bf16((high - low) / 2.0);
    for (int d = 0; d < d_c; d++) {
        double z = half == 0.0 ? 0.0 : ((double)x[d] - middle) / half;
        if (exact[d])
            x[d] = (float)as_bf16((double)x[d]);
        else if (!isnan(x[d]))
            x[d] =
                half == 0.0
                    ? (float)middle
                    : (float)(middle + coded_nearest(z, levels[bits - 2], 1 << (bits - 1)) * half);
    }
}

double kvquant_bytes(int d_c, int bits) {
    return d_c * bits / 8.0 + 4.0 + 4.0 * outliers(d_c);
}
