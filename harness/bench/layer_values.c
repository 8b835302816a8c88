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

/* Subnormals and zero count as the lowest exponent, which is left out where it holds nothing. */
static js *histogram(const layer_values *v) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int e = 0; e < kExponents && ok; e++) {
        int64_t n = 0;
        for (int m = 0; m < kPerExponent; m++)
            n += v->count[e * kPerExponent + m];
        js *bin = n ? js_new_array() : NULL;
        if (n)
            ok = js_push_new(bin, js_new_int(e - 127)) &&
                 js_push_new(bin, js_new_num((double)n / (double)v->n)) && js_push_new(list, bin);
    }
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

bool layer_values_json(const layer_values *v, js *row) {
    return js_set_int(row, "values", v->n) && js_set_num(row, "rms", rms(v)) &&
           js_set_num(row, "p50", layer_values_quantile(v, 0.5)) &&
           js_set_num(row, "p99", layer_values_quantile(v, 0.99)) &&
           js_set_num(row, "p999", layer_values_quantile(v, 0.999)) &&
           js_set_num(row, "max", layer_values_quantile(v, 1)) &&
           js_set_new(row, "histogram", histogram(v));
}
