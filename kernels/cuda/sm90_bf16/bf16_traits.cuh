/* bf16_traits.cuh - parameters, shared memory and barriers of the kernel.
 *
 *   group 0, warps 0-3     even pages: S = Q K^T, P;   O left (columns 0 .. 255) += P V of both
 *   group 1, warps 4-7     odd pages: the same;        O right
 *   warp 8                 the copy engine
 *
 * Barrier               arrivals            completes when                          awaited by
 *   full[page][piece]   loader + bytes      a piece of a page is here               its group
 *                       (widening: 128)
 *   empty_rope[page]    4 warps             S is computed                           loader
 *   empty[page][half]   4 warps             P V of that half is computed            loader
 *   full_q              loader + bytes      the item's queries are here             both groups
 *   empty_q             8 warps             the item's last S is computed           loader
 *   full_p[page]        128 of its group    P and E of the page are written; with it,      other group
 *                                           what the page before left has been read
 *   full_sum            256                 the sums of a whole sequence are written    both groups
 *   named kMerge        256                 an item's partial results are stored;       both groups
 *                                           steps of merge.cuh */
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
    CUtensorMap kv[2];      /* [9][pages x 64][128] B; boxes of one column, of two */
    CUtensorMap q;          /* [batch][9][rows][128] B, box without RoPE */
    const uint32_t *q_rows; /* [batch][rows][288], pairs of numbers */
    const uint8_t *content; /* these three: planes of an FP8 cache, for SM90_BF16_WIDEN only */
    const uint8_t *rope;
    const float *token_scale;
    const int *block_table; /* [batch][table_width] */
    int table_width, pages;
    const sched_item *items;
    const sched_part *parts;
    __nv_bfloat16 *out; /* [batch][rows][512] */
    float *lse;         /* [batch][rows]; may be null */
    uint8_t *partials;  /* [slots][rows], merge.cuh */
    int *counters;      /* [slots][row_tiles] */
    int rows;           /* of a sequence: s_q x heads */
    int heads, s_q;
    int q_tile_rows;  /* on chip: 64, or where a sequence has fewer, those, in eights */
    int row_tiles;    /* CTAs a part: ceil(rows / 64) */
    float scale_log2; /* softmax scale x log2(e) */
    float window;     /* kWindow or 0 */
};

struct alignas(1024) shared {
    uint8_t kv[2][COLUMNS][PAGE][SWIZZLE];
    uint8_t q[COLUMNS - 1][ROWS][SWIZZLE]; /* as many rows as there are; RoPE: in registers */
    uint8_t p[2][ROWS][SWIZZLE];           /* bf16, 64 tokens */
    sched_part part;
    float unit[ROWS];      /* E of the latest page */
    float sum[2][2][ROWS]; /* items alternate; of either group */
    uint64_t full[2][kPieces];
    uint64_t empty_rope[2], empty[2][2];
    uint64_t full_p[2], full_sum;
    uint64_t full_q, empty_q;
};
static_assert(sizeof(shared) <= 232448, "an SM lends 227 KB");
static_assert(offsetof(shared, q) % 1024 == 0 && offsetof(shared, p) % 1024 == 0,
              "swizzled tiles begin at 1024 bytes");
static_assert(kLoadRegs + 2 * kMathRegs <= 3 * kLaunchRegs, "a warp scheduler's registers");

enum { kMerge = 1 }; /* a named barrier */

/* Item k of a part, the first from the part's own record. */
__device__ __forceinline__ sched_item item_at(const shared &s, const params &p, int k) {
    return k == s.part.first ? s.part.head : p.items[k];
}

} // namespace sm90_bf16
