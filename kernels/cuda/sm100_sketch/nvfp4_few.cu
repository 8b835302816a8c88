/* nvfp4_few.cu - the main loop of a decode kernel on an NVFP4 cache for compute capability 10.0:
 * 16 query rows in one CTA. NEVER RUN: no device of this kind was available. Only `make audit`
 * compiles this file; no program contains it.
 *
 * docs/blackwell.md explains the design. As in fp8_pair.cu, there is no schedule, no mask and no
 * merge: a CTA takes one sequence, and its length is a multiple of 128. E only grows (unit.cuh).
 * The pages 2 t and 2 t + 1 of a sequence follow each other in the cache, and the first one is
 * even.
 *
 *   warp 0       one thread drives the copy engine
 *   warp 1       allocates tensor memory; one thread issues all MMAs
 *   warps 2, 3   no work
 *   warps 4-7    softmax: a thread has one token
 *   warps 8-11   widen V: e2m1 times its scale to e4m3, from shared to tensor memory
 *
 * S^T = K Q^T has 128 tokens in 128 lanes. Q is the sum of two NVFP4 terms, which are 2 x 16
 * columns of one product. O^T = V^T P^T has 128 of the 512 columns of V in 128 lanes, four times.
 *
 * Tensor memory, of 512 columns:
 *   0-63     O^T: 4 x 16            64-127   S^T: 2 x 32
 *   128-191  scales of K: 2 x 32    192-223  scales of Q       224-479  V^T: 2 x 4 x 32, e4m3 */
#include <cuda.h>
#include <cuda_bf16.h>

#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/sm100_sketch/nvfp4.cuh"
#include "kernels/cuda/sm100_sketch/tcgen05.cuh"
#include "kernels/cuda/sm100_sketch/unit.cuh"

namespace sm100_sketch {
namespace {

enum { ROWS = 16, TILE = 128, PAGE = 64, ROW_BYTES = 128, STAGES = 3, THREADS = 384 };
enum { TMEM_O = 0, TMEM_S = 64, TMEM_K_SCALES = 128, TMEM_Q_SCALES = 192, TMEM_V = 224 };
enum { TMEM_COLUMNS = 512 };

struct alignas(1024) shared {
    struct stage {
        uint8_t content[2][TILE][ROW_BYTES]; /* e2m1 */
        uint8_t rope[TILE][ROW_BYTES];
        scales scale;
    } pages[STAGES];
    uint8_t q[2][2 * ROWS][ROW_BYTES]; /* rows 0 to 15: first term; 16 to 31: second term */
    uint8_t q_rope[ROWS][ROW_BYTES];
    scales q_scale;
    uint8_t p[2][TILE][ROWS]; /* e4m3, tokens in the order of place_of() */
    unit_exchange<ROWS> exchange;
    uint64_t full[STAGES], empty[STAGES];
    uint64_t full_s[2], full_p[2], full_v[2], empty_p[2], full_q;
    uint32_t tmem;
};
static_assert(sizeof(shared) <= 232448, "a CTA can have 227 KB");

struct params {
    CUtensorMap content; /* [2][pages x 64][128] B */
    CUtensorMap rope;    /* [pages x 64][128] B, as three dimensions */
    CUtensorMap q;       /* [2][32][128] B */
    CUtensorMap q_rope;  /* [16][128] B, as three dimensions */
    const scales *token_scale, *q_scale;
    const int *pages;
    __nv_bfloat16 *out; /* [16][512] */
    int tiles;
    float scale_log2;  /* contains the cache's scale */
    float value_scale; /* eight times the cache's scale */
};

/* Where the widened V has token t of 32: the order in which widen() gets tokens from ldmatrix. */
__device__ int place_of(int t) {
    return 4 * (t % 8 / 2 + t / 16 * 4) + t / 8 % 2 * 2 + t % 2;
}

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

__device__ void issue_scores(shared &sh, uint32_t tmem, int t) {
    const shared::stage &stage = sh.pages[t % STAGES];
    const uint32_t d = tmem + TMEM_S + t % 2 * 32, a_scales = tmem + TMEM_K_SCALES + t % 2 * 32;
    constexpr uint32_t content = tcgen05::nvfp4_by_nvfp4(TILE, 2 * ROWS);
    constexpr uint32_t rope = tcgen05::bf16_by_bf16(TILE, ROWS);
    for (int b = 0; b < SCALE_BLOCKS; b++) {
        const uint32_t at = ptx::smem_addr(stage.scale.block[b]);
        tcgen05::copy_scales(a_scales + 4 * b, tcgen05::operand_plain(at, 128, 128));
    }
    for (int b = 0; b < SCALE_BLOCKS; b++) { /* 64 numbers of K each */
        const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.content[b / 4]));
        const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q[b / 4]));
        tcgen05::mma_nvfp4(d, k + b % 4 * 2, q + b % 4 * 2, content, a_scales + 4 * b,
                           tmem + TMEM_Q_SCALES + 4 * b, b > 0);
    }
    const uint64_t k = tcgen05::operand_128(ptx::smem_addr(stage.rope));
    const uint64_t q = tcgen05::operand_128(ptx::smem_addr(sh.q_rope));
    for (int i = 0; i < 4; i++)
        tcgen05::mma_bf16(d, k + 2 * i, q + 2 * i, rope, true);
    tcgen05::commit(&sh.empty[t % STAGES]);
    tcgen05::commit(&sh.full_s[t % 2]);
}

__device__ void issue_output(shared &sh, uint32_t tmem, int t) {
    constexpr uint32_t shape = tcgen05::e4m3_by_e4m3(TILE, ROWS, false, true);
    const uint32_t v = tmem + TMEM_V + t % 2 * 128;
    for (int block = 0; block < 4; block++)
        for (int k = 0; k < 4; k++) { /* 32 tokens each */
            const uint32_t at = ptx::smem_addr(sh.p[t % 2][32 * k]);
            tcgen05::mma_fp8_tmem(tmem + TMEM_O + 16 * block, v + 32 * block + 8 * k,
                                  tcgen05::operand_plain(at, 128, 128), shape, t + k > 0);
        }
    tcgen05::commit(&sh.empty_p[t % 2]);
}

__device__ void issue_all(shared &sh, const params &p, uint32_t tmem) {
    ptx::mbarrier_wait(&sh.full_q, 0);
    for (int b = 0; b < SCALE_BLOCKS; b++) {
        const uint32_t at = ptx::smem_addr(sh.q_scale.block[b]);
        tcgen05::copy_scales(tmem + TMEM_Q_SCALES + 4 * b, tcgen05::operand_plain(at, 128, 128));
    }
    for (int t = 0; t <= p.tiles; t++) {
        if (t < p.tiles) {
            ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
            tcgen05::fence_after();
            issue_scores(sh, tmem, t);
        }
        if (t > 0) {
            ptx::mbarrier_wait(&sh.full_v[(t - 1) % 2], (t - 1) / 2 & 1);
            ptx::mbarrier_wait(&sh.full_p[(t - 1) % 2], (t - 1) / 2 & 1);
            tcgen05::fence_after();
            issue_output(sh, tmem, t - 1);
        }
    }
}

/* Widens 32 tokens x 32 columns of V. ldmatrix gives the thread 4 columns of 8 tokens: in v[m],
 * those of tokens 8 m + 2 (thread % 4) and the next. `four`: four scales of each of these tokens.
 * `part`: the index of the scale that belongs to the columns. */
__device__ void widen_block(const uint32_t (&v)[4], const uint32_t (&four)[8], int part,
                            uint32_t to) {
    uint32_t column[4][8]; /* e4m3 of 4 columns and 8 tokens, one in each register */
#pragma unroll
    for (int token = 0; token < 8; token++) {
        const uint32_t scale = scale_of(four[token], part);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t two = widen_pair(v[token / 2], token % 2 * 2 + i, scale);
            column[2 * i][token] = two & 255;
            column[2 * i + 1][token] = two >> 8;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t out[4]; /* lanes thread / 4 and thread / 4 + 8; columns thread % 4, then + 4 */
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const uint32_t(&c)[8] = column[2 * half + r % 2];
            const int first = r / 2 * 4;
            out[r] = c[first] | c[first + 1] << 8 | c[first + 2] << 16 | c[first + 3] << 24;
        }
        tcgen05::store_fragment(to + (uint32_t(16 * half) << 16), out);
    }
}

/* Warp w widens columns 128 w to 128 w + 127 of V into its 32 lanes, 32 columns at a time. */
__device__ void widen_all(shared &sh, const params &p, uint32_t tmem, int warp, int lane) {
    for (int t = 0; t < p.tiles; t++) {
        const shared::stage &stage = sh.pages[t % STAGES];
        const uint32_t v_at = tmem + TMEM_V + t % 2 * 128 + (uint32_t(32 * warp) << 16);
        ptx::mbarrier_wait(&sh.full[t % STAGES], t / STAGES & 1);
        ptx::mbarrier_wait(&sh.empty_p[t % 2], (t / 2 & 1) ^ 1);
        for (int group = 0; group < 4; group++)
            for (int block = 0; block < 4; block++) {
                uint32_t v[4], four[8];
                const int row = 32 * group + lane, chunk = warp % 2 * 4 + block;
                asm volatile(
                    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
                    "[%4];"
                    : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                    : "r"(ptx::smem_addr(stage.content[warp / 2][row]) + 16 * (chunk ^ (row & 7))));
                const uint8_t *scale = stage.scale.block[2 * warp + block / 2] + 4 * group;
#pragma unroll
                for (int i = 0; i < 8; i++)
                    four[i] = *reinterpret_cast<const uint32_t *>(
                        scale + 16 * (i / 2 * 8 + lane % 4 * 2 + i % 2));
                /* Eight threads have the columns of one scale: thread / 4 counts 4 columns. */
                widen_block(v, four, block % 2 * 2 + lane / 16, v_at + 32 * block + 8 * group);
            }
        tcgen05::wait_stores();
        tcgen05::fence_before();
        ptx::mbarrier_arrive(&sh.full_v[t % 2]);
        ptx::mbarrier_arrive(&sh.empty[t % STAGES]);
    }
}

__device__ void rescale(const unit_exchange<ROWS> &ex, uint32_t lane_at) {
    for (int i = 0; i < 2; i++) {
        uint32_t v[32];
        tcgen05::load_32(v, lane_at + TMEM_O + 32 * i);
#pragma unroll
        for (int c = 0; c < 32; c++)
            v[c] = __float_as_uint(__uint_as_float(v[c]) * ex.factor[c % ROWS]);
        tcgen05::store_32(lane_at + TMEM_O + 32 * i, v);
    }
}

__device__ void store_output(shared &sh, const params &p, uint32_t lane_at, int thread) {
    const int warp = thread / 32, lane = thread % 32;
    for (int i = 0; i < 2; i++) {
        uint32_t v[32];
        tcgen05::load_32(v, lane_at + TMEM_O + 32 * i);
#pragma unroll
        for (int c = 0; c < 32; c++) {
            const int r = c % ROWS, block = 2 * i + c / ROWS;
            const int column =
                128 * warp + 32 * block + lane % 8 * 4 + lane / 16 * 2 + lane / 8 % 2;
            const float sum = sh.exchange.sum_of(r);
            p.out[r * 512 + column] = __float2bfloat16(__uint_as_float(v[c]) * p.value_scale / sum);
        }
    }
}

__device__ void softmax(shared &sh, const params &p, uint32_t tmem, int thread) {
    const uint32_t lane_at = tmem + (uint32_t(thread / 32 * 32) << 16);
    float sum[ROWS] = {};
    unit_exchange<ROWS> &ex = sh.exchange;
    ex.begin(thread, nullptr, p.scale_log2);
    ptx::named_sync(1, 128);
    for (int t = 0; t < p.tiles; t++) {
        ptx::mbarrier_wait(&sh.full_s[t % 2], t / 2 & 1);
        tcgen05::fence_after();
        uint32_t s[32];
        tcgen05::load_32(s, lane_at + TMEM_S + t % 2 * 32);
        float y[ROWS];
        bool high = false;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            y[r] = (__uint_as_float(s[r]) + __uint_as_float(s[ROWS + r])) * ex.scale[r];
            high |= y[r] > ex.unit[r] + kLog2Largest;
        }
        if (ptx::named_or(1, 128, high)) {
            raise_unit(ex, 1, thread, y, 0, sum);
            if (t > 0) {
                ptx::mbarrier_wait(&sh.empty_p[(t - 1) % 2], (t - 1) / 2 & 1);
                tcgen05::fence_after();
                rescale(ex, lane_at);
            }
        }
        ptx::mbarrier_wait(&sh.empty_p[t % 2], (t / 2 & 1) ^ 1);
        uint32_t packed[4];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            y[r] = exp2f(y[r] - ex.unit[r]);
            sum[r] += y[r];
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            packed[i] = tcgen05::pack_e4m3(y[4 * i], y[4 * i + 1], y[4 * i + 2], y[4 * i + 3]);
        *reinterpret_cast<uint4 *>(sh.p[t % 2][thread / 32 * 32 + place_of(thread % 32)]) =
            make_uint4(packed[0], packed[1], packed[2], packed[3]);
        ptx::fence_proxy_async();
        tcgen05::fence_before();
        ptx::mbarrier_arrive(&sh.full_p[t % 2]);
    }
    const int last = p.tiles - 1;
    ptx::mbarrier_wait(&sh.empty_p[last % 2], last / 2 & 1);
    tcgen05::fence_after();
    ex.add_up(thread, sum);
    ptx::named_sync(1, 128);
    store_output(sh, p, lane_at, thread);
}

__device__ void init(shared &sh) {
    for (int s = 0; s < STAGES; s++) {
        ptx::mbarrier_init(&sh.full[s], 1);
        ptx::mbarrier_init(&sh.empty[s], 129); /* the MMAs, and the threads that widen */
    }
    for (int b = 0; b < 2; b++) {
        ptx::mbarrier_init(&sh.full_s[b], 1);
        ptx::mbarrier_init(&sh.full_p[b], 128);
        ptx::mbarrier_init(&sh.full_v[b], 128);
        ptx::mbarrier_init(&sh.empty_p[b], 1);
    }
    ptx::mbarrier_init(&sh.full_q, 1);
    ptx::mbarrier_init_fence();
}

} // namespace

__global__ void __launch_bounds__(THREADS, 1) nvfp4_few_loop(const __grid_constant__ params p) {
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
    else if (warp >= 8)
        widen_all(sh, p, tmem, warp % 4, threadIdx.x % 32);
    else if (warp >= 4)
        softmax(sh, p, tmem, threadIdx.x % 128);
    __syncwarp();
    tcgen05::fence_before();
    __syncthreads();
    if (warp == 1)
        tcgen05::dealloc<1>(tmem, TMEM_COLUMNS);
}

} // namespace sm100_sketch
