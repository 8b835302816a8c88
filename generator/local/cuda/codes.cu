#include "generator/local/cuda/codes.h"

#include <algorithm>
#include <cuda_fp8.h>

#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    kThreads = 256,
    kWarps = kThreads / 32,
    kBlocksPerSm = 16,
    kResidentThreads = 2048, /* threads that an SM can hold */
    kPlacesBlocks = 6,       /* blocks on an SM for quantise_to_places(): for its registers */
    kRowThreads = 512,       /* threads that convert a row to FP16 */
    kAtOnce = 4,             /* loads of 16 bytes that each of them has in flight */
};

__global__ void __launch_bounds__(kThreads) place(code_scale_rows a) {
    wait_previous();
    const int64_t blocks = code_blocks(a.width), pitch = code_pitch(a.width);
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < a.rows / 8 * blocks;
         i += gridDim.x * int64_t(kThreads)) {
        const int64_t eight = i / blocks, block = i % blocks;
        const int64_t row = (a.first + 8 * eight) / CODE_BLOCK;
        const int64_t to = a.to_first / 8 + eight * (a.by_eights ? 2 : 1);
        a.to[(to / 2 * pitch + block) * 2 + to % 2] =
            a.from[row * a.across + a.col / CODE_BLOCK + block];
    }
}

/* The first code is in the low byte. */
__device__ __forceinline__ uint32_t two_codes(float x, float y) {
    return __nv_cvt_float2_to_fp8x2({x, y}, __NV_SATFINITE, __NV_E4M3);
}

/* x / scale, for |x| <= 448 scale. @inverse: 1 / scale. The result has the bits of the division,
 * unless its magnitude is below 2^-11, so that it becomes a zero of e4m3 in any case. (Compared on
 * the host for all BF16 numbers x down to 2^-24 of the BF16 number that determines the scale.) If
 * the scale is infinite, the result is NaN. */
__device__ __forceinline__ float quotient(float x, float scale, float inverse) {
    const float q = x * inverse;
    return copysignf(__fmaf_rn(__fmaf_rn(-q, scale, x), inverse, q), x);
}

/* Eight numbers of x, or zeros. */
__device__ __forceinline__ uint4 read_eight(const quantise_args &a, int row, int rows, int col) {
    const uint4 zero = {0, 0, 0, 0};
    return row < rows && col < a.k
               ? *reinterpret_cast<const uint4 *>(a.x + static_cast<int64_t>(row) * a.x_row + col)
               : zero;
}

/* Eight codes and their scale, from eight numbers of each lane. 16 lanes share a scale. */
struct eight_codes {
    uint2 code;
    float scale;

    __device__ explicit eight_codes(const uint4 &raw) {
        const auto *pairs = reinterpret_cast<const __nv_bfloat162 *>(&raw);
        float2 x[4];
        float largest = 1e-10f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[i] = __bfloat1622float2(pairs[i]);
            largest = fmaxf(largest, fmaxf(fabsf(x[i].x), fabsf(x[i].y)));
        }
        for (int m = 8; m > 0; m /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, m));
        scale = largest / 448.0f;
        const float inverse = 1.0f / scale;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[i].x = quotient(x[i].x, scale, inverse);
            x[i].y = quotient(x[i].y, scale, inverse);
        }
        code.x = two_codes(x[0].x, x[0].y) | two_codes(x[1].x, x[1].y) << 16;
        code.y = two_codes(x[2].x, x[2].y) | two_codes(x[3].x, x[3].y) << 16;
    }
    /* Writes the codes of column @col and the following ones to row @row of the result. */
    __device__ void store(const quantise_args &a, int64_t row, int col) const {
        if (col >= a.k)
            return;
        *reinterpret_cast<uint2 *>(a.code + row * a.k + col) = code;
        if (threadIdx.x % 16 == 0)
            a.scale[col / CODE_BLOCK * row_scale_pitch(a.rows) + row] = scale;
    }
};

/* One warp quantises 2 * CODE_BLOCK columns, eight in each lane, of one row after another. The next
 * row is loaded ahead. */
__global__ void __launch_bounds__(kThreads, kResidentThreads / kThreads) quantise(quantise_args a) {
    let_next();
    wait_previous();
    const int lane = threadIdx.x % 32, rows = a.count ? *a.count : a.x_rows;
    const int col = (blockIdx.x * kWarps + threadIdx.x / 32) * 2 * CODE_BLOCK + 8 * lane;
    uint4 ahead = read_eight(a, blockIdx.y, rows, col);
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        const uint4 raw = ahead;
        ahead = read_eight(a, row + gridDim.y, rows, col);
        eight_codes(raw).store(a, row, col);
    }
}

/* One of 32 places of a row, from place @from on; -1 if there is none. */
__device__ __forceinline__ int place_of(const quantise_args &a, int row, int rows, int from) {
    const int at = from + static_cast<int>(threadIdx.x) % 32;
    return row < rows && at < a.places ? a.place[static_cast<int64_t>(row) * a.places + at] : -1;
}

/* As quantise(), but writes a row to all its places. The first 32 places of the next row are loaded
 * ahead, too. */
__global__ void __launch_bounds__(kThreads, kPlacesBlocks) quantise_to_places(quantise_args a) {
    let_next();
    wait_previous();
    const int lane = threadIdx.x % 32, rows = a.count ? *a.count : a.x_rows;
    const int col = (blockIdx.x * kWarps + threadIdx.x / 32) * 2 * CODE_BLOCK + 8 * lane;
    uint4 ahead = read_eight(a, blockIdx.y, rows, col);
    int place_ahead = place_of(a, blockIdx.y, rows, 0);
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        const uint4 raw = ahead;
        int place = place_ahead;
        ahead = read_eight(a, row + gridDim.y, rows, col);
        place_ahead = place_of(a, row + gridDim.y, rows, 0);
        const eight_codes eight(raw);
        for (int from = 32;; from += 32) {
            for (uint32_t left = __ballot_sync(~0u, place >= 0); left; left &= left - 1)
                eight.store(a, __shfl_sync(~0u, place, __ffs(static_cast<int>(left)) - 1), col);
            if (from >= a.places)
                break;
            place = place_of(a, row, rows, from);
        }
    }
}

/* 2^exponent, which must be a normal number. */
__device__ __forceinline__ float exp2_of(int exponent) {
    return __int_as_float((exponent + 127) << 23);
}

/* The larger magnitude of two BF16 numbers, as bits; 0 for numbers that are not finite. */
__device__ __forceinline__ uint32_t largest_of(uint32_t pair) {
    const uint32_t low = pair & 0x7fff, high = pair >> 16 & 0x7fff;
    return max(low < 0x7f80 ? low : 0, high < 0x7f80 ? high : 0);
}

/* Both numbers times a power of two, in FP16. Numbers that FP32 would round are so small that they
 * become zeros in any case. */
__device__ __forceinline__ uint32_t scaled_pair(uint32_t pair, float factor) {
    return ptx::pack_f16x2(__uint_as_float(pair << 16) * factor,
                           __uint_as_float(pair & 0xffff0000) * factor);
}

/* The bits of the largest finite magnitude of a row, for all threads of the block. */
__device__ __forceinline__ uint32_t largest_of_row(const uint4 *row, int count, uint32_t *scratch) {
    const int lane = threadIdx.x % 32;
    uint32_t largest = 0;
    for (int from = threadIdx.x; from < count; from += kRowThreads * kAtOnce) {
        uint4 raw[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) { /* a number may be read twice */
            const int at = from + i * kRowThreads;
            raw[i] = row[at < count ? at : from];
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; i++)
            largest = max(max(largest, max(largest_of(raw[i].x), largest_of(raw[i].y))),
                          max(largest_of(raw[i].z), largest_of(raw[i].w)));
    }
    largest = __reduce_max_sync(~0u, largest);
    __syncthreads(); /* scratch may still be read for the previous row */
    if (lane == 0)
        scratch[threadIdx.x / 32] = largest;
    __syncthreads();
    return __reduce_max_sync(~0u, scratch[lane % (kRowThreads / 32)]);
}

/* A block converts one row after another. It reads each row twice: for the largest number, and then
 * for the conversion. */
__global__ void __launch_bounds__(kRowThreads) convert_rows(fp16_args a) {
    __shared__ uint32_t scratch[kRowThreads / 32];
    let_next();
    wait_previous();
    const int rows = a.count ? *a.count : a.rows, count = a.k / 8;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const auto *x = reinterpret_cast<const uint4 *>(a.x + row * a.x_row);
        auto *half = reinterpret_cast<uint4 *>(a.half + static_cast<int64_t>(row) * a.k);
        const int largest = static_cast<int>(largest_of_row(x, count, scratch)),
                  exponent = largest ? 14 - max((largest >> 7) - 127, -112) : 0;
        const float factor = exp2_of(exponent);
        for (int i = threadIdx.x; i < count; i += kRowThreads) {
            const uint4 raw = x[i];
            half[i] = {scaled_pair(raw.x, factor), scaled_pair(raw.y, factor),
                       scaled_pair(raw.z, factor), scaled_pair(raw.w, factor)};
        }
        if (threadIdx.x == 0)
            a.inverse[row] = exp2_of(-exponent);
    }
}

dim3 grid_for(const stream_of &s, int64_t work, int64_t per_block) {
    const int64_t blocks = (work + per_block - 1) / per_block;
    return dim3(static_cast<unsigned>(
        std::max<int64_t>(std::min<int64_t>(blocks, s.sms * kBlocksPerSm), 1)));
}

} // namespace

cudaError_t place_code_scales(const stream_of &s, const code_scale_rows &a) {
    return launch(s, place, grid_for(s, a.rows / 8 * code_blocks(a.width), kThreads), kThreads, 0,
                  a);
}

cudaError_t quantise_rows(const stream_of &s, const quantise_args &a) {
    const int columns = 2 * CODE_BLOCK * kWarps, across = (a.k + columns - 1) / columns;
    const int on_sm = a.place ? static_cast<int>(kPlacesBlocks) : kResidentThreads / kThreads,
              down = std::max(std::min(a.x_rows, s.sms * on_sm / across), 1);
    return launch(s, a.place ? quantise_to_places : quantise,
                  dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), kThreads, 0, a);
}

cudaError_t rows_to_fp16(const stream_of &s, const fp16_args &a) {
    const int blocks = std::max(std::min(a.rows, s.sms * kResidentThreads / kRowThreads), 1);
    return launch(s, convert_rows, dim3(static_cast<unsigned>(blocks)), kRowThreads, 0, a);
}

} // namespace device
