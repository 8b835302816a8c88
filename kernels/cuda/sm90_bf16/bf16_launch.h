/* bf16_launch.h - BF16 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_LAUNCH_H

#include "kernels/cuda/decode.h"

/* Partial results (decode_workspace): partial_out is [slots][rows] of BF16_PARTIAL_BYTES each, and
 * counters is [slots][bf16_row_tiles()]. partial_lse is not used, because partial_out contains what
 * the merge needs for each row. */
enum {
    BF16_PARTIAL_BYTES = 512 * 2 + 32, /* bytes per row */
};

/* Call once per device, before the first launch. */
cudaError_t bf16_decode_init(void);

/* The number of row tiles of a sequence. Each takes one CTA per part. */
int bf16_row_tiles(int heads, int s_q);

/* Items are counted in pages. A merge costs less with at most 32 rows (sched_tile). */
inline sched_tile bf16_tile(int heads, int s_q) {
    return {64, heads * s_q <= 32 ? 2 : 3};
}

/* The number of parts. A step has one CTA for each part and each tile of rows. There are so many
 * parts that it has at most `sms` CTAs, but at least one part. */
int bf16_decode_parts(int sms, int heads, int s_q);

/* Attention and the merge of split sequences, in one launch. It is cooperative if a sequence may be
 * split. Launches that share a workspace must not overlap. */
cudaError_t bf16_decode_launch(const decode_args &args, cudaStream_t stream);

#endif
