/* layer_values.h - the magnitudes of a layer's cached numbers. The numbers are bf16, so there are
 * 2^15 magnitudes. Counting each of them gives exact quantiles for any number of values. */
#ifndef SNAPMLA_HARNESS_BENCH_LAYER_VALUES_H
#define SNAPMLA_HARNESS_BENCH_LAYER_VALUES_H

#include "harness/record/model_record.h"

typedef struct {
    int64_t count[1 << 15]; /* index: the bits of |x| */
    int64_t n;
} layer_values;

/* Counts columns first .. first + width - 1 of bf16 rows [rows][stride]. */
void layer_values_count(layer_values *v, const uint16_t *x, int64_t rows, int stride, int first,
                        int width);

/* The smallest magnitude that is not exceeded by a share @q of the values; 0 without values. */
double layer_values_quantile(const layer_values *v, double q);

/* Sets `values`, the magnitudes (rms, p50, p99, p999, max) and the histogram. For each exponent e
 * that occurs, ascending, the histogram has the share of values with a magnitude from 2^e up to
 * 2^(e+1). Zero and subnormals count as the lowest exponent, -127. @mem owns the histogram. Returns
 * false when out of memory. */
bool layer_values_fill(const layer_values *v, arena *mem, model_record *row);

#endif
