/* prepare.h - prepares a step in one launch: quantises queries, appends new tokens, computes the
 * schedule.
 *
 * The three tasks don't depend on each other. The first block computes the schedule, some blocks
 * append, the others quantise. */
#ifndef SNAPMLA_KERNELS_CUDA_DATAFLOW_PREPARE_H
#define SNAPMLA_KERNELS_CUDA_DATAFLOW_PREPARE_H

#include "kernels/cuda/dataflow/dataflow.h"
#include "kernels/cuda/sched/sched.h"

struct prepare_args {
    sched_plan plan; /* as for sched_launch() */
    sched_tile tile;
    int parts, splits;
    cache_planes cache;
    step_pages step;
    const __nv_bfloat16 *kv; /* as for append_launch() */
    int64_t rows;            /* query rows; 0 = there are none to quantise */
    const __nv_bfloat16 *q;  /* as for quant_q_launch() */
    uint8_t *q8;
    __nv_bfloat16 *q_rope;
    float *q_scale;
};

enum { PREPARE_MAX_PARTS = 255 };

/* The results equal those of the three separate launches bit for bit. */
cudaError_t prepare_launch(const prepare_args &args, cudaStream_t stream);

#endif
