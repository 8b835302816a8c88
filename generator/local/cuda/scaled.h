/* scaled.h - conversion of block-scaled e4m3 weights, as DeepSeek-V3 ships them, to BF16. It runs
 * on the device, so about half of the bytes cross the bus and the host need not multiply. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H

#include "generator/local/cuda/launch.cuh"

namespace device {

/* The rows first .. first + rows - 1 of a matrix with @cols columns. All pointers are device
 * memory. */
struct scaled_rows {
    const uint8_t *code; /* [rows][cols] e4m3 */
    const float *scale;  /* [..][ceil(cols / block)] scales of the whole matrix */
    int block;
    int64_t first, rows, cols;
    int64_t col, width; /* the columns to convert */
    /* Destination, with rows of @width numbers. Row r goes to row r; with by_eights, to row
     * r / 8 * 16 + r % 8 (the layout of ends_gate, cuda_gemm.h). */
    bool by_eights;
    bf16 *to;
};

/* Gives the same bits as tensor_read_f32() followed by bf16_from_f32(). */
cudaError_t scaled_to_bf16(const stream_of &s, const scaled_rows &a);

} // namespace device

#endif
