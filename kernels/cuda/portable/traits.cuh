/* traits.cuh - shapes, parameters and shared memory of the portable kernel.
 *
 * A CTA of 8 warps has 32 query rows of one sequence and takes 32 tokens a step:
 *
 *   load     queries once an item; tokens of the next step while this one is computed
 *   scores   S = Q K^T: a warp 16 rows x 8 tokens
 *   softmax  8 threads a row, 4 tokens each: P, and what O is to be multiplied by
 *   output   O += P V: a warp every eighth pair of 8 columns, all 32 rows
 *
 * Shared memory, in rows of `pitch` bytes (d_c + d_r bf16 numbers and 16 bytes against conflicts):
 *
 *   q [32]   k(0) [32]   BF16: k(1) [32]; FP8: raw() [32], d_c + 2 d_r bytes each   then struct small */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>

#include "kernels/cuda/sched/sched.h"

namespace portable {

enum {
    ROWS = 32,
    STEP = 32, /* tokens */
    PAGE = 64,
    kThreads = 256,
    kWarps = kThreads / 32,
    kPairs = 512 / 16 / kWarps, /* pairs of 8 columns of O that a warp has at most */
    kPitchP = STEP * 2 + 16,    /* bytes */
};

struct params {
    int d_c, d_r, pitch;
    const uint8_t *content, *rope;
    const float *token_scale;
    const uint8_t *q, *q_rope;
    const float *q_scale;
    const int *block_table;
    int table_width, pages;
    const sched_item *items;
    const sched_part *parts;
    __nv_bfloat16 *out; /* [batch][rows][d_c] */
    float *lse;         /* [batch][rows]; may be null */
    float *partial_out; /* [slots][rows][d_c] */
    float *partial_lse; /* [slots][rows], base 2 */
    int rows, heads, s_q;
    int row_tiles;    /* CTAs a part */
    float scale_log2; /* softmax scale x log2(e) */
};

struct small {
    float score[ROWS][STEP + 1];
    uint8_t p[ROWS][kPitchP]; /* bf16 */
    float token_scale[STEP], row_scale[ROWS];
    float factor[ROWS]; /* what O is multiplied by; at the end 1 / sum */
};

struct memory {
    uint8_t *q, *tokens;
    small *s;
    int stage; /* bytes of a buffer of tokens */

    __device__ memory(const params &p, uint8_t *base)
        : q(base), tokens(base + ROWS * p.pitch),
          s(reinterpret_cast<small *>(tokens + 2 * STEP * p.pitch)), stage(STEP * p.pitch) {
    }
    __device__ uint8_t *k(int i) const {
        return tokens + i * stage;
    }
    __device__ uint8_t *raw() const {
        return tokens + stage;
    }
};

/* Bytes of shared memory: raw fp8 tokens are shorter than bf16 ones. */
inline size_t memory_bytes(int d_c, int d_r) {
    return static_cast<size_t>(ROWS + 2 * STEP) * ((d_c + d_r) * 2 + 16) + sizeof(small);
}

} // namespace portable
