/* cuda_gemm.h - products of activations with resident weights: y[i][j] = sum_k x[i][k] w[j][k]. The
 * operands are bf16, the sums FP32.
 *
 *   gemm_few    for memory-bound products: reads each weight once for every 8 to 64 rows; any
 *               device from compute capability 8.0 on, any number of rows
 *   gemm_many   for compute-bound products: sm_90a only, an even number of weight rows
 *
 * Weights can also be e4m3 codes with scales (codes.h), on sm_90a only:
 *
 *   gemm_few_codes    memory-bound: activations are FP16 with a factor for each row
 *                     (rows_to_fp16()). The tensor cores multiply codes, which FP16 represents
 *                     exactly, and add up the products of 64 k. The sum is multiplied by the scale
 *                     and added to y's number in FP32. So weights are not rounded, and the results
 *                     differ from those of weights in BF16. An activation is rounded only if it is
 *                     far smaller than the largest of its row
 *   gemm_many_codes   compute-bound: activations are e4m3, too (quantise_rows()). The tensor cores
 *                     add up the products of 128 k. The sum is multiplied by the two scales and
 *                     added to y's number in FP32
 *   gemm_expert_codes the same arithmetic, for experts, which have different numbers of rows
 *   gemm_stream_k     the same arithmetic as gemm_many_codes(), for products of up to 128 rows.
 *                     Each SM loads an equal part of the weights. It is used where the tiles of
 *                     gemm_many_codes() would leave SMs idle
 *
 * One launch can compute several products of the same shape, called groups: one for each head, or
 * one for each expert. The rows of an expert come from lists that the router writes on the device,
 * so a launch depends only on numbers that are known on the host.
 *
 * Each number of y is one sum. Its order depends on k, on which of the functions computed it, and
 * on the device's architecture; for gemm_stream_k() also on n, the number of groups
 * and the number of SMs. It does not depend on the other rows. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_GEMM_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUDA_GEMM_H

#include <cuda_fp16.h>

#include "generator/local/cuda/launch.cuh"

namespace device {

/* What is done with a sum: it is stored in FP32 (ends_f32) or BF16 (ends_bf16), or factor * sum is
 * added to y in FP32 (ends_add_f32). ends_gate: the rows of w alternate in blocks of eight, 8 rows
 * of the gate and then the 8 rows of the up projection. The result is y [..][n / 2] = silu(gate) *
 * up in bf16. */
enum gemm_end { ends_f32, ends_add_f32, ends_bf16, ends_gate };

/* The (row, expert) pairs of a step, sorted by expert. The arrays are device memory. */
struct expert_list {
    const int *first;  /* [experts + 1] the pairs of expert e are first[e] .. first[e + 1] - 1 */
    const int *active; /* [*count] the experts that have pairs */
    const int *count;
    const int *row; /* [pairs] the row of x for each pair; NULL = x has one row per pair */
    int known,
        first_known; /* the first `known` entries of `active` are the experts from first_known on;
                        all rows use them */
    bool settled;    /* the lists were complete before the previous kernel began */
};

/* Rows of FP16 numbers, each multiplied by a power of two (rows_to_fp16(), codes.h). */
struct fp16_rows {
    const __half *x;
    const float *inverse; /* [rows] 1 / the row's power of two */
};

/* e4m3 numbers with scales; of weights, or of activations (codes.h). */
struct coded {
    const uint8_t *code;
    const float *scale;
};

/* Device memory for the partial sums of gemm_stream_k(). Only one product at a time can use it. */
enum { STREAM_K_BLOCKS = 132 }; /* most thread blocks: the SMs of an H200 */
struct partial_sums {
    float *sum; /* [partial_sums_numbers()] */
    int *ready; /* [STREAM_K_BLOCKS] 1 = thread block i has stored its partial sums; zeros before
                   and after each product */
};

struct gemm_args {
    const bf16 *w; /* [groups][n][k] */
    int64_t w_group;
    coded w_codes;  /* the e4m3 weights, without gaps between groups; code is NULL if w is used */
    bool w_uniform; /* their scales are uniform (codes.h) */
    const bf16 *x;  /* [rows][k], rows x_row elements apart, groups x_group apart */
    int64_t x_row, x_group;
    void *y;
    int64_t y_row, y_group;
    int groups, rows, n, k; /* k, w_group, x_row and x_group are multiples of 8 */
    float factor;           /* ends_add_f32: y += factor * sum */
    gemm_end end;
    bool listed; /* groups are experts: y has one row per pair, and an expert has at most `rows`
                   pairs */
    expert_list experts;
    int64_t x_rows;       /* gemm_many: number of rows in the memory of x */
    coded x_codes;        /* gemm_many_codes, gemm_expert_codes, gemm_stream_k: what quantise_rows()
                             wrote for x_rows rows; replaces x. Experts: a row per pair */
    fp16_rows x_fp16;     /* gemm_few_codes: the rows of x in FP16, [rows][k]; used in place of x */
    partial_sums partial; /* gemm_stream_k */
};

cudaError_t gemm_few(const stream_of &s, const gemm_args &a);

cudaError_t gemm_few_sm90_init();
cudaError_t gemm_few_sm90(const stream_of &s,
                          const gemm_args &a); /* called by gemm_few() if s.hopper */

cudaError_t gemm_many_init();
cudaError_t gemm_many(const stream_of &s, const gemm_args &a);

/* n is a multiple of 8, k a multiple of 16, and x_group is 0. */
cudaError_t gemm_few_codes_init();
cudaError_t gemm_few_codes(const stream_of &s, const gemm_args &a);

/* Computes products that are not listed. The conditions of gemm_few_codes() hold here, too. The
 * address of y and the distances of its rows and groups are multiples of 16 bytes. With ends_gate,
 * n is a multiple of 16. */
cudaError_t gemm_many_codes_init();
cudaError_t gemm_many_codes(const stream_of &s, const gemm_args &a);

/* Computes products of experts (a.listed). a.end is ends_f32 or ends_gate. y and n as for
 * gemm_many_codes(). */
cudaError_t gemm_expert_codes_init();
cudaError_t gemm_expert_codes(const stream_of &s, const gemm_args &a);

/* Computes products that are not listed and have at most 128 rows. a.partial must be set. y and n
 * as for gemm_many_codes(). */
cudaError_t gemm_stream_k_init();
cudaError_t gemm_stream_k(const stream_of &s, const gemm_args &a);
int64_t partial_sums_numbers();

/* True for products that gemm_stream_k() should compute faster than gemm_many_codes(), by an
 * estimate. */
bool suits_stream_k(const gemm_args &a);

} // namespace device

#endif
