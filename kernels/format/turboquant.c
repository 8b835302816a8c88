/* turboquant.c - a random rotation and one codebook for all coordinates, after TurboQuant (arXiv
 * 2504.19874), the variant for the mean squared error.
 *
 * A rotated vector of length 1 in n dimensions has coordinates that are nearly N(0, 1/n), whatever
 * the vector was. So one codebook that is best for the normal distribution serves all. A token is
 * stored as its norm in fp32 and one code for each coordinate. The rotation is the usual fast one:
 * random signs, then a Hadamard matrix. The content is padded with zeros to a power of two, and the
 * padding takes bytes, too. */
#include <math.h>
#include <stdint.h>

#include "kernels/format/coded.h"
#include "kernels/format/transform.h"
#include "kernels/mla.h"

/* The positive levels of the Lloyd-Max quantiser of N(0, 1) with 2, 3 and 4 bits. */
static const double levels[][8] = {
    {0.45278, 1.510418},
    {0.245094, 0.756005, 1.343909, 2.151946},
    {0.128395, 0.388048, 0.656759, 0.94234, 1.256231, 1.618046, 2.069017, 2.73259},
};

static int padded(int d_c) {
    int n = 1;
    while (n < d_c)
        n *= 2;
    return n;
}

/* The random sign of a column: one bit of SplitMix64 with the column as its seed. */
static double sign_of(int column) {
    uint64_t z = (uint64_t)column + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) & 1u ? -1.0 : 1.0;
}

void turboquant_round(float *x, int d_c, int bits) {
    double y[MLA_MAX_CONTENT] = {0}, sum = 0.0;
    int n = padded(d_c);
    for (int d = 0; d < d_c; d++) {
        y[d] = (double)x[d] * sign_of(d);
        sum += (double)x[d] * (double)x[d];
    }
    double unit = (double)(float)sqrt(sum) / sqrt((double)n); /* of a coordinate's N(0, 1) */
    transform_hadamard(y, n, n);
    for (int d = 0; d < n; d++)
        y[d] = unit == 0.0 ? 0.0
                           : coded_nearest(y[d] / unit, levels[bits - 2], 1 << (bits - 1)) * unit;
    transform_hadamard(y, n, n);
    for (int d = 0; d < d_c; d++)
        x[d] = (float)(y[d] * sign_of(d));
}

double turboquant_bytes(int d_c, int bits) {
    return padded(d_c) * bits / 8.0 + 4.0;
}
