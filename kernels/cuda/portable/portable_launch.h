/* portable_launch.h - MLA decode for sm_80 and newer. BF16, and FP8 that is converted to BF16 on
 * chip. d_c and d_r are multiples of 32, up to 512 + 256; pages of 64 tokens; any number of
 * rows. */
#ifndef SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H

#include "kernels/cuda/combine/combine.h"

struct portable_args {
    int d_c, d_r;
    const void *content, *rope; /* cache planes as in mla.h; BF16: content holds whole rows */
    const float *token_scale;   /* null for BF16 */
    int pages;
    const void *q, *q_rope; /* BF16: q holds whole rows */
    const float *q_scale;
    const int *block_table;
    int batch, heads, s_q, table_width;
    float softmax_scale;
    sched_plan plan; /* the schedule of this step, for portable_parts() parts */
    int parts;
    __nv_bfloat16 *out;
    float *lse;         /* may be null */
    float *partial_out; /* [slots][rows][d_c] */
    float *partial_lse; /* [slots][rows] */
};

enum {
    PORTABLE_TILE_TOKENS = 64, /* tokens per tile of the schedule (sched.h) */
    PORTABLE_MAX_CONTENT = 512,
    PORTABLE_MAX_ROPE = 256,
};

/* Call once per device, before the first launch. @limit: bytes of shared memory per SM, of which
 * one CTA may take all; it emulates smaller devices in tests. 0 = what the device has. */
cudaError_t portable_init(int limit);

/* True if rows of these widths fit into a CTA's shared memory on this device. */
bool portable_serves(int d_c, int d_r);

/* The number of parts that fills a device with `sms` SMs. */
int portable_parts(int sms, int heads, int s_q);

/* Runs attention and, if sequences may be split, the merge (combine). */
cudaError_t portable_launch(const portable_args &args, bool may_cut, cudaStream_t stream);

#endif
