/* portable_traits.cuh - shapes, parameters and shared memory of the portable kernel.
 *
 * A CTA of 8 warps computes 32 query rows of one sequence at a time. It processes 32 or 16 tokens
 * per step, depending on the device's shared memory (portable_launch.cu):
 *
 *   load     queries once per item; the tokens of the next step during the current one
 *   scores   S = Q K^T: a warp computes 16 rows x 8 tokens; with 16 tokens per step, only half of
 *            the warps do
 *   softmax  8 threads per row, 4 or 2 tokens each: P, and the factor for rescaling O
 *   output   O += P V: a warp computes every eighth block of 16 columns, for all 32 rows
 *
 * Shared memory, in rows of `pitch` bytes (d_c + d_r bf16 numbers, and 16 bytes that avoid bank
 * conflicts):
 *
 *   q [32]
 *   k(0) [step]
 *   BF16: k(1) [step]; FP8: raw() [step], d_c + 2 d_r bytes each
 *   struct small */
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
    kPairs = 512 / 16 / kWarps, /* most pairs of 8-column blocks of O per warp */
    kLongStep = 32,             /* tokens per step */
    kShortStep = 16,
};

struct params {
    int d_c, d_r, pitch;
    const uint8_t *content, *rope;
    const float *token_scale;
    const uint8_t *q, *q_rope;
    const float *q_scale;
    decode_io io;
    float *partial_out; /* [slots][rows][d_c] */
    float *partial_lse; /* [slots][rows], base 2 */
    int rows, heads, s_q;
    int row_tiles;    /* CTAs per part */
    float scale_log2; /* softmax scale x log2(e) */
};

template <int kStep>
struct small {
    float score[ROWS][kStep + 1];
    uint8_t p[ROWS][kStep * 2 + 16]; /* bf16 */
    float token_scale[kStep], row_scale[ROWS];
    float factor[ROWS]; /* factor for rescaling O; at the end 1 / sum */
};

template <int kStep>
struct memory {
    uint8_t *q, *tokens;
    small<kStep> *s;
    int stage; /* bytes of a token buffer */

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

/* Bytes of shared memory. The raw fp8 tokens fit into the space of a bf16 buffer. */
template <int kStep>
inline size_t memory_bytes(int d_c, int d_r) {
    return static_cast<size_t>(ROWS + 2 * kStep) * ((d_c + d_r) * 2 + 16) + sizeof(small<kStep>);
}

} // namespace portable
