/* gemm_many_codes: products of e4m3 activations and e4m3 weights with Hopper's tensor cores, in one
 * of five tile sizes.
 *
 *   128 rows by 256 weights    the usual case
 *   128 rows by 128 or 64      if larger tiles would be too few for the device
 *   64 rows by 256 weights     for experts with few rows, and products of up to 64 rows, which are
 *                              bound by loading weights
 *   64 rows by 64 weights      if these would be too few
 *
 * The tensor cores keep about 13 bits of a sum, so their sums end after 128 k. Each is multiplied
 * by the scale of the row and the scale of eight weights, and added to an FP32 sum in other
 * registers. While one of the two warpgroups does that, the other one's products run. A warpgroup
 * computes up to 128 weights at a time, because the registers hold one more such part beside its
 * sums.
 *   loads      tiles of 128 k and the scales of the weights by TMA, several stages deep. Scales of
 *              rows are plain loads, one stage ahead
 *   products   m64n128k32, m64n64k32 or m64n32k32, four instructions for 128 k
 * A stage has 128 bytes for each row of both tiles, and the scales. All stages together have at
 * most 206 080 bytes. */
#include <algorithm>

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
 * scales: four numbers for each 16 rows of w. */
template <int ROWS, int COLS>
struct __align__(1024) shared_memory {
    enum {
        STAGES = ROWS + COLS > 320   ? 4
                 : ROWS + COLS > 256 ? 5
                                     : 1536 / (ROWS + COLS),
        SCALES = COLS / 16 * kScalesAtOnce,
        STAGE_BYTES = (ROWS + COLS) * TILE_K + SCALES * 4,
        SCALE_PITCH = SCALES < 32 ? 32 : SCALES, /* stages begin at multiples of 128 bytes */
    };
    uint8_t x[STAGES][ROWS * TILE_K];
    uint8_t w[STAGES][COLS * TILE_K];
    float scale[STAGES][SCALE_PITCH];
    uint64_t full[STAGES], empty[STAGES];
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

struct params {
    CUtensorMap x, w, scale;
    gemm_args a;
};

template <int ROWS, int COLS>
__device__ __forceinline__ void load_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    walk<ROWS, COLS> w(p.a);
    const int stages = s.STAGES, steps = (p.a.k + TILE_K - 1) / TILE_K;
    tile t;
    int step = 0;
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        for (int k = 0; k < steps; k++, step++) {
            const int stage = step % stages;
            ptx::mbarrier_wait(&s.empty[stage], (step / stages + 1) % 2);
            ptx::mbarrier_arrive_expect(&s.full[stage], s.STAGE_BYTES);
            ptx::tma_load_2d(s.x[stage], &p.x, &s.full[stage], k * TILE_K, t.first + t.row);
            ptx::tma_load_3d(s.w[stage], &p.w, &s.full[stage], k * TILE_K, t.col, t.group);
            ptx::tma_load_3d(s.scale[stage], &p.scale, &s.full[stage], k / 2 * kScalesAtOnce,
                             t.col / 16, t.group);
        }
    }
}

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
     * take the scale of the last row. */
    __device__ row_scales(const gemm_args &a, int row, int steps)
        : upper(a.x_codes.scale + min(static_cast<int64_t>(row), a.x_rows - 1)),
          lower(a.x_codes.scale + min(static_cast<int64_t>(row) + 8, a.x_rows - 1)),
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

/* Computes the sums of one tile. */
template <bool UNIFORM, int ROWS, int COLS, int PARTS, int N>
__device__ __forceinline__ void multiply(float (&sum)[PARTS][N], shared_memory<ROWS, COLS> &s,
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
#pragma unroll
            for (int j = 0; j < (UNIFORM ? 1 : N / 8); j++)
                scale[j] = ptx::load_shared_v2(
                    reinterpret_cast<const float2 *>(from + (i * N / 8 + j) * kScalesAtOnce));
            ptx::wgmma_wait<0>();
            ptx::pin(part);
            __syncwarp();
            if (i == PARTS - 1 && threadIdx.x % 32 == 0)
                ptx::mbarrier_arrive(&s.empty[stage]);
            add_scaled(sum[i], part, row, scale);
        }
    }
}

template <bool UNIFORM, int ROWS, int COLS>
__device__ __forceinline__ void multiply_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    using own_share = share<ROWS, COLS>;
    walk<ROWS, COLS> w(p.a);
    tile t;
    const int half = ptx::warp() / 4 - 1, lane = threadIdx.x % 128;
    const int own = half * (ROWS - 64) + lane / 32 * 16 + lane % 32 / 4;
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    float sum[own_share::PARTS][own_share::N];
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        const int row = t.first + t.row + own, col = t.col + half * own_cols<ROWS, COLS>();
        multiply<UNIFORM>(sum, s, row_scales(p.a, row, steps), steps, step, half);
        const int64_t at = row * p.a.y_row + t.group * p.a.y_group;
#pragma unroll
        for (int i = 0; i < own_share::PARTS; i++) {
            if (row < t.end)
                store_row(p.a, sum[i], 0, at, col + i * own_share::PART_COLS);
            if (row + 8 < t.end)
                store_row(p.a, sum[i], 2, at + 8 * p.a.y_row, col + i * own_share::PART_COLS);
        }
    }
}

template <bool UNIFORM, int ROWS, int COLS>
__global__ void __launch_bounds__(kThreads, 1) many_codes(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = *reinterpret_cast<shared_memory<ROWS, COLS> *>(
        (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < s.STAGES; i++) {
            ptx::mbarrier_init(&s.full[i], 1);
            ptx::mbarrier_init(&s.empty[i], kMultiplyWarps);
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
        multiply_tiles<UNIFORM>(p, s);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

cudaError_t make_maps(params *p, int rows, int cols) {
    const gemm_args &a = p->a;
    cudaError_t e = map_codes(&p->x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, rows);
    if (e == cudaSuccess)
        e = map_codes(&p->w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, cols);
    return e == cudaSuccess ? map_floats(&p->scale, a.w_codes.scale, 2 * code_pitch(a.k),
                                         (a.n + 15) / 16, a.groups, kScalesAtOnce, cols / 16)
                            : e;
}

template <bool UNIFORM, int ROWS, int COLS>
cudaError_t allow_memory() {
    static_assert(sizeof(shared_memory<ROWS, COLS>) + 1024 <= 227 * 1024, "of an SM");
    return cudaFuncSetAttribute(many_codes<UNIFORM, ROWS, COLS>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(shared_memory<ROWS, COLS>) + 1024);
}

template <bool UNIFORM>
cudaError_t allow_all() {
    cudaError_t e = allow_memory<UNIFORM, 128, 64>();
    if (e == cudaSuccess)
        e = allow_memory<UNIFORM, 128, 128>();
    if (e == cudaSuccess)
        e = allow_memory<UNIFORM, 64, 64>();
    if (e == cudaSuccess)
        e = allow_memory<UNIFORM, 64, 256>();
    return e == cudaSuccess ? allow_memory<UNIFORM, 128, 256>() : e;
}

template <int ROWS, int COLS>
cudaError_t launch_tiles(const stream_of &s, const gemm_args &a, int64_t tiles) {
    params p = {};
    p.a = a;
    const cudaError_t e = make_maps(&p, ROWS, COLS);
    if (e != cudaSuccess)
        return e;
    return launch(s, a.w_uniform ? many_codes<true, ROWS, COLS> : many_codes<false, ROWS, COLS>,
                  dim3(static_cast<unsigned>(std::min<int64_t>(tiles, s.sms))), kThreads,
                  sizeof(shared_memory<ROWS, COLS>) + 1024, p);
}

int64_t tiles_of(const gemm_args &a, int cols) {
    return static_cast<int64_t>((a.rows + 127) / 128) * ((a.n + cols - 1) / cols) * a.groups;
}

} // namespace

cudaError_t gemm_many_codes_init() {
    const cudaError_t e = allow_all<false>();
    return e == cudaSuccess ? allow_all<true>() : e;
}

cudaError_t gemm_many_codes(const stream_of &s, const gemm_args &a) {
    if (a.listed)
        return a.rows <= kNarrowRows ? launch_tiles<64, 256>(s, a, s.sms)
                                     : launch_tiles<128, 256>(s, a, s.sms);
    if (a.rows <= 64)
        return tiles_of(a, 256) < s.sms ? launch_tiles<64, 64>(s, a, tiles_of(a, 64))
                                        : launch_tiles<64, 256>(s, a, tiles_of(a, 256));
    if (tiles_of(a, 128) < s.sms)
        return launch_tiles<128, 64>(s, a, tiles_of(a, 64));
    if (tiles_of(a, 256) < s.sms)
        return launch_tiles<128, 128>(s, a, tiles_of(a, 128));
    return launch_tiles<128, 256>(s, a, tiles_of(a, 256));
}

} // namespace device
