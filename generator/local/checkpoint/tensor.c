#include "generator/local/checkpoint/tensor.h"

#include <string.h>

#include "kernels/formats.h"

const char *tensor_dtype_name(tensor_dtype dtype) {
    static const char *const names[] = {"BF16", "F16", "F32", "F8_E4M3", "other"};
    return names[dtype];
}

/* IEEE 754 half precision: s eeeee mmmmmmmmmm, bias 15. */
static float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3FF;
    float x;
    if (exponent == 0) { /* zero and subnormal: fraction * 2^-24 */
        x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    uint32_t bits = sign | (exponent == 31 ? 0xFF : exponent + 112) << 23 | fraction << 13;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The same as bf16_to_f32(), but inlined: a model has hundreds of millions of weights. */
static inline float widen_bf16(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t load_u16(const unsigned char *p) {
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static void read_scaled(const tensor *w, const tensor *scale, int block, int64_t row, int64_t col,
                        int64_t n, float *out) {
    const unsigned char *p = (const unsigned char *)w->data + row * w->shape[1] + col;
    const unsigned char *factors =
        (const unsigned char *)scale->data + row / block * scale->shape[1] * 4;
    for (int64_t i = 0; i < n; i++) {
        float factor;
        memcpy(&factor, factors + (col + i) / block * 4, sizeof factor);
        out[i] = e4m3_to_f32(p[i]) * factor;
    }
}

void tensor_read_f32(const tensor *w, const tensor *scale, int block, int64_t row, int64_t col,
                     int64_t n, float *out) {
    int64_t cols = w->n_dims == 1 ? w->shape[0] : w->shape[1];
    const unsigned char *p = w->data;
    int64_t at = row * cols + col;
    switch (w->dtype) {
    case DTYPE_BF16:
        for (int64_t i = 0; i < n; i++)
            out[i] = widen_bf16(load_u16(p + 2 * (at + i)));
        break;
    case DTYPE_F16:
        for (int64_t i = 0; i < n; i++)
            out[i] = f16_to_f32(load_u16(p + 2 * (at + i)));
        break;
    case DTYPE_F32:
        memcpy(out, p + 4 * at, (size_t)n * sizeof *out);
        break;
    case DTYPE_F8_E4M3:
        read_scaled(w, scale, block, row, col, n, out);
        break;
    case DTYPE_OTHER:
        break;
    }
}
