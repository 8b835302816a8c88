/* fp8_launch.h - FP8 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H

#include "kernels/cuda/decode.h"

/* Partial results (decode_workspace). If a CTA takes more than FP8_FEW_ROWS rows, partial_out is
 * bf16 [slots][rows][512], and partial_lse and counters are used, too. If not, only
 * few_partials is used: [row tiles][slots][FP8_FEW_BYTES]. A step with several tiles of few rows
 * has 2 x decode_grid.parts slots for each tile. */
enum {
    FP8_FEW_ROWS = 32,           /* CTAs with at most this many rows run kernels of their own
                                    (decode<16>, decode<32>) */
    FP8_PARTIAL_BYTES = 512 * 2, /* bytes per row of partial_out */
    FP8_FEW_BYTES = FP8_FEW_ROWS * (512 * 2 + 8 * 4), /* bytes per slot: partial outputs and copies
                                                         of the LSE */
};

/* Call once per device, before the first launch. */
cudaError_t fp8_decode_init(void);

/* The number of row tiles of a sequence. Each takes one CTA per part. */
int fp8_row_tiles(const decode_grid &grid, int heads, int s_q);

/* Chooses the height of the row tiles for a device with `sms` SMs: tiles of 64 rows, or equal tiles
 * of at most 16 or 32 rows. With more tiles, each page is read more often. The choice is the height
 * with the shortest estimated time if all sequences are as long as @room allows. Up to 32 rows
 * never take tiles of 64. Items are counted in pairs of pages with tiles of 64 rows, else in
 * pages. */
decode_grid fp8_grid(int sms, int heads, int s_q, const sched_room &room);

/* Attention and the merge of split sequences, in one launch. It is cooperative if a sequence may be
 * split. Launches that share a workspace must not overlap. */
cudaError_t fp8_decode_launch(const decode_args &args, cudaStream_t stream);

#endif
