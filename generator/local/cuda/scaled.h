/* scaled.h - block-scaled e4m3 weights, as DeepSeek-V3 ships them, to BF16: on the device, so that half the
 * bytes cross the bus and no processor multiplies. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H

#include "generator/local/cuda/launch.cuh"

namespace device {

/* Rows first .. first + rows - 1 of a matrix of @cols numbers a row; all memory is the device's. */
struct scaled_rows {
    const uint8_t *code; /* [rows][cols] e4m3 */
    const float *scale;  /* [..][ceil(cols / block)] of the whole matrix */
    int block;
    int64_t first, rows, cols;
    int64_t col, width; /* the columns that are wanted */
    /* Where they go, at @width numbers a row: row r to row r, or row r / 8 * 16 + r % 8 (gemm.h's ends_gate). */
    bool by_eights;
    bf16 *to;
};

/* Bit for bit what tensor_read_f32() and bf16_from_f32() give. */
cudaError_t scaled_to_bf16(const stream_of &s, const scaled_rows &a);

} // namespace device

#endif
