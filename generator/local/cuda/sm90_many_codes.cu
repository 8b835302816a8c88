/* gemm_many_codes: products of e4m3 activations and e4m3 weights with Hopper's tensor cores, in one
 * of five tile sizes.
 *
 *   128 rows by 256, 128 or 64 weights    the size whose tiles should take the least time
 *   64 rows by 256 weights                for products of up to 64 rows
 *   64 rows by 64 weights                 if there would be fewer tiles of 256 weights than SMs
 *
 * The tensor cores keep about 13 bits of a sum, so their sums end after 128 k. Each is multiplied
 * by the scale of the row and the scale of eight weights, and added to an FP32 sum in other
 * registers (sm90_code_sums.cuh). While one of the two warpgroups does that, the other one's
 * products can run. A warpgroup computes up to 128 weights at a time, because the registers hold
 * one more such part beside its sums. If its share of a tile has at most 128 weights, the registers
 * hold two such parts. Then its own next products also run meanwhile.
 *   loads      tiles of 128 k and all scales by TMA, several stages deep (sm90_code_ring.cuh)
 *   products   m64n128k32, m64n64k32 or m64n32k32, four instructions for 128 k
 *   stores     whole lines of y (sm90_store.cuh)
 * A stage has 128 bytes for each row of both tiles, and the scales. */
#include <algorithm>

#include "generator/local/cuda/sm90_code_sums.cuh"

namespace device {
namespace {

struct params {
    code_maps map;
    gemm_args a;
};

template <int ROWS, int COLS>
__device__ __forceinline__ void load_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    walk<ROWS, COLS> w(p.a);
    const int steps = (p.a.k + TILE_K - 1) / TILE_K;
    ring_place<shared_memory<ROWS, COLS>::STAGES> at;
    tile t;
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x) {
        const int row = t.first + t.row;
        for (int k = 0; k < steps; k++, at.advance()) {
            const int stage = at.stage;
            ptx::mbarrier_wait(&s.empty[stage], at.parity ^ 1);
            ptx::mbarrier_arrive_expect(&s.full[stage], s.STAGE_BYTES);
            ptx::tma_load_2d(s.x[stage], &p.map.x, &s.full[stage], k * TILE_K, row);
            ptx::tma_load_2d(s.row_scale[stage], &p.map.row_scale, &s.full[stage],
                             row - row % kScalesAhead, k);
            ptx::tma_load_3d(s.w[stage], &p.map.w, &s.full[stage], k * TILE_K, t.col, t.group);
            ptx::tma_load_3d(s.scale[stage], &p.map.scale, &s.full[stage], k / 2 * kScalesAtOnce,
                             t.col / 16, t.group);
        }
    }
}

/* Computes and stores a warpgroup's share of a tile: PARTS times 2 N weights. */
template <bool UNIFORM, int PARTS, int N, int ROWS, int COLS>
__device__ __forceinline__ void compute_share(const gemm_args &a, const tile &t,
                                              next_stage<ROWS, COLS> &next, int row, int col) {
    const int warp = ptx::warp() % 4, lane = threadIdx.x % 32;
    const place_in_tile p = {row, col,
                             (t.first + t.row) % kScalesAhead + row + warp * 16 + lane / 4};
    float sum[PARTS][N];
    clear(sum);
    multiply<UNIFORM>(sum, next, p, (a.k + TILE_K - 1) / TILE_K);
    store_share(a, sum, t, p, warp, next.s.rows[ptx::warp() - 4]);
}

/* If at most the first half of a tile's rows exist, the warpgroups divide its 256 weights. With
 * narrower tiles, the second one multiplies rows that do not exist. */
template <bool UNIFORM, int ROWS, int COLS>
__device__ __forceinline__ void multiply_tiles(const gemm_args &a, shared_memory<ROWS, COLS> &s) {
    using whole = share<ROWS, COLS>;
    walk<ROWS, COLS> w(a);
    tile t;
    const int half = ptx::warp() / 4 - 1;
    next_stage<ROWS, COLS> next(s);
    for (int index = blockIdx.x; w.find(index, t); index += gridDim.x)
        if (whole::PARTS == 2 && t.first + t.row + ROWS / 2 >= t.end)
            compute_share<UNIFORM, 1, whole::N>(a, t, next, 0, half * COLS / 2);
        else
            compute_share<UNIFORM, whole::PARTS, whole::N>(a, t, next, half * (ROWS - 64),
                                                           half * second_col<ROWS, COLS>());
}

template <bool UNIFORM, int ROWS, int COLS>
__global__ void __launch_bounds__(kThreads, 1) many_codes(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = shared_memory<ROWS, COLS>::prepare(raw);
    let_next();
    wait_previous();
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x == 0)
            load_tiles(p, s);
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        multiply_tiles<UNIFORM>(p.a, s);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

template <bool UNIFORM, int ROWS, int COLS>
cudaError_t allow_memory() {
    return cudaFuncSetAttribute(many_codes<UNIFORM, ROWS, COLS>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                shared_memory<ROWS, COLS>::dynamic_bytes());
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

int64_t tiles_of(const gemm_args &a, int rows, int cols) {
    return static_cast<int64_t>((a.rows + rows - 1) / rows) * ((a.n + cols - 1) / cols) * a.groups;
}

template <int ROWS, int COLS>
cudaError_t launch_tiles(const stream_of &s, const gemm_args &a, int64_t tiles) {
    params p = {};
    p.a = a;
    const cudaError_t e = make_maps(&p.map, a, ROWS, COLS);
    if (e != cudaSuccess)
        return e;
    return launch(s, a.w_uniform ? many_codes<true, ROWS, COLS> : many_codes<false, ROWS, COLS>,
                  dim3(static_cast<unsigned>(std::min<int64_t>(tiles, s.sms))), kThreads,
                  shared_memory<ROWS, COLS>::dynamic_bytes(), p);
}

/* Estimates the time of a product with tiles of 128 rows and @cols weights, for comparing tile
 * sizes. @cycles: about how long a tile takes for 128 numbers of k, as measured on an H200
 * (docs/lab/2026-11-30-e4m3-loads-and-stores.md). */
int64_t time_of(const stream_of &s, const gemm_args &a, int cols, int cycles) {
    return (tiles_of(a, 128, cols) + s.sms - 1) / s.sms * cycles;
}

cudaError_t launch_many_rows(const stream_of &s, const gemm_args &a) {
    const int64_t wide = time_of(s, a, 256, 1210), middle = time_of(s, a, 128, 630),
                  narrow = time_of(s, a, 64, 510);
    if (wide <= std::min(middle, narrow))
        return launch_tiles<128, 256>(s, a, tiles_of(a, 128, 256));
    return middle <= narrow ? launch_tiles<128, 128>(s, a, tiles_of(a, 128, 128))
                            : launch_tiles<128, 64>(s, a, tiles_of(a, 128, 64));
}

} // namespace

cudaError_t gemm_many_codes_init() {
    const cudaError_t e = allow_all<false>();
    return e == cudaSuccess ? allow_all<true>() : e;
}

cudaError_t gemm_many_codes(const stream_of &s, const gemm_args &a) {
    if (a.rows > 64)
        return launch_many_rows(s, a);
    return tiles_of(a, 64, 256) < s.sms ? launch_tiles<64, 64>(s, a, tiles_of(a, 64, 64))
                                        : launch_tiles<64, 256>(s, a, tiles_of(a, 64, 256));
}

} // namespace device
