/* attend_chunk() with Hopper's tensor cores, for heads whose queries have 128 + 64 columns and
 * whose values have 128.
 *
 * A block processes 128 queries of one head. One warpgroup loads. Two warpgroups multiply, each for
 * 64 queries.
 *   loads      128 keys at a time: three tiles of 64 columns for K, two for V; two stages
 *   products   S: m64n128k16 from shared memory. O += P V: P from registers, V as stored
 * The softmax of one warpgroup can overlap with the products of the other. Shared memory: Q 49 152,
 * K 2 x 49 152, V 2 x 32 768 bytes, plus barriers. */
#include "generator/local/cuda/attend.h"
#include "generator/local/cuda/maps.h"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace device {
namespace {

enum {
    ROWS = 128, /* queries per block, and keys per tile */
    COLS = 64,
    NOPE = 128,
    ROPE = 64,
    VALUES = 128,
    QK_TILES = (NOPE + ROPE) / COLS,
    V_TILES = VALUES / COLS,
    TILE = ROWS * COLS, /* numbers in one tile of 64 columns */
    kStages = 2,
    kThreads = 384,
    kEntryRegisters = 168,
    kLoadRegisters = 24,
    kMultiplyRegisters = 240,
};

struct __align__(1024) shared_memory {
    bf16 q[QK_TILES][TILE];
    bf16 k[kStages][QK_TILES][TILE];
    bf16 v[kStages][V_TILES][TILE];
    uint64_t q_full, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

struct params {
    CUtensorMap q, kv, expanded;
    chunk_args a;
};

/* The work of one block. Blocks with the most keys come first. */
struct place {
    int head, from, tiles;

    __device__ explicit place(const chunk_args &a)
        : head(blockIdx.x), from((gridDim.y - 1 - blockIdx.y) * ROWS) {
        const int seen = static_cast<int>(a.start) + min(from + static_cast<int>(ROWS), a.rows);
        tiles = (seen + ROWS - 1) / ROWS;
    }
};

__device__ __forceinline__ void load(const params &p, shared_memory &s, const place &at) {
    const int q = (p.a.first_head + at.head) * (NOPE + ROPE), kv = at.head * (NOPE + VALUES);
    const uint32_t bytes = TILE * sizeof(bf16);
    ptx::mbarrier_arrive_expect(&s.q_full, QK_TILES * bytes);
    for (int c = 0; c < QK_TILES; c++)
        ptx::tma_load_2d(s.q[c], &p.q, &s.q_full, q + c * COLS, at.from);
    for (int i = 0; i < at.tiles; i++) {
        const int stage = i % kStages, parity = (i / kStages + 1) % 2;
        ptx::mbarrier_wait(&s.k_empty[stage], parity);
        ptx::mbarrier_arrive_expect(&s.k_full[stage], QK_TILES * bytes);
        for (int c = 0; c < NOPE / COLS; c++)
            ptx::tma_load_2d(s.k[stage][c], &p.expanded, &s.k_full[stage], kv + c * COLS, i * ROWS);
        ptx::tma_load_2d(s.k[stage][NOPE / COLS], &p.kv, &s.k_full[stage], p.a.rank, i * ROWS);
        ptx::mbarrier_wait(&s.v_empty[stage], parity);
        ptx::mbarrier_arrive_expect(&s.v_full[stage], V_TILES * bytes);
        for (int c = 0; c < V_TILES; c++)
            ptx::tma_load_2d(s.v[stage][c], &p.expanded, &s.v_full[stage], kv + NOPE + c * COLS,
                             i * ROWS);
    }
}

/* The state of a warpgroup's queries. Lane 4 g + t has rows g and g + 8 of its warp's 16. */
struct queries {
    float out[VALUES / 2];
    float most[2], sum[2];
};

__device__ __forceinline__ void score(float (&x)[ROWS / 2], const shared_memory &s, int stage,
                                      int half) {
    ptx::wgmma_fence();
#pragma unroll
    for (int c = 0; c < QK_TILES; c++) {
        const uint32_t q = ptx::descriptor_low_128(ptx::smem_addr(s.q[c] + half * 64 * COLS)),
                       k = ptx::descriptor_low_128(ptx::smem_addr(s.k[stage][c]));
#pragma unroll
        for (int i = 0; i < COLS / 16; i++)
            ptx::wgmma_ss_bf16_n128(x, ptx::descriptor_128(q + 2 * i),
                                    ptx::descriptor_128(k + 2 * i), c > 0 || i > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::pin(x);
}

/* Turns scores into unnormalised probabilities and rescales the sums so far to the new maximum.
 * @visible: the number of keys of this tile that row g attends to; row g + 8: eight more. */
__device__ __forceinline__ void softmax_tile(float (&x)[ROWS / 2], queries &q, float scale,
                                             int visible) {
    const int t = threadIdx.x % 4;
    if (visible < ROWS) {
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++)
            if (i / 4 * 8 + 2 * t + i % 2 >= visible + i / 2 % 2 * 8)
                x[i] = -INFINITY;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float most = q.most[h], sum = 0;
#pragma unroll
        for (int i = 0; i < ROWS / 2; i += 4)
            most = fmaxf(most, fmaxf(x[i + 2 * h], x[i + 2 * h + 1]));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        const float base = most == -INFINITY ? 0.0f : most * scale;
        const float shrink = exp2f(q.most[h] * scale - base);
#pragma unroll
        for (int i = 0; i < ROWS / 2; i += 4)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &p = x[i + 2 * h + j];
                p = exp2f(p * scale - base);
                sum += p;
            }
        q.sum[h] = q.sum[h] * shrink + sum;
        q.most[h] = most;
#pragma unroll
        for (int i = 0; i < VALUES / 2; i += 4) {
            q.out[i + 2 * h] *= shrink;
            q.out[i + 2 * h + 1] *= shrink;
        }
    }
}

__device__ __forceinline__ void add_values(queries &q, const uint32_t (&p)[ROWS / 16][4],
                                           const shared_memory &s, int stage) {
    const uint32_t at = ptx::smem_addr(s.v[stage][0]);
    const uint32_t v = ((at & 0x3ffff) >> 4) | static_cast<uint32_t>(TILE * sizeof(bf16) / 16)
                                                   << 16;
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++)
        ptx::wgmma_rs_bf16_n128_nmajor(q.out, p[i], ptx::descriptor_128(v + i * 16 * 128 / 16),
                                       true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::pin(q.out);
}

__device__ __forceinline__ uint32_t packed(float low, float high) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&two);
}

__device__ __forceinline__ void write_out(const chunk_args &a, const queries &q, int head,
                                          int first) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = q.sum[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        const int row = first + 8 * h;
        if (row >= a.rows)
            continue;
        bf16 *to = a.out +
                   (static_cast<int64_t>(row) * a.all_heads + a.first_head + head) * VALUES + 2 * t;
#pragma unroll
        for (int i = 0; i < VALUES / 2; i += 4)
            *reinterpret_cast<uint32_t *>(to + 2 * i) =
                packed(q.out[i + 2 * h] / sum, q.out[i + 2 * h + 1] / sum);
    }
}

__device__ __forceinline__ void attend(const params &p, shared_memory &s, const place &at) {
    const int half = threadIdx.x / 128 - 1, lane = threadIdx.x % 128;
    const int first = at.from + half * 64 + lane / 32 * 16 + lane % 32 / 4;
    const int64_t position = p.a.start + first;
    const float scale = p.a.softmax_scale * 1.44269504088896340736f;
    queries q = {};
    q.most[0] = q.most[1] = -INFINITY;
    ptx::mbarrier_wait(&s.q_full, 0);
    for (int i = 0; i < at.tiles; i++) {
        const int stage = i % kStages, parity = i / kStages % 2;
        float x[ROWS / 2];
        uint32_t weights[ROWS / 16][4];
        ptx::mbarrier_wait(&s.k_full[stage], parity);
        score(x, s, stage, half);
        if (lane == 0)
            ptx::mbarrier_arrive(&s.k_empty[stage]);
        const int64_t visible = position + 1 - static_cast<int64_t>(i) * ROWS;
        softmax_tile(x, q, scale, static_cast<int>(visible < ROWS ? visible : ROWS));
#pragma unroll
        for (int j = 0; j < ROWS / 16; j++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                weights[j][r] = packed(x[8 * j + 2 * r], x[8 * j + 2 * r + 1]);
        ptx::mbarrier_wait(&s.v_full[stage], parity);
        add_values(q, weights, s, stage);
        if (lane == 0)
            ptx::mbarrier_arrive(&s.v_empty[stage]);
    }
    write_out(p.a, q, at.head, first);
}

__global__ void __launch_bounds__(kThreads, 1) chunk_sm90(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s =
        *reinterpret_cast<shared_memory *>((reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&s.q_full, 1);
        for (int i = 0; i < kStages; i++) {
            ptx::mbarrier_init(&s.k_full[i], 1);
            ptx::mbarrier_init(&s.v_full[i], 1);
            ptx::mbarrier_init(&s.k_empty[i], 2);
            ptx::mbarrier_init(&s.v_empty[i], 2);
        }
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    let_next();
    wait_previous();
    const place at(p.a);
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x == 0)
            load(p, s, at);
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        attend(p, s, at);
    }
}

cudaError_t make_maps(params *p) {
    const chunk_args &a = p->a;
    const int64_t length = a.start + a.rows;
    cudaError_t e = map_rows(&p->q, a.q, static_cast<int64_t>(a.all_heads) * (NOPE + ROPE), a.rows,
                             static_cast<int64_t>(a.all_heads) * (NOPE + ROPE), COLS, ROWS);
    if (e == cudaSuccess)
        e = map_rows(&p->kv, a.kv, a.rank + ROPE, length, a.rank + ROPE, COLS, ROWS);
    return e == cudaSuccess
               ? map_rows(&p->expanded, a.expanded, static_cast<int64_t>(a.heads) * (NOPE + VALUES),
                          length, static_cast<int64_t>(a.heads) * (NOPE + VALUES), COLS, ROWS)
               : e;
}

} // namespace

bool attend_sm90_supports(const chunk_args &a) {
    return a.nope == NOPE && a.rope == ROPE && a.v == VALUES;
}

cudaError_t attend_sm90_init() {
    return cudaFuncSetAttribute(chunk_sm90, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(shared_memory) + 1024);
}

cudaError_t attend_chunk_sm90(const stream_of &s, const chunk_args &a) {
    params p = {};
    p.a = a;
    const cudaError_t e = make_maps(&p);
    if (e != cudaSuccess)
        return e;
    const dim3 grid(static_cast<unsigned>(a.heads),
                    static_cast<unsigned>((a.rows + ROWS - 1) / ROWS));
    return launch(s, chunk_sm90, grid, kThreads, sizeof(shared_memory) + 1024, p);
}

} // namespace device
