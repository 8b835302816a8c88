/* combine.h - merges the partial results of sequences that sched.h cut.
 *
 * Item k of a sequence left in slot first + k, for each of its rows, its own softmax's output (fp32,
 * normalised) and the base-2 logarithm of its sum. out = sum_k w_k out_k, w_k = 2^(lse_k - max) over
 * their sum, added in the order of k: bit-identical reruns. */
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

/* @parts: of the plan; more than a few a sequence ask for more threads a row. */
cudaError_t combine_launch(const combine_args &args, int parts, cudaStream_t stream);

#endif
