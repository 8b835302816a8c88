/* portable_launch.h - MLA decode for sm_80 and newer: BF16, and FP8 brought to BF16 on chip; any d_c and d_r
 * that are multiples of 32 up to 512 + 256, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H

#include "kernels/cuda/combine/combine.h"

struct portable_args {
    int d_c, d_r;
    const void *content, *rope; /* planes of the cache, mla.h; BF16: content holds whole rows */
    const float *token_scale;   /* null for BF16 */
    int pages;
    const void *q, *q_rope; /* BF16: q holds whole rows */
    const float *q_scale;
    const int *block_table;
    int batch, heads, s_q, table_width;
    float softmax_scale;
    sched_plan plan; /* of this step, for portable_parts() parts */
    int parts;
    __nv_bfloat16 *out;
    float *lse;         /* may be null */
    float *partial_out; /* [slots][rows][d_c] */
    float *partial_lse; /* [slots][rows] */
};

enum {
    PORTABLE_TILE_TOKENS = 64, /* the tile of sched.h */
    PORTABLE_MAX_CONTENT = 512,
    PORTABLE_MAX_ROPE = 256,
};

/* Once a device, before the first launch. @limit: bytes of shared memory that the only CTA of an SM may
 * take, to try what a lesser device does; 0 = what this one lends. */
cudaError_t portable_init(int limit);

/* Whether a CTA's shared memory on this device holds such rows. */
bool portable_serves(int d_c, int d_r);

/* Parts that fill a device of so many SMs. */
int portable_parts(int sms, int heads, int s_q);

/* Attention and, where something may be cut, combine. */
cudaError_t portable_launch(const portable_args &args, bool may_cut, cudaStream_t stream);

#endif
