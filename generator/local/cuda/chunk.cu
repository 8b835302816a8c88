/* attend_chunk() computes attention of a prompt's queries over expanded keys and values, with an
 * online softmax. It uses the tensor cores of sm_80 and newer.
 *
 * A block processes 128 queries of one head, 16 per warp, and loops over tiles of 64 or 32 keys.
 * Two tiles are in shared memory. A row in shared memory consists of 16-byte pieces. Piece i of row
 * r is at place i ^ (r & 7), so ldmatrix has no bank conflicts. Narrower heads are padded with
 * zeros. */
#include "generator/local/cuda/attend.h"
#include "kernels/cuda/ptx/barrier.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    QUERIES = 128,
    kThreads = 256,
    kStages = 2,
};

/* The widest head that a kernel supports, and the keys of its tiles. Wider heads have smaller
 * tiles: either way a block uses 128 KiB of shared memory. */
template <int QK_, int V_, int KEYS_>
struct head_sizes {
    enum { QK = QK_, V = V_, KEYS = KEYS_, QK_PIECES = QK / 8, V_PIECES = V / 8 };
};
using narrow_heads = head_sizes<192, 128, 64>;
using wide_heads = head_sizes<MAX_QK, MAX_V, 32>;

template <typename W>
struct shared_memory {
    bf16 q[QUERIES * W::QK];
    bf16 k[kStages][W::KEYS * W::QK];
    bf16 v[kStages][W::KEYS * W::V];
};

__device__ __forceinline__ int place(int row, int piece, int pieces) {
    return (row * pieces + (piece ^ (row & 7))) * 16;
}

template <typename W>
__device__ __forceinline__ void load_queries(const chunk_args &a, shared_memory<W> &s, int head,
                                             int from) {
    const int width = a.nope + a.rope;
    const uint32_t base = ptx::smem_addr(s.q);
    for (int i = threadIdx.x; i < QUERIES * W::QK_PIECES; i += kThreads) {
        const int r = i / W::QK_PIECES, piece = i % W::QK_PIECES, row = min(from + r, a.rows - 1);
        const bool real = piece * 8 < width;
        const bf16 *q = a.q +
                        (static_cast<int64_t>(row) * a.all_heads + a.first_head + head) * width +
                        (real ? piece * 8 : 0);
        ptx::copy_async_16(base + place(r, piece, W::QK_PIECES), q, real);
    }
}

template <typename W>
__device__ __forceinline__ void load_keys(const chunk_args &a, shared_memory<W> &s, int head,
                                          int stage, int from) {
    const int length = static_cast<int>(a.start) + a.rows, kv = a.nope + a.v;
    const uint32_t k = ptx::smem_addr(s.k[stage]), v = ptx::smem_addr(s.v[stage]);
    for (int i = threadIdx.x; i < W::KEYS * W::QK_PIECES; i += kThreads) {
        const int r = i / W::QK_PIECES, piece = i % W::QK_PIECES, d = piece * 8;
        const int64_t row = min(from + r, length - 1);
        const bool real = d < a.nope + a.rope;
        const bf16 *at = d < a.nope
                             ? a.expanded + (row * a.heads + head) * kv + d
                             : a.kv + row * (a.rank + a.rope) + a.rank + (real ? d - a.nope : 0);
        ptx::copy_async_16(k + place(r, piece, W::QK_PIECES), at, real);
    }
    for (int i = threadIdx.x; i < W::KEYS * W::V_PIECES; i += kThreads) {
        const int r = i / W::V_PIECES, piece = i % W::V_PIECES;
        const int64_t row = min(from + r, length - 1);
        const bool real = piece * 8 < a.v;
        const bf16 *at = a.expanded + (row * a.heads + head) * kv + a.nope + (real ? piece * 8 : 0);
        ptx::copy_async_16(v + place(r, piece, W::V_PIECES), at, real);
    }
}

/* The state of a warp's 16 queries. Lane 4 g + t has parts of rows g and g + 8. */
template <typename W>
struct queries {
    float out[W::V_PIECES][4];
    float most[2], sum[2];
};

template <typename W>
__device__ __forceinline__ void score(float (&p)[W::KEYS / 8][4], const shared_memory<W> &s,
                                      int stage) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t q = ptx::smem_addr(s.q), k = ptx::smem_addr(s.k[stage]);
    const int q_row = warp * 16 + lane % 16, q_half = lane / 16;
    const int k_row = lane % 8 + lane / 16 * 8, k_half = lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < W::KEYS / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            p[i][j] = 0;
#pragma unroll
    for (int step = 0; step < W::QK / 16; step++) {
        uint32_t a[4];
        ptx::ldmatrix_x4(a, q + place(q_row, 2 * step + q_half, W::QK_PIECES));
#pragma unroll
        for (int i = 0; i < W::KEYS / 16; i++) {
            uint32_t b[4];
            ptx::ldmatrix_x4(b, k + place(i * 16 + k_row, 2 * step + k_half, W::QK_PIECES));
            ptx::mma_bf16(p[2 * i], a, b[0], b[1]);
            ptx::mma_bf16(p[2 * i + 1], a, b[2], b[3]);
        }
    }
}

/* Turns scores into unnormalised probabilities and rescales the sums so far to the new maximum.
 * @visible: the number of keys, from this tile's first on, that row g attends to; row g + 8: eight
 * more. */
template <typename W>
__device__ __forceinline__ void softmax_tile(float (&p)[W::KEYS / 8][4], queries<W> &q, float scale,
                                             int64_t visible) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float most = q.most[h];
#pragma unroll
        for (int i = 0; i < W::KEYS / 8; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &x = p[i][2 * h + j];
                x = i * 8 + 2 * t + j < visible + 8 * h ? x * scale : -INFINITY;
                most = fmaxf(most, x);
            }
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        const float base = most == -INFINITY ? 0.0f : most;
        const float shrink = exp2f(q.most[h] - base);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < W::KEYS / 8; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                p[i][2 * h + j] = exp2f(p[i][2 * h + j] - base);
                sum += p[i][2 * h + j];
            }
        q.sum[h] = q.sum[h] * shrink + sum;
        q.most[h] = most;
#pragma unroll
        for (int i = 0; i < W::V_PIECES; i++) {
            q.out[i][2 * h] *= shrink;
            q.out[i][2 * h + 1] *= shrink;
        }
    }
}

__device__ __forceinline__ uint32_t packed(float low, float high) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&two);
}

template <typename W>
__device__ __forceinline__ void add_values(queries<W> &q, const float (&p)[W::KEYS / 8][4],
                                           const shared_memory<W> &s, int stage) {
    const int lane = threadIdx.x % 32;
    const uint32_t v = ptx::smem_addr(s.v[stage]);
    const int row = lane % 16, half = lane / 16;
#pragma unroll
    for (int step = 0; step < W::KEYS / 16; step++) {
        const uint32_t a[4] = {packed(p[2 * step][0], p[2 * step][1]),
                               packed(p[2 * step][2], p[2 * step][3]),
                               packed(p[2 * step + 1][0], p[2 * step + 1][1]),
                               packed(p[2 * step + 1][2], p[2 * step + 1][3])};
#pragma unroll
        for (int i = 0; i < W::V_PIECES / 2; i++) {
            uint32_t b[4];
            ptx::ldmatrix_x4_trans(b, v + place(step * 16 + row, 2 * i + half, W::V_PIECES));
            ptx::mma_bf16(q.out[2 * i], a, b[0], b[1]);
            ptx::mma_bf16(q.out[2 * i + 1], a, b[2], b[3]);
        }
    }
}

template <typename W>
__device__ __forceinline__ void write_out(const chunk_args &a, const queries<W> &q, int head,
                                          int from) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = q.sum[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        const int row = from + threadIdx.x / 32 * 16 + g + 8 * h;
        if (row >= a.rows)
            continue;
        bf16 *to =
            a.out + (static_cast<int64_t>(row) * a.all_heads + a.first_head + head) * a.v + 2 * t;
#pragma unroll
        for (int i = 0; i < W::V_PIECES; i++)
            if (8 * i < a.v)
                *reinterpret_cast<uint32_t *>(to + 8 * i) =
                    packed(q.out[i][2 * h] / sum, q.out[i][2 * h + 1] / sum);
    }
}

/* Blocks with the most keys come first. */
template <typename W>
__global__ void __launch_bounds__(kThreads, 1) chunk(chunk_args a) {
    extern __shared__ __align__(128) uint8_t raw[];
    auto &s = *reinterpret_cast<shared_memory<W> *>(raw);
    const int head = blockIdx.x, from = (gridDim.y - 1 - blockIdx.y) * QUERIES;
    const int64_t own = a.start + from + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const int seen = static_cast<int>(a.start) + min(from + static_cast<int>(QUERIES), a.rows);
    const int tiles = (seen + W::KEYS - 1) / W::KEYS;
    queries<W> q = {};
    q.most[0] = q.most[1] = -INFINITY;
    let_next();
    wait_previous();
    load_queries(a, s, head, from);
    load_keys(a, s, head, 0, 0);
    ptx::copy_async_commit();
    for (int i = 0; i < tiles; i++) {
        float p[W::KEYS / 8][4];
        if (i + 1 < tiles)
            load_keys(a, s, head, (i + 1) % kStages, (i + 1) * W::KEYS);
        ptx::copy_async_commit();
        ptx::copy_async_wait<1>();
        __syncthreads();
        score(p, s, i % kStages);
        softmax_tile(p, q, a.softmax_scale * 1.44269504088896340736f, own + 1 - i * W::KEYS);
        add_values(q, p, s, i % kStages);
        __syncthreads();
    }
    write_out(a, q, head, from);
}

} // namespace

cudaError_t attend_init() {
    const cudaError_t e =
        cudaFuncSetAttribute(chunk<narrow_heads>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             sizeof(shared_memory<narrow_heads>));
    return e == cudaSuccess ? cudaFuncSetAttribute(chunk<wide_heads>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   sizeof(shared_memory<wide_heads>))
                            : e;
}

cudaError_t attend_chunk(const stream_of &s, const chunk_args &a) {
    if (s.hopper && attend_sm90_supports(a))
        return attend_chunk_sm90(s, a);
    const dim3 grid(static_cast<unsigned>(a.heads),
                    static_cast<unsigned>((a.rows + QUERIES - 1) / QUERIES));
    if (a.nope + a.rope <= narrow_heads::QK && a.v <= narrow_heads::V)
        return launch(s, chunk<narrow_heads>, grid, kThreads, sizeof(shared_memory<narrow_heads>),
                      a);
    return launch(s, chunk<wide_heads>, grid, kThreads, sizeof(shared_memory<wide_heads>), a);
}

} // namespace device
