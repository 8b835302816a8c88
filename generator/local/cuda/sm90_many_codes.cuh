/* sm90_many_codes.cuh - what both kernels of products of many rows with e4m3 weights share: their
 * tensor maps, their ring of stages, and how two warpgroups compute the sums of a tile
 * (sm90_many_codes.cu). */
#pragma once
#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_store.cuh"

namespace device {
namespace {

enum {
    TILE_K = CODE_BLOCK,
    kScalesAtOnce = 4, /* scales of two blocks of k: TMA copies at least 16 bytes of a row */
    kScalesAhead = 4,  /* TMA begins at a multiple of 16 bytes, so it copies up to three scales of
                          rows before the tile. The others are after it */
    kMultiplyWarps = 8,
};

/* The ring of stages. Each holds a tile of x, with ROWS rows, a tile of w, with COLS rows, and their
 * scales: one number for each row of x, and four for each 16 rows of w. */
template <int ROWS, int COLS>
struct __align__(1024) shared_memory {
    enum {
        STAGES = ROWS + COLS > 320   ? 4
                 : ROWS + COLS > 256 ? 5
                                     : 1536 / (ROWS + COLS),
        SCALES = COLS / 16 * kScalesAtOnce,
        ROW_BYTES = TILE_K + 4, /* of x: the codes and the scale */
        STAGE_BYTES = ROWS * ROW_BYTES + kScalesAhead * 4 + COLS * TILE_K + SCALES * 4,
        SCALE_PITCH = SCALES < 32 ? 32 : SCALES, /* stages begin at multiples of 128 bytes */
    };
    uint8_t x[STAGES][ROWS * TILE_K];
    uint8_t w[STAGES][COLS * TILE_K];
    float row_scale[STAGES][ROWS + 32];
    float scale[STAGES][SCALE_PITCH];
    row_buffer rows[kMultiplyWarps];
    uint64_t full[STAGES], empty[STAGES];

    /* Called by all threads of a block. @raw: dynamic shared memory of dynamic_bytes(). The shuffle
     * hides from the compiler how the address is computed. Otherwise it computes it again in each
     * step, before the first product. */
    static __device__ __forceinline__ shared_memory &prepare(uint8_t * raw) {
        const uintptr_t at = (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024;
        auto &s = *reinterpret_cast<shared_memory *>(__shfl_sync(~0u, at, 0));
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

/* A place in a ring, and the parity of the phase that is next there. */
template <int STAGES>
struct ring_place {
    int stage = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* The next stage that a warp multiplies. Whether it has been loaded is tested ahead, while products
 * of the stage before run. */
template <int ROWS, int COLS>
struct next_stage {
    shared_memory<ROWS, COLS> &s;
    ring_place<shared_memory<ROWS, COLS>::STAGES> at;
    bool loaded = false;

    __device__ explicit next_stage(shared_memory<ROWS, COLS> &s) : s(s) {
    }
    /* Waits until it has been loaded, and returns its number. */
    __device__ __forceinline__ int wait() const {
        if (!loaded)
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
        return at.stage;
    }
    __device__ __forceinline__ void advance() {
        at.advance();
        loaded = ptx::mbarrier_test(&s.full[at.stage], at.parity);
    }
};

/* Lets the loading thread fill a stage again. Called by all lanes of a warp. */
__device__ __forceinline__ void release(uint64_t *empty) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        ptx::mbarrier_arrive(empty);
}

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

/* The scales of a thread's two rows. They are read while the products of the stage run. */
__device__ __forceinline__ float2 load_row_scales(const float *scale) {
    return make_float2(ptx::load_shared(scale), ptx::load_shared(scale + 8));
}

/* Computes the sums of one tile. @row: place of the upper one of the thread's two rows in the scales
 * of a stage. */
template <bool UNIFORM, int ROWS, int COLS, int PARTS, int N>
__device__ __forceinline__ void multiply(float (&sum)[PARTS][N], next_stage<ROWS, COLS> &next,
                                         int steps, int half, int row) {
    auto &s = next.s;
    const int cols = half * own_cols<ROWS, COLS>();
    const uint32_t first_x = ptx::descriptor_low_128(
                       ptx::smem_addr(s.x[0] + half * (ROWS - 64) * TILE_K)),
                   first_w = ptx::descriptor_low_128(ptx::smem_addr(s.w[0] + cols * TILE_K));
    float part[N];
#pragma unroll
    for (int i = 0; i < PARTS * N; i++)
        sum[i / N][i % N] = 0;
    for (int k = 0; k < steps; k++) {
        const int stage = next.wait();
        const uint32_t x = first_x + stage * (ROWS * TILE_K / 16),
                       w = first_w + stage * (COLS * TILE_K / 16);
        const float *from = s.scale[stage] + cols / 16 * kScalesAtOnce + k % 2 * 2;
        float2 row_scale;
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            float2 scale[UNIFORM ? 1 : N / 8];
            start(part, x, w + i * 2 * N * TILE_K / 16);
            if (i == 0)
                row_scale = load_row_scales(s.row_scale[stage] + row);
            load_scales(scale, from + i * N / 8 * kScalesAtOnce);
            if (i == PARTS - 1)
                next.advance();
            ptx::wgmma_wait<0>();
            ptx::pin(part);
            if (i == PARTS - 1)
                release(&s.empty[stage]);
            add_scaled(sum[i], part, row_scale, scale);
        }
    }
}

/* Frees the stages of a tile whose rows do not concern this warp. */
template <int ROWS, int COLS>
__device__ __forceinline__ void pass_by(next_stage<ROWS, COLS> &next, int steps) {
    for (int k = 0; k < steps; k++) {
        const int stage = next.wait();
        next.advance();
        release(&next.s.empty[stage]);
    }
}

/* Stores a warp's share of a tile. @row: its first row in the tile; @col: its first column in y's
 * product. */
template <int PARTS, int N>
__device__ __forceinline__ void store_tile(const gemm_args &a, const float (&sum)[PARTS][N],
                                           const tile &t, int row, int col, row_buffer &b) {
    const int first = t.first + t.row + row, per_result = a.end == ends_gate ? 2 : 1;
    const int64_t at = first * a.y_row + t.group * a.y_group + col / per_result;
    store_warp(a, sum, {at, t.end - first, (a.n - col) / per_result}, b);
}

/* The tensor maps of a product. */
struct code_maps {
    CUtensorMap x, w, row_scale, scale;
};

/* @rows, @cols: rows of x and of w that one load copies. */
inline cudaError_t make_maps(code_maps *m, const gemm_args &a, int rows, int cols) {
    cudaError_t e = map_codes(&m->x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, rows);
    if (e == cudaSuccess)
        e = map_codes(&m->w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, cols);
    if (e == cudaSuccess)
        e = map_floats(&m->row_scale, a.x_codes.scale, row_scale_pitch(a.x_rows), code_blocks(a.k),
                       0, rows + kScalesAhead, 1);
    return e == cudaSuccess ? map_floats(&m->scale, a.w_codes.scale, 2 * code_pitch(a.k),
                                         (a.n + 15) / 16, a.groups, kScalesAtOnce, cols / 16)
                            : e;
}

} // namespace
} // namespace device
