/* portable_launch.h - MLA decode for sm_80 and newer. BF16, and FP8 that is converted to BF16 on
 * chip. d_c and d_r are multiples of 32, up to 512 + 256 (portable_serves()); pages of 64 tokens;
 * any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_PORTABLE_PORTABLE_LAUNCH_H

#include "kernels/cuda/decode.h"

/* Partial results in decode_workspace: partial_out is fp32 [slots][rows][d_c], and partial_lse is
 * fp32 [slots][rows]. */
enum {
    PORTABLE_TILE_TOKENS = 64, /* tokens per tile of the schedule (sched.h) */
    PORTABLE_MAX_CONTENT = 512,
    PORTABLE_MAX_ROPE = 256,
};

/* Call once per device, before the first launch. @limit: for tests, the bytes of shared memory
 * that one CTA may use and that an SM has for all its CTAs, as on a smaller device. 0, or more
 * than the device has: the limits of the device itself. */
cudaError_t portable_init(int limit);

/* True if the kernels can run these widths on this device: both are multiples of 32, they are at
 * most PORTABLE_MAX_CONTENT and PORTABLE_MAX_ROPE, and the data of a CTA fit into its shared
 * memory. */
bool portable_serves(int d_c, int d_r);

/* The number of parts that fills a device with `sms` SMs, with two CTAs on each; at least 1. */
int portable_parts(int sms, int heads, int s_q);

/* Runs attention and, if sequences may be split, the merge (combine). */
cudaError_t portable_launch(const decode_args &args, cudaStream_t stream);

#endif
