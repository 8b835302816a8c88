/* sm90_code_sums.cuh - how a warpgroup of gemm_many_codes() and gemm_stream_k() computes and stores
 * its share of a tile. */
#pragma once
#include "generator/local/cuda/sm90_code_ring.cuh"

namespace device {
namespace {

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

/* Multiplies each number of @part by the scale of its row and the scale of its weights, and adds it
 * to @sum. @row: the scales of the thread's two rows. @scale: one pair for each 16 weights, or a
 * single pair for all weights of the part if the scales are uniform (codes.h). */
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

/* Reads the scales of a thread's two rows, which are eight rows apart. */
__device__ __forceinline__ float2 load_row_scales(const float *scale) {
    return make_float2(ptx::load_shared(scale), ptx::load_shared(scale + 8));
}

/* Where a warpgroup's share of a tile lies. */
struct place_in_tile {
    int row, col;  /* indices in the tile of its first row and of its first weight */
    int scale_row; /* index of the upper one of the thread's two rows among the scales of a stage */
};

/* Computes the wgmma descriptors of a warpgroup's operands in a stage. */
template <int ROWS, int COLS>
struct own_operands {
    uint32_t first_x, first_w;

    __device__ own_operands(const shared_memory<ROWS, COLS> &s, const place_in_tile &p)
        : first_x(ptx::descriptor_low_128(ptx::smem_addr(s.x[0] + p.row * TILE_K))),
          first_w(ptx::descriptor_low_128(ptx::smem_addr(s.w[0] + p.col * TILE_K))) {
    }
    __device__ __forceinline__ uint32_t x(int stage) const {
        return first_x + stage * (ROWS * TILE_K / 16);
    }
    __device__ __forceinline__ uint32_t w(int stage) const {
        return first_w + stage * (COLS * TILE_K / 16);
    }
};

/* Returns the scales in stage @stage, from those of weight @col on. A stage has the scales of two
 * blocks of k. @odd: 0 = those of the first block, 1 = those of the second. */
template <int ROWS, int COLS>
__device__ __forceinline__ const float *scales_at(const shared_memory<ROWS, COLS> &s, int stage,
                                                  int col, int odd) {
    return s.scale[stage] + col / 16 * kScalesAtOnce + odd * 2;
}

/* Computes the sums of several parts. For each stage, the parts are multiplied one after the other.
 * @steps: the number of blocks of k. */
template <bool UNIFORM, int ROWS, int COLS, int PARTS, int N>
__device__ __forceinline__ void multiply(float (&sum)[PARTS][N], next_stage<ROWS, COLS> &next,
                                         const place_in_tile &p, int steps) {
    auto &s = next.s;
    const own_operands<ROWS, COLS> from(s, p);
    float part[N];
    for (int k = 0; k < steps; k++) {
        const int stage = next.wait();
        float2 row_scale;
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            float2 scale[UNIFORM ? 1 : N / 8];
            start(part, from.x(stage), from.w(stage) + i * 2 * N * TILE_K / 16);
            if (i == 0)
                row_scale = load_row_scales(s.row_scale[stage] + p.scale_row);
            load_scales(scale, scales_at(s, stage, p.col + i * 2 * N, k % 2));
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

/* Computes the sums of a single part. The registers hold the products of two stages. So the tensor
 * cores multiply the next stage while the products of this stage are added. */
template <bool UNIFORM, int ROWS, int COLS, int N>
struct single_part {
    next_stage<ROWS, COLS> &next;
    const place_in_tile &p;
    const own_operands<ROWS, COLS> from;
    int stage; /* whose products run */
    float part[2][N];

    __device__ single_part(next_stage<ROWS, COLS> &next, const place_in_tile &p)
        : next(next), p(p), from(next.s, p) {
    }
    template <int ODD>
    __device__ __forceinline__ void start_next() {
        stage = next.wait();
        start(part[ODD], from.x(stage), from.w(stage));
        next.advance();
    }
    /* Starts the products of the next stage, unless this one is the last. Then waits for the
     * products of this stage and adds them. */
    template <int ODD, bool LAST>
    __device__ __forceinline__ void add(float (&sum)[N]) {
        auto &s = next.s;
        const int now = stage;
        float2 scale[UNIFORM ? 1 : N / 8];
        const float2 row_scale = load_row_scales(s.row_scale[now] + p.scale_row);
        load_scales(scale, scales_at(s, now, p.col, ODD));
        if constexpr (!LAST)
            start_next<1 - ODD>();
        ptx::wgmma_wait<LAST ? 0 : 1>();
        ptx::pin(part[ODD]);
        release(&s.empty[now]);
        add_scaled(sum, part[ODD], row_scale, scale);
    }
};

template <bool UNIFORM, int ROWS, int COLS, int N>
__device__ __forceinline__ void multiply(float (&sum)[1][N], next_stage<ROWS, COLS> &next,
                                         const place_in_tile &p, int steps) {
    single_part<UNIFORM, ROWS, COLS, N> m(next, p);
    m.template start_next<0>();
    for (int k = 0; k + 2 < steps; k += 2) {
        m.template add<0, false>(sum[0]);
        m.template add<1, false>(sum[0]);
    }
    if (steps % 2) {
        m.template add<0, true>(sum[0]);
    } else {
        m.template add<0, false>(sum[0]);
        m.template add<1, true>(sum[0]);
    }
}

template <int PARTS, int N>
__device__ __forceinline__ void clear(float (&sum)[PARTS][N]) {
#pragma unroll
    for (int i = 0; i < PARTS * N; i++)
        sum[i / N][i % N] = 0;
}

/* Stores the sums of one warp. @warp: its number in the warpgroup, 0 to 3. */
template <int PARTS, int N>
__device__ __forceinline__ void store_share(const gemm_args &a, const float (&sum)[PARTS][N],
                                            const tile &t, const place_in_tile &p, int warp,
                                            row_buffer &b) {
    const int row = t.first + t.row + p.row + warp * row_buffer::ROWS, col = t.col + p.col,
              per_result = a.end == ends_gate ? 2 : 1;
    const int64_t at = row * a.y_row + t.group * a.y_group + col / per_result;
    store_warp(a, sum, {at, t.end - row, (a.n - col) / per_result}, b);
}

} // namespace
} // namespace device
