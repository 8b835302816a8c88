/* cuda_gemm.h - products of activations with resident weights: y[i][j] = sum_k x[i][k] w[j][k], bf16 operands,
 * FP32 sums.
 *
 *   gemm_few    memory-bound: weights stream once from memory straight into the tensor cores' operands;
 *               any device of 8.0 and newer, any number of rows
 *   gemm_many   compute-bound: sm_90a only, an even number of rows of weights
 *
 * Groups are products of one shape beside each other: heads, or experts. An expert's rows come from lists
 * that the router leaves on the device, so a launch depends on host-known numbers only.
 *
 * Each number of y is one chain of sums whose order depends on k and on which of the two computed it, not
 * on the other rows. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_GEMM_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_GEMM_H

#include "generator/local/cuda/launch.cuh"

namespace device {

/* What becomes of a sum. ends_gate: rows of w come in blocks of eight, 8 of a gate and then 8 of what it
 * gates; y [..][n / 2] = silu(gate) * up in bf16. */
enum gemm_end { ends_f32, ends_add_f32, ends_bf16, ends_gate };

/* Rows of a step sorted by the expert they go to; device memory. */
struct expert_list {
    const int *first;  /* [experts + 1] an expert's pairs are first[e] .. first[e + 1] - 1 */
    const int *active; /* [*count] experts that have any */
    const int *count;
    const int *row; /* [pairs] the row of x; NULL = x has a row a pair */
    int known,
        first_known; /* so many experts lead the list and have all rows: from first_known on */
    bool settled;    /* the lists were there before the last kernel began */
};

struct gemm_args {
    const bf16 *w; /* [groups][n][k] */
    int64_t w_group;
    const bf16 *x; /* [rows][k] at x_row elements a row, a group's columns x_group further */
    int64_t x_row, x_group;
    void *y;
    int64_t y_row, y_group;
    int groups, rows, n, k; /* k and strides: multiples of 8 */
    float factor;           /* ends_add_f32: y += factor * sum */
    gemm_end end;
    bool
        listed; /* groups are experts: y has a row a pair, rows is the most that an expert may have */
    expert_list experts;
    int64_t x_rows; /* gemm_many: rows in x's memory */
};

cudaError_t gemm_few(const stream_of &s, const gemm_args &a);

cudaError_t gemm_few_sm90_init();
cudaError_t gemm_few_sm90(const stream_of &s,
                          const gemm_args &a); /* what gemm_few() is on Hopper */

cudaError_t gemm_many_init();
cudaError_t gemm_many(const stream_of &s, const gemm_args &a);

} // namespace device

#endif
