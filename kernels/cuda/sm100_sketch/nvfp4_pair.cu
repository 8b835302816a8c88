/* nvfp4_pair.cu - the main loop of a decode kernel on an NVFP4 cache for compute capability 10.0:
 * 128 query rows in a pair of CTAs. NEVER RUN: no device of this kind was available. Only `make
 * audit` compiles this file; no program contains it.
 *
 * docs/blackwell.md explains the design. As in fp8_pair.cu, there is no schedule, no mask and no
 * merge: the pair takes one sequence, and its length is a multiple of 128. The pages 2 t and 2 t +
 * 1 of a sequence follow each other in the cache, and the first one is even.
 *
 *   warp 0        one thread drives the copy engine
 *   warp 1        allocates tensor memory; in the even CTA, one thread issues all MMAs
 *   warps 2, 3    no work
 *   warps 4-7     softmax of even tiles, then half of the output
 *   warps 8-11    softmax of odd tiles, then half of the output
 *   warps 12-15   bring the scales of K to tensor memory, and widen V
 *
 * S = Q K^T adds the products of two NVFP4 terms of Q, so K is read twice. CTA r loads page r of a
 * tile as its half of K, and columns 256 r to 256 r + 255 of both pages as its half of V. The
 * widened V is a second tile in shared memory, with the layout of an FP8 cache.
 *
 * An MMA of a pair with 64 rows in each CTA finds the scales of the first 64 tokens in lanes 0 to
 * 31 and 32 to 63, and those of the others in lanes 64 to 95 and 96 to 127. The cache has them in
 * the order for 128 rows in one CTA (nvfp4.cuh), which tcgen05.cp cannot change. So threads store
 * them.
 *
 * Tensor memory, of 512 columns:
 *   0-383     as in pair.cuh: O, S of even and odd tiles
 *   384-415   scales of K: 2 x 16            416-447   scales of Q: 2 terms x 16 */
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm100_sketch/nvfp4.cuh"
#include "kernels/cuda/sm100_sketch/pair.cuh"

namespace sm100_sketch {
namespace {

enum { ROWS = PAIR_ROWS, PAGE = 64, TILE = 128, ROW_BYTES = 128, STAGES = 2, THREADS = 512 };
enum { TMEM_O = PAIR_TMEM_O, TMEM_S = PAIR_TMEM_S, TMEM_S_SIZE = 64 };
enum { TMEM_K_SCALES = 384, TMEM_Q_SCALES = 416, TMEM_TERM = 16, TMEM_COLUMNS = 512 };

struct alignas(1024) shared {
    struct keys {                            /* page r of a tile */
        uint8_t content[2][PAGE][ROW_BYTES]; /* e2m1 */
        uint8_t rope[PAGE][ROW_BYTES];
    } k[STAGES];
    struct values {
        uint8_t content[TILE][ROW_BYTES]; /* e2m1: columns 256 r to 256 r + 255 */
        scales scale;                     /* of all columns */
    } v[STAGES];
    uint8_t wide[2][2][TILE][ROW_BYTES]; /* e4m3: V of even and odd tiles, 2 x 128 columns */
    uint8_t q[2][2][ROWS][ROW_BYTES];    /* two terms */
    uint8_t q_rope[ROWS][ROW_BYTES];
    /* Scales of Q: [term][group of 128 numbers]. In a group, each row has four scales for the first
     * 64 numbers and four for the others. For row r of 64, the first four scales begin at byte
     * 16 (r % 32) + 4 (r / 32), and the others begin 8 bytes later. */
    uint8_t q_scale[2][4][SCALE_BLOCK];
    pair_rows rows;
    uint64_t full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];
    uint64_t full_scales[2], full_wide[2], full_q;
    uint32_t tmem;
};
static_assert(sizeof(shared) == 219136, "docs/blackwell.md has this sum; a CTA can have 232448");

struct params {
    CUtensorMap content; /* [2][pages x 64][128] B */
    CUtensorMap rope;    /* [pages x 64][128] B, as three dimensions */
    CUtensorMap q;       /* [2 terms x 2][128 rows][128] B */
    CUtensorMap q_rope;  /* [128 rows][128] B, as three dimensions */
    CUtensorMap q_scale; /* [2 CTAs x 32][128] B, as three dimensions, without swizzle */
    const scales *token_scale;
    const int *pages;
    __nv_bfloat16 *out; /* [128][512] */
    int tiles;
    float scale_log2;  /* contains the cache's scale */
    float value_scale; /* eight times the cache's scale */
};

__device__ void load_keys(shared &sh, const params &p, int rank, int t) {
    const int s = t % STAGES, page = p.pages[2 * t + rank] * PAGE;
    ptx::mbarrier_wait(&sh.empty_k[s], (t / STAGES & 1) ^ 1);
    const uint32_t full = tcgen05::barrier_of_even(&sh.full_k[s]);
    if (rank == 0)
        ptx::mbarrier_arrive_expect(&sh.full_k[s], 2 * sizeof(shared::keys)); /* of both CTAs */
    for (int c = 0; c < 2; c++)
        load_pair(sh.k[s].content[c], &p.content, full, 0, page, c);
    load_pair(sh.k[s].rope, &p.rope, full, 0, page, 0);
}

/* Only threads of this CTA read these bytes. */
__device__ void load_values(shared &sh, const params &p, int rank, int t) {
    const int s = t % STAGES;
    ptx::mbarrier_wait(&sh.empty_v[s], (t / STAGES & 1) ^ 1);
    ptx::mbarrier_arrive_expect(&sh.full_v[s], sizeof(shared::values));
    for (int i = 0; i < 2; i++)
        ptx::tma_load_3d(sh.v[s].content[i * PAGE], &p.content, &sh.full_v[s], 0,
                         p.pages[2 * t + i] * PAGE, rank);
    ptx::bulk_load(&sh.v[s].scale, p.token_scale + p.pages[2 * t] / 2, sizeof(scales),
                   &sh.full_v[s]);
}

__device__ void load_queries(shared &sh, const params &p, int rank) {
    const uint32_t full = tcgen05::barrier_of_even(&sh.full_q);
    if (rank == 0)
        ptx::mbarrier_arrive_expect(&sh.full_q,
                                    2 * (sizeof sh.q + sizeof sh.q_rope + sizeof sh.q_scale));
    for (int c = 0; c < 4; c++)
        load_pair(sh.q[c / 2][c % 2], &p.q, full, 0, rank * ROWS, c);
    load_pair(sh.q_rope, &p.q_rope, full, 0, rank * ROWS, 0);
    load_pair(sh.q_scale, &p.q_scale, full, 0, rank * 32, 0);
}

__device__ void load_all(shared &sh, const params &p, int rank) {
    load_queries(sh, p, rank);
    load_keys(sh, p, rank, 0);
    for (int t = 0; t < p.tiles; t++) {
        load_values(sh, p, rank, t);
        if (t + 1 < p.tiles)
            load_keys(sh, p, rank, t + 1);
    }
}

__device__ void issue_scores(shared &sh, uint32_t tmem, int t) {
    const shared::keys &keys = sh.k[t % STAGES];
    const uint32_t d = tmem + TMEM_S + t % 2 * TMEM_S_SIZE;
    const uint32_t k_scales = tmem + TMEM_K_SCALES + t % 2 * TMEM_TERM;
    constexpr uint32_t content = tcgen05::nvfp4_by_nvfp4(2 * ROWS, 2 * PAGE);
    constexpr uint32_t rope = tcgen05::bf16_by_bf16(2 * ROWS, 2 * PAGE);
    for (int term = 0; term < 2; term++)
        for (int b = 0; b < SCALE_BLOCKS; b++) { /* 64 numbers of K each */
            const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q[term][b / 4]));
            const uint64_t k = tcgen05::operand_128(ptx::smem_addr(keys.content[b / 4]));
            tcgen05::mma_nvfp4_pair(d, q + b % 4 * 2, k + b % 4 * 2, content,
                                    tmem + TMEM_Q_SCALES + term * TMEM_TERM + 2 * b,
                                    k_scales + 2 * b, term + b > 0);
        }
    const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q_rope));
    const uint64_t k = tcgen05::operand_128(ptx::smem_addr(keys.rope));
    for (int i = 0; i < 4; i++)
        tcgen05::mma_bf16_pair(d, q + 2 * i, k + 2 * i, rope, true);
    tcgen05::commit_pair(&sh.empty_k[t % STAGES]);
    tcgen05::commit_pair(&sh.rows.full_s[t % 2]);
}

__device__ void issue_output(shared &sh, uint32_t tmem, int t) {
    const uint64_t p = tcgen05::operand_128(ptx::smem_addr(sh.rows.p[t % 2]));
    constexpr uint32_t shape = tcgen05::e4m3_by_e4m3(2 * ROWS, 256, false, true);
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 4; k++) { /* 32 tokens each */
            const uint32_t v = ptx::smem_addr(sh.wide[t % 2][half][32 * k]);
            tcgen05::mma_fp8_pair(tmem + TMEM_O + half * 128, p + 2 * k, tcgen05::operand_128(v),
                                  shape, t + k > 0);
        }
    tcgen05::commit_pair(&sh.rows.empty_p[t % 2]); /* and wide[t % 2] */
}

__device__ void issue_all(shared &sh, const params &p, uint32_t tmem) {
    ptx::mbarrier_wait(&sh.full_q, 0);
    for (int i = 0; i < 8; i++) {
        const uint32_t from = ptx::smem_addr(sh.q_scale[i / 4][i % 4]);
        tcgen05::copy_scales_pair(tmem + TMEM_Q_SCALES + i / 4 * TMEM_TERM + i % 4 * 4,
                                  tcgen05::operand_plain(from, 128, 128));
    }
    for (int t = 0; t <= p.tiles; t++) {
        if (t < p.tiles) {
            ptx::mbarrier_wait(&sh.full_k[t % STAGES], t / STAGES & 1);
            ptx::mbarrier_wait(&sh.full_scales[t % 2], t / 2 & 1);
            tcgen05::fence_after();
            issue_scores(sh, tmem, t);
        }
        if (t > 0) {
            ptx::mbarrier_wait(&sh.full_wide[(t - 1) % 2], (t - 1) / 2 & 1);
            ptx::mbarrier_wait(&sh.rows.full_p[(t - 1) % 2], (t - 1) / 2 & 1);
            tcgen05::fence_after();
            issue_output(sh, tmem, t - 1);
        }
    }
}

/* Stores the scales of two tokens to the thread's lane. The lanes of warps 0 and 1 get equal
 * values, and those of warps 2 and 3 as well. */
__device__ void store_scales(const scales &from, uint32_t to, int warp, int lane) {
    uint32_t v[16];
#pragma unroll
    for (int b = 0; b < SCALE_BLOCKS; b++) {
        const uint2 two =
            *reinterpret_cast<const uint2 *>(from.block[b] + 16 * lane + 8 * (warp / 2));
        v[2 * b] = two.x;
        v[2 * b + 1] = two.y;
    }
    tcgen05::store_16(to + (uint32_t(32 * warp) << 16), v);
    tcgen05::wait_stores();
    tcgen05::fence_before();
}

/* Warp w widens columns 64 w to 64 w + 63 of the CTA's half of V: one block of scales. A thread has
 * four tokens. The 32 threads read and write rows that follow each other, so there are no bank
 * conflicts. */
__device__ void widen_tile(uint8_t (*wide)[TILE][ROW_BYTES], const shared::values &v, int rank,
                           int warp, int lane) {
    const uint4 four = *reinterpret_cast<const uint4 *>(v.scale.block[4 * rank + warp] + 16 * lane);
    const uint32_t of_token[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = 32 * i + lane;
#pragma unroll
        for (int part = 0; part < 2; part++) /* 32 columns each */
            widen_32(wide[warp / 2][row], warp % 2 * 4 + 2 * part, v.content[row], 2 * warp + part,
                     row, of_token[i], 2 * part);
    }
}

__device__ void widen_all(shared &sh, const params &p, uint32_t tmem, int rank, int warp,
                          int lane) {
    for (int t = 0; t < p.tiles; t++) {
        const shared::values &v = sh.v[t % STAGES];
        ptx::mbarrier_wait(&sh.full_v[t % STAGES], t / STAGES & 1);
        /* S of tile t - 2 no longer needs its scales. */
        ptx::mbarrier_wait(&sh.rows.full_s[t % 2], (t / 2 & 1) ^ 1);
        tcgen05::fence_after();
        store_scales(v.scale, tmem + TMEM_K_SCALES + t % 2 * TMEM_TERM, warp, lane);
        tcgen05::arrive_at(tcgen05::barrier_of_even(&sh.full_scales[t % 2]));
        ptx::mbarrier_wait(&sh.rows.empty_p[t % 2], (t / 2 & 1) ^ 1);
        widen_tile(sh.wide[t % 2], v, rank, warp, lane);
        ptx::fence_proxy_async();
        tcgen05::arrive_at(tcgen05::barrier_of_even(&sh.full_wide[t % 2]));
        ptx::mbarrier_arrive(&sh.empty_v[t % STAGES]);
    }
}

__device__ void init(shared &sh) {
    for (int s = 0; s < STAGES; s++) {
        ptx::mbarrier_init(&sh.full_k[s], 1);
        ptx::mbarrier_init(&sh.empty_k[s], 1);
        ptx::mbarrier_init(&sh.full_v[s], 1);
        ptx::mbarrier_init(&sh.empty_v[s], 128);
    }
    for (int b = 0; b < 2; b++) {
        ptx::mbarrier_init(&sh.full_scales[b], 256); /* the threads of both CTAs */
        ptx::mbarrier_init(&sh.full_wide[b], 256);
    }
    ptx::mbarrier_init(&sh.full_q, 1);
    sh.rows.init();
    ptx::mbarrier_init_fence();
}

} // namespace

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
    nvfp4_pair_loop(const __grid_constant__ params p) {
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
        load_all(sh, p, rank);
    } else if (threadIdx.x == 32 && rank == 0) {
        issue_all(sh, p, tmem);
    } else if (warp >= 12) {
        widen_all(sh, p, tmem, rank, warp % 4, threadIdx.x % 32);
    } else if (warp >= 4) {
        const int group = warp / 4 - 1, thread = threadIdx.x % 128;
        const int row = thread % ROWS, half = thread / ROWS;
        const float inverse =
            softmax<false>(sh.rows, nullptr, nullptr, p.tiles, tmem, group, thread, p.scale_log2);
        store_output(p.out + (rank * ROWS + row) * 512 + half * 256 + group * 128, tmem, group,
                     thread, inverse * p.value_scale);
    }
    __syncwarp();
    tcgen05::fence_before();
    tcgen05::cluster_sync();
    if (warp == 1)
        tcgen05::dealloc<2>(tmem, TMEM_COLUMNS);
}

} // namespace sm100_sketch
