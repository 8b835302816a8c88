/* gemm_many_split: the products of gemm_many_codes() for up to 128 rows and few weights, for which
 * the tiles of that kernel are too few for the device (splits_k()).
 *
 * The four blocks of a cluster compute one tile of 64 rows by 64 weights, each for a quarter of k.
 * The first block then reads the sums of the others from their shared memory and adds them up, in
 * the order of k. Two blocks fit on an SM. */
#include "generator/local/cuda/sm90_many_codes.cuh"

namespace device {
namespace {

enum {
    SIZE = 64, /* rows and weights of a tile */
    QUARTERS = 4,
    MOST_ROWS = 128,
    SPLIT_STAGES = 6,
    TEAM = 256, /* threads that multiply */
    TEAM_BARRIER = 1,
};

using ring = shared_memory<SIZE, SIZE, SPLIT_STAGES>;
using own_share = share<SIZE, SIZE>;
static_assert(own_share::PARTS == 1 && own_share::N * TEAM * 4 <= sizeof(ring::x), "sums fit");

struct params {
    CUtensorMap x, w, scale;
    gemm_args a;
};

/* A number in the shared memory of block @rank of the cluster, at the same place as @own. */
__device__ __forceinline__ float read_of(const float *own, int rank) {
    float x;
    asm volatile("{ .reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %1, %2;\n"
                 "ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(x)
                 : "r"(ptx::smem_addr(own)), "r"(rank)
                 : "memory");
    return x;
}

/* The blocks of k of one block: an even number, because the scales of two are loaded at once. */
struct quarter {
    int first, count;

    __device__ quarter(int k, int rank) {
        const int steps = (k + TILE_K - 1) / TILE_K;
        const int each = (steps + 2 * QUARTERS - 1) / (2 * QUARTERS) * 2;
        first = rank * each;
        count = max(min(steps - first, each), 0);
    }
};

__device__ __forceinline__ void load_quarter(const params &p, ring &s, const tile &t,
                                             const quarter &q) {
    for (int step = 0; step < q.count; step++) {
        const int stage = step % s.STAGES, k = q.first + step;
        uint64_t *full = &s.full[stage];
        ptx::mbarrier_wait(&s.empty[stage], (step / s.STAGES + 1) % 2);
        ptx::mbarrier_arrive_expect(full, s.STAGE_BYTES);
        ptx::tma_load_2d(s.x[stage], &p.x, full, k * TILE_K, t.row);
        ptx::tma_load_3d(s.w[stage], &p.w, full, k * TILE_K, t.col, t.group);
        ptx::tma_load_3d(s.scale[stage], &p.scale, full, k / 2 * kScalesAtOnce, t.col / 16,
                         t.group);
    }
}

template <bool UNIFORM>
__global__ void __cluster_dims__(QUARTERS, 1, 1) __launch_bounds__(kThreads, 2)
    many_split(const __grid_constant__ params p) {
    extern __shared__ uint8_t raw[];
    auto &s = *reinterpret_cast<ring *>((reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
    const int rank = blockIdx.x % QUARTERS, half = ptx::warp() / 4 - 1, lane = threadIdx.x % 128;
    walk<SIZE, SIZE> w(p.a);
    tile t;
    w.find(static_cast<int>(blockIdx.x) / QUARTERS, t);
    const quarter q(p.a.k, rank);
    const int row = t.row + lane / 32 * 16 + lane % 32 / 4;
    float *sums = reinterpret_cast<float *>(s.x) + threadIdx.x - 128;
    float sum[1][own_share::N];
    int step = 0;
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
    if (threadIdx.x == 0)
        load_quarter(p, s, t, q);
    if (threadIdx.x >= 128) {
        multiply<UNIFORM>(sum, s, row_scales(p.a, row, q.count, q.first), q.count, step, half);
        /* Both warpgroups have read the ring. */
        ptx::named_sync(TEAM_BARRIER, TEAM);
#pragma unroll
        for (int i = 0; i < own_share::N; i++)
            sums[i * TEAM] = sum[0][i];
    }
    ptx::cluster_sync();
    if (threadIdx.x >= 128 && rank == 0) {
        for (int other = 1; other < QUARTERS; other++)
#pragma unroll
            for (int i = 0; i < own_share::N; i++)
                sum[0][i] += read_of(sums + i * TEAM, other);
        store_tile<SIZE, SIZE>(p.a, sum, t, row, t.col + half * own_cols<SIZE, SIZE>());
    }
    /* The first block has read the other blocks' memory. */
    ptx::cluster_sync();
}

int64_t tiles_of(const gemm_args &a) {
    return static_cast<int64_t>((a.rows + SIZE - 1) / SIZE) * ((a.n + SIZE - 1) / SIZE) * a.groups;
}

} // namespace

cudaError_t gemm_many_split_init() {
    static_assert(sizeof(ring) + 2048 <= 113 * 1024, "half of an SM");
    const cudaError_t e = cudaFuncSetAttribute(
        many_split<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ring) + 1024);
    return e == cudaSuccess
               ? cudaFuncSetAttribute(many_split<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      sizeof(ring) + 1024)
               : e;
}

bool splits_k(const stream_of &s, const gemm_args &a) {
    return !a.listed && a.rows <= MOST_ROWS && tiles_of(a) <= s.sms;
}

cudaError_t gemm_many_split(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    cudaError_t e = map_codes(&p.x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, SIZE);
    if (e == cudaSuccess)
        e = map_codes(&p.w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, SIZE);
    if (e == cudaSuccess)
        e = map_floats(&p.scale, a.w_codes.scale, 2 * code_pitch(a.k), (a.n + 15) / 16, a.groups,
                       kScalesAtOnce, SIZE / 16);
    if (e != cudaSuccess)
        return e;
    return launch(s, a.w_uniform ? many_split<true> : many_split<false>,
                  dim3(static_cast<unsigned>(tiles_of(a) * QUARTERS)), kThreads,
                  sizeof(ring) + 1024, p);
}

} // namespace device
