/* gemm_few_codes: the products of sm90_few.cu with weights that are e4m3 codes. One byte of memory
 * is read for each weight.
 *
 * The tensor cores multiply FP16 numbers. One instruction converts two codes to FP16, exactly. x is
 * FP16, too: rows_to_fp16() (codes.h) has multiplied each row by a power of two. The FP32 sum of a
 * unit of 64 k is multiplied by the scale of its block. At the end of a tile, the sums are
 * multiplied by the inverse of the row's power of two. The sum of a unit cannot overflow, because x
 * is below 2^15 and codes are at most 448.
 *
 * A tile is 16 rows of weights. A stage of the ring holds at most kSlice of their k, and their
 * scales. A warp multiplies units of 64 k, which lie inside one block of scales. Each lane loads 16
 * adjacent codes of a row, and 16 numbers of a row of x (few.cuh explains why the order of k is
 * free). The numbers of x are loaded one stage ahead. During the last stage of a tile, those of the
 * first stage are loaded again, because the next tile usually has the same rows of x. In shared
 * memory, the distance of rows is 64 bytes more than a multiple of 128. So a quarter of a warp,
 * which reads 64 bytes of each of two rows, has no bank conflicts. */
#include <algorithm>

#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_few.cuh"
#include "kernels/cuda/ptx/warp.cuh"

namespace device {
namespace {

enum {
    kSlice = 1024,          /* numbers of k per stage */
    kTurn = kUnit * kWarps, /* numbers of k that the eight warps multiply at a time */
    kDeepest = 6,           /* most stages */
    kRing = 105 * 1024,     /* bytes of shared memory for the stages */
    kScratch = kWarps * kFewTokens * kPitch, /* floats */
};
static_assert(kSlice % kTurn == 0 && kSlice % (2 * CODE_BLOCK) == 0 && CODE_BLOCK % kUnit == 0,
              "units and scales of a stage");

using barriers = shared_memory<kDeepest>;

struct params {
    gemm_args a;
    int stages, pitch, slice; /* pitch: bytes per row in shared memory; slice: numbers of k per
                                 stage */
    int stage_bytes;
};

__host__ __device__ constexpr int pitch_of(int slice) {
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
                load_slice(p, ring + stage * p.stage_bytes, &s.full[stage], code, scale, k, once);
            }
    }
}

/* Four codes as two pairs of FP16 numbers. The first code is in the low byte. */
__device__ __forceinline__ uint2 widen(uint32_t codes) {
    uint2 halves;
    asm("{ .reg .b16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, low;\n"
        "cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(halves.x), "=r"(halves.y)
        : "r"(codes));
    return halves;
}

__device__ __forceinline__ void read_x(uint4 (&x)[2], const __half *at, bool real) {
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
            ptx::mma_f16(part, w, x[0], x[1], zeros);
        else
            ptx::mma_f16(part, w, x[2 * i], x[2 * i + 1], part);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = fmaf(part[i], i < 2 ? scale.x : scale.y, sum[i]);
}

/* A lane's part of the products. Its numbers of x are those of one row, from @at on. */
struct lane_part {
    int lane, first, own; /* first: the first k of the warp's first unit; own: the lane's first k in
                             that unit */
    int k;                /* numbers of k of the product */
    const __half *at;

    __device__ explicit lane_part(int k)
        : lane(ptx::lane()), first(ptx::warp() * kUnit), own(first + lane % 4 * 16), k(k),
          at(nullptr) {
    }
    /* Reads the numbers of the unit that is @skipped numbers of k after the first one. */
    __device__ void read(uint4 (&x)[2], int skipped) const {
        read_x(x, at + skipped, own + skipped < k);
    }
};

/* Multiplies the warp's units of a stage. @x: the lane's numbers of x for these units, and after
 * the call those for the stage whose first k is @next; @k: the first k of this stage; @pitch: bytes
 * from row to row in shared memory; WHOLE: all kSlice numbers of k exist. */
template <bool WHOLE>
__device__ __forceinline__ void multiply_stage(float (&sum)[4], uint4 (&x)[kSlice / kTurn][2],
                                               const lane_part &l, int k, int next,
                                               const uint8_t *stage, int pitch) {
    const uint8_t *row = stage + l.lane / 4 * pitch;
    const auto *scales = reinterpret_cast<const float2 *>(stage + kRows * pitch);
#pragma unroll
    for (int turn = 0; turn < kSlice / kTurn; turn++) {
        /* Past the end of k, x is zero and any codes of the row will do. A NaN among them makes no
         * difference, because the row's result is NaN then. The end may lie inside a unit. A lane's
         * sums come from all four lanes of its rows, so the scale is that of the whole unit. */
        const int skipped = turn * kTurn;
        const bool real = WHOLE || l.own + k + skipped < l.k,
                   any = WHOLE || l.first + k + skipped < l.k;
        const uint8_t *top = row + (real ? l.own + skipped : 0);
        multiply_unit(sum, x[turn], *reinterpret_cast<const uint4 *>(top),
                      *reinterpret_cast<const uint4 *>(top + 8 * pitch),
                      scales[any ? (l.first + skipped) / CODE_BLOCK : 0]);
        l.read(x[turn], next + skipped);
    }
}

/* Multiplies the block's tiles with up to eight tokens at a time. */
__device__ __forceinline__ void multiply_tiles(const params &p, barriers &s, const uint8_t *ring,
                                               float *scratch) {
    const gemm_args &a = p.a;
    tiles_of_block<1> t(a);
    lane_part l(a.k);
    int stage = 0, parity = 0;
    uint4 x[kSlice / kTurn][2];
    t.read_lists();
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        const int group = t.group(index);
        const token_rows tokens = tokens_of(a, group);
        for (int from = 0; from < tokens.count; from += kFewTokens) {
            float sum[1][4] = {};
            const int column = from + l.lane % 4 * 2;
            const float inverse[2] = {a.x_fp16.inverse[tokens.index(column)],
                                      a.x_fp16.inverse[tokens.index(column + 1)]};
            const __half *row =
                a.x_fp16.x + static_cast<int64_t>(tokens.index(from + l.lane / 4)) * a.k + l.own;
            if (row != l.at) {
                l.at = row;
#pragma unroll
                for (int turn = 0; turn < kSlice / kTurn; turn++)
                    l.read(x[turn], turn * kTurn);
            }
            for (int k = 0; k < a.k; k += p.slice) {
                const uint8_t *at = ring + stage * p.stage_bytes;
                const int next = k + p.slice < a.k ? k + p.slice : 0;
                ptx::mbarrier_wait(&s.full[stage], parity);
                if (k + kSlice <= a.k)
                    multiply_stage<true>(sum[0], x, l, k, next, at, pitch_of(kSlice));
                else
                    multiply_stage<false>(sum[0], x, l, k, next, at, p.pitch);
                __syncwarp();
                if (l.lane == 0)
                    ptx::mbarrier_arrive(&s.empty[stage]);
                if (++stage == p.stages) {
                    stage = 0;
                    parity ^= 1;
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[0][i] *= inverse[i % 2];
            finish<1>(a, sum, scratch, {group, index % t.cols}, tokens.first + from,
                      min(tokens.count - from, static_cast<int>(kFewTokens)));
        }
    }
}

__global__ void __launch_bounds__(kThreads + kLoadThreads, kBlocksPerSm)
    few_codes(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ barriers s;
    __shared__ float scratch[kScratch];
    s.prepare(p.stages);
    /* The next kernel may read the expert lists before it waits: sm90_few.cu explains this
     * condition. */
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
    return cudaFuncSetAttribute(few_codes, cudaFuncAttributeMaxDynamicSharedMemorySize, kRing);
}

/* Stages and blocks are chosen as in sm90_few.cu. */
cudaError_t gemm_few_codes(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    p.slice = std::min<int>(a.k, kSlice);
    p.pitch = pitch_of(p.slice);
    p.stage_bytes = kRows * p.pitch + static_cast<int>(code_pitch(p.slice)) * 8;
    const int64_t tiles = static_cast<int64_t>((a.n + kRows - 1) / kRows) * a.groups;
    const int64_t blocks = std::min<int64_t>(tiles, kBlocksPerSm * s.sms);
    const int fitting = kRing / p.stage_bytes, slices = (a.k + p.slice - 1) / p.slice;
    p.stages = std::min<int>({fitting, kDeepest, tiles == blocks ? slices : kDeepest});
    return launch(s, few_codes, dim3(static_cast<unsigned>(blocks)), kThreads + kLoadThreads,
                  static_cast<size_t>(p.stages * p.stage_bytes), p);
}

} // namespace device
