/* nvfp4_single.cu - the main loop of a decode kernel on an NVFP4 cache for compute capability 10.0:
 * 64 query rows in one CTA. NEVER RUN: no device of this kind was available. Only `make audit`
 * compiles this file; no program contains it.
 *
 * docs/blackwell.md explains the design. As in nvfp4_few.cu, there is no schedule, no mask and no
 * merge: a CTA takes one sequence, and its length is a multiple of 128. E only grows (unit.cuh).
 * The pages 2 t and 2 t + 1 of a sequence follow each other in the cache, and the first one is
 * even.
 *
 *   warp 0        one thread drives the copy engine
 *   warp 1        allocates tensor memory; one thread issues all MMAs
 *   warps 2, 3    no work
 *   warps 4-7     softmax of rows 0 to 31: a thread has one token
 *   warps 8-11    softmax of rows 32 to 63
 *   warps 12-15   widen V: e2m1 times its scale to e4m3, from shared to shared memory
 *
 * S^T = K Q^T has 128 tokens in 128 lanes. Q is the sum of two NVFP4 terms, which are 2 x 64
 * columns of one product. O^T = V^T P^T has 128 of the 512 columns of V in 128 lanes, four times.
 * The widened V is a second tile in shared memory, with the layout of an FP8 cache.
 *
 * Tensor memory, of 512 columns. S^T has one buffer. It is free when the softmax threads have read
 * it, long before their P is complete:
 *   0-255     O^T: 4 x 64            256-383   S^T: 2 x 64
 *   384-415   scales of K            416-447   scales of Q */
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/warp.cuh"
#include "kernels/cuda/sm100_sketch/nvfp4.cuh"
#include "kernels/cuda/sm100_sketch/tcgen05.cuh"
#include "kernels/cuda/sm100_sketch/unit.cuh"

namespace sm100_sketch {
namespace {

enum { ROWS = 64, MY_ROWS = 32, TILE = 128, PAGE = 64, COLUMNS = 4, ROW_BYTES = 128 };
enum { STAGES = 2, THREADS = 512 };
/* Registers of a thread: at the launch, and then by the warps' roles. */
enum { REGS_LAUNCH = 128, REGS_ISSUE = 48, REGS_SOFTMAX = 168, REGS_WIDEN = 112 };
static_assert(REGS_ISSUE + 2 * REGS_SOFTMAX + REGS_WIDEN <= 4 * REGS_LAUNCH, "64 K registers");
enum { TMEM_O = 0, TMEM_S = 256, TMEM_K_SCALES = 384, TMEM_Q_SCALES = 416, TMEM_COLUMNS = 512 };

struct alignas(1024) shared {
    struct stage {
        uint8_t content[2][TILE][ROW_BYTES]; /* e2m1 */
        uint8_t rope[TILE][ROW_BYTES];
        scales scale;
    } pages[STAGES];
    uint8_t v[COLUMNS][TILE][ROW_BYTES]; /* e4m3: 128 columns of V each */
    uint8_t q[2][2 * ROWS][ROW_BYTES];   /* rows 0 to 63: first term; 64 to 127: second term */
    uint8_t q_rope[ROWS][ROW_BYTES];     /* bf16 */
    scales q_scale;
    uint8_t p[TILE / 8][ROWS / 16][8][16]; /* e4m3: units of 8 tokens x 16 rows */
    unit_exchange<MY_ROWS> exchange[2];
    uint64_t full[STAGES], empty[STAGES];
    uint64_t full_v[COLUMNS], empty_v[COLUMNS];
    uint64_t full_s, empty_s, full_p, empty_p, full_q;
    uint32_t tmem;
};
static_assert(sizeof(shared) == 228352, "docs/blackwell.md has this sum; a CTA can have 232448");

struct params {
    CUtensorMap content; /* [2][pages x 64][128] B */
    CUtensorMap rope;    /* [pages x 64][128] B, as three dimensions */
    CUtensorMap q;       /* [2][128][128] B */
    CUtensorMap q_rope;  /* [64][128] B, as three dimensions */
    const scales *token_scale, *q_scale;
    const int *pages;
    __nv_bfloat16 *out; /* [64][512] */
    int tiles;
    float scale_log2;  /* contains the cache's scale */
    float value_scale; /* eight times the cache's scale */
};

__device__ void load_all(shared &sh, const params &p) {
    ptx::mbarrier_arrive_expect(&sh.full_q, sizeof sh.q + sizeof sh.q_rope + sizeof sh.q_scale);
    for (int c = 0; c < 2; c++)
        ptx::tma_load_3d(sh.q[c], &p.q, &sh.full_q, 0, 0, c);
    ptx::tma_load_3d(sh.q_rope, &p.q_rope, &sh.full_q, 0, 0, 0);
    ptx::bulk_load(&sh.q_scale, p.q_scale, sizeof sh.q_scale, &sh.full_q);
    for (int t = 0; t < p.tiles; t++) {
        const int s = t % STAGES;
        shared::stage &stage = sh.pages[s];
        ptx::mbarrier_wait(&sh.empty[s], (t / STAGES & 1) ^ 1);
        ptx::mbarrier_arrive_expect(&sh.full[s], sizeof stage);
        for (int i = 0; i < 2; i++) {
            const int page = p.pages[2 * t + i] * PAGE;
            for (int c = 0; c < 2; c++)
                ptx::tma_load_3d(stage.content[c][i * PAGE], &p.content, &sh.full[s], 0, page, c);
            ptx::tma_load_3d(stage.rope[i * PAGE], &p.rope, &sh.full[s], 0, page, 0);
        }
        ptx::bulk_load(&stage.scale, p.token_scale + p.pages[2 * t] / 2, sizeof stage.scale,
                       &sh.full[s]);
    }
}

__device__ void copy_all_scales(const scales &from, uint32_t to) {
    for (int b = 0; b < SCALE_BLOCKS; b++)
        tcgen05::copy_scales(to + 4 * b,
                             tcgen05::operand_plain(ptx::smem_addr(from.block[b]), 128, 128));
}

__device__ void issue_scores(shared &sh, uint32_t tmem, int t) {
    const shared::stage &stage = sh.pages[t % STAGES];
    const uint32_t d = tmem + TMEM_S;
    constexpr uint32_t content = tcgen05::nvfp4_by_nvfp4(TILE, 2 * ROWS);
    constexpr uint32_t rope = tcgen05::bf16_by_bf16(TILE, ROWS);
    copy_all_scales(stage.scale, tmem + TMEM_K_SCALES);
    for (int b = 0; b < SCALE_BLOCKS; b++) { /* 64 numbers of K each */
        const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.content[b / 4]));
        const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q[b / 4]));
        tcgen05::mma_nvfp4(d, k + b % 4 * 2, q + b % 4 * 2, content, tmem + TMEM_K_SCALES + 4 * b,
                           tmem + TMEM_Q_SCALES + 4 * b, b > 0);
    }
    const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.rope));
    const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q_rope));
    for (int i = 0; i < 4; i++)
        tcgen05::mma_bf16(d, k + 2 * i, q + 2 * i, rope, true);
    tcgen05::commit(&sh.empty[t % STAGES]);
    tcgen05::commit(&sh.full_s);
}

/* The four blocks of V have barriers of their own. So V of the next tile can be widened into a
 * block while the MMAs still read the other blocks. */
__device__ void issue_output(shared &sh, uint32_t tmem, int t) {
    constexpr uint32_t shape = tcgen05::e4m3_by_e4m3(TILE, ROWS, true, true);
    for (int c = 0; c < COLUMNS; c++) {
        ptx::mbarrier_wait(&sh.full_v[c], t & 1);
        tcgen05::fence_after();
        for (int k = 0; k < 4; k++) { /* 32 tokens each */
            const uint32_t v = ptx::smem_addr(sh.v[c][32 * k]);
            const uint32_t p = ptx::smem_addr(sh.p[4 * k]);
            tcgen05::mma_fp8(tmem + TMEM_O + ROWS * c, tcgen05::operand_128(v),
                             tcgen05::operand_plain(p, 128, ROWS / 16 * 128), shape, t + k > 0);
        }
        tcgen05::commit(&sh.empty_v[c]);
    }
    tcgen05::commit(&sh.empty_p);
}

__device__ void issue_all(shared &sh, const params &p, uint32_t tmem) {
    ptx::mbarrier_wait(&sh.full_q, 0);
    copy_all_scales(sh.q_scale, tmem + TMEM_Q_SCALES);
    for (int t = 0; t <= p.tiles; t++) {
        if (t < p.tiles) {
            ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
            ptx::mbarrier_wait(&sh.empty_s, (t & 1) ^ 1);
            tcgen05::fence_after();
            issue_scores(sh, tmem, t);
        }
        if (t > 0) {
            ptx::mbarrier_wait(&sh.full_p, (t - 1) & 1);
            tcgen05::fence_after();
            issue_output(sh, tmem, t - 1);
        }
    }
}

/* Warp w widens columns 128 w to 128 w + 127 of V, which have the blocks 2 w and 2 w + 1 of scales.
 * A thread has four tokens. The 32 threads read and write rows that follow each other, so there are
 * no bank conflicts. */
__device__ void widen_all(shared &sh, const params &p, int warp, int lane) {
    for (int t = 0; t < p.tiles; t++) {
        const shared::stage &stage = sh.pages[t % STAGES];
        ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
        ptx::mbarrier_wait(&sh.empty_v[warp], (t & 1) ^ 1);
        for (int b = 0; b < 2; b++) {
            const uint4 four = *reinterpret_cast<const uint4 *>(
                stage.scale.block[2 * warp + b] + 16 * lane); /* a word for each token */
            const uint32_t of_token[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = 32 * i + lane;
#pragma unroll
                for (int part = 0; part < 2; part++) /* 32 columns each */
                    widen_32(sh.v[warp][row], 4 * b + 2 * part, stage.content[warp / 2][row],
                             warp % 2 * 4 + 2 * b + part, row, of_token[i], 2 * part);
            }
        }
        ptx::fence_proxy_async();
        ptx::mbarrier_arrive(&sh.full_v[warp]);
        ptx::mbarrier_arrive(&sh.empty[t % STAGES]);
    }
}

/* Multiplies the group's columns of O^T by the factors of its rows. */
__device__ void rescale(const unit_exchange<MY_ROWS> &ex, uint32_t lane_at) {
    for (int c = 0; c < COLUMNS; c++) {
        uint32_t v[32];
        tcgen05::load_32(v, lane_at + TMEM_O + ROWS * c);
#pragma unroll
        for (int r = 0; r < MY_ROWS; r++)
            v[r] = __float_as_uint(__uint_as_float(v[r]) * ex.factor[r]);
        tcgen05::store_32(lane_at + TMEM_O + ROWS * c, v);
    }
}

__device__ void store_output(const unit_exchange<MY_ROWS> &ex, __nv_bfloat16 *out,
                             float value_scale, uint32_t lane_at, int thread) {
    for (int c = 0; c < COLUMNS; c++) {
        uint32_t v[32];
        tcgen05::load_32(v, lane_at + TMEM_O + ROWS * c);
#pragma unroll
        for (int r = 0; r < MY_ROWS; r++)
            out[r * 512 + 128 * c + thread] =
                __float2bfloat16(__uint_as_float(v[r]) * value_scale / ex.sum_of(r));
    }
}

/* Adds both terms of the group's scores of one token, and multiplies them by the scales. */
__device__ void read_scores(float (&y)[MY_ROWS], const unit_exchange<MY_ROWS> &ex,
                            uint32_t lane_at) {
    uint32_t s[32];
    tcgen05::load_32(s, lane_at + TMEM_S);
#pragma unroll
    for (int r = 0; r < MY_ROWS; r++)
        y[r] = __uint_as_float(s[r]);
    tcgen05::load_32(s, lane_at + TMEM_S + ROWS);
#pragma unroll
    for (int r = 0; r < MY_ROWS; r++)
        y[r] = (y[r] + __uint_as_float(s[r])) * ex.scale[r];
}

/* Stores P of one token and adds it to the sums. `to`: the units of 8 tokens x 16 rows. */
__device__ void store_p(uint8_t (*to)[8][16], const unit_exchange<MY_ROWS> &ex,
                        const float (&y)[MY_ROWS], float (&sum)[MY_ROWS], int token) {
#pragma unroll
    for (int i = 0; i < MY_ROWS / 16; i++) {
        uint32_t packed[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int r = 16 * i + 4 * j + k;
                x[k] = exp2f(y[r] - ex.unit[r]);
                sum[r] += x[k];
            }
            packed[j] = tcgen05::pack_e4m3(x[0], x[1], x[2], x[3]);
        }
        *reinterpret_cast<uint4 *>(to[i][token % 8]) =
            make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
}

/* Group `group` has rows 32 group to 32 group + 31, in as many columns of S^T and of each O^T. */
__device__ void softmax(shared &sh, const params &p, uint32_t tmem, int group, int thread) {
    const uint32_t lane_at = tmem + (uint32_t(thread / 32 * 32) << 16) + MY_ROWS * group;
    unit_exchange<MY_ROWS> &ex = sh.exchange[group];
    float sum[MY_ROWS] = {};
    ex.begin(thread, nullptr, p.scale_log2);
    ptx::named_sync(1 + group, 128);
    for (int t = 0; t < p.tiles; t++) {
        ptx::mbarrier_wait(&sh.full_s, t & 1);
        tcgen05::fence_after();
        float y[MY_ROWS];
        read_scores(y, ex, lane_at);
        tcgen05::fence_before();
        ptx::mbarrier_arrive(&sh.empty_s);
        bool high = false;
#pragma unroll
        for (int r = 0; r < MY_ROWS; r++)
            high |= y[r] > ex.unit[r] + kLog2Largest;
        if (ptx::named_or(1 + group, 128, high)) {
            raise_unit(ex, 1 + group, thread, y, 0, sum);
            if (t > 0) {
                ptx::mbarrier_wait(&sh.empty_p, (t - 1) & 1);
                tcgen05::fence_after();
                rescale(ex, lane_at);
            }
        }
        ptx::mbarrier_wait(&sh.empty_p, (t & 1) ^ 1);
        store_p(sh.p[thread / 8] + MY_ROWS / 16 * group, ex, y, sum, thread);
        ptx::fence_proxy_async();
        tcgen05::fence_before();
        ptx::mbarrier_arrive(&sh.full_p);
    }
    ptx::mbarrier_wait(&sh.empty_p, (p.tiles - 1) & 1);
    tcgen05::fence_after();
    ex.add_up(thread, sum);
    ptx::named_sync(1 + group, 128);
    store_output(ex, p.out + MY_ROWS * group * 512, p.value_scale, lane_at, thread);
}

__device__ void init(shared &sh) {
    for (int s = 0; s < STAGES; s++) {
        ptx::mbarrier_init(&sh.full[s], 1);
        ptx::mbarrier_init(&sh.empty[s], 129); /* the MMAs, and the threads that widen */
    }
    for (int c = 0; c < COLUMNS; c++) {
        ptx::mbarrier_init(&sh.full_v[c], 32);
        ptx::mbarrier_init(&sh.empty_v[c], 1);
    }
    ptx::mbarrier_init(&sh.full_s, 1);
    ptx::mbarrier_init(&sh.empty_s, 256);
    ptx::mbarrier_init(&sh.full_p, 256);
    ptx::mbarrier_init(&sh.empty_p, 1);
    ptx::mbarrier_init(&sh.full_q, 1);
    ptx::mbarrier_init_fence();
}

} // namespace

__global__ void __launch_bounds__(THREADS, 1) nvfp4_single_loop(const __grid_constant__ params p) {
    extern __shared__ uint8_t memory[];
    shared &sh = *reinterpret_cast<shared *>(memory);
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(sh);
    if (warp == 1)
        tcgen05::alloc<1>(&sh.tmem, TMEM_COLUMNS);
    tcgen05::fence_before();
    __syncthreads();
    tcgen05::fence_after();
    const uint32_t tmem = sh.tmem;
    if (warp < 4) {
        ptx::registers_set<REGS_ISSUE, REGS_LAUNCH>();
        if (threadIdx.x == 0)
            load_all(sh, p);
        else if (threadIdx.x == 32)
            issue_all(sh, p, tmem);
    } else if (warp < 12) {
        ptx::registers_set<REGS_SOFTMAX, REGS_LAUNCH>();
        softmax(sh, p, tmem, warp / 4 - 1, threadIdx.x % 128);
    } else {
        ptx::registers_set<REGS_WIDEN, REGS_LAUNCH>();
        widen_all(sh, p, warp % 4, threadIdx.x % 32);
    }
    __syncwarp();
    tcgen05::fence_before();
    __syncthreads();
    if (warp == 1)
        tcgen05::dealloc<1>(tmem, TMEM_COLUMNS);
}

} // namespace sm100_sketch
