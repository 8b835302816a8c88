/* scaled.h - conversion of block-scaled e4m3 weights, as DeepSeek-V3 ships them, to BF16. It runs
 * on the device, so about half of the bytes cross the bus and the host need not multiply. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SCALED_H

#include "generator/local/cuda/launch.cuh"

namespace device {

/* The rows first .. first + rows - 1 and columns col .. col + width - 1 of a matrix. All pointers
 * are device memory. */
struct scaled_rows {
    const uint8_t *code; /* [rows][width] e4m3 */
    const float *scale;  /* [..][across] scales of the blocks of the whole matrix */
    int block;
    int64_t across; /* number of blocks in a row of the whole matrix */
    int64_t first, rows, col, width;
    /* Destination, with rows of @width numbers. Row r goes to row r; with by_eights, to row
     * r / 8 * 16 + r % 8 (the layout of ends_gate, cuda_gemm.h). */
    bool by_eights;
    bf16 *to;
};

/* Gives the same bits as tensor_read_f32() followed by bf16_from_f32(). */
cudaError_t scaled_to_bf16(const stream_of &s, const scaled_rows &a);

} // namespace device

#endif
