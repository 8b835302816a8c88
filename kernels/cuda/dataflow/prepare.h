/* prepare.h - a step made ready in one launch: queries quantised, new tokens appended, the plan made.
 *
 * The three don't depend on each other: the first block plans, some append, the others quantise. */
#ifndef SNAPMLA_KERNELS_CUDA_DATAFLOW_PREPARE_H
#define SNAPMLA_KERNELS_CUDA_DATAFLOW_PREPARE_H

#include "kernels/cuda/dataflow/dataflow.h"
#include "kernels/cuda/sched/sched.h"

struct prepare_args {
    sched_plan plan; /* as sched_launch() */
    sched_tile tile;
    int parts, splits;
    cache_planes cache;
    step_pages step;
    const __nv_bfloat16 *kv; /* as append_launch() */
    int64_t rows;            /* of queries; 0: none are quantised */
    const __nv_bfloat16 *q;  /* as quant_q_launch() */
    uint8_t *q8;
    __nv_bfloat16 *q_rope;
    float *q_scale;
};

enum { PREPARE_MAX_PARTS = 255 };

/* Results are those of the three launches to the bit. */
cudaError_t prepare_launch(const prepare_args &args, cudaStream_t stream);

#endif
