/* ring.cuh - a ring of weights in shared memory, for eight warps that multiply them with one row.
 *
 * A stage holds 16 rows of weights, kSlice numbers of k each, or kFlatRows rows with a short k. One
 * warp fills the ring; it continues with the weights of the next product while the end of the
 * current one is still awaited. With 16 rows, the eight warps divide the k of a stage by 32 numbers
 * and add up their sums at the end of a tile; with kFlatRows rows each warp has eight of them. The
 * row pitch is 64 bytes more than a multiple of 128, so a quarter of a warp, which reads 64 bytes
 * of each of two rows, has no bank conflicts. */
#pragma once
#include "generator/local/cuda/cuda_gemm.h"
#include "generator/local/cuda/once.cuh"
#include "kernels/cuda/ptx/mma.cuh"

namespace device {
namespace {

enum {
    kWarps = 8,
    kThreads = 32 * kWarps,
    kOtherThreads = 64, /* one warp that fills the ring, one that chooses experts */
    kRows = 16,         /* rows of weights per tile */
    kSlice = 704,       /* numbers of k per stage. The widths of DeepSeek-V2-Lite's experts, 1408
                           and 2048, fill two stages and nearly three */
    kPitch = kSlice * 2 + 64,
    kStageBytes = kRows * kPitch,
    kMostStages = 9,
    kHalf = 32, /* numbers of k per warp and instruction */
    kStride = kHalf * kWarps,
    kFlatMost = 128, /* longest k for feed_flat() */
    kFlatRows = 64,  /* rows per stage of feed_flat(): eight per warp */
    kHalves = (kSlice / kHalf + kWarps - 1) / kWarps,
    kTeamBarrier = 1,
};
static_assert(kPitch % 128 == 64, "banks");

struct ring_barriers {
    uint64_t full[kMostStages], empty[kMostStages];
};

__device__ __forceinline__ void team_sync() {
    ptx::named_sync(kTeamBarrier, kThreads);
}

struct ring_place {
    int stage = 0, round = 0;

    __device__ void advance(int stages) {
        if (++stage == stages) {
            stage = 0;
            round ^= 1;
        }
    }
};

struct ring {
    uint8_t *data;
    ring_barriers &bars;
    int stages, window;
    uint64_t policy;
    ring_place at, landed;
    int fed = 0;

    __device__ ring(uint8_t *data, ring_barriers &bars, int stages, int window)
        : data(data), bars(bars), stages(stages), window(window),
          policy(ptx::policy_evict_first()) {
    }
    __device__ void init() const {
        for (int i = 0; i < stages; i++) {
            ptx::mbarrier_init(&bars.full[i], 1);
            ptx::mbarrier_init(&bars.empty[i], kWarps);
        }
        ptx::mbarrier_init_fence();
    }

    /* Called by the filling warp: loads 16 rows of weights [..][k]. */
    __device__ void feed(const bf16 *rows, int k) {
        const int lane = threadIdx.x % 32;
        for (int from = 0; from < k; from += kSlice) {
            const uint32_t bytes =
                static_cast<uint32_t>(min(static_cast<int>(kSlice), k - from)) * 2;
            let_land();
            expect(kRows * bytes);
            if (lane < kRows)
                load(data + at.stage * kStageBytes + lane * kPitch,
                     rows + static_cast<int64_t>(lane) * k + from, bytes);
            at.advance(stages);
        }
    }

    /* Called by the filling warp: loads kFlatRows rows with a short k. These loads are the last of
     * a launch and few per block, so the limit on loads in flight does not apply. */
    __device__ void feed_flat(const bf16 *rows, int k) {
        const uint32_t bytes = static_cast<uint32_t>(kFlatRows * k) * 2;
        expect(bytes);
        if (threadIdx.x % 32 == 0)
            load(data + at.stage * kStageBytes, rows, bytes);
        at.advance(stages);
    }

    /* Called before a load: waits until fewer than `window` earlier ones are in flight. */
    __device__ void let_land() {
        if (fed++ < window)
            return;
        ptx::mbarrier_wait(&bars.full[landed.stage], landed.round);
        landed.advance(stages);
    }

    /* Waits until the stage is free and announces the bytes that will arrive in it. */
    __device__ void expect(uint32_t bytes) {
        ptx::mbarrier_wait(&bars.empty[at.stage], at.round ^ 1);
        if (threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive_expect(&bars.full[at.stage], bytes);
        __syncwarp();
    }

    __device__ void load(void *to, const bf16 *from, uint32_t bytes) {
        bulk_load_once(to, from, bytes, &bars.full[at.stage], policy);
    }

    /* A thread's part of x for multiply_flat(), in registers. */
    struct flat_row {
        uint2 x[kFlatMost / kHalf];

        __device__ flat_row(const bf16 *from, int k) {
#pragma unroll
            for (int i = 0; i < kFlatMost / kHalf; i++) {
                const int col = i * kHalf + threadIdx.x % 4 * 8;
                x[i] = read_x(from + col, col < k);
            }
        }
    };

    /* Called by the multiplying warps: row 8 warp + g of the stage times x [k]. Lanes 4 g have the
     * results. */
    __device__ float multiply_flat(const flat_row &x, int k) {
        const int lane = threadIdx.x % 32, g = threadIdx.x / 32 * 8 + lane / 4;
        const uint8_t *row = data + at.stage * kStageBytes + g * k * 2;
        float sum[2][4] = {};
        uint4 w[kFlatMost / kHalf];
        ptx::mbarrier_wait(&bars.full[at.stage], at.round);
#pragma unroll
        for (int i = 0; i < kFlatMost / kHalf; i++) {
            const int col = i * kHalf + lane % 4 * 8;
            w[i] = read_16(row + col * 2, col < k);
        }
        release();
#pragma unroll
        for (int i = 0; i < kFlatMost / kHalf; i++)
            multiply_rows(sum[i % 2], w[i], x.x[i]);
        return of_row(sum[0]) + of_row(sum[1]);
    }

    /* Called by the multiplying warps: each computes its part of k of the next 16 rows times x [k],
     * which is in shared memory. Lanes 4 g have the results of rows g and g + 8. */
    __device__ float2 multiply(const bf16 *x, int k) {
        const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * kHalf + lane % 4 * 8;
        float low[2][4] = {}, high[2][4] = {};
        for (int from = 0; from < k; from += kSlice) {
            const int width = min(static_cast<int>(kSlice), k - from);
            const uint8_t *top = data + at.stage * kStageBytes + lane / 4 * kPitch + own * 2;
            uint4 w0[kHalves], w1[kHalves];
            uint2 b[kHalves];
#pragma unroll
            for (int i = 0; i < kHalves; i++)
                b[i] = read_x(x + from + own + i * kStride, own + i * kStride < width);
            ptx::mbarrier_wait(&bars.full[at.stage], at.round);
#pragma unroll
            for (int i = 0; i < kHalves; i++) {
                const bool real = own + i * kStride < width;
                w0[i] = read_16(top + i * kStride * 2, real);
                w1[i] = read_16(top + i * kStride * 2 + 8 * kPitch, real);
            }
#pragma unroll
            for (int i = 0; i < kHalves; i++) {
                multiply_rows(low[i % 2], w0[i], b[i]);
                multiply_rows(high[i % 2], w1[i], b[i]);
            }
            release();
        }
        return {of_row(low[0]) + of_row(low[1]), of_row(high[0]) + of_row(high[1])};
    }

    __device__ void release() {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            ptx::mbarrier_arrive(&bars.empty[at.stage]);
        at.advance(stages);
    }

    static __device__ __forceinline__ uint4 read_16(const void *at, bool real) {
        const uint4 zero = {0, 0, 0, 0};
        return real ? *static_cast<const uint4 *>(at) : zero;
    }

    /* Multiplies eight rows by 32 numbers of k with one 16 by 16 mma instruction. A thread has
     * eight adjacent numbers of its row. It passes the even pairs of them as row g of the operand,
     * and the odd pairs as row g + 8. Even columns of the other operand hold x's even pairs, odd
     * columns its odd pairs. So no data moves between registers. A row's result is the sum of two
     * numbers of the output: row g, even column, and row g + 8, odd column (of_row). */
    static __device__ __forceinline__ void multiply_rows(float (&sum)[4], const uint4 &w,
                                                         const uint2 &x) {
        const uint32_t rows[4] = {w.x, w.y, w.z, w.w};
        ptx::mma_bf16(sum, rows, x.x, x.y);
    }

    /* A thread's column of x: the even or the odd pairs of eight numbers. */
    static __device__ __forceinline__ uint2 read_x(const bf16 *x, bool real) {
        const uint4 all = read_16(x, real);
        const bool odd = threadIdx.x / 4 % 2;
        return {odd ? all.y : all.x, odd ? all.w : all.z};
    }

    static __device__ __forceinline__ float of_row(const float (&sum)[4]) {
        return sum[0] + sum[3];
    }
};

/* Distributes tiles over the blocks round-robin, continuing from one product to the next. The
 * filling and the multiplying warps call it in the same way, so they get the same tiles. */
struct tile_schedule {
    int dealt = 0;

    template <typename F>
    __device__ void each(int tiles, F f) {
        const int blocks = static_cast<int>(gridDim.x), at = dealt % blocks;
        for (int tile = (static_cast<int>(blockIdx.x) + blocks - at) % blocks; tile < tiles;
             tile += blocks)
            f(tile);
        dealt += tiles;
    }
};

/* Adds up the sums of all warps. Two buffers alternate, and a different warp adds up each time, so
 * the other warps can continue. */
struct tile_sums {
    float (*scratch)[kWarps][kRows];
    int count;

    /* Returns true in one warp only. In that warp, *sum of each lane becomes the sum of row lane %
     * 16 of the tile. */
    __device__ bool add_up(const float2 &own, float *sum) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        float(*now)[kRows] = scratch[count % 2];
        if (lane % 4 == 0) {
            now[warp][lane / 4] = own.x;
            now[warp][lane / 4 + 8] = own.y;
        }
        team_sync();
        if (warp != count++ % kWarps)
            return false;
        float all = 0;
#pragma unroll
        for (int w = 0; w < kWarps; w++)
            all += now[w][lane % kRows];
        *sum = all;
        return true;
    }
};

} // namespace
} // namespace device
