/* sm90_many_codes.cuh - what both kernels of products of many rows with e4m3 weights share: their
 * tensor maps, their ring of stages, and how two warpgroups compute the sums of a tile
 * (sm90_many_codes.cu). */
#pragma once
#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_many.cuh"

namespace device {
namespace {

enum {
    TILE_K = CODE_BLOCK,
    kScalesAtOnce = 4, /* scales of two blocks of k: TMA copies at least 16 bytes of a row */
    kMultiplyWarps = 8,
};

/* The ring of stages. Each holds a tile of x, with ROWS rows, a tile of w, with COLS rows, and its
 * scales: four numbers for each 16 rows of w. A ring has at most MOST stages. */
template <int ROWS, int COLS, int MOST = 12>
struct __align__(1024) shared_memory {
    enum {
        FITTING = ROWS + COLS > 320   ? 4
                  : ROWS + COLS > 256 ? 5
                                      : 1536 / (ROWS + COLS),
        STAGES = FITTING < MOST ? FITTING : MOST,
        SCALES = COLS / 16 * kScalesAtOnce,
        STAGE_BYTES = (ROWS + COLS) * TILE_K + SCALES * 4,
        SCALE_PITCH = SCALES < 32 ? 32 : SCALES, /* stages begin at multiples of 128 bytes */
    };
    uint8_t x[STAGES][ROWS * TILE_K];
    uint8_t w[STAGES][COLS * TILE_K];
    float scale[STAGES][SCALE_PITCH];
    uint64_t full[STAGES], empty[STAGES];

    /* Called by all threads of a block. @raw: dynamic shared memory of dynamic_bytes(). */
    static __device__ __forceinline__ shared_memory &prepare(uint8_t * raw) {
        auto &s = *reinterpret_cast<shared_memory *>((reinterpret_cast<uintptr_t>(raw) + 1023) /
                                                     1024 * 1024);
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                ptx::mbarrier_init(&s.full[i], 1);
                ptx::mbarrier_init(&s.empty[i], kMultiplyWarps);
            }
            ptx::mbarrier_init_fence();
        }
        __syncthreads();
        return s;
    }
    /* The start of dynamic shared memory need not be a multiple of 1024. */
    static constexpr int dynamic_bytes() {
        static_assert(sizeof(shared_memory) + 1024 <= 227 * 1024, "exceeds an SM's memory");
        return sizeof(shared_memory) + 1024;
    }
};

/* The numbers that a warpgroup computes of a tile: 64 rows, and PARTS times PART_COLS weights. A
 * thread has N of the numbers of a part. */
template <int ROWS, int COLS>
struct share {
    enum {
        OWN_COLS = ROWS == 64 ? COLS / 2 : COLS,
        PART_COLS = OWN_COLS < 128 ? OWN_COLS : 128,
        PARTS = OWN_COLS / PART_COLS,
        N = PART_COLS / 2,
    };
};

__device__ __forceinline__ void product(float (&sum)[64], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_e4m3_n128(sum, x, w, add);
}

__device__ __forceinline__ void product(float (&sum)[16], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_e4m3_n32(sum, x, w, add);
}

__device__ __forceinline__ void product(float (&sum)[32], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_e4m3_n64(sum, x, w, add);
}

/* The scales of two rows of x, for one block of k after another. The next ones are loaded ahead. */
struct row_scales {
    const float *upper, *lower;
    int64_t pitch;
    int left; /* blocks that were not loaded yet */
    float2 ahead;

    /* @row: of x's rows; @lower is eight rows further. Rows past the end are not stored, so they
     * take the scale of the last row. @from: the first block of k. */
    __device__ row_scales(const gemm_args &a, int row, int steps, int from = 0)
        : upper(a.x_codes.scale + from * a.x_rows + min(static_cast<int64_t>(row), a.x_rows - 1)),
          lower(a.x_codes.scale + from * a.x_rows +
                min(static_cast<int64_t>(row) + 8, a.x_rows - 1)),
          pitch(a.x_rows), left(steps) {
        load();
    }
    __device__ void load() {
        if (left-- <= 0)
            return;
        ahead = {__ldg(upper), __ldg(lower)};
        upper += pitch;
        lower += pitch;
    }
    __device__ float2 next() {
        const float2 now = ahead;
        load();
        return now;
    }
};

/* sum += part * the scales. @scale: those of each 16 columns, or, if uniform, of all columns. */
template <int N, int SCALES>
__device__ __forceinline__ void add_scaled(float (&sum)[N], const float (&part)[N],
                                           const float2 &row, const float2 (&scale)[SCALES]) {
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        const float2 &both = scale[j / 2 % SCALES];
        const float w = j % 2 ? both.y : both.x;
        const float upper = row.x * w, lower = row.y * w;
        sum[4 * j] += part[4 * j] * upper;
        sum[4 * j + 1] += part[4 * j + 1] * upper;
        sum[4 * j + 2] += part[4 * j + 2] * lower;
        sum[4 * j + 3] += part[4 * j + 3] * lower;
    }
}

/* Starts the products of 128 k. */
template <int N>
__device__ __forceinline__ void start(float (&part)[N], uint32_t x, uint32_t w) {
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILE_K / 32; i++)
        product(part, ptx::descriptor_128(x + 2 * i), ptx::descriptor_128(w + 2 * i), i > 0);
    ptx::wgmma_commit();
}

/* Loads the scales of a part, for one block of k. */
template <int SCALES>
__device__ __forceinline__ void load_scales(float2 (&scale)[SCALES], const float *from) {
#pragma unroll
    for (int j = 0; j < SCALES; j++)
        scale[j] = ptx::load_shared_v2(reinterpret_cast<const float2 *>(from + j * kScalesAtOnce));
}

/* Computes the sums of one tile. */
template <bool UNIFORM, int ROWS, int COLS, int MOST, int PARTS, int N>
__device__ __forceinline__ void multiply(float (&sum)[PARTS][N], shared_memory<ROWS, COLS, MOST> &s,
                                         row_scales rows, int steps, int &step, int half) {
    const int stages = s.STAGES, cols = half * own_cols<ROWS, COLS>();
    float part[N];
#pragma unroll
    for (int i = 0; i < PARTS * N; i++)
        sum[i / N][i % N] = 0;
    for (int k = 0; k < steps; k++, step++) {
        const int stage = step % stages;
        const float2 row = rows.next();
        ptx::mbarrier_wait(&s.full[stage], step / stages % 2);
        const uint32_t x =
            ptx::descriptor_low_128(ptx::smem_addr(s.x[stage] + half * (ROWS - 64) * TILE_K));
        const uint32_t w = ptx::descriptor_low_128(ptx::smem_addr(s.w[stage] + cols * TILE_K));
        const float *from = s.scale[stage] + cols / 16 * kScalesAtOnce + k % 2 * 2;
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            float2 scale[UNIFORM ? 1 : N / 8];
            start(part, x, w + i * 2 * N * TILE_K / 16);
            load_scales(scale, from + i * N / 8 * kScalesAtOnce);
            ptx::wgmma_wait<0>();
            ptx::pin(part);
            __syncwarp();
            if (i == PARTS - 1 && threadIdx.x % 32 == 0)
                ptx::mbarrier_arrive(&s.empty[stage]);
            add_scaled(sum[i], part, row, scale);
        }
    }
}

/* Stores a warpgroup's share of a tile. */
template <int ROWS, int COLS, int PARTS, int N>
__device__ __forceinline__ void store_tile(const gemm_args &a, const float (&sum)[PARTS][N],
                                           const tile &t, int row, int col) {
    const int64_t at = row * a.y_row + t.group * a.y_group;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        if (row < t.end)
            store_row(a, sum[i], 0, at, col + i * share<ROWS, COLS>::PART_COLS);
        if (row + 8 < t.end)
            store_row(a, sum[i], 2, at + 8 * a.y_row, col + i * share<ROWS, COLS>::PART_COLS);
    }
}

/* The tensor maps of a product. */
struct code_maps {
    CUtensorMap x, w, scale;
};

/* @rows, @cols: rows of x and of w that one load copies. */
inline cudaError_t make_maps(code_maps *m, const gemm_args &a, int rows, int cols) {
    cudaError_t e = map_codes(&m->x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, rows);
    if (e == cudaSuccess)
        e = map_codes(&m->w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, cols);
    return e == cudaSuccess ? map_floats(&m->scale, a.w_codes.scale, 2 * code_pitch(a.k),
                                         (a.n + 15) / 16, a.groups, kScalesAtOnce, cols / 16)
                            : e;
}

} // namespace
} // namespace device
