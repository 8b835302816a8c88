/* residual.c - e4m3 with a second, small plane that holds the rounding errors of the largest
 * numbers of a token.
 *
 * The content is that of snapmla: e4m3 with one fp32 scale per token. For the numbers with the
 * largest magnitudes, which have the largest rounding errors, the error is stored too: in e4m3, in
 * units of the same scale, with the column in 16 bits. An error is at most 16 units, so its own
 * rounding leaves at most 2^-4 of it. */
#include <math.h>

#include "kernels/format/coded.h"
#include "kernels/formats.h"
#include "kernels/mla.h"

static float units(double x, float scale) {
    return e4m3_to_f32(e4m3_from_f32((float)x / scale));
}

void residual_round(float *x, int d_c, int count) {
    bool marked[MLA_MAX_CONTENT];
    float largest = 0.0f;
    coded_mark_largest(marked, x, d_c, count);
    for (int d = 0; d < d_c; d++)
        largest = fabsf(x[d]) > largest ? fabsf(x[d]) : largest;
    float scale = quant_scale(largest, MLA_SCALE_MAX);
    for (int d = 0; d < d_c; d++) {
        double held = (double)units((double)x[d], scale) * (double)scale;
        if (marked[d])
            held += (double)units((double)x[d] - held, scale) * (double)scale;
        x[d] = (float)held;
    }
}

double residual_bytes(int d_c, int count) {
    return d_c + 4.0 + 3.0 * (count < d_c ? count : d_c);
}
