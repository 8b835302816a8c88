/* fp8_launch.h - FP8 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H

#include "kernels/cuda/decode.h"

/* Partial results (decode_workspace). Where a CTA takes more than FP8_FEW_ROWS rows: partial_out is bf16
 * [slots][rows][512], beside it partial_lse and counters. Where it takes at most so many: few_partials
 * alone, [row tiles][slots][FP8_FEW_BYTES]. A step with several tiles of few rows has
 * 2 x decode_grid.parts slots for each tile. */
enum {
    FP8_FEW_ROWS = 32,                                /* up to so many rows have their own kernels */
    FP8_PARTIAL_BYTES = 512 * 2,                      /* of a row of partial_out */
    FP8_FEW_BYTES = FP8_FEW_ROWS * (512 * 2 + 8 * 4), /* of a slot: partial outputs and LSE */
};

/* Once a device, before the first launch. */
cudaError_t fp8_decode_init(void);

/* Tiles of rows of a sequence: a CTA each. */
int fp8_row_tiles(const decode_grid &grid, int heads, int s_q);

/* For a device of so many SMs: tiles of 64 rows, counted in two pages, or equal ones of up to 16 or 32,
 * counted in pages, all of which read every page: what takes least time if sequences are as long as there is
 * room for. Up to 32 rows never tiles of 64. */
decode_grid fp8_grid(int sms, int heads, int s_q, const sched_room &room);

/* Attention and the merging of cut sequences, in one launch. Its CTAs are all resident if a sequence may
 * be cut. Launches that share a workspace must not overlap. */
cudaError_t fp8_decode_launch(const decode_args &args, cudaStream_t stream);

#endif
