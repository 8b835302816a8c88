/* combine.h - merges the partial results of split sequences in a launch of its own.
 *
 * Used by the portable kernels, for any number of rows and splits: their CTAs need not be
 * resident at the same time, so they cannot wait for each other. It follows the launch of the
 * attention kernel if the step may be split. On the device it processes only the sequences that the
 * schedule did split.
 *
 * Item k of a sequence has stored, in slot first + k and for each row, the output of its own
 * softmax (FP32, divided by its sum) and the base-2 logarithm of that sum. out = sum_k w_k out_k,
 * where w_k = 2^(lse_k - max) divided by the sum of these numbers. The order of additions depends
 * on the numbers of slots, parts and sequences only, so reruns are bit-identical. */
#ifndef SNAPMLA_KERNELS_CUDA_MERGE_COMBINE_H
#define SNAPMLA_KERNELS_CUDA_MERGE_COMBINE_H

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/sched/sched.h"

struct combine_args {
    sched_plan plan;
    const float *partial_out; /* [slots][rows][width] */
    const float *partial_lse; /* [slots][rows] */
    __nv_bfloat16 *out;       /* [batch][rows][width] */
    float *lse;               /* [batch][rows] natural logarithm; may be null */
    int batch, rows, width;   /* width <= 512, a multiple of 4 */
};

/* @parts: parts of the plan. With more than eight for each sequence of the batch, 8 x 128 threads
 * merge a row, else 128. */
cudaError_t combine_launch(const combine_args &args, int parts, cudaStream_t stream);

#endif
