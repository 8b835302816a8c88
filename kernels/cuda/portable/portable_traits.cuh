/* portable_traits.cuh - shapes, parameters and shared memory of the portable kernel.
 *
 * A CTA of 8 warps has 32 query rows of one sequence and takes 32 tokens a step, or 16 where the device
 * lends a CTA too little shared memory for that:
 *
 *   load     queries once an item; tokens of the next step while this one is computed
 *   scores   S = Q K^T: a warp 16 rows x 8 tokens; of 16 tokens, half of the warps
 *   softmax  8 threads a row, 4 or 2 tokens each: P, and what O is to be multiplied by
 *   output   O += P V: a warp every eighth pair of 8 columns, all 32 rows
 *
 * Shared memory, in rows of `pitch` bytes (d_c + d_r bf16 numbers and 16 bytes against conflicts):
 *
 *   q [32]   k(0) [step]   BF16: k(1) [step]; FP8: raw() [step], d_c + 2 d_r bytes each   struct small */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>

#include "kernels/cuda/sched/sched.h"

namespace portable {

enum {
    ROWS = 32,
    PAGE = 64,
    kThreads = 256,
    kWarps = kThreads / 32,
    kPairs = 512 / 16 / kWarps, /* pairs of 8 columns of O that a warp has at most */
    kLongStep = 32,             /* tokens */
    kShortStep = 16,
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

template <int kStep>
struct small {
    float score[ROWS][kStep + 1];
    uint8_t p[ROWS][kStep * 2 + 16]; /* bf16 */
    float token_scale[kStep], row_scale[ROWS];
    float factor[ROWS]; /* what O is multiplied by; at the end 1 / sum */
};

template <int kStep>
struct memory {
    uint8_t *q, *tokens;
    small<kStep> *s;
    int stage; /* bytes of a buffer of tokens */

    __device__ memory(const params &p, uint8_t *base)
        : q(base), tokens(base + ROWS * p.pitch),
          s(reinterpret_cast<small<kStep> *>(tokens + 2 * kStep * p.pitch)),
          stage(kStep * p.pitch) {
    }
    __device__ uint8_t *k(int i) const {
        return tokens + i * stage;
    }
    __device__ uint8_t *raw() const {
        return tokens + stage;
    }
};

/* Bytes of shared memory: raw fp8 tokens are shorter than bf16 ones. */
template <int kStep>
inline size_t memory_bytes(int d_c, int d_r) {
    return static_cast<size_t>(ROWS + 2 * kStep) * ((d_c + d_r) * 2 + 16) + sizeof(small<kStep>);
}

} // namespace portable
