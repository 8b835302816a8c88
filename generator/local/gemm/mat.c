#include <string.h>

#include "generator/local/gemm/gemm.h"
#include "kernels/formats.h"

mat mat_rows(const mat *m, int64_t first, int64_t count) {
    mat part = *m;
    part.first_row += first;
    part.rows = count;
    return part;
}

/* IEEE 754 half precision, subnormals included: exact. */
static float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, u;
    float x;
    if (rest >= 0x7c00u) {
        u = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
        memcpy(&x, &u, sizeof x);
        return x;
    }
    u = rest << 13; /* the value times 2^-112 */
    memcpy(&x, &u, sizeof x);
    x *= 0x1p112f;
    return sign ? -x : x;
}

static void read_e4m3(const mat *m, int64_t row, float *out) {
    const uint8_t *in = (const uint8_t *)m->data + row * m->cols;
    const float *scale = m->scale + row / MAT_BLOCK * ((m->cols - 1) / MAT_BLOCK + 1);
    for (int64_t i = 0; i < m->cols; i++)
        out[i] = e4m3_to_f32(in[i]) * scale[i / MAT_BLOCK];
}

void mat_read_row(const mat *m, int64_t row, float *out) {
    row += m->first_row;
    const uint16_t *half = (const uint16_t *)m->data + row * m->cols;
    switch (m->type) {
    case MAT_BF16:
        for (int64_t i = 0; i < m->cols; i++)
            out[i] = bf16_to_f32(half[i]);
        return;
    case MAT_F16:
        for (int64_t i = 0; i < m->cols; i++)
            out[i] = f16_to_f32(half[i]);
        return;
    case MAT_F32:
        memcpy(out, (const float *)m->data + row * m->cols, (size_t)m->cols * sizeof *out);
        return;
    case MAT_E4M3:
        read_e4m3(m, row, out);
        return;
    }
    SNAP_BUG("unknown type of matrix");
}
