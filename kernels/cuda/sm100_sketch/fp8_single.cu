/* fp8_single.cu - the main loop of an FP8 decode kernel for compute capability 10.0: 64 query rows
 * in one CTA. NEVER RUN: no device of this kind was available. Only `make audit` compiles this
 * file; no program contains it.
 *
 * docs/blackwell.md explains the design. As in fp8_pair.cu, there is no schedule, no mask and no
 * merge: a CTA takes one sequence, and its length is a multiple of 128. E only grows (unit.cuh).
 *
 *   warp 0       one thread drives the copy engine
 *   warp 1       allocates tensor memory; one thread issues all MMAs
 *   warps 2, 3   no work
 *   warps 4-7    softmax of rows 0 to 31: a thread has one token
 *   warps 8-11   softmax of rows 32 to 63
 *
 * S^T = K Q^T has 128 tokens in 128 lanes. O^T = V^T P^T has 128 of the 512 columns of V in 128
 * lanes, four times. K and V are the same bytes in shared memory.
 *
 * Tensor memory, of 512 columns:
 *   0-255     O^T: 4 x 64           256-383  S^T: 2 x 64 */
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm100_sketch/tcgen05.cuh"
#include "kernels/cuda/sm100_sketch/unit.cuh"

namespace sm100_sketch {
namespace {

enum { ROWS = 64, MY_ROWS = 32, TILE = 128, PAGE = 64, COLUMNS = 4, ROW_BYTES = 128 };
enum { STAGES = 2, THREADS = 384 };
enum { TMEM_O = 0, TMEM_S = 256, TMEM_COLUMNS = 512 };

struct alignas(1024) shared {
    struct stage {
        uint8_t content[COLUMNS][TILE][ROW_BYTES];
        uint8_t rope[TILE][ROW_BYTES];
        float scale[TILE]; /* a_k */
        uint8_t space[512];
    } pages[STAGES];
    uint8_t q[COLUMNS][ROWS][ROW_BYTES];
    uint8_t q_rope[ROWS][ROW_BYTES];
    uint8_t p[TILE / 8][ROWS / 16][8][16]; /* e4m3: units of 8 tokens x 16 rows */
    unit_exchange<MY_ROWS> exchange[2];
    uint64_t full[STAGES], empty[STAGES];
    uint64_t full_s[2], full_p, empty_p, full_q;
    uint32_t tmem;
};
static_assert(sizeof(shared) <= 232448, "a CTA can have 227 KB");

struct params {
    CUtensorMap content; /* [4][pages x 64][128] B */
    CUtensorMap rope;    /* [pages x 64][128] B, as three dimensions */
    CUtensorMap q;       /* [4][64][128] B */
    CUtensorMap q_rope;  /* [64][128] B, as three dimensions */
    const float *token_scale, *q_scale;
    const int *pages;
    __nv_bfloat16 *out; /* [64][512] */
    int tiles;
    float scale_log2;
};

__device__ void load_all(shared &sh, const params &p) {
    ptx::mbarrier_arrive_expect(&sh.full_q, sizeof sh.q + sizeof sh.q_rope);
    for (int c = 0; c < COLUMNS; c++)
        ptx::tma_load_3d(sh.q[c], &p.q, &sh.full_q, 0, 0, c);
    ptx::tma_load_3d(sh.q_rope, &p.q_rope, &sh.full_q, 0, 0, 0);
    for (int t = 0; t < p.tiles; t++) {
        const int s = t % STAGES;
        shared::stage &stage = sh.pages[s];
        ptx::mbarrier_wait(&sh.empty[s], (t / STAGES & 1) ^ 1);
        ptx::mbarrier_arrive_expect(&sh.full[s], sizeof stage - sizeof stage.space);
        for (int i = 0; i < 2; i++) {
            const int page = p.pages[2 * t + i] * PAGE;
            for (int c = 0; c < COLUMNS; c++)
                ptx::tma_load_3d(stage.content[c][i * PAGE], &p.content, &sh.full[s], 0, page, c);
            ptx::tma_load_3d(stage.rope[i * PAGE], &p.rope, &sh.full[s], 0, page, 0);
            ptx::bulk_load(stage.scale + i * PAGE, p.token_scale + page, PAGE * 4, &sh.full[s]);
        }
    }
}

__device__ void issue_scores(shared &sh, uint32_t tmem, int t) {
    const shared::stage &stage = sh.pages[t % STAGES];
    const uint32_t d = tmem + TMEM_S + t % 2 * ROWS;
    constexpr uint32_t content = tcgen05::e4m3_by_e4m3(TILE, ROWS, false, false);
    constexpr uint32_t rope = tcgen05::bf16_by_bf16(TILE, ROWS);
    for (int c = 0; c < COLUMNS; c++) {
        const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.content[c]));
        const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q[c]));
        for (int i = 0; i < 4; i++)
            tcgen05::mma_fp8(d, k + 2 * i, q + 2 * i, content, c + i > 0);
    }
    const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.rope));
    const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q_rope));
    for (int i = 0; i < 4; i++)
        tcgen05::mma_bf16(d, k + 2 * i, q + 2 * i, rope, true);
    tcgen05::commit(&sh.full_s[t % 2]);
}

__device__ void issue_output(shared &sh, uint32_t tmem, int t) {
    const shared::stage &stage = sh.pages[t % STAGES];
    constexpr uint32_t shape = tcgen05::e4m3_by_e4m3(TILE, ROWS, true, true);
    for (int c = 0; c < COLUMNS; c++)
        for (int k = 0; k < 4; k++) { /* 32 tokens each */
            const uint32_t v = ptx::smem_addr(stage.content[c][32 * k]);
            const uint32_t p = ptx::smem_addr(sh.p[4 * k]);
            tcgen05::mma_fp8(tmem + TMEM_O + ROWS * c, tcgen05::operand_128(v),
                             tcgen05::operand_plain(p, 128, ROWS / 16 * 128), shape, t + k > 0);
        }
    tcgen05::commit(&sh.empty[t % STAGES]);
    tcgen05::commit(&sh.empty_p);
}

__device__ void issue_all(shared &sh, const params &p, uint32_t tmem) {
    ptx::mbarrier_wait(&sh.full_q, 0);
    for (int t = 0; t <= p.tiles; t++) {
        if (t < p.tiles) {
            ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
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

__device__ void store_output(const unit_exchange<MY_ROWS> &ex, __nv_bfloat16 *out, uint32_t lane_at,
                             int thread) {
    for (int c = 0; c < COLUMNS; c++) {
        uint32_t v[32];
        tcgen05::load_32(v, lane_at + TMEM_O + ROWS * c);
#pragma unroll
        for (int r = 0; r < MY_ROWS; r++)
            out[r * 512 + 128 * c + thread] =
                __float2bfloat16(__uint_as_float(v[r]) / ex.sum_of(r));
    }
}

/* Group `group` has the rows 32 group to 32 group + 31. They are columns of S^T and of each O^T. */
__device__ void softmax(shared &sh, const params &p, uint32_t tmem, int group, int thread) {
    const uint32_t lane_at = tmem + (uint32_t(thread / 32 * 32) << 16) + MY_ROWS * group;
    unit_exchange<MY_ROWS> &ex = sh.exchange[group];
    float sum[MY_ROWS] = {};
    ex.begin(thread, p.q_scale + MY_ROWS * group, p.scale_log2);
    ptx::named_sync(1 + group, 128);
    for (int t = 0; t < p.tiles; t++) {
        ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
        const float a = sh.pages[t % STAGES].scale[thread], log_a = __log2f(a);
        ptx::mbarrier_wait(&sh.full_s[t % 2], t / 2 & 1);
        tcgen05::fence_after();
        uint32_t s[32];
        tcgen05::load_32(s, lane_at + TMEM_S + t % 2 * ROWS);
        float y[MY_ROWS];
        bool high = false;
#pragma unroll
        for (int r = 0; r < MY_ROWS; r++) {
            y[r] = __uint_as_float(s[r]) * a * ex.scale[r];
            high |= y[r] + log_a > ex.unit[r] + kLog2Largest;
        }
        if (ptx::named_or(1 + group, 128, high)) {
            raise_unit(ex, 1 + group, thread, y, log_a, sum);
            if (t > 0) {
                ptx::mbarrier_wait(&sh.empty_p, (t - 1) & 1);
                tcgen05::fence_after();
                rescale(ex, lane_at);
            }
        }
        ptx::mbarrier_wait(&sh.empty_p, (t & 1) ^ 1);
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
                packed[j] = tcgen05::pack_e4m3(x[0] * a, x[1] * a, x[2] * a, x[3] * a);
            }
            *reinterpret_cast<uint4 *>(sh.p[thread / 8][MY_ROWS / 16 * group + i][thread % 8]) =
                make_uint4(packed[0], packed[1], packed[2], packed[3]);
        }
        ptx::fence_proxy_async();
        tcgen05::fence_before();
        ptx::mbarrier_arrive(&sh.full_p);
    }
    ptx::mbarrier_wait(&sh.empty_p, (p.tiles - 1) & 1);
    tcgen05::fence_after();
    ex.add_up(thread, sum);
    ptx::named_sync(1 + group, 128);
    store_output(ex, p.out + MY_ROWS * group * 512, lane_at, thread);
}

__device__ void init(shared &sh) {
    for (int s = 0; s < STAGES; s++) {
        ptx::mbarrier_init(&sh.full[s], 1);
        ptx::mbarrier_init(&sh.empty[s], 1);
        ptx::mbarrier_init(&sh.full_s[s], 1);
    }
    ptx::mbarrier_init(&sh.full_p, 256);
    ptx::mbarrier_init(&sh.empty_p, 1);
    ptx::mbarrier_init(&sh.full_q, 1);
    ptx::mbarrier_init_fence();
}

} // namespace

__global__ void __launch_bounds__(THREADS, 1) fp8_single_loop(const __grid_constant__ params p) {
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
    if (threadIdx.x == 0)
        load_all(sh, p);
    else if (threadIdx.x == 32)
        issue_all(sh, p, tmem);
    else if (warp >= 4)
        softmax(sh, p, tmem, warp / 4 - 1, threadIdx.x % 128);
    __syncwarp();
    tcgen05::fence_before();
    __syncthreads();
    if (warp == 1)
        tcgen05::dealloc<1>(tmem, TMEM_COLUMNS);
}

} // namespace sm100_sketch
