/* bf16_launch.h - BF16 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H

#include "kernels/cuda/decode.h"

/* Partial results (decode_workspace): partial_out [slots][rows] of BF16_PARTIAL_BYTES each, and counters
 * [slots][bf16_row_tiles()]. A row's LSE lies in partial_out, so that partial_lse is not used. */
enum {
    BF16_PARTIAL_BYTES = 512 * 2 + 32, /* of a row */
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

/* Attention and the merging of cut sequences, in one launch. Its CTAs are all resident if a sequence may
 * be cut. Launches that share a workspace must not overlap. */
cudaError_t bf16_decode_launch(const decode_args &args, cudaStream_t stream);

#endif
