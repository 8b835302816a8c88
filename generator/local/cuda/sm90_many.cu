/* gemm_many: products with Hopper's tensor cores, in one of three tile sizes.
 *
 *   128 rows by 256 weights    the usual case
 *   128 rows by 64 weights     if 256 weights would give too few tiles for the device
 *   64 rows by 256 weights     for experts with few rows, which are bound by loading weights
 *
 * A persistent block has one warpgroup that loads and two that multiply. With 128 rows each of the
 * two has 64 rows; with 64 rows each has half of the weights.
 *   loads      tiles of 64 k by TMA, several stages deep; they run ahead across the ends of tiles
 *   products   m64n256k16, m64n64k16 or m64n128k16; one group of four instructions in flight
 * Registers per thread of the three warpgroups: 24 + 2 x 240 = 504. Shared memory for the
 * stages, in the order of the tile sizes above: 4 x (16 384 + 32 768), 8 x (16 384 + 8192) or
 * 4 x (8192 + 32 768) bytes, plus barriers. */
#include <algorithm>

#include "generator/local/cuda/sm90_many.cuh"

namespace device {
namespace {

enum { TILE_K = 64 };

/* The ring of stages. Each holds a tile of x, with ROWS rows, and a tile of w, with COLS rows. */
template <int ROWS, int COLS>
struct __align__(1024) shared_memory {
    enum { STAGES = COLS == 256 ? 4 : 8, STAGE_BYTES = (ROWS + COLS) * TILE_K * 2 };
    bf16 x[STAGES][ROWS * TILE_K];
    bf16 w[STAGES][COLS * TILE_K];
    uint64_t full[STAGES], empty[STAGES];
};

struct params {
    CUtensorMap x, w;
    gemm_args a;
};

template <int ROWS, int COLS>
__device__ __forceinline__ void load_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    walk<ROWS, COLS> w(p.a);
    const int stages = s.STAGES;
    tile t;
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        for (int k = 0; k < steps; k++, step++) {
            const int stage = step % stages;
            ptx::mbarrier_wait(&s.empty[stage], (step / stages + 1) % 2);
            ptx::mbarrier_arrive_expect(&s.full[stage], s.STAGE_BYTES);
            if (p.a.x_group)
                ptx::tma_load_3d(s.x[stage], &p.x, &s.full[stage], k * TILE_K, t.row, t.group);
            else
                ptx::tma_load_2d(s.x[stage], &p.x, &s.full[stage], k * TILE_K, t.first + t.row);
            ptx::tma_load_3d(s.w[stage], &p.w, &s.full[stage], k * TILE_K, t.col, t.group);
        }
    }
}

__device__ __forceinline__ void product(float (&sum)[128], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_bf16_n256(sum, x, w, add);
}

__device__ __forceinline__ void product(float (&sum)[32], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_bf16_n64(sum, x, w, add);
}

__device__ __forceinline__ void product(float (&sum)[64], uint64_t x, uint64_t w, bool add) {
    ptx::wgmma_ss_bf16_n128(sum, x, w, add);
}

/* Computes the sums of one tile. */
template <int ROWS, int COLS>
__device__ __forceinline__ void multiply(float (&sum)[ROWS * COLS / 256],
                                         shared_memory<ROWS, COLS> &s, int steps, int &step,
                                         int half) {
    const int stages = s.STAGES;
    for (int k = 0; k < steps; k++, step++) {
        const int stage = step % stages;
        ptx::mbarrier_wait(&s.full[stage], step / stages % 2);
        const uint32_t x =
            ptx::descriptor_low_128(ptx::smem_addr(s.x[stage] + half * (ROWS - 64) * TILE_K));
        const uint32_t w = ptx::descriptor_low_128(
            ptx::smem_addr(s.w[stage] + half * second_col<ROWS, COLS>() * TILE_K));
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < TILE_K / 16; i++)
            product(sum, ptx::descriptor_128(x + 2 * i), ptx::descriptor_128(w + 2 * i),
                    k > 0 || i > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
        if (k > 0 && threadIdx.x % 128 == 0)
            ptx::mbarrier_arrive(&s.empty[(step + stages - 1) % stages]);
    }
    ptx::wgmma_wait<0>();
    ptx::pin(sum);
    if (threadIdx.x % 128 == 0)
        ptx::mbarrier_arrive(&s.empty[(step + stages - 1) % stages]);
}

template <int ROWS, int COLS>
__device__ __forceinline__ void multiply_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    walk<ROWS, COLS> w(p.a);
    tile t;
    const int half = threadIdx.x / 128 - 1, lane = threadIdx.x % 128;
    const int own = half * (ROWS - 64) + lane / 32 * 16 + lane % 32 / 4;
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    float sum[ROWS * COLS / 256];
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        multiply<ROWS, COLS>(sum, s, steps, step, half);
        const int row = t.first + t.row + own, col = t.col + half * second_col<ROWS, COLS>();
        const int64_t at = row * p.a.y_row + t.group * p.a.y_group;
        if (row < t.end)
            store_row(p.a, sum, 0, at, col);
        if (row + 8 < t.end)
            store_row(p.a, sum, 2, at + 8 * p.a.y_row, col);
    }
}

template <int ROWS, int COLS>
__global__ void __launch_bounds__(kThreads, 1) many(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = *reinterpret_cast<shared_memory<ROWS, COLS> *>(
        (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < s.STAGES; i++) {
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

cudaError_t make_maps(params *p, int rows, int cols) {
    const gemm_args &a = p->a;
    const cudaError_t e = map_groups(&p->x, a.x, a.k, a.x_rows, a.x_row, a.x_group ? a.groups : 0,
                                     a.x_group, TILE_K, rows);
    const int64_t group = a.groups > 1 ? a.w_group : static_cast<int64_t>(a.n) * a.k;
    return e == cudaSuccess ? map_groups(&p->w, a.w, a.k, a.n, a.k, a.groups, group, TILE_K, cols)
                            : e;
}

template <int ROWS, int COLS>
cudaError_t allow_memory() {
    return cudaFuncSetAttribute(many<ROWS, COLS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(shared_memory<ROWS, COLS>) + 1024);
}

template <int ROWS, int COLS>
cudaError_t launch_tiles(const stream_of &s, const gemm_args &a, int64_t tiles) {
    params p = {};
    p.a = a;
    const cudaError_t e = make_maps(&p, ROWS, COLS);
    if (e != cudaSuccess)
        return e;
    return launch(s, many<ROWS, COLS>, dim3(static_cast<unsigned>(std::min<int64_t>(tiles, s.sms))),
                  kThreads, sizeof(shared_memory<ROWS, COLS>) + 1024, p);
}

int64_t tiles_of(const gemm_args &a, int cols) {
    return static_cast<int64_t>((a.rows + 127) / 128) * ((a.n + cols - 1) / cols) * a.groups;
}

} // namespace

cudaError_t gemm_many_init() {
    cudaError_t e = allow_memory<128, 64>();
    if (e == cudaSuccess)
        e = allow_memory<64, 256>();
    return e == cudaSuccess ? allow_memory<128, 256>() : e;
}

cudaError_t gemm_many(const stream_of &s, const gemm_args &a) {
    if (a.listed)
        return a.rows <= kNarrowRows ? launch_tiles<64, 256>(s, a, s.sms)
                                     : launch_tiles<128, 256>(s, a, s.sms);
    if (tiles_of(a, 256) < s.sms)
        return launch_tiles<128, 64>(s, a, tiles_of(a, 64));
    return launch_tiles<128, 256>(s, a, tiles_of(a, 256));
}

} // namespace device
