/* codes.h - weights that stay e4m3 on the device (Hopper only), and activations converted for them.
 *
 * A matrix of weights is codes [n][k] and scales: weight = code * the scale of its block of 8 rows
 * and 128 columns. Checkpoints have scales for blocks of 128 by 128. They are repeated for every 8
 * rows, because gate and up projections alternate by eight rows (ends_gate, cuda_gemm.h), and
 * because matrices that are joined may end inside a block. The scales lie in pairs: those of the
 * rows 0 .. 7 and of the rows 8 .. 15 of a tile of 16 rows:
 *
 *   scale [ceil(n / 16)][code_pitch(k)][2]
 *
 * So the scales of one tile are contiguous, as gemm_few_codes() copies them. A product has such a
 * matrix for each group, one after another.
 *
 * Scales are "uniform" if all pairs of the rows 128 i .. 128 i + 127 are equal, for each i and each
 * block of columns. This is so if the blocks of the checkpoint begin at these rows, or, if gate and
 * up projections alternate, at every other one. gemm_many_codes() and gemm_expert_codes() are
 * faster then. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CODES_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CODES_H

#include "generator/local/cuda/cuda_gemm.h"

namespace device {

enum { CODE_BLOCK = 128 }; /* columns that share a scale, of weights and of activations */

__host__ __device__ inline int64_t code_blocks(int64_t k) {
    return (k + CODE_BLOCK - 1) / CODE_BLOCK;
}

/* Pairs of scales from one tile of 16 rows to the next: an even number, for copies of 16 bytes. */
__host__ __device__ inline int64_t code_pitch(int64_t k) {
    return (code_blocks(k) + 1) / 2 * 2;
}

/* Number of scales of a matrix. */
__host__ __device__ inline int64_t code_scales(int64_t n, int64_t k) {
    return (n + 15) / 16 * code_pitch(k) * 2;
}

/* Distance of the scales of two blocks of k, for @rows rows of activations: a multiple of 16 bytes,
 * as TMA requires. */
__host__ __device__ inline int64_t row_scale_pitch(int64_t rows) {
    return (rows + 3) / 4 * 4;
}

/* The scales of some rows of a matrix, whose checkpoint has one for each block of 128 by 128. All
 * pointers are device memory. */
struct code_scale_rows {
    const float *from;   /* [..][across] scales of the blocks of the whole matrix */
    int64_t across;      /* number of blocks in a row of the whole matrix */
    int64_t first, rows; /* first row in the whole matrix, number of rows; multiples of 8 */
    int64_t col, width;  /* first column in the whole matrix, a multiple of CODE_BLOCK */
    float *to;           /* scales of the destination, which has @width columns */
    int64_t to_first;    /* the destination's first row, a multiple of 8 */
    bool by_eights;      /* eight rows of the destination are left out after eight rows */
};
cudaError_t place_code_scales(const stream_of &s, const code_scale_rows &a);

/* Quantises the activations of gemm_many_codes() and gemm_expert_codes(): for each row and
 * CODE_BLOCK columns, the scale is the largest magnitude / 448 (of at least 1e-10), and a code is
 * x / scale, rounded to e4m3. NaN gives NaN. An infinity makes all codes of its scale NaN. */
struct quantise_args {
    const bf16 *x;
    int64_t x_row;    /* distance of rows, a multiple of 8 */
    const int *count; /* device memory: number of rows of x, at most x_rows; NULL = x_rows */
    int x_rows, k;    /* k is a multiple of 8 */
    uint8_t *code;    /* [rows][k] */
    float *scale; /* [code_blocks(k)][row_scale_pitch(rows)]; a product must have x_rows = rows */
    int64_t rows; /* number of result rows in memory */
    const int *place; /* [x_rows][places] the result rows that get row i of x; those below 0 do not
                         exist. NULL = result row i */
    int places;
};
cudaError_t quantise_rows(const stream_of &s, const quantise_args &a);

/* Converts the activations of gemm_few_codes() to FP16. Each row is multiplied by a power of two,
 * so that its largest finite magnitude lies in [2^14, 2^15). A row is multiplied by 2^126 if its
 * largest magnitude is below 2^-112, and by 1 if all its finite numbers are
 * zeros.
 *
 * A number is exact if it is at least 2^-31 of the row's largest. The error of a smaller one is at
 * most 2^-39 of the largest. NaN and infinities stay what they are. */
struct fp16_args {
    const bf16 *x;
    int64_t x_row;    /* distance of rows, a multiple of 8 */
    const int *count; /* device memory: number of rows; NULL = rows */
    int rows, k;      /* most rows; k is a multiple of 8 */
    __half *half;     /* [rows][k] */
    float *inverse;   /* [rows] 1 / the row's power of two */
};
cudaError_t rows_to_fp16(const stream_of &s, const fp16_args &a);

} // namespace device

#endif
