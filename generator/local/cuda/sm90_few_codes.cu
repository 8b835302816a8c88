/* gemm_few_codes: the products of sm90_few.cu with weights that are e4m3 codes. Memory is read at
 * one byte for each weight. The tensor cores multiply the codes, and the scale of a block
 * multiplies the FP32 sum of its products. No weight is rounded: a code becomes FP16, FP32 and then
 * BF16, all of which are exact. A sum is infinite if numbers of x are above 2^112 or so, even if
 * the scale is small.
 *
 * A tile is 16 rows of weights. A stage of the ring holds at most 1024 of their k, and their
 * scales. A warp multiplies units of 64 k, which lie inside one block of scales. Each lane loads 16
 * adjacent codes of a row, and 16 numbers of a row of x (few.cuh explains why the order of k is
 * free). The numbers of x are loaded one unit ahead. The row pitch is 64 bytes more than a multiple
 * of 128, so a quarter of a warp, which reads 64 bytes of each of two rows, has no bank
 * conflicts. */
#include <algorithm>
#include <cuda_fp16.h>

#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_few.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    kSlice = 1024,          /* numbers of k per stage */
    kTurn = kUnit * kWarps, /* numbers of k that the eight warps multiply at a time */
    kDeepest = 6,           /* most stages */
    kScaleBytes = kSlice / CODE_BLOCK * 8,
};
static_assert(kSlice % kTurn == 0 && kSlice % (2 * CODE_BLOCK) == 0 && CODE_BLOCK % kUnit == 0,
              "units and scales of a stage");

using barriers = shared_memory<kDeepest>;

struct params {
    gemm_args a;
    int stages, pitch, slice; /* pitch: bytes per row in shared memory; slice: numbers of k per
                                 stage */

    __host__ __device__ int stage_bytes() const {
        return kRows * pitch + kScaleBytes;
    }
};

__host__ __device__ inline int pitch_of(int slice) {
    return slice + (64 + 128 - slice % 128) % 128;
}

/* Loads one slice of a tile. @row: the lane's row of codes. */
__device__ __forceinline__ void load_slice(const params &p, uint8_t *stage, uint64_t *full,
                                           const uint8_t *row, const float *scale, int k,
                                           uint64_t once) {
    const int lane = threadIdx.x % 32, width = min(p.slice, p.a.k - k);
    const uint32_t bytes = static_cast<uint32_t>(width),
                   scales = static_cast<uint32_t>(code_pitch(width)) * 8;
    if (lane == 0)
        ptx::mbarrier_arrive_expect(full, kRows * bytes + scales);
    __syncwarp();
    if (lane < kRows)
        bulk_load_once(stage + lane * p.pitch, row + k, bytes, full, once);
    if (lane == 0)
        bulk_load_once(stage + kRows * p.pitch, scale + k / CODE_BLOCK * 2, scales, full, once);
}

__device__ __forceinline__ void load_codes(const params &p, barriers &s, uint8_t *ring) {
    const gemm_args &a = p.a;
    tiles_of_block<1> t(a);
    const int lane = threadIdx.x % 32;
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
        const int tile = index % t.cols, row = min(tile * kRows + lane, a.n - 1);
        const uint8_t *code = a.w_codes.code + (group * a.n + row) * a.k;
        const float *scale = a.w_codes.scale + group * scales + tile * pitch * 2;
        for (int pass = t.passes(index, static_cast<int>(group)); pass > 0; pass--)
            for (int k = 0; k < a.k; k += p.slice, step++) {
                const int stage = step % p.stages;
                ptx::mbarrier_wait(&s.empty[stage], (step / p.stages + 1) % 2);
                load_slice(p, ring + stage * p.stage_bytes(), &s.full[stage], code, scale, k, once);
            }
    }
}

__device__ __forceinline__ uint32_t bf16_of(uint32_t halves) {
    const float2 wide = __half22float2(*reinterpret_cast<const __half2 *>(&halves));
    return ptx::pack_bf16x2(wide.x, wide.y);
}

/* Four codes as two pairs of BF16 numbers. The first code is in the low byte. */
__device__ __forceinline__ uint2 widen(uint32_t codes) {
    uint2 halves;
    asm("{ .reg .b16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, low;\n"
        "cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(halves.x), "=r"(halves.y)
        : "r"(codes));
    return {bf16_of(halves.x), bf16_of(halves.y)};
}

__device__ __forceinline__ void read_x(uint4 (&x)[2], const bf16 *at, bool real) {
    x[0] = read_16(at, real);
    x[1] = read_16(at + 8, real);
}

/* Adds the product of 16 rows of weights and a unit of x. @top, @bottom: the lane's codes of two
 * rows; @scale: the scales of the rows 0 .. 7 and 8 .. 15. */
__device__ __forceinline__ void multiply_unit(float (&sum)[4], const uint4 (&numbers)[2],
                                              const uint4 &top, const uint4 &bottom,
                                              const float2 &scale) {
    const uint32_t upper[4] = {top.x, top.y, top.z, top.w},
                   lower[4] = {bottom.x, bottom.y, bottom.z, bottom.w};
    const uint32_t x[8] = {numbers[0].x, numbers[0].y, numbers[0].z, numbers[0].w,
                           numbers[1].x, numbers[1].y, numbers[1].z, numbers[1].w};
    const float zeros[4] = {};
    float part[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint2 u = widen(upper[i]), l = widen(lower[i]);
        const uint32_t w[4] = {u.x, l.x, u.y, l.y};
        if (i == 0)
            ptx::mma_bf16(part, w, x[0], x[1], zeros);
        else
            ptx::mma_bf16(part, w, x[2 * i], x[2 * i + 1], part);
    }
    sum[0] += part[0] * scale.x;
    sum[1] += part[1] * scale.x;
    sum[2] += part[2] * scale.y;
    sum[3] += part[3] * scale.y;
}

/* Multiplies the warp's units of a stage. @at: the lane's place in x, in the first unit; @ahead:
 * the numbers there, and then those of the unit after this stage; @rest: numbers of k from the
 * stage's first on. */
__device__ __forceinline__ void multiply_stage(float (&sum)[4], uint4 (&ahead)[2], const bf16 *at,
                                               int rest, const uint8_t *stage, int pitch) {
    const int g = threadIdx.x % 32 / 4, first = threadIdx.x / 32 * kUnit,
              own = first + threadIdx.x % 4 * 16;
    const auto *scales = reinterpret_cast<const float2 *>(stage + kRows * pitch);
#pragma unroll
    for (int turn = 0; turn < kSlice / kTurn; turn++) {
        /* Past the end of k, x is zero and any codes of the row will do. A NaN among them makes no
         * difference, because the row's result is NaN then. The end may lie inside a unit. A lane's
         * sums come from all four lanes of its rows, so the scale is that of the whole unit. */
        const int unit = first + turn * kTurn, col = own + turn * kTurn;
        const uint8_t *top = stage + g * pitch + (col < rest ? col : 0);
        const uint4 x[2] = {ahead[0], ahead[1]};
        read_x(ahead, at + (turn + 1) * kTurn, col + kTurn < rest);
        multiply_unit(sum, x, *reinterpret_cast<const uint4 *>(top),
                      *reinterpret_cast<const uint4 *>(top + 8 * pitch),
                      scales[unit < rest ? unit / CODE_BLOCK : 0]);
    }
}

/* Multiplies the block's tiles with up to eight tokens at a time. */
__device__ __forceinline__ void multiply_tiles(const params &p, barriers &s, const uint8_t *ring,
                                               float *scratch) {
    const gemm_args &a = p.a;
    tiles_of_block<1> t(a);
    const int own = threadIdx.x / 32 * kUnit + threadIdx.x % 4 * 16;
    int stage = 0, parity = 0;
    t.read_lists();
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        const int group = t.group(index);
        const token_rows tokens = tokens_of(a, group);
        for (int from = 0; from < tokens.count; from += kFewTokens) {
            float sum[1][4] = {};
            uint4 ahead[2];
            const bf16 *x = tokens.of(a, a.x, from + threadIdx.x % 32 / 4) + own;
            read_x(ahead, x, own < a.k);
            for (int k = 0; k < a.k; k += p.slice) {
                ptx::mbarrier_wait(&s.full[stage], parity);
                multiply_stage(sum[0], ahead, x + k, a.k - k, ring + stage * p.stage_bytes(),
                               p.pitch);
                __syncwarp();
                if (threadIdx.x % 32 == 0)
                    ptx::mbarrier_arrive(&s.empty[stage]);
                if (++stage == p.stages) {
                    stage = 0;
                    parity ^= 1;
                }
            }
            finish<1>(a, sum, scratch, {group, index % t.cols}, tokens.first + from,
                      min(tokens.count - from, static_cast<int>(kFewTokens)));
        }
    }
}

__global__ void __launch_bounds__(kThreads + kLoadThreads, 2)
    few_codes(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ barriers s;
    __shared__ float scratch[kWarps * kFewTokens * kPitch];
    s.prepare(p.stages);
    /* as in sm90_few.cu */
    if (!p.a.listed || p.a.experts.settled)
        let_next();
    if (threadIdx.x >= kThreads) {
        load_codes(p, s, ring);
        wait_previous();
    } else {
        wait_previous();
        let_next();
        multiply_tiles(p, s, ring, scratch);
    }
}

} // namespace

cudaError_t gemm_few_codes_init() {
    return cudaFuncSetAttribute(few_codes, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes);
}

/* Stages and blocks are chosen as in sm90_few.cu. */
cudaError_t gemm_few_codes(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    p.slice = std::min<int>(a.k, kSlice);
    p.pitch = pitch_of(p.slice);
    const int64_t tiles = static_cast<int64_t>((a.n + kRows - 1) / kRows) * a.groups;
    const int64_t blocks = std::min<int64_t>(tiles, kBlocksPerSm * s.sms);
    const int fitting = kRingBytes / p.stage_bytes(), slices = (a.k + p.slice - 1) / p.slice;
    p.stages = std::min<int>({fitting, kDeepest, tiles == blocks ? slices : kDeepest});
    return launch(s, few_codes, dim3(static_cast<unsigned>(blocks)), kThreads + kLoadThreads,
                  static_cast<size_t>(p.stages * p.stage_bytes()), p);
}

} // namespace device
