/* What lies between the projections and attention, fused: the latent normalised, RoPE turned, the new rows
 * into the cache in its format, queries absorbed and quantised. Numbers are those of mla_append_kv() and
 * mla_quant_q() on the same BF16 rows. */
#include <cuda_fp8.h>

#include "generator/local/cuda/attend.h"
#include "kernels/cuda/ptx/mma.cuh"

namespace device {
namespace {

enum {
    kThreads = 512,
    kWarps = kThreads / 32,
    kRows = 8, /* of the step, a block */
    kMaxRank = MLA_MAX_CONTENT,
    kUnit = 64,
    kNopePitch = MAX_NOPE + 8,
};

__device__ __forceinline__ float warp_max(float x) {
    for (int m = 16; m > 0; m /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, m));
    return x;
}

__device__ __forceinline__ uint8_t to_e4m3(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ float scale_of(float largest) {
    return fmaxf(largest, 1e-10f) / 448.0f;
}

__device__ __forceinline__ int64_t position_of(const project_args &a, int row) {
    return a.length ? a.length[row] - 1 : a.start + row;
}

/* Number @d of a turned rotary vector. */
__device__ __forceinline__ float turned(const project_args &a, const float *x, int64_t position,
                                        int d) {
    const int pairs = a.rope / 2, pair = a.halves ? d % pairs : d / 2;
    const bool second = a.halves ? d >= pairs : d % 2;
    const float2 angle = a.angle[position * pairs + pair];
    const float first_x = a.halves ? x[pair] : x[2 * pair];
    const float second_x = a.halves ? x[pair + pairs] : x[2 * pair + 1];
    return second ? second_x * angle.x + first_x * angle.y : first_x * angle.x - second_x * angle.y;
}

__device__ __forceinline__ int64_t slot_of(const project_args &a, int row, int64_t position) {
    const int *table = a.table + (a.length ? static_cast<int64_t>(row) * a.table_width : 0);
    const int64_t page = table[position / MLA_PAGE];
    return min(max(page, int64_t(0)), a.cache.pages - 1) * MLA_PAGE + position % MLA_PAGE;
}

__device__ __forceinline__ float rounded(float x) {
    return __bfloat162float(__float2bfloat16_rn(x));
}

/* A warp's row of the cache. */
__device__ void append_row(const project_args &a, int row) {
    const int lane = threadIdx.x % 32, width = a.rank + a.rope;
    const float *x = a.kv + row * a.kv_row;
    const int64_t position = position_of(a, row);
    if (position < 0)
        return;
    float squares = 0, largest = 0;
#pragma unroll 8
    for (int d = lane; d < a.rank; d += 32)
        squares += x[d] * x[d];
    const float norm = rsqrtf(warp_sum(squares) / static_cast<float>(a.rank) + a.eps) * a.kv_factor;
    const int64_t slot = slot_of(a, row, position);
    if (!a.cache.scale) {
        bf16 *to = static_cast<bf16 *>(a.cache.content) + slot * width;
#pragma unroll 8
        for (int d = lane; d < a.rank; d += 32)
            to[d] = __float2bfloat16_rn(x[d] * norm * a.kv_norm[d]);
        for (int d = lane; d < a.rope; d += 32)
            to[a.rank + d] = __float2bfloat16_rn(turned(a, x + a.rank, position, d));
        return;
    }
    for (int d = lane; d < a.rank; d += 32)
        largest = fmaxf(largest, fabsf(rounded(x[d] * norm * a.kv_norm[d])));
    const float scale = scale_of(warp_max(largest));
    uint8_t *content = static_cast<uint8_t *>(a.cache.content) + slot * a.rank;
    bf16 *rope = static_cast<bf16 *>(a.cache.rope) + slot * a.rope;
    for (int d = lane; d < a.rank; d += 32)
        content[d] = to_e4m3(rounded(x[d] * norm * a.kv_norm[d]) / scale);
    for (int d = lane; d < a.rope; d += 32)
        rope[d] = __float2bfloat16_rn(rounded(turned(a, x + a.rank, position, d)) / scale);
    if (lane == 0)
        a.cache.scale[slot] = scale;
}

/* ---- decode ------------------------------------------------------------------------------------ */

struct decode_room {
    bf16 nope[kRows][kNopePitch];
    float absorbed[kRows][kMaxRank];
};

__device__ __forceinline__ uint4 load_weights(const bf16 *row, int col, int k) {
    const uint4 zero = {0, 0, 0, 0};
    return col < k ? __ldg(reinterpret_cast<const uint4 *>(row + col)) : zero;
}

/* 16 absorbed numbers of eight rows: W_UK's rows as in gemm_few. */
__device__ __forceinline__ void absorb_tile(const project_args &a, const bf16 *uk,
                                            decode_room &room, int tile) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bf16 *top = uk + static_cast<int64_t>(tile * 16 + g) * a.nope, *bottom = top + 8 * a.nope;
    float sum[4] = {};
#pragma unroll 4
    for (int col = 8 * t; col < a.nope; col += 32) {
        const uint4 w0 = load_weights(top, col, a.nope), w1 = load_weights(bottom, col, a.nope);
        const uint4 x = *reinterpret_cast<const uint4 *>(&room.nope[g][col]);
        const uint32_t first[4] = {w0.x, w1.x, w0.y, w1.y};
        const uint32_t second[4] = {w0.z, w1.z, w0.w, w1.w};
        ptx::mma_bf16(sum, first, x.x, x.y);
        ptx::mma_bf16(sum, second, x.z, x.w);
    }
    room.absorbed[2 * t][tile * 16 + g] = sum[0];
    room.absorbed[2 * t + 1][tile * 16 + g] = sum[1];
    room.absorbed[2 * t][tile * 16 + g + 8] = sum[2];
    room.absorbed[2 * t + 1][tile * 16 + g + 8] = sum[3];
}

/* A warp's row of one head's query: rounded to BF16, and for MLA_FP8 from there. */
__device__ void write_query(const project_args &a, const absorb_to &to, const decode_room &room,
                            int row, int head) {
    const int lane = threadIdx.x % 32;
    const int64_t at = static_cast<int64_t>(row) * a.heads + head, position = position_of(a, row);
    const float *c = room.absorbed[row % kRows];
    const float *rope = a.q + row * a.q_row + head * (a.nope + a.rope) + a.nope;
    if (!a.cache.scale) {
        bf16 *q = to.q + at * (a.rank + a.rope);
        for (int d = lane; d < a.rank; d += 32)
            q[d] = __float2bfloat16_rn(c[d]);
        for (int d = lane; d < a.rope; d += 32)
            q[a.rank + d] = __float2bfloat16_rn(turned(a, rope, max(position, int64_t(0)), d));
        return;
    }
    float largest = 0;
    for (int d = lane; d < a.rank; d += 32)
        largest = fmaxf(largest, fabsf(rounded(c[d])));
    const float scale = scale_of(warp_max(largest));
    for (int d = lane; d < a.rank; d += 32)
        to.q8[at * a.rank + d] = to_e4m3(rounded(c[d]) / scale);
    for (int d = lane; d < a.rope; d += 32)
        to.q_rope[at * a.rope + d] =
            __float2bfloat16_rn(rounded(turned(a, rope, max(position, int64_t(0)), d)) / scale);
    if (lane == 0)
        to.q_scale[at] = scale;
}

__global__ void __launch_bounds__(kThreads) decode_rows(project_args a, absorb_to to) {
    __shared__ decode_room room;
    const int warp = threadIdx.x / 32, head = blockIdx.x, from = blockIdx.y * kRows;
    const int rows = min(static_cast<int>(kRows), a.rows - from);
    let_next();
    if (head == a.heads) {
        wait_previous();
        if (warp < rows)
            append_row(a, from + warp);
        return;
    }
    const bf16 *uk = to.uk + static_cast<int64_t>(head) * a.rank * a.nope;
    for (int i = threadIdx.x * 64; i < a.rank * a.nope; i += kThreads * 64)
        ask_line(uk + i);
    wait_previous();
    for (int i = threadIdx.x; i < kRows * a.nope; i += kThreads) {
        const int r = i / a.nope, d = i % a.nope;
        room.nope[r][d] = __float2bfloat16_rn(
            r < rows ? a.q[(from + r) * a.q_row + head * (a.nope + a.rope) + d] : 0.0f);
    }
    __syncthreads();
    for (int tile = warp; tile < a.rank / 16; tile += kWarps)
        absorb_tile(a, uk, room, tile);
    __syncthreads();
    if (warp < rows)
        write_query(a, to, room, from + warp, head);
}

/* ---- chunk ------------------------------------------------------------------------------------- */

enum { kChunkThreads = 128 };

__global__ void __launch_bounds__(kChunkThreads) chunk_rows(project_args a) {
    const int row = blockIdx.x, width = a.nope + a.rope;
    const int64_t position = a.start + row;
    let_next();
    wait_previous();
    if (threadIdx.x < 32)
        append_row(a, row);
    const float *q = a.q + row * a.q_row;
    bf16 *to = a.packed + static_cast<int64_t>(row) * a.heads * width;
    for (int i = threadIdx.x; i < a.heads * width; i += kChunkThreads) {
        const int d = i % width;
        to[i] = __float2bfloat16_rn(
            d < a.nope ? q[i] : turned(a, q + i - d + a.nope, position, d - a.nope));
    }
}

} // namespace

cudaError_t project_decode(const stream_of &s, const project_args &a, const absorb_to &to) {
    const dim3 grid(static_cast<unsigned>(a.heads + 1),
                    static_cast<unsigned>((a.rows + kRows - 1) / kRows));
    return launch(s, decode_rows, grid, kThreads, 0, a, to);
}

cudaError_t project_chunk(const stream_of &s, const project_args &a) {
    return launch(s, chunk_rows, dim3(static_cast<unsigned>(a.rows)), kChunkThreads, 0, a);
}

} // namespace device
