/* bf16_traits.cuh - parameters, shared memory and barriers of the kernel.
 *
 *   group 0, warps 0-3     S = Q K^T and P of even pages;  O left (columns 0 .. 255) += P V of all
 *   group 1, warps 4-7     S = Q K^T and P of odd pages;   O right (256 .. 511) += P V of all
 *   warp 8                 loader (TMA)
 *
 * Barrier               arrivals            completes when                          waited for by
 *   full[page][piece]   loader + bytes      a piece of a page has arrived           its group
 *                       (widening: 128)
 *   empty_rope[page]    4 warps             S is computed                           loader
 *   empty[page][half]   4 warps             P V of that half is computed            loader
 *   full_q              loader + bytes      the item's queries have arrived         both groups
 *   empty_q             8 warps             the item's last S is computed           loader
 *   full_p[page]        128 of its group    P and E of the page are written, and    other group
 *                                           the group has read those of the
 *                                           page before
 *   full_sum            256                 both groups wrote the sums of an        both groups
 *                                           unsplit sequence
 *   named kMerge        256                 an item's partial results are stored;   both groups
 *                                           steps of bf16_merge.cuh */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/sched/sched.h"
#include "kernels/cuda/sm90_bf16/bf16_config.h"
#include "kernels/cuda/sm90_bf16/bf16_launch.h"

namespace sm90_bf16 {

struct params {
    CUtensorMap kv[2];      /* [9][pages x 64][128] B; [0]: boxes of one column, [1]: of two */
    CUtensorMap q;          /* [batch][9][rows][128] B; boxes without RoPE */
    const uint32_t *q_rows; /* [batch][rows][288], pairs of numbers */
    const uint8_t *content; /* content, rope, token_scale: planes of an FP8 cache, for
                               SM90_BF16_WIDEN only */
    const uint8_t *rope;
    const float *token_scale;
    decode_io io;
    uint8_t *partials;  /* [slots][rows], bf16_merge.cuh */
    int *counters;      /* [slots][row_tiles] */
    int rows;           /* rows of a sequence: s_q x heads */
    int heads, s_q;
    int q_tile_rows;  /* query rows in shared memory: min(64, rows rounded up to 8) */
    int row_tiles;    /* CTAs per part: ceil(rows / 64) */
    float scale_log2; /* softmax scale x log2(e) */
    float window;     /* kWindow or 0 */
};

struct alignas(1024) shared {
    uint8_t kv[2][COLUMNS][PAGE][SWIZZLE];
    uint8_t q[COLUMNS - 1][ROWS][SWIZZLE]; /* q_tile_rows rows; the RoPE part is in registers */
    uint8_t p[2][ROWS][SWIZZLE];           /* bf16, 64 tokens */
    sched_part part;
    float unit[ROWS];      /* E after the latest page */
    float sum[2][2][ROWS]; /* [parity of the number of unsplit sequences so far][group][row]: sums
                              of P */
    uint64_t full[2][kPieces];
    uint64_t empty_rope[2], empty[2][2];
    uint64_t full_p[2], full_sum;
    uint64_t full_q, empty_q;
};
static_assert(sizeof(shared) <= 232448, "a CTA can have 227 KB");
static_assert(offsetof(shared, q) % 1024 == 0 && offsetof(shared, p) % 1024 == 0,
              "swizzled tiles begin at 1024 bytes");
static_assert(kLoadRegs + 2 * kMathRegs <= 3 * kLaunchRegs, "registers of a warp scheduler");

enum { kMerge = 1 }; /* a named barrier */

/* Item k of a part. The first one is stored in the part's record. */
__device__ __forceinline__ sched_item item_at(const shared &s, const params &p, int k) {
    return k == s.part.first ? s.part.head : p.io.items[k];
}

} // namespace sm90_bf16
