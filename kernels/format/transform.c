#include "kernels/format/transform.h"

#include <math.h>

static void butterfly(double *x, int half) {
    for (int i = 0; i < half; i++) {
        double a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
    }
}

void transform_hadamard(double *x, int n, int block) {
    for (int half = 1; half < block; half *= 2)
        for (int first = 0; first < n; first += 2 * half)
            butterfly(x + first, half);
    double norm = block ? 1.0 / sqrt((double)block) : 1.0;
    for (int i = 0; i < n && block; i++)
        x[i] *= norm;
}

void transform_means(float *mean, const float *x, int64_t rows, int64_t width, int columns) {
    for (int d = 0; d < columns; d++) {
        double sum = 0.0;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)x[i * width + d];
        mean[d] = rows ? (float)(sum / (double)rows) : 0.0f;
    }
}
