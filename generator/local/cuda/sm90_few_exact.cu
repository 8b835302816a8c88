/* gemm_few_exact: products of few rows with e4m3 weights, like gemm_few_codes(), with fewer
 * instructions for each weight. The codes are multiplied as they are, and the scale of a block
 * multiplies the FP32 sum of its products. No weight is rounded, so the results are closer to the
 * exact ones than those of gemm_few_codes().
 *
 * A warp multiplies units of 64 k of a tile of ROWS weights. Each lane loads 16 adjacent codes of a
 * row, and 16 numbers of a row of x (few.cuh explains why the order of k is free). The numbers of x
 * are loaded one unit ahead. The row pitch is 64 bytes more than a multiple of 128, so a quarter of
 * a warp, which reads 64 bytes of each of two rows, has no bank conflicts.
 *
 * There are two kinds of operands:
 *   bf16   x as it is. A code becomes FP16, FP32 and then BF16, all of which are exact. A sum is
 *          infinite if numbers of x are above 2^112 or so, even if the scale is small
 *   f16    a code becomes FP16. x is multiplied by a power of two for each row and unit, so that
 *          the largest magnitude is between 2^14 and 2^15, and rounded to FP16. Only numbers below
 *          2^-31 of the largest one change, by at most 2^-39 of it */
#include <algorithm>
#include <cuda_fp16.h>

#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_few.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    kTurn = kUnit * kWarps, /* numbers of k that the eight warps multiply at a time */
    kDeepest = 6,           /* most stages */
    kNumbers = 16 * 1024,   /* most codes in a stage */
};

struct params {
    gemm_args a;
    int stages, pitch, slice; /* pitch: bytes per row in shared memory; slice: numbers of k per
                                 stage */
};

template <int ROWS>
__host__ __device__ constexpr int widest() {
    return kNumbers / ROWS;
}

/* Bytes of the scales of 16 rows in a stage. */
template <int ROWS>
__host__ __device__ constexpr int scale_bytes() {
    return widest<ROWS>() / CODE_BLOCK * 8;
}

template <int ROWS>
__host__ __device__ inline int stage_bytes(const params &p) {
    return ROWS * p.pitch + ROWS / 16 * scale_bytes<ROWS>();
}

__host__ __device__ inline int pitch_of(int slice) {
    return slice + (64 + 128 - slice % 128) % 128;
}

struct barriers {
    uint64_t full[kDeepest], empty[kDeepest];
};

/* The tiles of a block, of ROWS weights each. */
template <int ROWS>
struct tall_tiles : tiles_of_block<1> {
    __device__ explicit tall_tiles(const gemm_args &a) : tiles_of_block<1>(a) {
        cols = (a.n + ROWS - 1) / ROWS;
        all = cols * a.groups;
    }
};

/* Loads one slice of a tile. @row: the lane's row of codes. */
template <int ROWS>
__device__ __forceinline__ void load_slice(const params &p, uint8_t *stage, uint64_t *full,
                                           const uint8_t *row, const float *scale, int k,
                                           uint64_t once) {
    const int lane = threadIdx.x % 32, width = min(p.slice, p.a.k - k);
    const uint32_t bytes = static_cast<uint32_t>(width),
                   scales = static_cast<uint32_t>(code_pitch(width)) * 8;
    if (lane == 0)
        ptx::mbarrier_arrive_expect(full, ROWS * bytes + ROWS / 16 * scales);
    __syncwarp();
    if (lane < ROWS)
        bulk_load_once(stage + lane * p.pitch, row + k, bytes, full, once);
    if (lane < ROWS / 16)
        bulk_load_once(stage + ROWS * p.pitch + lane * scale_bytes<ROWS>(),
                       scale + k / CODE_BLOCK * 2, scales, full, once);
}

template <int ROWS>
__device__ __forceinline__ void load_codes(const params &p, barriers &s, uint8_t *ring) {
    const gemm_args &a = p.a;
    tall_tiles<ROWS> t(a);
    const int lane = threadIdx.x % 32, sixteens = (a.n + 15) / 16;
    const int64_t scales = code_scales(a.n, a.k), pitch = code_pitch(a.k);
    const uint64_t once = ptx::policy_evict_first();
    int step = 0;
    bool waited = false;
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        if (!t.is_known(index) && !waited) {
            if (!a.experts.settled)
                wait_previous();
            t.read_lists();
            waited = true;
            if (index >= t.all)
                break;
        }
        const int64_t group = t.group(index);
        const int tile = index % t.cols, row = min(tile * ROWS + lane, a.n - 1);
        const int sixteen = min(tile * (ROWS / 16) + lane % (ROWS / 16), sixteens - 1);
        const uint8_t *code = a.w_codes.code + (group * a.n + row) * a.k;
        const float *scale = a.w_codes.scale + group * scales + sixteen * pitch * 2;
        for (int pass = t.passes(index, static_cast<int>(group)); pass > 0; pass--)
            for (int k = 0; k < a.k; k += p.slice, step++) {
                const int stage = step % p.stages;
                ptx::mbarrier_wait(&s.empty[stage], (step / p.stages + 1) % 2);
                load_slice<ROWS>(p, ring + stage * stage_bytes<ROWS>(p), &s.full[stage], code,
                                 scale, k, once);
            }
    }
}

/* Four codes as two pairs of FP16 numbers. The first code is in the low byte. */
__device__ __forceinline__ uint2 four_halves(uint32_t codes) {
    uint2 halves;
    asm("{ .reg .b16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, low;\n"
        "cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(halves.x), "=r"(halves.y)
        : "r"(codes));
    return halves;
}

/* Numbers of x and codes as BF16. */
struct as_bf16 {
    uint32_t x[8];

    __device__ explicit as_bf16(const uint4 (&raw)[2])
        : x{raw[0].x, raw[0].y, raw[0].z, raw[0].w, raw[1].x, raw[1].y, raw[1].z, raw[1].w} {
    }
    static __device__ __forceinline__ uint32_t narrow(uint32_t halves) {
        const float2 wide = __half22float2(*reinterpret_cast<const __half2 *>(&halves));
        return ptx::pack_bf16x2(wide.x, wide.y);
    }
    static __device__ __forceinline__ uint2 widen(uint32_t codes) {
        const uint2 halves = four_halves(codes);
        return {narrow(halves.x), narrow(halves.y)};
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&w)[4],
                                                    uint32_t x0, uint32_t x1, const float (&c)[4]) {
        ptx::mma_bf16(sum, w, x0, x1, c);
    }
    /* What sums of the lane's two tokens must be multiplied by. */
    __device__ float2 back() const {
        return {1, 1};
    }
};

/* Numbers of x and codes as FP16. */
struct as_f16 {
    uint32_t x[8];
    float2 factors;

    __device__ explicit as_f16(const uint4 (&raw)[2]) {
        const as_bf16 all(raw);
        const uint32_t field = factor_field(all.x);
        const uint32_t factor_bits = field << 7 | field << 23;
        const __nv_bfloat162 factor = *reinterpret_cast<const __nv_bfloat162 *>(&factor_bits);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const __nv_bfloat162 pair =
                __hmul2(*reinterpret_cast<const __nv_bfloat162 *>(&all.x[i]), factor);
            x[i] = ptx::pack_f16x2(__low2float(pair), __high2float(pair));
        }
        /* Token i of the unit is in the lanes 4 i .. 4 i + 3. */
        const float inverse = __uint_as_float((254 - field) << 23);
        const int lane = threadIdx.x % 4 * 8;
        factors = {__shfl_sync(~0u, inverse, lane), __shfl_sync(~0u, inverse, lane + 4)};
    }
    /* The exponent field of the power of two that x is multiplied by. Four lanes share a row. */
    static __device__ __forceinline__ uint32_t factor_field(const uint32_t (&x)[8]) {
        __nv_bfloat162 most = __habs2(*reinterpret_cast<const __nv_bfloat162 *>(&x[0]));
#pragma unroll
        for (int i = 1; i < 8; i++)
            most = __hmax2(most, __habs2(*reinterpret_cast<const __nv_bfloat162 *>(&x[i])));
        const uint32_t both = *reinterpret_cast<const uint32_t *>(&most);
        uint32_t largest = max(both & 0xffff, both >> 16);
        largest = max(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = max(largest, __shfl_xor_sync(~0u, largest, 2));
        /* An exponent field e means a magnitude below 2^(e - 126). */
        return min(268 - (largest >> 7 & 0xff), 253u);
    }
    static __device__ __forceinline__ uint2 widen(uint32_t codes) {
        return four_halves(codes);
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&w)[4],
                                                    uint32_t x0, uint32_t x1, const float (&c)[4]) {
        ptx::mma_f16(sum, w, x0, x1, c);
    }
    __device__ float2 back() const {
        return factors;
    }
};

__device__ __forceinline__ void read_x(uint4 (&x)[2], const bf16 *at, bool real) {
    x[0] = read_16(at, real);
    x[1] = read_16(at + 8, real);
}

/* The product of 16 rows of weights and a unit of x. */
template <typename X>
__device__ __forceinline__ void multiply_unit(float (&sum)[4], const X &x, const uint4 &top,
                                              const uint4 &bottom, const float2 &scale) {
    const uint32_t upper[4] = {top.x, top.y, top.z, top.w},
                   lower[4] = {bottom.x, bottom.y, bottom.z, bottom.w};
    const float zeros[4] = {};
    float part[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint2 u = X::widen(upper[i]), l = X::widen(lower[i]);
        const uint32_t w[4] = {u.x, l.x, u.y, l.y};
        if (i == 0)
            X::multiply(part, w, x.x[0], x.x[1], zeros);
        else
            X::multiply(part, w, x.x[2 * i], x.x[2 * i + 1], part);
    }
    const float2 back = x.back();
    sum[0] += part[0] * (scale.x * back.x);
    sum[1] += part[1] * (scale.x * back.y);
    sum[2] += part[2] * (scale.y * back.x);
    sum[3] += part[3] * (scale.y * back.y);
}

/* Multiplies the warp's units of a stage. @at: the lane's place in x, in the first unit; @ahead:
 * the numbers there, and then those of the unit after this stage; @rest: numbers of k from the
 * stage's first on. */
template <int ROWS, typename X, int BLOCKS>
__device__ __forceinline__ void multiply_stage(float (&sum)[ROWS / 16][4], uint4 (&ahead)[2],
                                               const bf16 *at, int rest, const uint8_t *stage,
                                               int pitch) {
    const int g = threadIdx.x % 32 / 4, own = threadIdx.x / 32 * kUnit + threadIdx.x % 4 * 16,
              left = rest - own;
#pragma unroll(BLOCKS == 2 ? 2 : 1) /* with three blocks, registers are few */
    for (int turn = 0; turn < widest<ROWS>() / kTurn; turn++) {
        if (BLOCKS > 2 && turn > 0 && turn * kTurn >= rest)
            break;
        /* Past the end of k, x is zero and any codes of the row will do. A NaN among them makes no
         * difference, because the row's result is NaN then. */
        const int col = turn * kTurn < left ? own + turn * kTurn : 0;
        const X x(ahead);
        read_x(ahead, at + (turn + 1) * kTurn, (turn + 1) * kTurn < left);
#pragma unroll
        for (int h = 0; h < ROWS / 16; h++) {
            const uint8_t *top = stage + (h * 16 + g) * pitch + col;
            const auto *scales =
                reinterpret_cast<const float2 *>(stage + ROWS * pitch + h * scale_bytes<ROWS>());
            multiply_unit(sum[h], x, *reinterpret_cast<const uint4 *>(top),
                          *reinterpret_cast<const uint4 *>(top + 8 * pitch),
                          scales[col / CODE_BLOCK]);
        }
    }
}

/* Multiplies the block's tiles with up to eight tokens at a time. */
template <int ROWS, typename X, int BLOCKS>
__device__ __forceinline__ void multiply_tiles(const params &p, barriers &s, const uint8_t *ring,
                                               float *scratch) {
    const gemm_args &a = p.a;
    tall_tiles<ROWS> t(a);
    const int own = threadIdx.x / 32 * kUnit + threadIdx.x % 4 * 16, sixteens = (a.n + 15) / 16;
    int stage = 0, parity = 0;
    t.read_lists();
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        const int group = t.group(index), first = index % t.cols * (ROWS / 16);
        const token_rows tokens = tokens_of(a, group);
        for (int from = 0; from < tokens.count; from += kFewTokens) {
            float sum[ROWS / 16][4] = {};
            uint4 ahead[2];
            const bf16 *x = tokens.of(a, a.x, from + threadIdx.x % 32 / 4) + own;
            read_x(ahead, x, own < a.k);
            for (int k = 0; k < a.k; k += p.slice) {
                ptx::mbarrier_wait(&s.full[stage], parity);
                multiply_stage<ROWS, X, BLOCKS>(sum, ahead, x + k, a.k - k,
                                                ring + stage * stage_bytes<ROWS>(p), p.pitch);
                __syncwarp();
                if (threadIdx.x % 32 == 0)
                    ptx::mbarrier_arrive(&s.empty[stage]);
                if (++stage == p.stages) {
                    stage = 0;
                    parity ^= 1;
                }
            }
#pragma unroll
            for (int h = 0; h < ROWS / 16; h++) {
                const float all[1][4] = {{sum[h][0], sum[h][1], sum[h][2], sum[h][3]}};
                if (first + h < sixteens)
                    finish<1>(a, all, scratch, {group, first + h}, tokens.first + from,
                              min(tokens.count - from, static_cast<int>(kFewTokens)));
            }
        }
    }
}

template <int ROWS, typename X, int BLOCKS>
__global__ void __launch_bounds__(kThreads + kLoadThreads, BLOCKS)
    few_exact(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ barriers s;
    __shared__ float scratch[kWarps * kFewTokens * kPitch];
    if (threadIdx.x == 0) {
        for (int i = 0; i < p.stages; i++) {
            ptx::mbarrier_init(&s.full[i], 1);
            ptx::mbarrier_init(&s.empty[i], kWarps);
        }
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    /* as in sm90_few.cu */
    if (!p.a.listed || p.a.experts.settled)
        let_next();
    if (threadIdx.x >= kThreads) {
        load_codes<ROWS>(p, s, ring);
        wait_previous();
    } else {
        wait_previous();
        let_next();
        multiply_tiles<ROWS, X, BLOCKS>(p, s, ring, scratch);
    }
}

/* Bytes of a ring, if BLOCKS blocks share an SM. */
template <int BLOCKS>
constexpr int ring_bytes() {
    return BLOCKS == 2 ? kRingBytes : 69 * 1024;
}

template <int ROWS, typename X, int BLOCKS>
cudaError_t allow_memory() {
    static_assert(widest<ROWS>() % kTurn == 0 && widest<ROWS>() % (2 * CODE_BLOCK) == 0,
                  "units and scales of a stage");
    return cudaFuncSetAttribute(few_exact<ROWS, X, BLOCKS>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, ring_bytes<BLOCKS>());
}

/* Blocks with a single tile get only the stages that they need, as in sm90_few.cu. */
template <int ROWS, typename X, int BLOCKS>
cudaError_t launch_ring(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    p.slice = std::min<int>(a.k, widest<ROWS>());
    p.pitch = pitch_of(p.slice);
    const int64_t tiles = static_cast<int64_t>((a.n + ROWS - 1) / ROWS) * a.groups;
    const int64_t blocks = std::min<int64_t>(tiles, BLOCKS * s.sms);
    const int fitting = ring_bytes<BLOCKS>() / stage_bytes<ROWS>(p),
              slices = (a.k + p.slice - 1) / p.slice;
    p.stages = std::min<int>({fitting, kDeepest, tiles == blocks ? slices : kDeepest});
    return launch(s, few_exact<ROWS, X, BLOCKS>, dim3(static_cast<unsigned>(blocks)),
                  kThreads + kLoadThreads, static_cast<size_t>(p.stages * stage_bytes<ROWS>(p)), p);
}

} // namespace

cudaError_t gemm_few_exact_init() {
    cudaError_t e = allow_memory<16, as_bf16, 2>();
    if (e == cudaSuccess)
        e = allow_memory<32, as_bf16, 2>();
    if (e == cudaSuccess)
        e = allow_memory<16, as_bf16, 3>();
    return e == cudaSuccess ? allow_memory<32, as_f16, 2>() : e;
}

cudaError_t gemm_few_exact(const stream_of &s, const gemm_args &a, few_variant variant) {
    switch (variant) {
    case few_bf16_16:
        return launch_ring<16, as_bf16, 2>(s, a);
    case few_bf16_32:
        return launch_ring<32, as_bf16, 2>(s, a);
    case few_bf16_16_dense:
        return launch_ring<16, as_bf16, 3>(s, a);
    case few_f16_32:
        return launch_ring<32, as_f16, 2>(s, a);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace device
