/* code_case.cuh - products of e4m3 weights for check_codes: their operands on the host and on the
 * device, and the exact results, computed on the host in FP64. */
#pragma once
#include <cmath>
#include <cuda_fp8.h>

#include "generator/local/cuda/codes.h"
#include "kernels/cuda/test/device_memory.cuh"

namespace codes {

/* The memory for partial sums, which all products of a program use. */
inline device::partial_sums test_sums() {
    static const device::partial_sums sums = {
        allocate<float>(static_cast<size_t>(device::partial_sums_numbers())),
        upload(std::vector<int>(device::STREAM_K_BLOCKS))};
    return sums;
}

inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* From [-1, 1). */
inline float uniform(uint64_t key) {
    return static_cast<float>(mix(key) >> 40) * 0x1p-23f - 1;
}

inline float decoded(uint8_t code) {
    static float table[256];
    if (table[1] == 0)
        for (int i = 0; i < 256; i++)
            table[i] = __half2float(
                __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(i), __NV_E4M3)));
    return table[code];
}

/* Weights of several matrices: random e4m3 codes that are never NaN, and random scales. Some scales
 * are 0. With `uniform`, the scales are uniform in the sense of codes.h. */
struct weights {
    int groups, n, k;
    std::vector<uint8_t> code; /* [groups][n][k] */
    std::vector<float> scale;  /* in the layout of codes.h */
    const uint8_t *dev_code;
    const float *dev_scale;

    weights(int groups, int n, int k, bool uniform, uint64_t seed)
        : groups(groups), n(n), k(k), code(static_cast<size_t>(groups) * n * k),
          scale(static_cast<size_t>(groups * device::code_scales(n, k))) {
        for (size_t i = 0; i < code.size(); i++) {
            code[i] = static_cast<uint8_t>(mix(seed + i));
            if (code[i] % 128 == 127)
                code[i]--;
        }
        for (size_t i = 0; i < scale.size(); i++)
            scale[i] = i % 13 == 7 ? 0 : 0.01f * (1.5f + codes::uniform(seed + (1ull << 40) + i));
        for (int g = 0; g < groups && uniform; g++)
            for (int row = 0; row < n; row += 8)
                for (int col = 0; col < k; col += 128)
                    scale_at(g, row, col) = scale_at(g, row / 128 * 128 + row % 16, col);
        finish();
    }

    /* Copies everything to the device. */
    void finish() {
        dev_code = upload(code);
        dev_scale = upload(scale);
    }

    size_t at(int g, int row, int col) const {
        return (static_cast<size_t>(g) * n + row) * k + col;
    }
    float &scale_at(int g, int row, int col) {
        return scale[static_cast<size_t>(
            g * device::code_scales(n, k) +
            (row / 16 * device::code_pitch(k) + col / device::CODE_BLOCK) * 2 + row / 8 % 2)];
    }
};

/* Activations, and what quantise_rows() must make of them. */
struct rows {
    int count, k, pitch;
    std::vector<device::bf16> x; /* [count][pitch] */
    std::vector<uint8_t> code;   /* [count][k] */
    std::vector<float> scale;    /* [count][blocks of k] */
    device::bf16 *dev_x;

    rows(int count, int k, int pitch, uint64_t seed)
        : count(count), k(k), pitch(pitch), x(static_cast<size_t>(count) * pitch) {
        for (size_t i = 0; i < x.size(); i++) /* magnitudes differ from block to block */
            x[i] = __float2bfloat16_rn(uniform(seed + i) * (1 + static_cast<float>(i / 128 % 7)));
        finish();
    }

    /* Computes the codes and copies x to the device. */
    void finish() {
        code.resize(static_cast<size_t>(count) * k);
        scale.resize(static_cast<size_t>(count * device::code_blocks(k)));
        for (int i = 0; i < count; i++)
            for (int from = 0; from < k; from += 128)
                quantise(i, from, from + 128 < k ? from + 128 : k);
        dev_x = upload(x);
    }
    void quantise(int row, int from, int to) {
        float most = 1e-10f;
        for (int j = from; j < to; j++)
            most = fmaxf(most, fabsf(at(row, j)));
        const float s = scale_at(row, from) = most / 448.0f;
        for (int j = from; j < to; j++)
            code[static_cast<size_t>(row) * k + j] = static_cast<uint8_t>(
                __nv_cvt_float_to_fp8(at(row, j) / s, __NV_SATFINITE, __NV_E4M3));
    }
    float at(int row, int col) const {
        return __bfloat162float(x[static_cast<size_t>(row) * pitch + col]);
    }
    float &scale_at(int row, int col) {
        return scale[static_cast<size_t>(row * device::code_blocks(k) + col / 128)];
    }
};

/* A number of a result, and the sum of the magnitudes of its products. */
struct exact {
    double sum, magnitude;
};

/* Row @row of x, in BF16, times row @col of the weights: the codes times their scales. */
inline exact unrounded_product(weights &w, rows &x, int group, int row, int col) {
    exact y = {};
    for (int j = 0; j < w.k; j++) {
        const double p = static_cast<double>(x.at(row, j)) * decoded(w.code[w.at(group, col, j)]) *
                         w.scale_at(group, col, j);
        y.sum += p;
        y.magnitude += fabs(p);
    }
    return y;
}

/* The product of row @row and row @col if x is also codes with scales. */
inline exact coded_product(weights &w, rows &x, int group, int row, int col) {
    exact y = {};
    for (int from = 0; from < w.k; from += 128) {
        const uint8_t *a = &x.code[static_cast<size_t>(row) * x.k],
                      *b = &w.code[w.at(group, col, 0)];
        exact block = {};
        for (int j = from; j < w.k && j < from + 128; j++) {
            const double p = static_cast<double>(decoded(a[j])) * decoded(b[j]);
            block.sum += p;
            block.magnitude += fabs(p);
        }
        const double both =
            static_cast<double>(x.scale_at(row, from)) * w.scale_at(group, col, from);
        y.sum += both * block.sum;
        y.magnitude += both * block.magnitude;
    }
    return y;
}

} // namespace codes
