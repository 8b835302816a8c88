#include "harness/bench/layer_values.h"

#include <math.h>

#include "kernels/formats.h"

enum { kMagnitudes = 1 << 15, kExponents = 1 << 8, kPerExponent = 1 << 7 };

void layer_values_count(layer_values *v, const uint16_t *x, int64_t rows, int stride, int first,
                        int width) {
    for (int64_t i = 0; i < rows; i++)
        for (int d = first; d < first + width; d++)
            v->count[x[i * stride + d] & (kMagnitudes - 1)]++;
    v->n += rows * width;
}

double layer_values_quantile(const layer_values *v, double q) {
    int64_t reached = 0;
    for (int m = 0; m < kMagnitudes; m++) {
        reached += v->count[m];
        if (reached && (double)reached >= q * (double)v->n)
            return (double)bf16_to_f32((uint16_t)m);
    }
    return 0;
}

static double rms(const layer_values *v) {
    double sum = 0;
    for (int m = 0; m < kMagnitudes; m++)
        if (v->count[m])
            sum += (double)v->count[m] * pow((double)bf16_to_f32((uint16_t)m), 2);
    return v->n ? sqrt(sum / (double)v->n) : 0;
}

/* Subnormals and zero count as the lowest exponent. Exponents without values are left out. */
static bool set_histogram(const layer_values *v, arena *mem, record_bins *out) {
    record_bin *bins = arena_alloc(mem, kExponents, sizeof *bins);
    size_t used = 0;
    for (int e = 0; bins && e < kExponents; e++) {
        int64_t n = 0;
        for (int m = 0; m < kPerExponent; m++)
            n += v->count[e * kPerExponent + m];
        if (n)
            bins[used++] = (record_bin){e - 127, (double)n / (double)v->n};
    }
    *out = (record_bins){bins, used};
    return bins != NULL;
}

bool layer_values_fill(const layer_values *v, arena *mem, model_record *row) {
    row->values = v->n;
    row->rms = rms(v);
    row->p50 = layer_values_quantile(v, 0.5);
    row->p99 = layer_values_quantile(v, 0.99);
    row->p999 = layer_values_quantile(v, 0.999);
    row->max = layer_values_quantile(v, 1);
    return set_histogram(v, mem, &row->histogram);
}
