/* gemm_stream_k: the products of gemm_many_codes() for up to 128 rows whose tiles would leave SMs
 * idle (suits_stream_k()). They take as long as loading the weights, so all SMs should load the
 * same number of bytes.
 *
 * A tile is ROWS rows of x and COLS weights, with all their k. One tile has all rows, so the tiles
 * differ only in their weights. The k of a tile are divided into pairs of blocks of 128. All pairs
 * of all tiles form one sequence, and each thread block computes an equal part of it, its range
 * ("stream-K"). So the number of tiles need not be a multiple of the number of SMs.
 *
 * The ranges of several thread blocks can have pairs of one tile. Then each of these blocks has a
 * partial sum. The block with the first k of the tile waits for the partial sums of the others,
 * adds them in the order of k, and stores the result. Each of the others stores its partial sum in
 * global memory before it waits for another block. So a block waits only for blocks with higher
 * numbers that have a part of the same tile. If kernels of other streams use some SMs, these blocks
 * may start late: when blocks whose tiles are complete have ended. At least as many blocks must run
 * at the same time as share one tile.
 *
 * The first weights are loaded before the previous kernel has ended.
 * Source: Osama et al., Stream-K, PPoPP 2023 (arXiv 2301.03598). */
#include <algorithm>

#include "generator/local/cuda/sm90_code_sums.cuh"

namespace device {
namespace {

enum {
    MOST_ROWS = 128,
    WIDE = 256,             /* weights of a tile */
    NARROW = 64,            /* weights of a tile, for products with fewer wide tiles than SMs */
    LEAST_K = 4096,         /* products with a smaller k are left to gemm_many_codes() */
    MULTIPLY_THREADS = 256, /* threads that multiply */
    MULTIPLY_BARRIER = 1,
};

struct params {
    code_maps map;
    gemm_args a;
    int loaded_rows; /* 16, 32, 64 or 128 rows of x are loaded. The shared memory of the tile's
                        other rows has any contents, and their results are not stored */
};

/* The part of one tile that lies in the range of a thread block. */
struct segment {
    tile t;
    int tile_end;     /* number of the first pair after this tile */
    int first, count; /* blocks of k */
};

/* The range of a thread block: the pairs from @at up to, but not including, @end. */
template <int COLS>
struct range {
    const gemm_args &a;
    int cols, steps, pairs, at, end;

    __device__ explicit range(const gemm_args &a)
        : a(a), cols((a.n + COLS - 1) / COLS), steps((a.k + TILE_K - 1) / TILE_K),
          pairs((steps + 1) / 2), at(begin(blockIdx.x)), end(begin(blockIdx.x + 1)) {
    }
    __device__ int begin(int block) const {
        return static_cast<int>(static_cast<int64_t>(a.groups) * cols * pairs * block / gridDim.x);
    }
    __device__ bool next(segment &g) {
        if (at >= end)
            return false;
        const int number = at / pairs, from = at % pairs, n = min(pairs - from, end - at);
        g.t = {number / cols, 0, 0, a.rows, number % cols * COLS};
        g.tile_end = (number + 1) * pairs;
        g.first = 2 * from;
        g.count = min(2 * n, steps - g.first);
        at += n;
        return true;
    }
};

template <int ROWS, int COLS>
struct loader {
    const params &p;
    shared_memory<ROWS, COLS> &s;

    /* @k: the number of a block of k. */
    __device__ void weights(int stage, const tile &t, int k) const {
        const int missing = (ROWS - p.loaded_rows) * s.ROW_BYTES;
        ptx::mbarrier_arrive_expect(&s.full[stage], s.STAGE_BYTES - missing);
        ptx::tma_load_3d(s.w[stage], &p.map.w, &s.full[stage], k * TILE_K, t.col, t.group);
        ptx::tma_load_3d(s.scale[stage], &p.map.scale, &s.full[stage], k / 2 * kScalesAtOnce,
                         t.col / 16, t.group);
    }
    __device__ void rows(int stage, int k) const {
        ptx::tma_load_2d(s.x[stage], &p.map.x, &s.full[stage], k * TILE_K, 0);
        ptx::tma_load_2d(s.row_scale[stage], &p.map.row_scale, &s.full[stage], 0, k);
    }
};

/* Fills the ring for the first time. The weights are loaded at once, and x when the previous kernel
 * has ended. Returns the number of stages that were filled. */
template <int ROWS, int COLS>
__device__ __forceinline__ int load_first(const params &p, const loader<ROWS, COLS> &l) {
    const int stages = l.s.STAGES;
    range<COLS> of_weights(p.a), of_rows(p.a);
    segment g;
    int n = 0;
    while (n < stages && of_weights.next(g))
        for (int k = 0; k < g.count && n < stages; k++, n++)
            l.weights(n, g.t, g.first + k);
    wait_previous();
    n = 0;
    while (n < stages && of_rows.next(g))
        for (int k = 0; k < g.count && n < stages; k++, n++)
            l.rows(n, g.first + k);
    return n;
}

template <int ROWS, int COLS>
__device__ __forceinline__ void load_range(const params &p, shared_memory<ROWS, COLS> &s) {
    const loader<ROWS, COLS> l = {p, s};
    ring_place<shared_memory<ROWS, COLS>::STAGES> at;
    range<COLS> r(p.a);
    segment g;
    int loaded = load_first(p, l);
    while (r.next(g))
        for (int k = 0; k < g.count; k++, at.advance()) {
            if (loaded-- > 0)
                continue;
            ptx::mbarrier_wait(&s.empty[at.stage], at.parity ^ 1);
            l.weights(at.stage, g.t, g.first + k);
            l.rows(at.stage, g.first + k);
        }
}

/* ---- partial sums ---------------------------------------------------------------------------- */

/* The place of this thread's numbers in the partial sums of thread block @block. */
template <int NUMBERS>
__device__ __forceinline__ float4 *partial_at(const gemm_args &a, int block) {
    return reinterpret_cast<float4 *>(a.partial.sum) +
           static_cast<int64_t>(block) * NUMBERS / 4 * MULTIPLY_THREADS + threadIdx.x - 128;
}

template <int PARTS, int N>
__device__ __forceinline__ void store_partial(const gemm_args &a, const float (&sum)[PARTS][N]) {
    float4 *to = partial_at<PARTS * N>(a, blockIdx.x);
#pragma unroll
    for (int i = 0; i < PARTS * N; i += 4) {
        const float *own = sum[i / N] + i % N;
        to[i / 4 * MULTIPLY_THREADS] = make_float4(own[0], own[1], own[2], own[3]);
    }
    __threadfence();
    ptx::named_sync(MULTIPLY_BARRIER, MULTIPLY_THREADS);
    if (threadIdx.x == 128)
        asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(a.partial.ready + blockIdx.x)
                     : "memory");
}

/* Waits until a thread block has stored its partial sums. */
__device__ __forceinline__ void wait_for_partial(int *ready) {
    int is = 0;
    while (!is)
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(is) : "l"(ready) : "memory");
}

/* Adds the partial sums of the following thread blocks that have a part of this tile. Clears their
 * marks, so that the next product finds zeros. */
template <int COLS, int PARTS, int N>
__device__ __forceinline__ void add_partials(const gemm_args &a, const range<COLS> &r,
                                             const segment &g, float (&sum)[PARTS][N]) {
    for (int block = blockIdx.x + 1; r.begin(block) < g.tile_end; block++) {
        int *ready = a.partial.ready + block;
        wait_for_partial(ready);
        const float4 *from = partial_at<PARTS * N>(a, block);
#pragma unroll
        for (int i = 0; i < PARTS * N; i += 4) {
            const float4 other = __ldcg(from + i / 4 * MULTIPLY_THREADS);
            float *own = sum[i / N] + i % N;
            own[0] += other.x;
            own[1] += other.y;
            own[2] += other.z;
            own[3] += other.w;
        }
        ptx::named_sync(MULTIPLY_BARRIER, MULTIPLY_THREADS);
        if (threadIdx.x == 128)
            *ready = 0;
    }
}

template <bool UNIFORM, int ROWS, int COLS>
__device__ __forceinline__ void multiply_range(const gemm_args &a, shared_memory<ROWS, COLS> &s) {
    using own_share = share<ROWS, COLS>;
    range<COLS> r(a);
    segment g;
    const int warp = ptx::warp() % 4, half = ptx::warp() / 4 - 1, row = half * (ROWS - 64);
    const place_in_tile p = {row, half * second_col<ROWS, COLS>(),
                             row + warp * 16 + static_cast<int>(threadIdx.x) % 32 / 4};
    next_stage<ROWS, COLS> next(s);
    while (r.next(g)) {
        float sum[own_share::PARTS][own_share::N];
        clear(sum);
        multiply<UNIFORM>(sum, next, p, g.count);
        if (g.first > 0) {
            store_partial(a, sum);
            continue;
        }
        add_partials(a, r, g, sum);
        store_share(a, sum, g.t, p, warp, s.rows[ptx::warp() - 4]);
    }
}

template <bool UNIFORM, int ROWS, int COLS>
__global__ void __launch_bounds__(kThreads, 1) stream_k(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = shared_memory<ROWS, COLS>::prepare(raw);
    let_next();
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x == 0)
            load_range(p, s);
        else
            wait_previous();
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        wait_previous();
        multiply_range<UNIFORM>(p.a, s);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

template <int ROWS, int COLS>
cudaError_t allow_memory() {
    const int bytes = shared_memory<ROWS, COLS>::dynamic_bytes();
    const cudaError_t e = cudaFuncSetAttribute(stream_k<false, ROWS, COLS>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return e == cudaSuccess
               ? cudaFuncSetAttribute(stream_k<true, ROWS, COLS>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)
               : e;
}

int64_t tiles_of(const gemm_args &a, int cols) {
    return static_cast<int64_t>((a.n + cols - 1) / cols) * a.groups;
}

template <int ROWS, int COLS>
cudaError_t launch_tiles(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    for (p.loaded_rows = 16; p.loaded_rows < a.rows;)
        p.loaded_rows *= 2;
    const cudaError_t e = make_maps(&p.map, a, p.loaded_rows, COLS);
    if (e != cudaSuccess)
        return e;
    const int64_t pairs = tiles_of(a, COLS) * ((code_blocks(a.k) + 1) / 2);
    return launch(s, a.w_uniform ? stream_k<true, ROWS, COLS> : stream_k<false, ROWS, COLS>,
                  dim3(static_cast<unsigned>(std::min<int64_t>({pairs, s.sms, STREAM_K_BLOCKS}))),
                  kThreads, shared_memory<ROWS, COLS>::dynamic_bytes(), p);
}

} // namespace

cudaError_t gemm_stream_k_init() {
    cudaError_t e = allow_memory<64, NARROW>();
    if (e == cudaSuccess)
        e = allow_memory<64, WIDE>();
    if (e == cudaSuccess)
        e = allow_memory<128, NARROW>();
    return e == cudaSuccess ? allow_memory<128, WIDE>() : e;
}

int64_t partial_sums_numbers() {
    return static_cast<int64_t>(STREAM_K_BLOCKS) * MOST_ROWS * WIDE;
}

/* gemm_many_codes() has no partial sums, so it is faster if its tiles keep the SMs busy. This
 * estimate counts tiles of 256 or 64 weights: they should occupy at least 70 % of the SMs. For 65
 * to 128 rows gemm_many_codes() may choose others. */
bool suits_stream_k(const gemm_args &a) {
    if (a.listed || a.rows > MOST_ROWS || a.k < LEAST_K)
        return false;
    const int64_t wide = tiles_of(a, WIDE),
                  tiles = wide < STREAM_K_BLOCKS ? tiles_of(a, NARROW) : wide,
                  turns = (tiles + STREAM_K_BLOCKS - 1) / STREAM_K_BLOCKS;
    return tiles * 10 < turns * STREAM_K_BLOCKS * 7;
}

/* Wide tiles load x less often. But if there are fewer wide tiles than SMs, most of them are
 * divided, and their partial sums are four times as large as those of narrow tiles. */
cudaError_t gemm_stream_k(const stream_of &s, const gemm_args &a) {
    const bool wide = static_cast<int64_t>(a.n) * a.groups >= static_cast<int64_t>(s.sms) * WIDE;
    if (a.rows <= 64)
        return wide ? launch_tiles<64, WIDE>(s, a) : launch_tiles<64, NARROW>(s, a);
    return wide ? launch_tiles<MOST_ROWS, WIDE>(s, a) : launch_tiles<MOST_ROWS, NARROW>(s, a);
}

} // namespace device
