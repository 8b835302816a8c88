/* fp8_traits.cuh - parameters, shared memory and barriers of the kernel.
 *
 *   warps 0-3, 4-7     output: O^T += V^T P^T, 256 of the 512 columns each
 *   warps 8-11         softmax: S = Q K^T of a tile, page by page; P = e4m3(softmax)
 *   warp 12            loader (TMA);   warp 13: loads the scales of the tokens
 *   warps 14, 15       no work
 *
 * Barrier             arrivals            completes when                        waited for by
 *   full[stage]       loader + bytes      content and RoPE of a page arrived    softmax, output
 *   empty[stage]      8 output warps      V is in registers                     loader
 *   empty_rope[stage] 4 softmax warps     S is computed                         loader
 *   full_q            loader + bytes      the item's queries have arrived       softmax
 *   empty_q           4 softmax warps     the item's last S is computed         loader
 *   full_scales[2]    warp 13             a_k of a tile are in shared memory    softmax
 *   empty_scales[2]   softmax             a_k are in registers                  warp 13
 *   full_p[2]         softmax             P and the factors for O are written   output
 *   empty_p[2]        output              P is multiplied                       softmax
 *   full_sum          softmax             the item's sums are written           output
 *   empty_sum         output              the sums are read                     softmax
 *   full_parts        output + bytes      64 rows: partial results arrived      output
 *                     softmax             few rows: merge weights are written   output
 *   full_weights      softmax             64 rows: merge weights are written    output
 *   empty_parts       output              the partial results are merged        softmax
 * "Few rows" means the kernels for at most 32 rows (fp8_few.cuh), "64 rows" the other one. With few
 * rows, V may be read before S is computed, so there the 4 softmax warps arrive at `empty`, too.
 * At barriers that order ordinary loads and stores, every thread arrives, so that compute-sanitizer
 * can follow the order. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/sched/sched.h"
#include "kernels/cuda/sm90_fp8/fp8_config.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"

namespace sm90_fp8 {

struct params {
    CUtensorMap content;      /* [4][pages x 64][128] B, boxes of one page */
    CUtensorMap rope;         /* [pages x 64][128] B */
    CUtensorMap q;            /* [batch][4][rows][128] B; for at most 32 rows, [batch x
                                 row_tiles][4][rows][128] B */
    CUtensorMap q_rope_rows;  /* RoPE of the queries, for at most 32 rows: [batch x
                                 row_tiles][rows][128] B */
    const uint8_t *q_rope;    /* [batch][s_q x heads][128] B; read by the kernel for 64 rows */
    const float *token_scale; /* [pages][64] */
    const float *q_scale;     /* [batch][rows] */
    decode_io io;
    __nv_bfloat16 *partial_out; /* [slots][rows][512] */
    float *partial_lse;         /* [slots][rows], base 2 */
    int *counters;              /* [slots][row_tiles] */
    uint8_t *few_partials;      /* for at most 32 rows, in place of partial_out, partial_lse and
                                   counters (fp8_few_merge.cuh) */
    size_t few_bytes;           /* size of few_partials for one tile of rows */
    int rows;        /* rows of a sequence, s_q x heads; in the kernels for at most 32 rows, of one
                        row tile */
    uint32_t high_a; /* high_a and high_b: two copies of ptx::kDescriptorHigh */
    int heads, s_q;
    int row_tiles; /* CTAs per part */
    uint32_t high_b;
    float scale_log2; /* softmax scale x log2(e) */
};

struct alignas(16) tile_scales {
    float2 pair[TILE / 2]; /* a_k of two adjacent tokens */
    float log_most[2];     /* log2 of the largest a_k of each page */
};

enum { kSoftmaxGroup = 2 };   /* the warpgroup's index; the two output groups are 0 and 1 */
enum { kSoftmaxBarrier = 1 }; /* named barrier of the softmax warps */
enum {
    kFactors = 4
}; /* number of tiles whose factors `factor` holds: they are written
                                 before the buffer of P is free */

/* Data that warps exchange in the kernels for at most 32 rows. */
template <int Rows>
struct alignas(16) few_exchange {
    uint32_t inside[2][4]; /* [tile parity][warp]: bits of the rows that have a score inside the
                              window */
    float4 tops[4][Rows];  /* one member per warp; [0], [1]: bound and anchor of page 0; [2], [3]:
                              of page 1. With units of pages, [2 (tile parity) + page]: the
                              largest log2 P' */
    float4 sums[Rows];     /* one member per warp: an item's sums of P */
    float unit[2][Rows];   /* [0]: E of page 0; [1]: E of the tile or, with units of pages, B */
    int later[Rows];       /* number of tokens at the end that a row does not see */
    float4 merged[64][2];  /* partial sums of a merge, exchanged between warps */
};
template <>
struct few_exchange<ROWS> {};

__device__ __forceinline__ float sum_of(float4 x) {
    return x.x + x.y + (x.z + x.w);
}

template <int Rows>
struct alignas(1024) shared_of {
    enum {
        kRows = Rows,
        kFew = Rows < ROWS,
        kUnitPages = kFew ? 1 : 2, /* pages in a tile of the schedule */
        kRopeStages = Rows == 16 ? 4 : 2,
        kBytesQ = (CONTENT + (kFew ? 2 * ROPE : 0)) * Rows,
    };
    uint8_t content[kStages][COLUMNS][PAGE][SWIZZLE];
    uint8_t rope[kRopeStages][PAGE][SWIZZLE];
    uint8_t q[COLUMNS + kFew][Rows][SWIZZLE]; /* for at most 32 rows, RoPE is the last */
    uint8_t p[2][Rows][SWIZZLE];              /* e4m3, 128 tokens of a tile */
    tile_scales scales[2];
    sched_part part;              /* the record of this CTA's part */
    float inverse_sum[Rows];      /* factor for O at the end: 1 / sum of P */
    int4 rescale[2];              /* [tile parity]. Nonzero: E of a row changed, and O must be
                                         rescaled. x, y, z and w are for 16 rows each; with few
                                         rows, x is for all rows. With units of pages: the rows
                                         whose B changed (page_units::changes; with few rows, x and
                                         y are few_changes) */
    float factor[kFactors][Rows]; /* a ring of tiles: factors for O of the rows whose E changed.
                                         With units of pages: index 2 (tile parity) + page has
                                         2^(E - B) of this page, a factor of the page's product */
    float most_unit[Rows];        /* the largest E in the item so far */
    uint64_t full[kStages], empty[kStages];
    uint64_t empty_rope[kRopeStages];
    uint64_t full_q, empty_q;
    uint64_t full_scales[2], empty_scales[2];
    uint64_t full_p[2], empty_p[2];
    uint64_t full_sum, empty_sum;
    uint64_t full_parts, empty_parts, full_weights;
    few_exchange<Rows> few;
};
using shared = shared_of<ROWS>;
static_assert(sizeof(shared) <= 232448 && sizeof(shared_of<32>) <= 232448, "a CTA can have 227 KB");
static_assert(offsetof(shared, rope) % 1024 == 0 && offsetof(shared, q) % 1024 == 0 &&
                  offsetof(shared, p) % 1024 == 0,
              "swizzled tiles begin at 1024 bytes");
static_assert(kLoadRegs + kSoftmaxRegs + 2 * kOutputRegs <= 512, "registers of a warp scheduler");

enum {
    kBytesContent = CONTENT * PAGE,
    kBytesRope = 2 * ROPE * PAGE,
};

/* A position in a ring of N stages. */
template <int N>
struct ring {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void advance(int by = 1) {
        stage += by;
        if (stage >= N) {
            stage -= N;
            parity ^= 1;
        }
    }
    __device__ ring next(int by = 1) const {
        ring r = *this;
        r.advance(by);
        return r;
    }
};

} // namespace sm90_fp8
