#include "kernels/format/transform.h"

#include "kernels/format/coded_row.h"

void transform_hadamard(double *x, int n, int block) {
    const row_team alone = {0, 1};
    team_hadamard(alone, x, n, block);
}

void transform_means(float *mean, const float *x, int64_t rows, int64_t width, int columns) {
    for (int d = 0; d < columns; d++) {
        double sum = 0.0;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)x[i * width + d];
        mean[d] = rows ? (float)(sum / (double)rows) : 0.0f;
    }
}
