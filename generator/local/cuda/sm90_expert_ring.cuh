/* sm90_expert_ring.cuh - the tiles of gemm_expert_codes(), and how it loads their operands into a
 * ring buffer in shared memory.
 *
 * A tile is 256 weights and up to MOST_ROWS rows of an expert. A stage of the ring has the operands
 * for 128 numbers of k. TMA loads the codes and the scales of the weights. The rows of an expert
 * may begin anywhere, and TMA must begin at a multiple of 16 bytes. So a warp copies the scales of
 * the rows, 4 bytes at a time. */
#pragma once
#include "generator/local/cuda/sm90_code_ring.cuh"
#include "kernels/cuda/ptx/copy_async.cuh"

namespace device {
namespace {

enum {
    WEIGHTS = 256,   /* weights of a tile */
    MOST_ROWS = 160, /* most rows of a tile */
    BOX_ROWS = 16,   /* rows that one load copies. A tile is computed with a multiple of them */
    EXPERT_STAGES = 4,
};

/* A warp collects 8 rows with 32 results each before it stores them. With this pitch, stores of
 * FP32 results have no bank conflicts. */
struct __align__(16) turned_rows {
    enum { ROWS = 8, PITCH = 144 }; /* bytes from one row to the next */
    uint8_t at[ROWS * PITCH];
};

struct __align__(1024) expert_memory {
    enum {
        W_BYTES = WEIGHTS * TILE_K,
        X_BYTES = MOST_ROWS * TILE_K,
        BOX_BYTES = BOX_ROWS * TILE_K,
        SCALES = WEIGHTS / 16 * kScalesAtOnce,
    };
    uint8_t w[EXPERT_STAGES][W_BYTES];
    uint8_t x[EXPERT_STAGES][X_BYTES];
    float scale[EXPERT_STAGES][SCALES];
    float row_scale[EXPERT_STAGES][MOST_ROWS]; /* in the order of row_scale_place() */
    turned_rows rows[kMultiplyWarps];
    uint64_t full[EXPERT_STAGES], empty[EXPERT_STAGES];

    /* As shared_memory::prepare() (sm90_code_ring.cuh). A stage is full when the loads of TMA
     * and the copies of the 32 lanes of a warp have ended. */
    static __device__ __forceinline__ expert_memory &prepare(uint8_t * raw) {
        const uintptr_t at = (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024;
        auto &s = *reinterpret_cast<expert_memory *>(__shfl_sync(~0u, at, 0));
        if (threadIdx.x == 0) {
            for (int i = 0; i < EXPERT_STAGES; i++) {
                ptx::mbarrier_init(&s.full[i], 1 + 32);
                ptx::mbarrier_init(&s.empty[i], kMultiplyWarps);
            }
            ptx::mbarrier_init_fence();
        }
        __syncthreads();
        return s;
    }
    static constexpr int dynamic_bytes() {
        static_assert(sizeof(expert_memory) + 1024 <= 227 * 1024, "exceeds an SM's memory");
        return sizeof(expert_memory) + 1024;
    }
};

struct expert_params {
    CUtensorMap x, w, scale;
    gemm_args a;
};

/* ---- tiles ----------------------------------------------------------------------------------- */

struct expert_tile {
    int group, row, rows, col; /* @rows rows of y from @row on; weights from @col on */
};

/* Enumerates the tiles. Each lane of a warp has one of 32 experts that follow each other, so all
 * lanes call these functions together. The rows of an expert are divided evenly over its row tiles.
 * The row tiles with the same weights follow each other, so that these stay in L2. */
struct expert_walk {
    const gemm_args &a;
    const int cols; /* column tiles */
    int from;       /* number of the first of the 32 experts */
    int base, all;  /* tiles of the experts before them; tiles of the 32 */
    /* For the lane's expert: its first row of y, its number of rows, the tiles of the lanes before
     * it. */
    int first, rows, before;

    __device__ explicit expert_walk(const gemm_args &a)
        : a(a), cols((a.n + WEIGHTS - 1) / WEIGHTS), from(0), base(0) {
        load();
    }
    static __device__ int row_tiles(int rows) {
        return (rows + MOST_ROWS - 1) / MOST_ROWS;
    }
    __device__ void load() {
        const int lane = threadIdx.x % 32, e = from + lane;
        first = e < a.groups ? a.experts.first[e] : 0;
        rows = e < a.groups ? a.experts.first[e + 1] - first : 0;
        const int own = row_tiles(rows) * cols;
        int sum = own;
#pragma unroll
        for (int i = 1; i < 32; i *= 2) {
            const int other = __shfl_up_sync(~0u, sum, i);
            sum += lane >= i ? other : 0;
        }
        before = sum - own;
        all = __shfl_sync(~0u, sum, 31);
    }
    /* Finds tile number @index. Calls must have increasing numbers. */
    __device__ bool find(int index, expert_tile &t) {
        while (index >= base + all) {
            base += all;
            from += 32;
            if (from >= a.groups)
                return false;
            load();
        }
        const int at = index - base;
        const bool own = at >= before && at < before + row_tiles(rows) * cols;
        const int lane = __ffs(static_cast<int>(__ballot_sync(~0u, own))) - 1,
                  within = at - __shfl_sync(~0u, before, lane),
                  count = __shfl_sync(~0u, rows, lane), high = row_tiles(count),
                  each = ((count + high - 1) / high + BOX_ROWS - 1) / BOX_ROWS * BOX_ROWS,
                  skipped = within % high * each;
        t.group = from + lane;
        t.row = __shfl_sync(~0u, first, lane) + skipped;
        t.rows = min(each, count - skipped);
        t.col = within / high * WEIGHTS;
        return true;
    }
};

__device__ __forceinline__ int boxes_of(const expert_tile &t) {
    return (t.rows + BOX_ROWS - 1) / BOX_ROWS;
}

/* ---- loads ----------------------------------------------------------------------------------- */

/* Loads a stage: block @k of k of a tile. */
__device__ __forceinline__ void load_stage(const expert_params &p, expert_memory &s,
                                           const expert_tile &t, int stage, int k) {
    const int boxes = boxes_of(t), col = k * TILE_K;
    uint64_t *full = &s.full[stage];
    ptx::mbarrier_arrive_expect(full, s.W_BYTES + s.SCALES * 4 + boxes * s.BOX_BYTES);
    ptx::tma_load_3d(s.w[stage], &p.w, full, col, t.col, t.group);
    ptx::tma_load_3d(s.scale[stage], &p.scale, full, k / 2 * kScalesAtOnce, t.col / 16, t.group);
    for (int i = 0; i < boxes; i++)
        ptx::tma_load_2d(s.x[stage] + i * s.BOX_BYTES, &p.x, full, col, t.row + i * BOX_ROWS);
}

/* One warp loads codes and the scales of weights. */
__device__ __forceinline__ void load_tiles(const expert_params &p, expert_memory &s) {
    expert_walk walk(p.a);
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    ring_place<EXPERT_STAGES> at;
    expert_tile t;
    for (int index = blockIdx.x; walk.find(index, t); index += gridDim.x)
        for (int k = 0; k < steps; k++, at.advance()) {
            if (threadIdx.x % 32 == 0) {
                ptx::mbarrier_wait(&s.empty[at.stage], at.parity ^ 1);
                load_stage(p, s, t, at.stage, k);
            }
            __syncwarp();
        }
}

/* Where the scale of row @i of a tile lies in a stage. A lane with lane % 4 = t multiplies the rows
 * 8 j + 2 t and 8 j + 2 t + 1. Its scales for an even j and for j + 1 lie together. */
__device__ __forceinline__ int row_scale_place(int i) {
    return i / 16 * 16 + i % 8 / 2 * 4 + i / 8 % 2 * 2 + i % 2;
}

/* Another warp copies the scales of the rows. */
__device__ __forceinline__ void copy_row_scales(const expert_params &p, expert_memory &s) {
    expert_walk walk(p.a);
    const int steps = (p.a.k + TILE_K - 1) / TILE_K, lane = threadIdx.x % 32;
    const int64_t pitch = row_scale_pitch(p.a.x_rows);
    ring_place<EXPERT_STAGES> at;
    expert_tile t;
    for (int index = blockIdx.x; walk.find(index, t); index += gridDim.x) {
        const float *from = p.a.x_codes.scale + t.row;
        for (int k = 0; k < steps; k++, at.advance(), from += pitch) {
            const uint32_t to = ptx::smem_addr(s.row_scale[at.stage]);
            ptx::mbarrier_wait(&s.empty[at.stage], at.parity ^ 1);
            for (int i = lane; i < t.rows; i += 32)
                ptx::copy_async_4(to + row_scale_place(i) * 4, from + i);
            ptx::mbarrier_arrive_after_copies(&s.full[at.stage]);
        }
    }
}

} // namespace
} // namespace device
