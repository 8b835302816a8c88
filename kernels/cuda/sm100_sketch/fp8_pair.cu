/* fp8_pair.cu - the main loop of an FP8 decode kernel for compute capability 10.0: 128 query rows
 * in a pair of CTAs. NEVER RUN: no device of this kind was available. Only `make audit` compiles
 * this file; no program contains it.
 *
 * docs/blackwell.md explains the design. This file shows that the design can be written down: its
 * instructions, its shared memory, tensor memory and registers. It has no schedule, no mask and no
 * merge: the pair takes one sequence, and its length is a multiple of 128.
 *
 *   warp 0       one thread drives the copy engine
 *   warp 1       allocates tensor memory; in the even CTA, one thread issues all MMAs
 *   warps 2, 3   no work
 *   warps 4-7    softmax of even tiles, then half of the output
 *   warps 8-11   softmax of odd tiles, then half of the output
 *
 * A tile has two pages of 64 tokens. CTA r has 64 of the 128 rows. An MMA of the pair takes half of
 * its operand B from each CTA, at the same address in both. So CTA r loads page r of a tile as its
 * half of K, and columns r and 2 + r (of 128 numbers each) of both pages as its half of V. A
 * quarter of the tile is in its shared memory twice, as K and as V: V cannot use the copy of page r
 * in K, because at its address the other CTA has the other page. Both halves have the layout of the
 * cache: for K, the summed dimension is contiguous; for V, the other one is.
 *
 * Tensor memory, of 512 columns. The accumulator of a 64-row CTA has the left half of its columns
 * in lanes 0 to 63, and the right half in lanes 64 to 127:
 *   0-255     O: 2 x 256 columns        256-319, 320-383   S of even and odd tiles */
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm100_sketch/pair.cuh"

namespace sm100_sketch {
namespace {

enum { ROWS = PAIR_ROWS, PAGE = 64, COLUMNS = 4, ROW_BYTES = 128, STAGES = 2, THREADS = 384 };
enum { TMEM_O = PAIR_TMEM_O, TMEM_S = PAIR_TMEM_S, TMEM_S_SIZE = 64, TMEM_COLUMNS = 512 };

struct alignas(1024) shared {
    struct keys { /* page r of a tile */
        uint8_t content[COLUMNS][PAGE][ROW_BYTES];
        uint8_t rope[PAGE][ROW_BYTES];
    } k[STAGES];
    uint8_t v[STAGES][2][2 * PAGE][ROW_BYTES]; /* columns r and 2 + r */
    uint8_t q[COLUMNS][ROWS][ROW_BYTES];
    uint8_t q_rope[ROWS][ROW_BYTES];
    pair_rows rows;
    float scales[STAGES][2][PAGE]; /* a_k */
    uint64_t full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];
    uint64_t full_scales[STAGES], full_q;
    uint32_t tmem;
};
static_assert(sizeof(shared) == 207872, "docs/blackwell.md has this sum; a CTA can have 232448");

struct params {
    CUtensorMap content; /* [4][pages x 64][128] B */
    CUtensorMap rope;    /* [pages x 64][128] B */
    CUtensorMap q;       /* [4][128 rows][128] B */
    CUtensorMap q_rope;  /* [128 rows][128] B */
    const float *token_scale, *q_scale;
    const int *pages;
    __nv_bfloat16 *out; /* [128][512] */
    int tiles;
    float scale_log2;
};

__device__ void load_keys(shared &sh, const params &p, int rank, int t) {
    const int s = t % STAGES, page = p.pages[2 * t + rank] * PAGE;
    ptx::mbarrier_wait(&sh.empty_k[s], (t / STAGES & 1) ^ 1);
    const uint32_t full = tcgen05::barrier_of_even(&sh.full_k[s]);
    if (rank == 0)
        ptx::mbarrier_arrive_expect(&sh.full_k[s], 2 * sizeof(shared::keys)); /* of both CTAs */
    for (int c = 0; c < COLUMNS; c++)
        load_pair(sh.k[s].content[c], &p.content, full, 0, page, c);
    load_pair(sh.k[s].rope, &p.rope, full, 0, page, 0);
}

__device__ void load_values(shared &sh, const params &p, int rank, int t) {
    const int s = t % STAGES;
    ptx::mbarrier_wait(&sh.empty_v[s], (t / STAGES & 1) ^ 1);
    const uint32_t full = tcgen05::barrier_of_even(&sh.full_v[s]);
    if (rank == 0)
        ptx::mbarrier_arrive_expect(&sh.full_v[s], 2 * sizeof sh.v[s]);
    ptx::mbarrier_arrive_expect(&sh.full_scales[s], 2 * PAGE * 4);
    for (int i = 0; i < 2; i++) {
        const int page = p.pages[2 * t + i] * PAGE;
        for (int half = 0; half < 2; half++)
            load_pair(sh.v[s][half][i * PAGE], &p.content, full, 0, page, 2 * half + rank);
        ptx::bulk_load(sh.scales[s][i], p.token_scale + page, PAGE * 4, &sh.full_scales[s]);
    }
}

__device__ void load_pages(shared &sh, const params &p, int rank) {
    load_keys(sh, p, rank, 0);
    for (int t = 0; t < p.tiles; t++) {
        if (t + 1 < p.tiles)
            load_keys(sh, p, rank, t + 1);
        load_values(sh, p, rank, t);
    }
}

__device__ void issue_scores(shared &sh, uint32_t tmem, int t) {
    const shared::keys &keys = sh.k[t % STAGES];
    const uint32_t d = tmem + TMEM_S + t % 2 * TMEM_S_SIZE;
    constexpr uint32_t content = tcgen05::e4m3_by_e4m3(2 * ROWS, 2 * PAGE, false, false);
    constexpr uint32_t rope = tcgen05::bf16_by_bf16(2 * ROWS, 2 * PAGE);
    for (int c = 0; c < COLUMNS; c++) {
        const uint64_t a = tcgen05::operand_128(ptx::smem_addr(sh.q[c]));
        const uint64_t b = tcgen05::operand_128(ptx::smem_addr(keys.content[c]));
        for (int k = 0; k < 4; k++)
            tcgen05::mma_fp8_pair(d, a + 2 * k, b + 2 * k, content, c + k > 0);
    }
    const uint64_t a = tcgen05::operand_128(ptx::smem_addr(sh.q_rope));
    const uint64_t b = tcgen05::operand_128(ptx::smem_addr(keys.rope));
    for (int k = 0; k < 4; k++)
        tcgen05::mma_bf16_pair(d, a + 2 * k, b + 2 * k, rope, true);
    tcgen05::commit_pair(&sh.empty_k[t % STAGES]);
    tcgen05::commit_pair(&sh.rows.full_s[t % 2]);
}

__device__ void issue_output(shared &sh, uint32_t tmem, int t) {
    const uint64_t a = tcgen05::operand_128(ptx::smem_addr(sh.rows.p[t % 2]));
    constexpr uint32_t shape = tcgen05::e4m3_by_e4m3(2 * ROWS, 256, false, true);
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 4; k++) { /* 32 tokens each */
            const uint32_t v = ptx::smem_addr(sh.v[t % STAGES][half][32 * k]);
            tcgen05::mma_fp8_pair(tmem + TMEM_O + half * 128, a + 2 * k, tcgen05::operand_128(v),
                                  shape, t + k > 0);
        }
    tcgen05::commit_pair(&sh.empty_v[t % STAGES]);
    tcgen05::commit_pair(&sh.rows.empty_p[t % 2]);
}

/* S of the next tile is issued before P V of the present one. */
__device__ void issue_all(shared &sh, const params &p, uint32_t tmem) {
    ptx::mbarrier_wait(&sh.full_q, 0);
    for (int t = 0; t <= p.tiles; t++) {
        if (t < p.tiles) {
            ptx::mbarrier_wait(&sh.full_k[t % STAGES], t / STAGES & 1);
            tcgen05::fence_after();
            issue_scores(sh, tmem, t);
        }
        if (t > 0) {
            ptx::mbarrier_wait(&sh.full_v[(t - 1) % STAGES], (t - 1) / STAGES & 1);
            ptx::mbarrier_wait(&sh.rows.full_p[(t - 1) % 2], (t - 1) / 2 & 1);
            tcgen05::fence_after();
            issue_output(sh, tmem, t - 1);
        }
    }
}

__device__ void init(shared &sh) {
    for (int s = 0; s < STAGES; s++) {
        ptx::mbarrier_init(&sh.full_k[s], 1);
        ptx::mbarrier_init(&sh.empty_k[s], 1);
        ptx::mbarrier_init(&sh.full_v[s], 1);
        ptx::mbarrier_init(&sh.empty_v[s], 1);
        ptx::mbarrier_init(&sh.full_scales[s], 1);
    }
    sh.rows.init();
    ptx::mbarrier_init(&sh.full_q, 1);
    ptx::mbarrier_init_fence();
}

__device__ void load_queries(shared &sh, const params &p, int rank) {
    const uint32_t full = tcgen05::barrier_of_even(&sh.full_q);
    if (rank == 0)
        ptx::mbarrier_arrive_expect(&sh.full_q, 2 * (sizeof sh.q + sizeof sh.q_rope));
    for (int c = 0; c < COLUMNS; c++)
        load_pair(sh.q[c], &p.q, full, 0, rank * ROWS, c);
    load_pair(sh.q_rope, &p.q_rope, full, 0, rank * ROWS, 0);
}

} // namespace

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
    fp8_pair_loop(const __grid_constant__ params p) {
    extern __shared__ uint8_t memory[];
    shared &sh = *reinterpret_cast<shared *>(memory);
    const int warp = threadIdx.x / 32, rank = blockIdx.x % 2;
    if (threadIdx.x == 0)
        init(sh);
    if (warp == 1)
        tcgen05::alloc<2>(&sh.tmem, TMEM_COLUMNS);
    tcgen05::fence_before();
    tcgen05::cluster_sync();
    tcgen05::fence_after();
    const uint32_t tmem = sh.tmem;
    if (threadIdx.x == 0) {
        load_queries(sh, p, rank);
        load_pages(sh, p, rank);
    } else if (threadIdx.x == 32 && rank == 0) {
        issue_all(sh, p, tmem);
    } else if (warp >= 4) {
        const int group = warp / 4 - 1, thread = threadIdx.x % 128, row = thread % ROWS;
        const float c = p.scale_log2 * p.q_scale[rank * ROWS + row];
        const float inverse =
            softmax<true>(sh.rows, sh.scales, sh.full_scales, p.tiles, tmem, group, thread, c);
        store_output(p.out + (rank * ROWS + row) * 512 + group * 256 + thread / ROWS * 128, tmem,
                     group, thread, inverse);
    }
    __syncwarp();
    tcgen05::fence_before();
    tcgen05::cluster_sync();
    if (warp == 1)
        tcgen05::dealloc<2>(tmem, TMEM_COLUMNS);
}

} // namespace sm100_sketch
