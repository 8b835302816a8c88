/* gemm_few_codes: the products of sm90_few.cu with weights that are e4m3 codes. A thread turns
 * codes into BF16 weights in registers, so memory is read at one byte for each weight.
 *
 * A stage of the ring holds at most 2048 k of 16 rows, and their scales. Everything else is as in
 * sm90_few.cu, also the order of the sums: so the results are those of gemm_few() with BF16
 * weights, bit for bit. The row pitch is 32 bytes more than a multiple of 128, so half a warp,
 * which reads 32 bytes of each of four rows, has no bank conflicts. */
#include <algorithm>
#include <cuda_fp16.h>

#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_few.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    kSlice = 2048, /* numbers of k per stage */
    kScaleBytes = kSlice / CODE_BLOCK * 8,
};

struct params {
    gemm_args a;
    int stages, pitch, slice; /* pitch: bytes per row in shared memory; slice: numbers of k per
                                 stage */

    __host__ __device__ int stage_bytes() const {
        return kRows * pitch + kScaleBytes;
    }
};

__host__ __device__ inline int pitch_of(int slice) {
    return slice + (32 + 128 - slice % 128) % 128;
}

__device__ __forceinline__ void load_codes(const params &p, shared_memory &s, uint8_t *ring) {
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
                const int stage = step % p.stages, width = min(p.slice, a.k - k);
                const uint32_t bytes = static_cast<uint32_t>(width),
                               scale_bytes = static_cast<uint32_t>(code_pitch(width)) * 8;
                uint8_t *to = ring + stage * p.stage_bytes();
                ptx::mbarrier_wait(&s.empty[stage], (step / p.stages + 1) % 2);
                if (lane == 0)
                    ptx::mbarrier_arrive_expect(&s.full[stage], kRows * bytes + scale_bytes);
                __syncwarp();
                if (lane < kRows)
                    bulk_load_once(to + lane * p.pitch, code + k, bytes, &s.full[stage], once);
                if (lane == kRows)
                    bulk_load_once(to + kRows * p.pitch, scale + k / CODE_BLOCK * 2, scale_bytes,
                                   &s.full[stage], once);
            }
    }
}

__device__ __forceinline__ uint2 read_8(const void *at, bool real) {
    const uint2 zero = {0, 0};
    return real ? *static_cast<const uint2 *>(at) : zero;
}

/* Two codes, the first in the low byte, as scaled_to_bf16() (scaled.h) converts them. */
__device__ __forceinline__ uint32_t widen_two(uint32_t codes, float scale) {
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(codes)));
    const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&halves));
    return ptx::pack_bf16x2(__fmul_rn(x.x, scale), __fmul_rn(x.y, scale));
}

__device__ __forceinline__ uint4 widen(const uint2 &codes, float scale) {
    return {widen_two(codes.x, scale), widen_two(codes.x >> 16, scale), widen_two(codes.y, scale),
            widen_two(codes.y >> 16, scale)};
}

/* Multiplies a warp's part of a stage, as in sm90_few.cu. @row: the token of this thread. */
__device__ __forceinline__ void multiply_stage(float (&sum)[2][4], const bf16 *row,
                                               const uint8_t *stage, uint64_t *full, int parity,
                                               int pitch, int k, int width) {
    const int g = threadIdx.x % 32 / 4, lines = (width + kUnit - 1) / kUnit,
              halves = (lines + kWarps - 1) / kWarps * 2;
    const uint8_t *top = stage + g * pitch, *bottom = top + 8 * pitch;
    const auto *scales = reinterpret_cast<const float2 *>(stage + kRows * pitch);
    const bf16 *const rows[1] = {row};
#pragma unroll 1
    for (int from = 0; from < halves; from += kAtOnce<1>) {
        uint4 x[kAtOnce<1>][1];
        uint2 c0[kAtOnce<1>], c1[kAtOnce<1>];
        float2 scale[kAtOnce<1>];
        read_tokens<1>(x, rows, 1, from, k, width);
        if (from == 0)
            ptx::mbarrier_wait(full, parity);
#pragma unroll
        for (int i = 0; i < kAtOnce<1>; i++) {
            const int col = half_at(from + i);
            const bool real = col < width;
            c0[i] = read_8(top + col, real);
            c1[i] = read_8(bottom + col, real);
            scale[i] = real ? scales[col / CODE_BLOCK] : float2{};
        }
#pragma unroll
        for (int i = 0; i < kAtOnce<1>; i++)
            multiply_half(sum[i % 2], widen(c0[i], scale[i].x), widen(c1[i], scale[i].y), x[i][0]);
    }
}

/* Multiplies the block's tiles with up to eight tokens at a time. */
__device__ __forceinline__ void multiply_tiles(const params &p, shared_memory &s,
                                               const uint8_t *ring, float *scratch) {
    const gemm_args &a = p.a;
    tiles_of_block<1> t(a);
    int step = 0;
    t.read_lists();
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        const int group = t.group(index);
        const token_rows tokens = tokens_of(a, group);
        for (int from = 0; from < tokens.count; from += kFewTokens) {
            float sum[2][4] = {};
            const bf16 *row = tokens.of(a, a.x, from + threadIdx.x % 32 / 4);
            for (int k = 0; k < a.k; k += p.slice, step++) {
                const int stage = step % p.stages;
                multiply_stage(sum, row, ring + stage * p.stage_bytes(), &s.full[stage],
                               step / p.stages % 2, p.pitch, k, min(p.slice, a.k - k));
                __syncwarp();
                if (threadIdx.x % 32 == 0)
                    ptx::mbarrier_arrive(&s.empty[stage]);
            }
            const float all[1][4] = {{sum[0][0] + sum[1][0], sum[0][1] + sum[1][1],
                                      sum[0][2] + sum[1][2], sum[0][3] + sum[1][3]}};
            finish<1>(a, all, scratch, {group, index % t.cols}, tokens.first + from,
                      min(tokens.count - from, static_cast<int>(kFewTokens)));
        }
    }
}

__global__ void __launch_bounds__(kThreads + kLoadThreads, 2)
    few_codes(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ shared_memory s;
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
    p.stages = std::min<int>({fitting, kMostStages, tiles == blocks ? slices : kMostStages});
    return launch(s, few_codes, dim3(static_cast<unsigned>(blocks)), kThreads + kLoadThreads,
                  static_cast<size_t>(p.stages * p.stage_bytes()), p);
}

} // namespace device
