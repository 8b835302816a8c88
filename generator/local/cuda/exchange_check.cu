/* Kernels that fill the buffers of an exchange and check what arrived. The check computes
 * each expected number from its seed and place, so it needs no copy of what the ranks sent. */
#include <cuda_bf16.h>

#include "generator/local/cuda/exchange_inside.h"

namespace device {
namespace {

enum { kThreads = 256, kBlocks = 132 * 8 };

/* The finaliser of splitmix64. */
__device__ uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Number @i of the rank that has @seed. BF16 represents both kinds exactly. */
__device__ float number(uint64_t seed, uint64_t i, bool integers, int largest) {
    const uint64_t h = mix(seed + i * 0x9e3779b97f4a7c15u);
    if (integers)
        return static_cast<float>(static_cast<int>(h % (2 * largest + 1)) - largest);
    return ldexpf(static_cast<float>(static_cast<int>(h % 511) - 255),
                  static_cast<int>(h >> 32 & 7) - 12);
}

template <typename T>
__device__ T as(float x);
template <>
__device__ float as<float>(float x) {
    return x;
}
template <>
__device__ __nv_bfloat16 as<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    fill(T *to, size_t n, bool integers, int largest, uint64_t seed) {
    for (size_t i = blockIdx.x * size_t(kThreads) + threadIdx.x; i < n;
         i += size_t(kThreads) * gridDim.x)
        to[i] = as<T>(number(seed, i, integers, largest));
}

/* The sum over the ranks of number @i, in the order of the ranks. */
__device__ float sum_of(const exchange_expected &w, uint64_t i) {
    float sum = number(w.seeds[0], i, w.integers, w.largest);
    for (int r = 1; r < w.size; r++)
        sum += number(w.seeds[r], i, w.integers, w.largest);
    return sum;
}

/* The number that the receive buffer must contain: @sum if it is stored (@additions is 0), else 0
 * with @sum added @additions times. The kernel uses a fused multiply-add with the factor 1, which
 * rounds like this addition. */
__device__ float received(float sum, int additions) {
    if (additions == 0)
        return sum;
    float total = 0;
    for (int i = 0; i < additions; i++)
        total += sum;
    return total;
}

/* Number @i of the receive buffer; @part is how many numbers a rank's part of the larger
 * buffer has. */
__device__ float expected(const exchange_expected &w, size_t i, size_t part) {
    switch (w.operation) {
    case EXCHANGE_ALL_REDUCE:
        return received(sum_of(w, i), w.additions);
    case EXCHANGE_REDUCE_SCATTER:
        return received(sum_of(w, part * w.rank + i), w.additions);
    case EXCHANGE_ALL_GATHER:
        return number(w.seeds[i / part], i % part, w.integers, w.largest);
    default:
        return number(w.seeds[i / part], part * w.rank + i % part, w.integers, w.largest);
    }
}

__device__ bool same_bits(float a, float b) {
    return __float_as_uint(a) == __float_as_uint(b);
}

__device__ bool same_bits(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __bfloat16_as_ushort(a) == __bfloat16_as_ushort(b);
}

/* +0 and -0 count as equal: a sum of zeros may have either sign, depending on its order. */
template <typename T>
__device__ bool equal(T got, T want) {
    return same_bits(got, want) ||
           (static_cast<float>(got) == 0.0f && static_cast<float>(want) == 0.0f);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    compare(const T *got, size_t n, const exchange_expected want, unsigned long long *wrong) {
    const size_t part = want.operation == EXCHANGE_REDUCE_SCATTER ? n : n / want.size;
    unsigned long long mine = 0;
    for (size_t i = blockIdx.x * size_t(kThreads) + threadIdx.x; i < n;
         i += size_t(kThreads) * gridDim.x)
        mine += equal(got[i], as<T>(expected(want, i, part))) ? 0 : 1;
    if (mine)
        atomicAdd(wrong, mine);
}

__global__ void __launch_bounds__(kThreads)
    hash(const uint32_t *from, size_t n, unsigned long long *out) {
    unsigned long long mine = 0;
    for (size_t i = blockIdx.x * size_t(kThreads) + threadIdx.x; i < n;
         i += size_t(kThreads) * gridDim.x)
        mine += mix(static_cast<uint64_t>(from[i]) << 32 ^ mix(i + 1));
    atomicAdd(out, mine);
}

} // namespace

cudaError_t exchange_fill(void *to, size_t bytes, bool bf16, bool integers, int largest,
                          uint64_t seed, cudaStream_t stream) {
    if (bf16)
        fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16 *>(to), bytes / 2,
                                               integers, largest, seed);
    else
        fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<float *>(to), bytes / 4, integers,
                                               largest, seed);
    return cudaGetLastError();
}

cudaError_t exchange_compare(const void *got, size_t bytes, const exchange_expected &want,
                             uint64_t *wrong, cudaStream_t stream) {
    auto *count = reinterpret_cast<unsigned long long *>(wrong);
    if (want.bf16)
        compare<<<kBlocks, kThreads, 0, stream>>>(static_cast<const __nv_bfloat16 *>(got),
                                                  bytes / 2, want, count);
    else
        compare<<<kBlocks, kThreads, 0, stream>>>(static_cast<const float *>(got), bytes / 4, want,
                                                  count);
    return cudaGetLastError();
}

cudaError_t exchange_hash(const void *from, size_t bytes, uint64_t *out, cudaStream_t stream) {
    hash<<<kBlocks, kThreads, 0, stream>>>(static_cast<const uint32_t *>(from), bytes / 4,
                                           reinterpret_cast<unsigned long long *>(out));
    return cudaGetLastError();
}

} // namespace device
