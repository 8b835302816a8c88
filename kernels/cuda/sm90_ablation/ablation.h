/* ablation.h - variants of the Hopper kernels with one technique changed, to measure what it
 * contributes.
 *
 * Each variant compiles the source of the kernel itself once more, under another name and with
 * another value of one or two constants of the kernel's config header. So the comparison is with
 * the code that really runs. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_ABLATION_ABLATION_H
#define SNAPMLA_KERNELS_CUDA_SM90_ABLATION_ABLATION_H

#include "kernels/cuda/sm90_bf16/bf16_launch.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"

/* sm90_bf16 on an FP8 cache that is dequantised on chip. Takes all three planes, and bf16
 * queries. */
cudaError_t widened_decode_init(void);
cudaError_t widened_decode_launch(const decode_args &args, cudaStream_t stream);

/* sm90_fp8 with products that add to the output inside the tensor cores. */
cudaError_t in_place_decode_init(void);
cudaError_t in_place_decode_launch(const decode_args &args, cudaStream_t stream);

/* sm90_fp8 with three pages of content in shared memory instead of five. */
cudaError_t shallow_decode_init(void);
cudaError_t shallow_decode_launch(const decode_args &args, cudaStream_t stream);

/* sm90_fp8 with a unit of P for each page, as in the paper. */
cudaError_t page_units_decode_init(void);
cudaError_t page_units_decode_launch(const decode_args &args, cudaStream_t stream);

/* sm90_fp8 with a unit of P for each page, which multiplies and adds the second page of a tile
 * before the first. */
cudaError_t page_order_decode_init(void);
cudaError_t page_order_decode_launch(const decode_args &args, cudaStream_t stream);

#endif
