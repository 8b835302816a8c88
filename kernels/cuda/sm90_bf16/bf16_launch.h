/* bf16_launch.h - BF16 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/sched/sched.h"

struct bf16_decode_args {
    const void *kv;   /* content plane of the cache, mla.h: bf16 [pages][64][576] */
    const void *rope; /* for sm90_ablation, whose cache is FP8: its other planes */
    const float *token_scale;
    int pages;
    const void *q; /* bf16 [batch][rows][576] */
    const int *block_table;
    int batch, heads, s_q, table_width;
    float softmax_scale;
    sched_plan plan; /* of this step, for bf16_decode_parts() parts */
    int parts;
    __nv_bfloat16 *out;
    float *lse;           /* may be null */
    void *partials;       /* [slots][rows], of BF16_PARTIAL_BYTES */
    int *counters;        /* [slots][bf16_row_tiles()], zero before the first launch */
    bool follows_prepare; /* decode_launch()'s */
};

enum {
    BF16_PARTIAL_BYTES = 512 * 2 + 32, /* a row of a slot */
};

/* Once a device, before the first launch. */
cudaError_t bf16_decode_init(void);

/* Tiles of rows of a sequence: a CTA each. */
int bf16_row_tiles(int heads, int s_q);

/* What its items count in: few rows are merged in less time than a page takes. */
inline sched_tile bf16_tile(int heads, int s_q) {
    return {64, heads * s_q <= 32 ? 2 : 3};
}

/* Parts that fill a device of so many SMs. */
int bf16_decode_parts(int sms, int heads, int s_q);

/* Attention, with the merging of cut sequences: one launch, all its CTAs resident if anything may be
 * cut. Launches that share `counters` must not overlap. */
cudaError_t bf16_decode_launch(const bf16_decode_args &args, bool may_cut, cudaStream_t stream);

#endif
