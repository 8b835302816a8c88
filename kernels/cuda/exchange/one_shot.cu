#include "kernels/cuda/exchange/one_shot.h"

#include <algorithm>
#include <cuda_bf16.h>

#include "kernels/cuda/row_norm.cuh"

namespace {

enum { kThreads = 128, kBlocksOfSm = 8, kUnit = 16, kSpins = 4096 };
enum { kRowThreads = 1024, kMostOfRow = 3 }; /* most threads of a row; most units of a thread */
constexpr uint32_t kUnits = ONE_SHOT_BYTES / kUnit; /* units of 16 bytes in the longest message */

/* One line of an inbox: 8 bytes of numbers and two tags. A unit of 16 bytes takes two lines. */
struct line {
    uint64_t low, high;
};

struct message {
    one_shot_group g;
    const uint4 *in;
    uint4 *out;
    uint32_t units;
    uint32_t step; /* units from one rank's part to the next: of out in an all-gather, of in in a
                      reduce-scatter */
    float factor;  /* factor of a sum that is added to *out */
};

/* What happens to the sum: it is stored in BF16 or FP32, or added to FP32 numbers. adds_part: it is
 * the sum of a reduce-scatter, and added to FP32 numbers. */
enum sum_end { stores_bf16, stores_f32, adds_f32, adds_part };

/* The lines [2][kUnits] of @sender in the inbox of @receiver, in the half for exchange @tag. Unit u
 * has line u of both arrays, so that the threads of a warp write neighbouring lines. */
__device__ line *lines_of(const one_shot_group &g, int receiver, int sender, uint32_t tag) {
    const size_t half = static_cast<size_t>(tag & 1) * g.size + sender;
    return static_cast<line *>(g.inbox[receiver]) + half * 2 * kUnits;
}

__device__ uint64_t tagged(uint32_t numbers, uint32_t tag) {
    return static_cast<uint64_t>(tag) << 32 | numbers;
}

__device__ void store(line *to, uint64_t low, uint64_t high) {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high)
                 : "memory");
}

__device__ line load(const line *from) {
    line x;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x.low), "=l"(x.high)
                 : "l"(from)
                 : "memory");
    return x;
}

__device__ bool has(const line &x, uint32_t tag) {
    return static_cast<uint32_t>(x.low >> 32) == tag && static_cast<uint32_t>(x.high >> 32) == tag;
}

/* Writes a unit to the inboxes of the other ranks. @kParts: to each rank its own part. */
template <bool kParts>
__device__ void send(const message &m, uint32_t unit, uint32_t tag) {
    uint4 x = m.in[unit];
    for (int i = 1; i < m.g.size; i++) {
        const int to = (m.g.rank + i) % m.g.size; /* every rank begins with another receiver */
        if constexpr (kParts)
            x = m.in[static_cast<size_t>(to) * m.step + unit];
        line *lines = lines_of(m.g, to, m.g.rank, tag) + unit;
        store(lines, tagged(x.x, tag), tagged(x.y, tag));
        store(lines + kUnits, tagged(x.z, tag), tagged(x.w, tag));
    }
}

__device__ bool stopped(const uint32_t *stop) {
    return *static_cast<const volatile uint32_t *>(stop) != 0;
}

__device__ uint4 receive(const message &m, int sender, uint32_t unit, uint32_t tag) {
    const line *lines = lines_of(m.g, m.g.rank, sender, tag) + unit;
    line a = load(lines), b = load(lines + kUnits);
    for (uint32_t spins = 1; !has(a, tag) || !has(b, tag); spins++) {
        if (spins % kSpins == 0 && stopped(m.g.stop))
            break;
        a = load(lines);
        b = load(lines + kUnits);
    }
    return {static_cast<uint32_t>(a.low), static_cast<uint32_t>(a.high),
            static_cast<uint32_t>(b.low), static_cast<uint32_t>(b.high)};
}

/* The sum of a unit: 4 numbers of FP32 or 8 of BF16. */
template <bool kBf16>
struct unit_sum;

template <>
struct unit_sum<false> {
    float x[4] = {};
    __device__ void add(const uint4 &v, bool first) {
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = first ? __uint_as_float(word[i]) : x[i] + __uint_as_float(word[i]);
    }
    __device__ uint4 result() const {
        return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                __float_as_uint(x[3])};
    }
    __device__ uint4 added_to(const uint4 &v, float factor) const {
        return {__float_as_uint(__uint_as_float(v.x) + factor * x[0]),
                __float_as_uint(__uint_as_float(v.y) + factor * x[1]),
                __float_as_uint(__uint_as_float(v.z) + factor * x[2]),
                __float_as_uint(__uint_as_float(v.w) + factor * x[3])};
    }
};

template <>
struct unit_sum<true> {
    float x[8] = {};
    __device__ void add(const uint4 &v, bool first) {
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float low = __uint_as_float(word[i] << 16);
            const float high = __uint_as_float(word[i] & 0xffff0000u);
            x[2 * i] = first ? low : x[2 * i] + low;
            x[2 * i + 1] = first ? high : x[2 * i + 1] + high;
        }
    }
    static __device__ uint32_t pack(float low, float high) {
        return static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16_rn(high))) << 16 |
               __bfloat16_as_ushort(__float2bfloat16_rn(low));
    }
    __device__ uint4 result() const {
        return {pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7])};
    }
};

/* What is stored: the sum, or the sum added to @before, the numbers that were in memory. */
template <bool kAdds, bool kBf16>
__device__ uint4 result_of(const unit_sum<kBf16> &sum, const uint4 &before, float factor) {
    if constexpr (kAdds)
        return sum.added_to(before, factor);
    else
        return sum.result();
}

/* 0 is never a tag, because an unused inbox contains zeros. After 2^32 - 1 comes 2, so that the
 * halves still alternate. */
__device__ uint32_t next_tag(uint32_t last) {
    return last == 0xffffffffu ? 2 : last + 1;
}

/* Waits for the previous kernel, which may have written the numbers or counted an exchange. Returns
 * the number of this exchange. */
__device__ uint32_t begin_exchange(const message &m) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    return next_tag(static_cast<volatile uint32_t *>(m.g.state)[0]);
}

__device__ void end_exchange(const message &m, uint32_t tag) {
    volatile uint32_t *state = m.g.state;
    __syncthreads(); /* all threads of the block have read state[0] */
    if (threadIdx.x == 0 && atomicAdd(m.g.state + 1, 1) == gridDim.x - 1) {
        state[1] = 0;
        state[0] = tag;
    }
}

/* There are so few blocks (most_blocks) that the device can run all of them at the same time. Each
 * block sends all its units before it waits, so no block waits for one that cannot start. A thread
 * has several units only if the message has more units than the grid has threads. A thread reads
 * its rank's own numbers before it waits for those of the other ranks. */
template <sum_end kEnd>
__global__ void __launch_bounds__(kThreads, kBlocksOfSm)
    all_reduce(const __grid_constant__ message m) {
    constexpr bool kParts = kEnd == adds_part, kAdds = kEnd == adds_f32 || kParts;
    const uint32_t tag = begin_exchange(m);
    const uint32_t first = blockIdx.x * kThreads + threadIdx.x, step = gridDim.x * kThreads;
    const uint4 *own = kParts ? m.in + static_cast<size_t>(m.g.rank) * m.step : m.in;
    for (uint32_t u = first; u < m.units; u += step)
        send<kParts>(m, u, tag);
    for (uint32_t u = first; u < m.units; u += step) {
        unit_sum<kEnd == stores_bf16> sum;
        const uint4 mine = own[u], before = kAdds ? m.out[u] : uint4{};
        for (int r = 0; r < m.g.size; r++)
            sum.add(r == m.g.rank ? mine : receive(m, r, u, tag), r == 0);
        m.out[u] = result_of<kAdds>(sum, before, m.factor);
    }
    end_exchange(m, tag);
}

/* The grid is that of all_reduce(), for the same reason. */
__global__ void __launch_bounds__(kThreads, kBlocksOfSm)
    all_gather(const __grid_constant__ message m) {
    const uint32_t tag = begin_exchange(m);
    const uint32_t first = blockIdx.x * kThreads + threadIdx.x, step = gridDim.x * kThreads;
    for (uint32_t u = first; u < m.units; u += step)
        send<false>(m, u, tag);
    for (uint32_t u = first; u < m.units; u += step)
        for (int r = 0; r < m.g.size; r++)
            m.out[static_cast<size_t>(r) * m.step + u] =
                r == m.g.rank ? m.in[u] : receive(m, r, u, tag);
    end_exchange(m, tag);
}

/* The numbers of a unit. */
__device__ float4 numbers_of(const uint4 &unit) {
    return {__uint_as_float(unit.x), __uint_as_float(unit.y), __uint_as_float(unit.z),
            __uint_as_float(unit.w)};
}

/* One block for each row, with up to kEach units for each thread. A thread reads everything that
 * other ranks do not send before it waits for them, and the weights before the previous kernel has
 * ended. All blocks run at the same time (one_shot_allows_norm()). */
template <int kEach>
__global__ void __launch_bounds__(kRowThreads)
    add_norm(const __grid_constant__ message m, const __grid_constant__ one_shot_norm to) {
    __shared__ float scratch[32];
    const uint32_t units = m.units / gridDim.x, first = blockIdx.x * units;
    float4 weight[kEach], x[kEach];
    uint4 before[kEach];
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        const uint32_t u = threadIdx.x + i * blockDim.x;
        weight[i] = u < units ? reinterpret_cast<const float4 *>(to.weight)[u] : float4{};
    }
    const uint32_t tag = begin_exchange(m);
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        const uint32_t u = threadIdx.x + i * blockDim.x;
        before[i] = u < units ? m.out[first + u] : uint4{};
        if (u < units)
            send<false>(m, first + u, tag);
    }
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        const uint32_t u = threadIdx.x + i * blockDim.x;
        if (u >= units)
            break;
        unit_sum<false> sum;
        for (int r = 0; r < m.g.size; r++)
            sum.add(r == m.g.rank ? m.in[first + u] : receive(m, r, first + u, tag), r == 0);
        const uint4 added = sum.added_to(before[i], m.factor);
        m.out[first + u] = added;
        x[i] = numbers_of(added);
        squares += device::squares_of(x[i]);
    }
    const float width = static_cast<float>(to.width),
                scale = device::norm_scale(device::block_sum(squares, scratch) / width + to.eps);
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        const uint32_t u = threadIdx.x + i * blockDim.x;
        if (u < units)
            static_cast<uint2 *>(to.normed)[first + u] =
                device::normed(x[i], scale, to.factor, weight[i]);
    }
    end_exchange(m, tag);
}

struct launch_shape {
    uint32_t blocks;
    int threads;
    bool overlap; /* the launch may begin before the previous one has ended */
    cudaStream_t stream;
};

template <typename... P, typename... A>
cudaError_t launch(void (*kernel)(P...), const launch_shape &shape, const A &...args) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(shape.blocks);
    c.blockDim = dim3(static_cast<unsigned>(shape.threads));
    c.stream = shape.stream;
    c.attrs = &early;
    c.numAttrs = shape.overlap ? 1 : 0;
    return cudaLaunchKernelEx(&c, kernel, args...);
}

cudaError_t launch(void (*kernel)(message), const message &m, bool overlap, cudaStream_t stream) {
    const uint32_t wanted = (m.units + kThreads - 1) / kThreads,
                   blocks = std::min(wanted, static_cast<uint32_t>(m.g.most_blocks));
    return launch(kernel, launch_shape{blocks, kThreads, overlap, stream}, m);
}

bool is_valid(const one_shot_group &g, size_t bytes) {
    return one_shot_allows(bytes) && g.size >= 1 && g.size <= ONE_SHOT_RANKS && g.most_blocks >= 1;
}

bool is_stride(size_t bytes, size_t stride) {
    return stride >= bytes && stride % kUnit == 0 && stride / kUnit <= UINT32_MAX;
}

} // namespace

cudaError_t one_shot_most_blocks(int device, int *out) {
    int sms = 0;
    const cudaError_t e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int longest = (kUnits + kThreads - 1) / kThreads;
    *out = std::min(sms * kBlocksOfSm, longest);
    return e;
}

size_t one_shot_inbox_bytes(int size) {
    return static_cast<size_t>(2) * size * 2 * kUnits * sizeof(line);
}

cudaError_t one_shot_all_reduce(const one_shot_group &g, const void *in, void *out, size_t bytes,
                                bool bf16, cudaStream_t stream) {
    if (!is_valid(g, bytes))
        return cudaErrorInvalidValue;
    const message m = {g,
                       static_cast<const uint4 *>(in),
                       static_cast<uint4 *>(out),
                       static_cast<uint32_t>(bytes / kUnit),
                       0,
                       0};
    return launch(bf16 ? all_reduce<stores_bf16> : all_reduce<stores_f32>, m, false, stream);
}

cudaError_t one_shot_add(const one_shot_group &g, const float *in, float *x, float factor,
                         size_t bytes, bool overlap, cudaStream_t stream) {
    if (!is_valid(g, bytes))
        return cudaErrorInvalidValue;
    const message m = {g,
                       reinterpret_cast<const uint4 *>(in),
                       reinterpret_cast<uint4 *>(x),
                       static_cast<uint32_t>(bytes / kUnit),
                       0,
                       factor};
    return launch(all_reduce<adds_f32>, m, overlap, stream);
}

bool one_shot_allows_norm(const one_shot_group &g, const one_shot_norm &norm) {
    if (norm.rows < 1 || norm.width < 4 || norm.width % 4 != 0)
        return false;
    const size_t units = static_cast<size_t>(norm.width) / 4;
    const auto threads = static_cast<size_t>(device::norm_threads(norm.width, kRowThreads)),
               rows = static_cast<size_t>(norm.rows);
    return units <= kMostOfRow * threads && is_valid(g, rows * units * kUnit) &&
           rows * threads <= static_cast<size_t>(g.most_blocks) * kThreads;
}

cudaError_t one_shot_add_norm(const one_shot_group &g, const float *in, float *x, float factor,
                              const one_shot_norm &norm, bool overlap, cudaStream_t stream) {
    if (!one_shot_allows_norm(g, norm))
        return cudaErrorInvalidValue;
    const int threads = device::norm_threads(norm.width, kRowThreads), units = norm.width / 4,
              each = (units + threads - 1) / threads;
    const message m = {g,
                       reinterpret_cast<const uint4 *>(in),
                       reinterpret_cast<uint4 *>(x),
                       static_cast<uint32_t>(norm.rows) * static_cast<uint32_t>(units),
                       0,
                       factor};
    const launch_shape shape = {static_cast<uint32_t>(norm.rows), threads, overlap, stream};
    return launch(each == 1 ? add_norm<1> : each == 2 ? add_norm<2> : add_norm<3>, shape, m, norm);
}

cudaError_t one_shot_gather(const one_shot_group &g, const void *mine, void *all, size_t bytes,
                            size_t stride, bool overlap, cudaStream_t stream) {
    if (!is_valid(g, bytes) || !is_stride(bytes, stride))
        return cudaErrorInvalidValue;
    const message m = {g,
                       static_cast<const uint4 *>(mine),
                       static_cast<uint4 *>(all),
                       static_cast<uint32_t>(bytes / kUnit),
                       static_cast<uint32_t>(stride / kUnit),
                       0};
    return launch(all_gather, m, overlap, stream);
}

cudaError_t one_shot_scatter_add(const one_shot_group &g, const float *parts, float *x,
                                 size_t bytes, size_t stride, bool overlap, cudaStream_t stream) {
    if (!is_valid(g, bytes) || !is_stride(bytes, stride))
        return cudaErrorInvalidValue;
    const message m = {g,
                       reinterpret_cast<const uint4 *>(parts),
                       reinterpret_cast<uint4 *>(x),
                       static_cast<uint32_t>(bytes / kUnit),
                       static_cast<uint32_t>(stride / kUnit),
                       1};
    return launch(all_reduce<adds_part>, m, overlap, stream);
}
