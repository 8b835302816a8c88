/* traits.cuh - parameters, shared memory and barriers of the kernel.
 *
 *   warps 0-3, 4-7     two softmax groups; tile n belongs to group n % 2, which loads it, computes
 *                      S = Q K^T and leaves P = e4m3(softmax)
 *   warps 8-11, 12-15  two output groups, 256 of the 512 columns each: O^T += V^T P^T
 *
 * Barrier          arrivals             completes when                          awaited by
 *   full[stage]    a loader + bytes     the content of a tile has landed        softmax, output
 *   empty[stage]   8 output warps       V is in registers                       the loader
 *   full_rope[g]   a loader + bytes     RoPE of group g's tile has landed       softmax group g
 *   full_q         a loader + bytes     the item's queries have landed          softmax
 *   empty_q        2 softmax groups     the item's last S is computed           the loader
 *   full_p[g]      4 softmax warps      P and the shifts of O are written       output, group g
 *   empty_p[g]     8 output warps       P is multiplied                         softmax group g
 *   full_sum       8 softmax warps      the item's sums are written             output
 *   empty_sum      8 output warps       they are read                           softmax
 *   named 1..8     2 x 32               a warp's turn: `unit` of the tile       the same warp of the
 *                                       before                                  other group
 *   named 9, 10    128                  S is computed, `scales` are written     softmax group      */
#pragma once
#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/sched/sched.h"
#include "kernels/cuda/sm90_fp8/config.h"

namespace sm90_fp8 {

struct params {
    CUtensorMap content; /* [4][pages x 64][128] B, box of one page */
    CUtensorMap rope;    /* [pages x 64][128] B */
    CUtensorMap q;       /* [batch][4][rows][128] B */
    CUtensorMap q_rope;  /* [batch][rows][128] B */
    const float *token_scale; /* [pages][64] */
    const float *q_scale;     /* [batch][rows] */
    const int *seqlens;       /* [batch] */
    const int *block_table;   /* [batch][table_width] */
    int table_width, pages, max_tokens;
    const sched_item *items;
    const int *part_begin;
    __nv_bfloat16 *out;  /* [batch][rows][512] */
    float *lse;          /* [batch][rows]; may be null */
    float *partial_out;  /* [slots][rows][512] */
    float *partial_lse;  /* [slots][rows], base 2 */
    int rows;            /* of a sequence: s_q x heads */
    int heads, s_q;
    int row_tiles;       /* CTAs a part: ceil(rows / 64) */
    float scale_log2;    /* softmax scale x log2(e) */
};

struct alignas(16) token_pair {
    float scale[2], log_scale[2]; /* a_k and log2 a_k of two neighbouring tokens */
};

struct alignas(1024) shared {
    uint8_t content[kStages][COLUMNS][TOKENS][SWIZZLE];
    uint8_t rope[2][TOKENS][SWIZZLE];
    uint8_t q[COLUMNS][ROWS][SWIZZLE];
    uint8_t q_rope[ROWS][SWIZZLE];
    uint8_t p[ROWS][SWIZZLE];         /* 64 B a row of either group */
    token_pair scales[2][TOKENS / 2];
    float unit[2][ROWS];              /* E of the group's last tile */
    float2 sum[2][ROWS];              /* sum of P in units of 2^E, and E, of either group */
    int4 rescale[2];                  /* which 16-row groups of O change their unit */
    int8_t shift[2][ROWS];            /* E before - E now; NEVER: O becomes 0 */
    uint64_t full[kStages], empty[kStages];
    uint64_t full_rope[2];
    uint64_t full_q, empty_q;
    uint64_t full_p[2], empty_p[2];
    uint64_t full_sum, empty_sum;
};
static_assert(sizeof(shared) <= 232448, "an SM lends 227 KB");
static_assert(offsetof(shared, rope) % 1024 == 0 && offsetof(shared, q) % 1024 == 0 &&
                  offsetof(shared, p) % 1024 == 0,
              "swizzled tiles begin at 1024 bytes");
static_assert(2 * kSoftmaxRegs + 2 * kOutputRegs <= 512, "registers of a warp scheduler, a lane");

enum { NEVER = -127 };
enum {
    kBytesContent = CONTENT * TOKENS,
    kBytesRope = 2 * ROPE * TOKENS,
    kBytesQ = (CONTENT + 2 * ROPE) * ROWS,
};
enum { kBarTurn = 1, kBarScales = 9 };

/* A position in a ring of stages. */
struct ring {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void advance(int by = 1) {
        stage += by;
        if (stage >= kStages) {
            stage -= kStages;
            parity ^= 1;
        }
    }
};

} // namespace sm90_fp8
