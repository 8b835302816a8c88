/* gemm_many: tiles of 128 rows by 256 weights on Hopper's tensor cores.
 *
 * A persistent block has a warpgroup that loads and two that multiply, 64 rows by 256 each:
 *   loads      tiles of 64 k through the copy engine, four deep; runs ahead over the ends of tiles
 *   products   m64n256k16, one group of four in flight
 * Registers: 24 + 2 x 240 of 504. Shared memory: 4 x (16 384 + 32 768) and the barriers. */
#include <algorithm>
#include <cuda.h>

#include "generator/local/cuda/gemm.h"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/ptx/wgmma_n256.cuh"

namespace device {
namespace {

enum {
    TILE_ROWS = 128,
    TILE_COLS = 256,
    TILE_K = 64,
    kStages = 4,
    kThreads = 384,
    kBand = 8,             /* tiles of rows that are worked on beside each other, for L2 */
    kEntryRegisters = 168, /* what 384 threads start with */
    kLoadRegisters = 24,
    kMultiplyRegisters = 240,
    kStageBytes = (TILE_ROWS + TILE_COLS) * TILE_K * 2,
};

struct __align__(1024) shared_memory {
    bf16 x[kStages][TILE_ROWS * TILE_K];
    bf16 w[kStages][TILE_COLS * TILE_K];
    uint64_t full[kStages], empty[kStages];
};

struct params {
    CUtensorMap x, w;
    gemm_args a;
};

struct tile {
    int group, first, row, end, col; /* rows first + row .. end - 1 of x and y, weights col .. */
};

/* All tiles in order; each role of a block walks them on its own. */
struct walk {
    const gemm_args &a;
    int cols, group, base, first, count;

    __device__ explicit walk(const gemm_args &a)
        : a(a), cols((a.n + TILE_COLS - 1) / TILE_COLS), group(-1), base(0), first(0), count(0) {
    }

    __device__ int tiles() const {
        return (count + TILE_ROWS - 1) / TILE_ROWS * cols;
    }

    __device__ bool next_group() {
        base += tiles();
        if (++group >= a.groups)
            return false;
        first = a.listed ? a.experts.first[group] : 0;
        count = a.listed ? a.experts.first[group + 1] - first : a.rows;
        return true;
    }

    /* Tile number @index; numbers only grow. */
    __device__ bool find(int index, tile &t) {
        while (index >= base + tiles())
            if (!next_group())
                return false;
        const int rows = (count + TILE_ROWS - 1) / TILE_ROWS, band = index - base;
        const int from = band / (kBand * cols) * kBand, within = band % (kBand * cols);
        const int high = min(static_cast<int>(kBand), rows - from);
        t.group = group;
        t.first = first;
        t.row = (from + within % high) * TILE_ROWS;
        t.end = first + count;
        t.col = within / high * TILE_COLS;
        return true;
    }
};

__device__ __forceinline__ void load_tiles(const params &p, shared_memory &s) {
    walk w(p.a);
    tile t;
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        for (int k = 0; k < steps; k++, step++) {
            const int stage = step % kStages;
            ptx::mbarrier_wait(&s.empty[stage], (step / kStages + 1) % 2);
            ptx::mbarrier_arrive_expect(&s.full[stage], kStageBytes);
            ptx::tma_load_2d(s.x[stage], &p.x, &s.full[stage], k * TILE_K, t.first + t.row);
            ptx::tma_load_3d(s.w[stage], &p.w, &s.full[stage], k * TILE_K, t.col, t.group);
        }
    }
}

/* One tile's sums. */
__device__ __forceinline__ void multiply(float (&sum)[128], shared_memory &s, int steps, int &step,
                                         int half) {
    for (int k = 0; k < steps; k++, step++) {
        const int stage = step % kStages;
        ptx::mbarrier_wait(&s.full[stage], step / kStages % 2);
        const uint32_t x = ptx::descriptor_low_128(ptx::smem_addr(s.x[stage] + half * 64 * TILE_K));
        const uint32_t w = ptx::descriptor_low_128(ptx::smem_addr(s.w[stage]));
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < TILE_K / 16; i++)
            ptx::wgmma_ss_bf16_n256(sum, ptx::descriptor_128(x + 2 * i),
                                    ptx::descriptor_128(w + 2 * i), k > 0 || i > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
        if (k > 0 && threadIdx.x % 128 == 0)
            ptx::mbarrier_arrive(&s.empty[(step + kStages - 1) % kStages]);
    }
    ptx::wgmma_wait<0>();
    ptx::pin(sum);
    if (threadIdx.x % 128 == 0)
        ptx::mbarrier_arrive(&s.empty[(step + kStages - 1) % kStages]);
}

__device__ __forceinline__ float silu(float x) {
    return x / (1.0f + __expf(-x));
}

__device__ __forceinline__ void store_two(const gemm_args &a, int64_t row, int col, float x,
                                          float y) {
    if (a.end == ends_bf16) {
        *reinterpret_cast<__nv_bfloat162 *>(static_cast<bf16 *>(a.y) + row * a.y_row + col) =
            __floats2bfloat162_rn(x, y);
        return;
    }
    float2 *to = reinterpret_cast<float2 *>(static_cast<float *>(a.y) + row * a.y_row + col);
    if (a.end == ends_f32) {
        *to = make_float2(x, y);
        return;
    }
    const float2 old = *to;
    *to = make_float2(old.x + a.factor * x, old.y + a.factor * y);
}

/* A thread's numbers of one row: columns 8 j + 2 t and the next. */
__device__ __forceinline__ void store_row(const gemm_args &a, const float (&sum)[128], int lower,
                                          int64_t row, int col) {
    const int t = threadIdx.x % 4;
    if (a.end == ends_gate) {
#pragma unroll
        for (int j = 0; j < 32; j += 2) {
            const float *gate = sum + 4 * j + lower, *up = gate + 4;
            if (col + 8 * j < a.n)
                *reinterpret_cast<__nv_bfloat162 *>(static_cast<bf16 *>(a.y) + row * a.y_row +
                                                    (col + 8 * j) / 2 + 2 * t) =
                    __floats2bfloat162_rn(silu(gate[0]) * up[0], silu(gate[1]) * up[1]);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < 32; j++)
        if (col + 8 * j + 2 * t < a.n)
            store_two(a, row, col + 8 * j + 2 * t, sum[4 * j + lower], sum[4 * j + lower + 1]);
}

__device__ __forceinline__ void multiply_tiles(const params &p, shared_memory &s) {
    walk w(p.a);
    tile t;
    const int half = threadIdx.x / 128 - 1, lane = threadIdx.x % 128;
    const int own = half * 64 + lane / 32 * 16 + lane % 32 / 4;
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    float sum[128];
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        multiply(sum, s, steps, step, half);
        const int row = t.first + t.row + own;
        if (row < t.end)
            store_row(p.a, sum, 0, row, t.col);
        if (row + 8 < t.end)
            store_row(p.a, sum, 2, row + 8, t.col);
    }
}

__global__ void __launch_bounds__(kThreads, 1) many(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s =
        *reinterpret_cast<shared_memory *>((reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; i++) {
            ptx::mbarrier_init(&s.full[i], 1);
            ptx::mbarrier_init(&s.empty[i], 2);
        }
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    let_next();
    wait_previous();
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x == 0)
            load_tiles(p, s);
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        multiply_tiles(p, s);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

using encode_fn = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                               const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                               const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
encode_fn encode;

cudaError_t make_map(CUtensorMap *map, const void *at, cuuint32_t rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    const cuuint32_t ones[3] = {1, 1, 1};
    if (!encode)
        return cudaErrorInitializationError;
    const CUresult r =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank, const_cast<void *>(at), dims, strides,
               box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t make_maps(params *p) {
    const gemm_args &a = p->a;
    const cuuint64_t k = static_cast<cuuint64_t>(a.k);
    const cuuint64_t x[] = {k, static_cast<cuuint64_t>(a.x_rows)};
    const cuuint64_t x_stride[] = {static_cast<cuuint64_t>(a.x_row) * 2};
    const cuuint32_t x_box[] = {TILE_K, TILE_ROWS};
    const cuuint64_t w[] = {k, static_cast<cuuint64_t>(a.n), static_cast<cuuint64_t>(a.groups)};
    const cuuint64_t group = static_cast<cuuint64_t>(a.groups > 1 ? a.w_group : a.n * k);
    const cuuint64_t w_stride[] = {k * 2, group * 2};
    const cuuint32_t w_box[] = {TILE_K, TILE_COLS, 1};
    const cudaError_t e = make_map(&p->x, a.x, 2, x, x_stride, x_box);
    return e == cudaSuccess ? make_map(&p->w, a.w, 3, w, w_stride, w_box) : e;
}

} // namespace

cudaError_t gemm_many_init() {
    void *fn = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                                     cudaEnableDefault, &found);
    if (e != cudaSuccess)
        return e;
    if (found != cudaDriverEntryPointSuccess)
        return cudaErrorNotSupported;
    encode = reinterpret_cast<encode_fn>(fn);
    return cudaFuncSetAttribute(many, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(shared_memory) + 1024);
}

cudaError_t gemm_many(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    const cudaError_t e = make_maps(&p);
    if (e != cudaSuccess)
        return e;
    const int64_t rows = (a.rows + TILE_ROWS - 1) / TILE_ROWS,
                  cols = (a.n + TILE_COLS - 1) / TILE_COLS;
    const int64_t most = a.listed ? s.sms : rows * cols;
    return launch(s, many, dim3(static_cast<unsigned>(std::min<int64_t>(most, s.sms))), kThreads,
                  sizeof(shared_memory) + 1024, p);
}

} // namespace device
