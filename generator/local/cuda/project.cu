/* Does the work between the projections and attention in one kernel. For decoding, this is the norm
 * of the latent, RoPE, appending the new rows to the cache in its format, and absorbing and
 * quantising the queries. The queries of a chunk are only rotated and packed. */
#include <algorithm>

#include "generator/local/cuda/project.cuh"
#include "kernels/cuda/ptx/mma.cuh"

namespace device {
namespace {

enum {
    kThreads = 512,
    kWarps = kThreads / 32,
    kRows = 8, /* rows of the step per block */
    kMaxRank = MLA_MAX_CONTENT,
    kUnit = 64,
    kNopePitch = MAX_NOPE + 8,
};

struct block_team {
    float *scratch; /* [32] */

    __device__ int rank() const {
        return threadIdx.x;
    }
    __device__ static constexpr int size() {
        return kThreads;
    }
    __device__ float sum(float x) const {
        return block_sum(x, scratch);
    }
    __device__ float largest(float x) const {
        x = warp_max(x);
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = x;
        __syncthreads();
        return warp_max(threadIdx.x % 32 < kWarps ? scratch[threadIdx.x % 32] : 0.0f);
    }
};

/* ---- grouped queries ------------------------------------------------------------------------- */

/* Number @d of the vector @x after RoPE. The vector consists of 2 * pairs numbers of each head. */
__device__ float turned_of_heads(const project_args &a, int64_t position, const float *x, int d) {
    const int own = d % (2 * a.pairs);
    return turned(a, x + d - own, angle_of(a, position, own), own);
}

/* append_row() for a latent without a norm. */
template <typename T>
__device__ void append_grouped_row(const project_args &a, const float *x, const row_place &at,
                                   const T &team) {
    if (at.position < 0)
        return;
    write_row(
        a, at, team,
        [&](int d) {
            const int turns = d - a.rotated_first;
            return turns >= 0 && turns < a.rotated_dim
                       ? turned_of_heads(a, at.position, x + a.rotated_first, turns)
                       : x[d];
        },
        [&](int d) { return turned_of_heads(a, at.position, x + a.rank, d); });
}

template <bool kGrouped, typename T>
__device__ __forceinline__ void append_any_row(const project_args &a, const float *x,
                                               const row_place &at, const T &team) {
    if (kGrouped)
        append_grouped_row(a, x, at, team);
    else
        append_row(a, x, at, team);
}

/* Number @d of the RoPE part @q of a query. */
template <bool kGrouped>
__device__ __forceinline__ float rotary_of(const project_args &a, int64_t position, const float *q,
                                           int d) {
    return kGrouped ? turned_of_heads(a, position, q, d)
                    : turned(a, q, angle_of(a, position, d), d);
}

/* Number @d of the part of a query that has no RoPE, except in models whose latent has some. */
template <bool kGrouped>
__device__ __forceinline__ float plain_of(const project_args &a, int64_t position, const float *q,
                                          int d) {
    return kGrouped && a.rotated_dim ? turned_of_heads(a, position, q, d) : q[d];
}

/* ---- decode ---------------------------------------------------------------------------------- */

struct decode_memory {
    bf16 nope[kRows][kNopePitch];
    float absorbed[kRows][kMaxRank];
    int largest[kRows]; /* bits of a non-negative float, which compare like the float */
};

__device__ __forceinline__ uint4 load_weights(const bf16 *row, int col, int k) {
    const uint4 zero = {0, 0, 0, 0};
    return col < k ? __ldg(reinterpret_cast<const uint4 *>(row + col)) : zero;
}

/* A thread's part of a tile of W_UK. A tile has 16 rows; the thread holds numbers of rows g and
 * g + 8, with g = lane / 4, from the first 32 * kHeld columns. A warp loads kTiles tiles before the
 * queries are ready. */
enum { kTiles = 2, kHeld = 4 };
struct held_weights {
    uint4 top[kHeld], bottom[kHeld];
};

__device__ __forceinline__ const bf16 *tile_row(const project_args &a, const bf16 *uk, int tile) {
    return uk + static_cast<int64_t>(tile * 16 + threadIdx.x % 32 / 4) * a.nope;
}

__device__ __forceinline__ void hold(const project_args &a, const bf16 *uk, int tile,
                                     held_weights &h) {
    const int t = threadIdx.x % 4, width = tile < a.rank / 16 ? a.nope : 0;
    const bf16 *top = tile_row(a, uk, tile);
#pragma unroll
    for (int s = 0; s < kHeld; s++) {
        h.top[s] = load_weights(top, 8 * t + 32 * s, width);
        h.bottom[s] = load_weights(top + 8 * a.nope, 8 * t + 32 * s, width);
    }
}

__device__ __forceinline__ void multiply(float (&sum)[4], const uint4 &w0, const uint4 &w1,
                                         const uint4 &x) {
    const uint32_t first[4] = {w0.x, w1.x, w0.y, w1.y};
    const uint32_t second[4] = {w0.z, w1.z, w0.w, w1.w};
    ptx::mma_bf16(sum, first, x.x, x.y);
    ptx::mma_bf16(sum, second, x.z, x.w);
}

/* Updates the maxima of rows 2 t and 2 t + 1 with this thread's numbers. */
__device__ __forceinline__ void update_largest(decode_memory &shared, const float (&sum)[4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float even = fmaxf(fabsf(rounded(sum[0])), fabsf(rounded(sum[2])));
    float odd = fmaxf(fabsf(rounded(sum[1])), fabsf(rounded(sum[3])));
    for (int m = 16; m > 2; m /= 2) {
        even = fmaxf(even, __shfl_xor_sync(~0u, even, m));
        odd = fmaxf(odd, __shfl_xor_sync(~0u, odd, m));
    }
    if (g == 0) {
        atomicMax(&shared.largest[2 * t], __float_as_int(even));
        atomicMax(&shared.largest[2 * t + 1], __float_as_int(odd));
    }
}

__device__ __forceinline__ uint4 read_query(const project_args &a, const decode_memory &shared,
                                            int col) {
    const uint4 zero = {0, 0, 0, 0};
    return col < a.nope ? *reinterpret_cast<const uint4 *>(&shared.nope[threadIdx.x % 32 / 4][col])
                        : zero;
}

/* Computes 16 absorbed numbers of each of eight query rows. W_UK's rows are used as in gemm_few. */
__device__ __forceinline__ void absorb_tile(const project_args &a, const bf16 *uk,
                                            decode_memory &shared, int tile,
                                            const held_weights &held) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bf16 *top = tile_row(a, uk, tile), *bottom = top + 8 * a.nope;
    float sum[4] = {};
#pragma unroll
    for (int s = 0; s < kHeld; s++)
        if (32 * s < a.nope)
            multiply(sum, held.top[s], held.bottom[s], read_query(a, shared, 8 * t + 32 * s));
#pragma unroll 1
    for (int col = 8 * t + 32 * kHeld; col - 8 * t < a.nope; col += 32)
        multiply(sum, load_weights(top, col, a.nope), load_weights(bottom, col, a.nope),
                 read_query(a, shared, col));
    shared.absorbed[2 * t][tile * 16 + g] = sum[0];
    shared.absorbed[2 * t + 1][tile * 16 + g] = sum[1];
    shared.absorbed[2 * t][tile * 16 + g + 8] = sum[2];
    shared.absorbed[2 * t + 1][tile * 16 + g + 8] = sum[3];
    if (a.cache.scale)
        update_largest(shared, sum);
}

/* Writes the queries of some rows and one head. */
__device__ void write_queries(const project_args &a, const absorb_to &to,
                              const decode_memory &shared, int from, int rows, int head) {
    for (int i = threadIdx.x; i < rows * a.rank; i += kThreads) {
        const int r = i / a.rank, d = i % a.rank;
        query_to(a, to, from + r, head, __int_as_float(shared.largest[r]))
            .content(d, shared.absorbed[r][d]);
    }
}

/* Writes the rotary part of the queries. @angle is that of this thread's first number. */
template <bool kGrouped>
__device__ void write_rope(const project_args &a, const absorb_to &to, const decode_memory &shared,
                           int from, int rows, int head, const float2 &angle) {
    for (int i = threadIdx.x; i < rows * a.rope; i += kThreads) {
        const int r = i / a.rope, d = i % a.rope, row = from + r;
        const float *q = a.q + row * a.q_row + head * (a.nope + a.rope) + a.nope;
        const float x = !kGrouped && i == threadIdx.x
                            ? turned(a, q, angle, d)
                            : rotary_of<kGrouped>(a, position_of(a, row), q, d);
        query_to(a, to, row, head, __int_as_float(shared.largest[r])).turned(d, x);
    }
}

/* A block handles one head of kRows rows, or one row that enters the cache. Weights, lengths,
 * tables and angles are written by no kernel of the chain, so they are read while the previous
 * kernel still runs. */
template <bool kGrouped>
__global__ void __launch_bounds__(kThreads) decode_rows(project_args a, absorb_to to) {
    __shared__ decode_memory shared;
    const int warp = threadIdx.x / 32, head = blockIdx.x, from = blockIdx.y * kRows;
    const int rows = min(static_cast<int>(kRows), a.rows - from);
    let_next();
    if (head >= a.heads) {
        const block_team team = {shared.absorbed[0]};
        const int row = from + head - a.heads;
        const row_place at(a, min(row, a.rows - 1), team);
        wait_previous();
        if (row < a.rows)
            append_any_row<kGrouped>(a, a.kv + row * a.kv_row, at, team);
        return;
    }
    const bf16 *uk = to.uk + static_cast<int64_t>(head) * a.rank * a.nope;
    held_weights held[kTiles];
#pragma unroll
    for (int i = 0; i < kTiles; i++)
        hold(a, uk, warp + i * kWarps, held[i]);
    const int rope_row = min(from + static_cast<int>(threadIdx.x) / a.rope, a.rows - 1);
    const float2 angle = angle_of(a, position_of(a, rope_row), threadIdx.x % a.rope);
    if (threadIdx.x < kRows)
        shared.largest[threadIdx.x] = 0;
    wait_previous();
    for (int i = threadIdx.x; i < kRows * a.nope; i += kThreads) {
        const int r = i / a.nope, d = i % a.nope;
        const float *q = a.q + (from + r) * a.q_row + head * (a.nope + a.rope);
        shared.nope[r][d] = __float2bfloat16_rn(
            r < rows ? plain_of<kGrouped>(a, position_of(a, from + r), q, d) : 0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTiles; i++)
        if (warp + i * kWarps < a.rank / 16)
            absorb_tile(a, uk, shared, warp + i * kWarps, held[i]);
#pragma unroll 1
    for (int tile = warp + kTiles * kWarps; tile < a.rank / 16; tile += kWarps) {
        hold(a, uk, tile, held[0]);
        absorb_tile(a, uk, shared, tile, held[0]);
    }
    __syncthreads();
    write_queries(a, to, shared, from, rows, head);
    write_rope<kGrouped>(a, to, shared, from, rows, head, angle);
}

/* ---- chunk ----------------------------------------------------------------------------------- */

enum { kChunkThreads = 128 };

template <bool kGrouped>
__global__ void __launch_bounds__(kChunkThreads) chunk_rows(project_args a) {
    const int row = blockIdx.x, width = a.nope + a.rope;
    const int64_t position = a.start + row;
    let_next();
    wait_previous();
    if (threadIdx.x < 32)
        append_any_row<kGrouped>(a, a.kv + row * a.kv_row, row_place(a, row, warp_team{}),
                                 warp_team{});
    const float *q = a.q + row * a.q_row;
    bf16 *to = a.packed + static_cast<int64_t>(row) * a.heads * width;
    for (int i = threadIdx.x; i < a.heads * width; i += kChunkThreads) {
        const int d = i % width, turns = d - a.nope;
        const float *own = q + i - d; /* the query of one head */
        to[i] =
            __float2bfloat16_rn(turns < 0 ? plain_of<kGrouped>(a, position, own, d)
                                          : rotary_of<kGrouped>(a, position, own + a.nope, turns));
    }
}

} // namespace

cudaError_t project_decode(const stream_of &s, const project_args &a, const absorb_to &to) {
    const dim3 grid(static_cast<unsigned>(a.heads + std::min<int>(a.rows, kRows)),
                    static_cast<unsigned>((a.rows + kRows - 1) / kRows));
    return launch(s, a.kv_norm ? decode_rows<false> : decode_rows<true>, grid, kThreads, 0, a, to);
}

cudaError_t project_chunk(const stream_of &s, const project_args &a) {
    return launch(s, a.kv_norm ? chunk_rows<false> : chunk_rows<true>,
                  dim3(static_cast<unsigned>(a.rows)), kChunkThreads, 0, a);
}

} // namespace device
