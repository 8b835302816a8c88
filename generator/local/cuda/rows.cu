#include "generator/local/cuda/rows.h"

#include <algorithm>
#include <cuda_fp8.h>

namespace device {
namespace {

enum { kThreads = 256, kScoreSlices = 32 };

/* ---- embedding, norms ------------------------------------------------------------------------ */

__global__ void __launch_bounds__(kThreads)
    embed_row(const bf16 *table, const int *token, int hidden, float factor, float *x,
              unsigned long long *key, uint32_t *epoch) {
    let_next();
    wait_previous();
    const int64_t row = blockIdx.x;
    const bf16 *from = table + static_cast<int64_t>(token[row]) * hidden;
    for (int i = threadIdx.x; i < hidden; i += kThreads)
        x[row * hidden + i] = __bfloat162float(from[i]) * factor;
    if (threadIdx.x == 0)
        key[row] = 0;
    if (epoch && threadIdx.x == 0 && row == 0)
        *epoch += 1;
}

enum { kMostSlots = 2 * ROUTE_MAX_CHOSEN, kSlotsAtOnce = 8 };

/* The experts of one row. */
struct choices {
    int place[kMostSlots];
    float weight[kMostSlots];
};
static_assert((MAX_NORMED + 32) * sizeof(float) + sizeof(choices) <= 48 * 1024, "on chip");

__device__ __forceinline__ void add_scaled(float4 &sum, float w, const float4 &x) {
    sum.x += w * x.x;
    sum.y += w * x.y;
    sum.z += w * x.z;
    sum.w += w * x.w;
}

/* Four numbers of the weighted sum of a row's expert outputs, added in slot order. Loads
 * kSlotsAtOnce outputs before it adds them. @kDrops: experts that another rank computes
 * (PLACE_ELSEWHERE) are left out, and so are zero-computation experts if j.identity is NULL. */
template <bool kDrops>
__device__ __forceinline__ float4 joined(const join_from &j, const choices &c, int64_t row,
                                         int hidden, int i) {
    float4 sum = {};
    for (int from = 0; from < j.slots; from += kSlotsAtOnce) {
        float4 x[kSlotsAtOnce];
#pragma unroll
        for (int s = 0; s < kSlotsAtOnce; s++) {
            const int place = from + s < j.slots ? c.place[from + s] : 0;
            const float *at = place >= 0 ? j.down + static_cast<int64_t>(place) * hidden
                                         : j.identity + (row - j.identity_row) * hidden;
            const bool dropped = kDrops && (place == PLACE_ELSEWHERE || (place < 0 && !j.identity));
            x[s] = dropped ? float4{} : *reinterpret_cast<const float4 *>(at + i);
        }
#pragma unroll
        for (int s = 0; s < kSlotsAtOnce; s++)
            if (from + s < j.slots)
                add_scaled(sum, c.weight[from + s], x[s]);
    }
    return sum;
}

/* packed = values [n] * scale * factor * weight, with the scale of the norm. @values is in shared
 * memory; each thread reads only what it wrote. */
__device__ __forceinline__ void pack_normed(const float *values, int n, const norm_to &to,
                                            int64_t row, float squares, float *scratch) {
    const float scale = norm_scale(block_sum(squares, scratch) / static_cast<float>(n) + to.eps);
    for (int i = 4 * threadIdx.x; i < n; i += 4 * blockDim.x) {
        const float4 v = *reinterpret_cast<const float4 *>(values + i);
        const float4 w = *reinterpret_cast<const float4 *>(to.weight + i);
        *reinterpret_cast<uint2 *>(to.packed + row * n + i) = normed(v, scale, to.factor, w);
    }
}

__device__ __forceinline__ void load_choices(const join_from &join, int64_t row, choices &to) {
    for (int s = threadIdx.x; s < join.slots; s += blockDim.x) {
        to.place[s] = join.place[row * join.slots + s];
        to.weight[s] = join.weight[row * join.slots + s];
    }
    __syncthreads();
}

__global__ void __launch_bounds__(1024)
    join_row(int hidden, join_from join, bool adds, float *out) {
    __shared__ choices chosen;
    let_next();
    wait_previous();
    const int64_t row = blockIdx.x;
    load_choices(join, row, chosen);
    for (int i = 4 * threadIdx.x; i < hidden; i += 4 * blockDim.x) {
        float4 *at = reinterpret_cast<float4 *>(out + row * hidden + i);
        float4 v = adds ? *at : float4{};
        add_scaled(v, 1.0f, joined<true>(join, chosen, row, hidden, i));
        *at = v;
    }
}

__global__ void __launch_bounds__(1024)
    join_norm_row(float *x, int hidden, join_from join, norm_to norm) {
    extern __shared__ __align__(16) float values[];
    __shared__ float scratch[32];
    __shared__ choices chosen;
    let_next();
    wait_previous();
    const int64_t row = norm.row ? norm.row[blockIdx.x] : blockIdx.x;
    float squares = 0;
    if (join.down)
        load_choices(join, row, chosen);
    for (int i = 4 * threadIdx.x; i < hidden; i += 4 * blockDim.x) {
        float4 *at = reinterpret_cast<float4 *>(x + row * hidden + i);
        float4 v = *at;
        if (join.down) {
            add_scaled(v, join.factor, joined<false>(join, chosen, row, hidden, i));
            *at = v;
        }
        *reinterpret_cast<float4 *>(values + i) = v;
        squares += squares_of(v);
    }
    pack_normed(values, hidden, norm, blockIdx.x, squares, scratch);
}

__global__ void __launch_bounds__(1024)
    norm_row(const float *in, int64_t in_row, int n, norm_to norm) {
    extern __shared__ __align__(16) float values[];
    __shared__ float scratch[32];
    let_next();
    wait_previous();
    float squares = 0;
    for (int i = 4 * threadIdx.x; i < n; i += 4 * blockDim.x) {
        const float4 v = *reinterpret_cast<const float4 *>(in + blockIdx.x * in_row + i);
        *reinterpret_cast<float4 *>(values + i) = v;
        squares += squares_of(v);
    }
    pack_normed(values, n, norm, blockIdx.x, squares, scratch);
}

/* Up to 256 rows have larger blocks, for a lower latency. */
int threads_of(int rows, int n) {
    return norm_threads(n, rows > 256 ? static_cast<int>(kThreads) : 1024);
}

/* ---- next token ------------------------------------------------------------------------------ */

__device__ __forceinline__ unsigned long long key_of(float x, int id) {
    const uint32_t bits = __float_as_uint(x + 0.0f); /* turns -0 into 0 */
    const uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return isfinite(x) ? static_cast<unsigned long long>(order) << 32 | (0xffffffffu - id)
                       : KEY_NOT_FINITE;
}

__global__ void __launch_bounds__(kThreads)
    best(const float *logits, int vocab, unsigned long long *key) {
    let_next();
    wait_previous();
    const float *row = logits + static_cast<int64_t>(blockIdx.y) * vocab;
    unsigned long long most = 0;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < vocab; i += gridDim.x * kThreads)
        most = max(most, key_of(row[i], i));
    for (int m = 16; m > 0; m /= 2)
        most = max(most, __shfl_xor_sync(~0u, most, m));
    if (threadIdx.x % 32 == 0)
        atomicMax(key + blockIdx.y, most);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(kThreads)
    gather_pairs(const uint4 *packed, int packed_row, const int *row, const int *first, int experts,
                 int hidden, bf16 *to) {
    let_next();
    wait_previous();
    const int pairs = first[experts], words = hidden / 8;
    for (int pair = blockIdx.x; pair < pairs; pair += gridDim.x) {
        const uint4 *source = packed + static_cast<int64_t>(row[pair]) * packed_row;
        uint4 *target = reinterpret_cast<uint4 *>(to + static_cast<int64_t>(pair) * hidden);
#pragma unroll 2 /* with more, registers are spilled */
        for (int i = threadIdx.x; i < words; i += kThreads)
            target[i] = source[i];
    }
}

/* ---- random numbers, angles, layouts --------------------------------------------------------- */

__device__ __forceinline__ uint32_t mixed(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>(x >> 32);
}

__device__ __forceinline__ float uniform(uint32_t bits) {
    return static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f;
}

template <typename T, typename F>
__global__ void __launch_bounds__(kThreads) fill(T *to, int64_t n, uint64_t seed, F number) {
    wait_previous();
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < n;
         i += gridDim.x * int64_t(kThreads))
        to[i] = number(mixed(seed + static_cast<uint64_t>(i)));
}

struct to_bf16 {
    float spread;
    __device__ bf16 operator()(uint32_t bits) const {
        return __float2bfloat16_rn(spread * uniform(bits));
    }
};

struct to_f32 {
    float centre, spread;
    __device__ float operator()(uint32_t bits) const {
        return centre + spread * uniform(bits);
    }
};

struct to_e4m3 {
    __device__ uint8_t operator()(uint32_t bits) const {
        return __nv_cvt_float_to_fp8(256.0f * uniform(bits), __NV_SATFINITE, __NV_E4M3);
    }
};

template <typename T, typename F>
cudaError_t fill_with(const stream_of &s, T *to, int64_t n, uint64_t seed, F number) {
    if (n == 0)
        return cudaSuccess;
    const int64_t blocks = std::min<int64_t>((n + kThreads - 1) / kThreads, s.sms * 16);
    return launch(s, fill<T, F>, dim3(static_cast<unsigned>(blocks)), kThreads, 0, to, n, seed,
                  number);
}

__global__ void __launch_bounds__(kThreads)
    transpose(const bf16 *w, int rows, int n_width, int k_width, bf16 *to) {
    wait_previous();
    const bf16 *from = w + static_cast<int64_t>(blockIdx.y) * rows * k_width;
    bf16 *target = to + static_cast<int64_t>(blockIdx.y) * n_width * k_width;
    const int all = n_width * k_width;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < all; i += gridDim.x * kThreads)
        target[i] = from[static_cast<int64_t>(i % n_width) * k_width + i / n_width];
}

__global__ void __launch_bounds__(kThreads) angles(rope r, int64_t context, float2 *to) {
    wait_previous();
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < context * r.pairs;
         i += gridDim.x * int64_t(kThreads)) {
        const float angle = __fmul_rn(static_cast<float>(i / r.pairs), r.frequency[i % r.pairs]);
        to[i] = {static_cast<float>(cos(static_cast<double>(angle))) * r.factor,
                 static_cast<float>(sin(static_cast<double>(angle))) * r.factor};
    }
}

} // namespace

cudaError_t embed(const stream_of &s, const bf16 *table, const int *token, int rows, int hidden,
                  float factor, float *x, unsigned long long *key, uint32_t *epoch) {
    return launch(s, embed_row, dim3(static_cast<unsigned>(rows)), kThreads, 0, table, token,
                  hidden, factor, x, key, epoch);
}

cudaError_t join_norm(const stream_of &s, float *x, int rows, int hidden, const join_from &join,
                      const norm_to &norm) {
    return launch(s, join_norm_row, dim3(static_cast<unsigned>(rows)), threads_of(rows, hidden),
                  static_cast<size_t>(hidden) * sizeof(float), x, hidden, join, norm);
}

cudaError_t join_rows(const stream_of &s, int rows, int hidden, const join_from &join, bool adds,
                      float *out) {
    return launch(s, join_row, dim3(static_cast<unsigned>(rows)), threads_of(rows, hidden), 0,
                  hidden, join, adds, out);
}

cudaError_t norm_rows(const stream_of &s, const float *in, int64_t in_row, int rows, int n,
                      const norm_to &norm) {
    return launch(s, norm_row, dim3(static_cast<unsigned>(rows)), threads_of(rows, n),
                  static_cast<size_t>(n) * sizeof(float), in, in_row, n, norm);
}

cudaError_t gather(const stream_of &s, const bf16 *packed, int64_t packed_row, const int *row,
                   const int *first, int experts, int most_pairs, int hidden, bf16 *x_pairs) {
    const int blocks = std::min(most_pairs, s.sms * 16);
    return launch(s, gather_pairs, dim3(static_cast<unsigned>(blocks)), kThreads, 0,
                  reinterpret_cast<const uint4 *>(packed), static_cast<int>(packed_row / 8), row,
                  first, experts, hidden, x_pairs);
}

cudaError_t best_token(const stream_of &s, const float *logits, int rows, int vocab,
                       unsigned long long *key) {
    const int slices = std::min<int>(kScoreSlices, (vocab + kThreads - 1) / kThreads);
    return launch(s, best, dim3(static_cast<unsigned>(slices), static_cast<unsigned>(rows)),
                  kThreads, 0, logits, vocab, key);
}

cudaError_t fill_bf16(const stream_of &s, bf16 *to, int64_t n, float spread, uint64_t seed) {
    return fill_with(s, to, n, seed, to_bf16{spread});
}

cudaError_t fill_f32(const stream_of &s, float *to, int64_t n, float centre, float spread,
                     uint64_t seed) {
    return fill_with(s, to, n, seed, to_f32{centre, spread});
}

cudaError_t fill_e4m3(const stream_of &s, uint8_t *to, int64_t n, uint64_t seed) {
    return fill_with(s, to, n, seed, to_e4m3{});
}

cudaError_t transpose_heads(const stream_of &s, const bf16 *w, int heads, int rows, int n_width,
                            int k_width, bf16 *to) {
    return launch(s, transpose, dim3(64, static_cast<unsigned>(heads)), kThreads, 0, w, rows,
                  n_width, k_width, to);
}

cudaError_t make_angles(const stream_of &s, const rope &r, int64_t context, float2 *to) {
    const int64_t blocks =
        std::min<int64_t>((context * r.pairs + kThreads - 1) / kThreads, s.sms * 16);
    return launch(s, angles, dim3(static_cast<unsigned>(blocks)), kThreads, 0, r, context, to);
}

} // namespace device
