/* ablation.h - the Hopper kernels with one thing changed, so that each technique's share is measured.
 *
 * Each is the kernel's own source compiled once more, under another name and with another constant in
 * its config.h: what is compared with is what runs. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_ABLATION_ABLATION_H
#define SNAPMLA_KERNELS_CUDA_SM90_ABLATION_ABLATION_H

#include "kernels/cuda/sm90_bf16/bf16_launch.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"

/* sm90_bf16 over an FP8 cache, dequantised on chip: all three planes, queries bf16. */
cudaError_t widened_decode_init(void);
cudaError_t widened_decode_launch(const bf16_decode_args &args, bool may_cut, cudaStream_t stream);

/* sm90_fp8, whose products add to the output in the tensor cores. */
cudaError_t in_place_decode_init(void);
cudaError_t in_place_decode_launch(const fp8_decode_args &args, bool may_cut, cudaStream_t stream);

/* sm90_fp8 with three pages of content on chip instead of five. */
cudaError_t shallow_decode_init(void);
cudaError_t shallow_decode_launch(const fp8_decode_args &args, bool may_cut, cudaStream_t stream);

#endif
