/* gemm_many_pairs: the products of gemm_many_codes() for many rows, by pairs of blocks.
 *
 * With tiles of 128 rows by 256 weights, a block reads 48 bytes for each clock of its tensor cores.
 * All SMs together then need twice what L2 delivers. So the two blocks of a cluster compute tiles
 * of the same weights, one below the other. Each block loads half of the weights, and TMA copies
 * it to both blocks (multicast). There are three variants:
 *
 *   many_256     128 rows by 256 weights in two parts, as in sm90_many_codes.cu. A block reads 32
 *                bytes per clock
 *   many_192     128 rows by 192 weights in one part: fewer waits. 37 bytes per clock
 *   many_ahead   128 rows by 128 weights: the products of the next 128 k are started before the sum
 *                of the last ones is scaled and added. 48 bytes per clock
 *
 * All variants compute a number as gemm_many_codes() does. */
#include <algorithm>

#include "generator/local/cuda/sm90_many_codes.cuh"

namespace device {
namespace {

enum { ROWS = 128 };

struct params {
    CUtensorMap x, w, scale; /* boxes of w have half of a tile's weights */
    gemm_args a;
};

/* Two blocks of a cluster. */
struct pair_of_blocks {
    enum { BLOCKS = 2 };

    static __device__ int first() {
        return blockIdx.x / 2;
    }
    static __device__ int stride() {
        return gridDim.x / 2;
    }
    static __device__ int rank() {
        return blockIdx.x % 2;
    }
    /* A stage is free when both blocks have read it, because each copies to both. The tensor cores'
     * reads have ended (wgmma_wait), so an arrival of the default scope is enough. One of the whole
     * cluster would be a fence of all memory. */
    static __device__ __forceinline__ void release(uint64_t *empty) {
        const int lane = threadIdx.x % 32;
        if (lane < 2)
            asm volatile(
                "{ .reg .b32 there;\n"
                "mapa.shared::cluster.u32 there, %0, %1;\n"
                "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(ptx::smem_addr(empty)),
                "r"(lane)
                : "memory");
    }
};

/* Copies a box to the same place in both blocks, and counts its bytes at the barrier of each. */
__device__ __forceinline__ void load_both(void *to, const CUtensorMap *map, uint64_t *bar, int x,
                                          int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(ptx::smem_addr(to)),
        "l"(map), "r"(ptx::smem_addr(bar)), "r"(x), "r"(y), "r"(z), "h"(static_cast<uint16_t>(3))
        : "memory");
}

template <int COLS>
__device__ __forceinline__ void load_tiles(const params &p, shared_memory<ROWS, COLS> &s) {
    using place = pair_of_blocks;
    walk<2 * ROWS, COLS> w(p.a);
    const int stages = s.STAGES, steps = (p.a.k + TILE_K - 1) / TILE_K, rank = place::rank();
    const int half = rank * COLS / 2;
    tile t;
    int step = 0;
    for (int index = place::first(); w.find(index, t); index += place::stride())
        for (int k = 0; k < steps; k++, step++) {
            const int stage = step % stages;
            uint64_t *full = &s.full[stage];
            ptx::mbarrier_wait(&s.empty[stage], (step / stages + 1) % 2);
            ptx::mbarrier_arrive_expect(full, s.STAGE_BYTES);
            ptx::tma_load_2d(s.x[stage], &p.x, full, k * TILE_K, t.first + t.row + rank * ROWS);
            load_both(s.w[stage] + half * TILE_K, &p.w, full, k * TILE_K, t.col + half, t.group);
            ptx::tma_load_3d(s.scale[stage], &p.scale, full, k / 2 * kScalesAtOnce, t.col / 16,
                             t.group);
        }
}

/* A part whose products run while another one is scaled. */
struct part_ahead {
    float part[64];
    float2 row;
    int stage, odd;

    /* Waits for block @k of k and starts its products. */
    __device__ __forceinline__ void begin(shared_memory<ROWS, 128> &s, row_scales &rows, int k,
                                          int step, int half) {
        stage = step % s.STAGES;
        odd = k % 2;
        row = rows.next();
        ptx::mbarrier_wait(&s.full[stage], step / s.STAGES % 2);
        start(part, ptx::descriptor_low_128(ptx::smem_addr(s.x[stage] + half * 64 * TILE_K)),
              ptx::descriptor_low_128(ptx::smem_addr(s.w[stage])));
    }
    /* The products have ended. */
    template <bool UNIFORM>
    __device__ __forceinline__ void add_to(float (&sum)[64], shared_memory<ROWS, 128> &s) {
        float2 scale[UNIFORM ? 1 : 8];
        ptx::pin(part);
        load_scales<64>(scale, s.scale[stage] + odd * 2);
        __syncwarp();
        pair_of_blocks::release(&s.empty[stage]);
        add_scaled(sum, part, row, scale);
    }
};

/* Computes the sums of a tile. Blocks of k alternate between two parts. The loop has no branches,
 * because the compiler would otherwise wait before each use of a part. */
template <bool UNIFORM>
__device__ __forceinline__ void multiply_blocks(float (&sum)[64], shared_memory<ROWS, 128> &s,
                                                row_scales &rows, int steps, int step, int half) {
    part_ahead even, odd;
    even.begin(s, rows, 0, step, half);
    int k = 1;
    for (; k + 1 < steps; k += 2) {
        odd.begin(s, rows, k, step + k, half);
        ptx::wgmma_wait<1>();
        even.add_to<UNIFORM>(sum, s);
        even.begin(s, rows, k + 1, step + k + 1, half);
        ptx::wgmma_wait<1>();
        odd.add_to<UNIFORM>(sum, s);
    }
    if (k < steps) {
        odd.begin(s, rows, k, step + k, half);
        ptx::wgmma_wait<1>();
        even.add_to<UNIFORM>(sum, s);
        ptx::wgmma_wait<0>();
        odd.add_to<UNIFORM>(sum, s);
    } else {
        ptx::wgmma_wait<0>();
        even.add_to<UNIFORM>(sum, s);
    }
}

template <bool UNIFORM>
__device__ __forceinline__ void multiply_ahead(const gemm_args &a, shared_memory<ROWS, 128> &s) {
    using place = pair_of_blocks;
    walk<2 * ROWS, 128> w(a);
    tile t;
    const int half = ptx::warp() / 4 - 1, lane = threadIdx.x % 128;
    const int own = place::rank() * ROWS + half * 64 + lane / 32 * 16 + lane % 32 / 4;
    const int steps = (a.k + TILE_K - 1) / TILE_K;
    int step = 0;
    for (int index = place::first(); w.find(index, t); index += place::stride()) {
        const int row = t.first + t.row + own;
        float sum[1][64] = {};
        row_scales rows(a, row, steps);
        multiply_blocks<UNIFORM>(sum[0], s, rows, steps, step, half);
        step += steps;
        store_tile<ROWS, 128>(a, sum, t, row, t.col);
    }
}

template <bool UNIFORM, int COLS>
__device__ __forceinline__ void multiply_pairs(const gemm_args &a, shared_memory<ROWS, COLS> &s) {
    multiply_tiles<UNIFORM, pair_of_blocks>(a, s);
}

template <bool UNIFORM>
__device__ __forceinline__ void multiply_pairs(const gemm_args &a, shared_memory<ROWS, 128> &s) {
    multiply_ahead<UNIFORM>(a, s);
}

template <bool UNIFORM, int COLS>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads, 1)
    many_pairs(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = *reinterpret_cast<shared_memory<ROWS, COLS> *>(
        (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < s.STAGES; i++) {
            ptx::mbarrier_init(&s.full[i], 1);
            ptx::mbarrier_init(&s.empty[i], 2 * kMultiplyWarps);
        }
        ptx::mbarrier_init_fence();
    }
    ptx::cluster_sync();
    let_next();
    wait_previous();
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x == 0)
            load_tiles(p, s);
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        multiply_pairs<UNIFORM>(p.a, s);
    }
    /* The other block copies to this one and arrives at its barriers until both have ended. */
    ptx::cluster_sync();
}

/* ---- host ------------------------------------------------------------------------------------ */

template <bool UNIFORM, int COLS>
cudaError_t allow_memory() {
    static_assert(sizeof(shared_memory<ROWS, COLS>) + 1024 <= 227 * 1024, "of an SM");
    return cudaFuncSetAttribute(many_pairs<UNIFORM, COLS>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                sizeof(shared_memory<ROWS, COLS>) + 1024);
}

template <int COLS>
cudaError_t allow_both() {
    const cudaError_t e = allow_memory<false, COLS>();
    return e == cudaSuccess ? allow_memory<true, COLS>() : e;
}

template <int COLS>
cudaError_t launch_pairs(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    cudaError_t e = map_codes(&p.x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, ROWS);
    if (e == cudaSuccess)
        e = map_codes(&p.w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, COLS / 2);
    if (e == cudaSuccess)
        e = map_floats(&p.scale, a.w_codes.scale, 2 * code_pitch(a.k), (a.n + 15) / 16, a.groups,
                       kScalesAtOnce, COLS / 16);
    if (e != cudaSuccess)
        return e;
    const int64_t pairs = static_cast<int64_t>((a.rows + 2 * ROWS - 1) / (2 * ROWS)) *
                          ((a.n + COLS - 1) / COLS) * a.groups;
    return launch(s, a.w_uniform ? many_pairs<true, COLS> : many_pairs<false, COLS>,
                  dim3(2 * static_cast<unsigned>(std::min<int64_t>(pairs, s.sms / 2))), kThreads,
                  sizeof(shared_memory<ROWS, COLS>) + 1024, p);
}

} // namespace

cudaError_t gemm_many_pairs_init() {
    cudaError_t e = allow_both<128>();
    if (e == cudaSuccess)
        e = allow_both<192>();
    return e == cudaSuccess ? allow_both<256>() : e;
}

cudaError_t gemm_many_pairs(const stream_of &s, const gemm_args &a, many_variant variant) {
    switch (variant) {
    case many_256:
        return launch_pairs<256>(s, a);
    case many_192:
        return launch_pairs<192>(s, a);
    case many_ahead:
        return launch_pairs<128>(s, a);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace device
