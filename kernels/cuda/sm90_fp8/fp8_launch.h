/* fp8_launch.h - FP8 MLA decode for sm_90a: 512 + 64, pages of 64, any number of rows. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H
#define SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_LAUNCH_H

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/sched/sched.h"

struct fp8_decode_args {
    const void *content, *rope; /* planes of the cache, mla.h */
    const float *token_scale;
    int pages;
    const void *q, *q_rope; /* [batch][rows][512] e4m3, [batch][rows][64] bf16 */
    const float *q_scale;   /* [batch][rows] */
    const int *block_table;
    int batch, heads, s_q, table_width;
    float softmax_scale;
    sched_plan plan; /* of this step, for its grid */
    decode_grid grid;
    __nv_bfloat16 *out;
    float *lse;                 /* may be null */
    __nv_bfloat16 *partial_out; /* [slots][rows][512] */
    float *partial_lse;         /* [slots][rows] */
    int *counters;              /* [slots][row tiles], zero before the first launch */
    /* Instead of these three, where a CTA takes at most FP8_FEW_ROWS rows: [row tiles][few_slots]
     * [FP8_FEW_BYTES], all bits set before the first launch. */
    void *few_partials;
    int few_slots;
    bool follows_prepare; /* decode_launch()'s */
};

enum {
    FP8_FEW_ROWS = 32,                                /* have kernels of their own */
    FP8_FEW_BYTES = FP8_FEW_ROWS * (512 * 2 + 8 * 4), /* their partial results and LSE */
};

/* Once a device, before the first launch. */
cudaError_t fp8_decode_init(void);

/* Tiles of rows of a sequence: a CTA each. */
int fp8_row_tiles(const decode_grid &grid, int heads, int s_q);

/* For a device of so many SMs: tiles of 64 rows, counted in two pages, or equal ones of up to 16 or 32,
 * counted in pages, all of which read every page: what takes least time if sequences are as long as there is
 * room for. Up to 32 rows never tiles of 64. */
decode_grid fp8_grid(int sms, int heads, int s_q, const sched_room &room);

/* Attention, with the merging of cut sequences: one launch, all its CTAs resident if anything may be
 * cut. Launches that share `counters` or `few_partials` must not overlap. */
cudaError_t fp8_decode_launch(const fp8_decode_args &args, bool may_cut, cudaStream_t stream);

#endif
