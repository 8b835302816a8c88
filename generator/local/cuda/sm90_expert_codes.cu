/* gemm_expert_codes: products of the e4m3 weights of experts and e4m3 activations, on Hopper's
 * tensor cores. y [pairs][n] in FP32, or [pairs][n / 2] in BF16 with a gate. All operands are in
 * device memory.
 *
 * An instruction of the tensor cores takes 64 rows of its first operand, but any multiple of 8 rows
 * of its second one. Experts have different numbers of rows. So the weights are the first operand,
 * and the rows of x are the second. The weights of an expert with up to MOST_ROWS rows are loaded
 * once (sm90_expert_ring.cuh).
 *   products   m64nNk32, four instructions for 128 k. N is the number of rows, rounded up to a
 *              multiple of 16. For more than 144 rows, two instructions have 80 rows each, because
 *              a thread's sums and products must fit into its registers
 *   sums       the arithmetic of gemm_many_codes(): each sum of 128 products is multiplied by the
 *              scales of the row and of the weight, and added to an FP32 sum
 *   stores     whole lines of y in FP32, or 32 bytes in BF16, through shared memory */
#include "generator/local/cuda/sm90_expert_ring.cuh"
#include "kernels/cuda/ptx/wgmma_e4m3.cuh"

namespace device {
namespace {

enum {
    OWN_WEIGHTS = 128, /* weights of a warpgroup */
    WARP_WEIGHTS = 32,
    MOST_KEPT = 64, /* N / 2 up to which the registers can hold the scales of all rows */
};

/* The next stage that a warp multiplies (next_stage in sm90_code_ring.cuh). */
struct expert_stage {
    expert_memory &s;
    ring_place<EXPERT_STAGES> at;
    bool loaded = false;

    __device__ explicit expert_stage(expert_memory &s) : s(s) {
    }
    __device__ __forceinline__ int wait() const {
        if (!loaded)
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
        return at.stage;
    }
    __device__ __forceinline__ void advance() {
        at.advance();
        loaded = ptx::mbarrier_test(&s.full[at.stage], at.parity);
    }
};

/* ---- products -------------------------------------------------------------------------------- */

/* The sums of a thread, for 2 N * HALVES rows. A warpgroup has 128 weights, in groups of 8. Two
 * instructions compute them: M = 0 the groups 0, 2 .. 14, and M = 1 the groups 1, 3 .. 15. So the
 * 32 weights of a warp follow each other. Lane 4 g + t has the sums of row 8 j + 2 t + e of a half
 * for two of the warp's weights: at[M][half][4 j + e] for weight g + 8 M, and
 * at[M][half][4 j + 2 + e] for weight g + 16 + 8 M. */
template <int HALVES, int N>
struct turned_sums {
    float at[2][HALVES][N];
};

/* The scales of a thread's rows. Four of them are loaded at a time: those of 16 rows of a tile. */
template <int N>
struct row_scales {
    uint4 at[N / 8];

    __device__ __forceinline__ void load(uint32_t from) {
#pragma unroll
        for (int j = 0; j < N / 8; j++)
            at[j] = ptx::load_shared_u4(from + j * 64);
    }
};

/* The descriptor of every other one of 16 groups of 8 weights: they are 2048 bytes apart. */
__device__ __forceinline__ uint64_t weight_descriptor(uint32_t low) {
    return ptx::descriptor_of(low, (2048u >> 4) | (1u << 30));
}

/* Starts the products of 128 k. */
template <int N>
__device__ __forceinline__ void start(float (&part)[N], uint32_t w, uint32_t x) {
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILE_K / 32; i++)
        ptx::product_e4m3(part, weight_descriptor(w + 2 * i), ptx::descriptor_128(x + 2 * i),
                          i > 0);
    ptx::wgmma_commit();
}

/* Multiplies the products of two rows and two weights by their scales and adds them to the sums. */
__device__ __forceinline__ void add_four(float *sum, const float *part, const float2 &row,
                                         const float2 &weight) {
    sum[0] += part[0] * (row.x * weight.x);
    sum[1] += part[1] * (row.y * weight.x);
    sum[2] += part[2] * (row.x * weight.y);
    sum[3] += part[3] * (row.y * weight.y);
}

/* Adds the products of an instruction. If the scales of the rows are not in registers (@KEPT), they
 * are loaded from @from. @weight: the scales of the thread's two weights. */
template <bool KEPT, int N>
__device__ __forceinline__ void add_turned(float (&sum)[N], const float (&part)[N],
                                           const row_scales<KEPT ? N : 8> &kept, uint32_t from,
                                           const float2 &weight) {
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        const uint4 four = KEPT ? kept.at[KEPT ? j : 0] : ptx::load_shared_u4(from + j * 64);
        add_four(sum + 8 * j, part + 8 * j, {__uint_as_float(four.x), __uint_as_float(four.y)},
                 weight);
        add_four(sum + 8 * j + 4, part + 8 * j + 4,
                 {__uint_as_float(four.z), __uint_as_float(four.w)}, weight);
    }
}

/* Loads the scales of a thread's weights in the groups of instruction @m. A stage has the scales of
 * two blocks of k. @odd: 1 = the second block. */
template <bool UNIFORM>
__device__ __forceinline__ float2 load_weight_scales(const expert_memory &s, int stage, int m,
                                                     int odd) {
    const int half = ptx::warp() / 4 - 1, tile = half * 8 + (UNIFORM ? 0 : ptx::warp() % 4 * 2);
    const float *at = s.scale[stage] + tile * kScalesAtOnce + odd * 2 + m;
    const float upper = ptx::load_shared(at);
    return make_float2(upper, UNIFORM ? upper : ptx::load_shared(at + kScalesAtOnce));
}

/* Computes the sums of a tile. @steps: the number of blocks of k. */
template <bool UNIFORM, int HALVES, int N>
__device__ __forceinline__ void multiply_tile(turned_sums<HALVES, N> &sum, expert_stage &next,
                                              int steps) {
    constexpr bool KEPT = N <= MOST_KEPT;
    auto &s = next.s;
    const int own = (ptx::warp() / 4 - 1) * OWN_WEIGHTS;
    const uint32_t w = ptx::descriptor_low_128(ptx::smem_addr(s.w[0] + own * TILE_K)),
                   x = ptx::descriptor_low_128(ptx::smem_addr(s.x[0])),
                   scales = ptx::smem_addr(s.row_scale[0]) + threadIdx.x % 4 * 16;
    float part[N];
    row_scales<KEPT ? N : 8> kept;
    for (int k = 0; k < steps; k++) {
        const int stage = next.wait();
#pragma unroll
        for (int i = 0; i < 2 * HALVES; i++) {
            const int m = i % 2, row = i / 2 * 2 * N;
            const uint32_t from = scales + (stage * MOST_ROWS + row) * 4;
            start(part, w + stage * (s.W_BYTES / 16) + m * (8 * TILE_K / 16),
                  x + stage * (s.X_BYTES / 16) + row * TILE_K / 16);
            const float2 weight = load_weight_scales<UNIFORM>(s, stage, m, k % 2);
            if constexpr (KEPT)
                if (m == 0)
                    kept.load(from);
            ptx::wgmma_wait<0>();
            ptx::pin(part);
            add_turned<KEPT>(sum.at[m][i / 2], part, kept, from, weight);
        }
        release(&s.empty[stage]);
        next.advance();
    }
}

/* ---- stores ---------------------------------------------------------------------------------- */

__device__ __forceinline__ void store_shared(uint32_t smem_address, float v) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(smem_address), "f"(v) : "memory");
}

__device__ __forceinline__ void store_shared_bf16(uint32_t smem_address, float v) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(smem_address),
                 "h"(__bfloat16_as_ushort(__float2bfloat16_rn(v)))
                 : "memory");
}

/* Writes a thread's results for eight rows to shared memory. @first, @second: the sums of M = 0 and
 * M = 1. With ends_gate, they belong to the gate and to the up projection. */
template <gemm_end END>
__device__ __forceinline__ void collect_eight(const turned_rows &b, const float *first,
                                              const float *second) {
    const int lane = threadIdx.x % 32, g = lane / 4;
    const uint32_t to = ptx::smem_addr(b.at) + lane % 4 * 2 * turned_rows::PITCH;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t row = to + i % 2 * turned_rows::PITCH;
        if constexpr (END == ends_gate) {
            store_shared_bf16(row + (i / 2 * 8 + g) * 2, silu(first[i]) * second[i]);
        } else {
            store_shared(row + (i / 2 * 16 + g) * 4, first[i]);
            store_shared(row + (i / 2 * 16 + 8 + g) * 4, second[i]);
        }
    }
}

/* Stores the results of a warp, 8 rows at a time. A lane copies 16 bytes of a row at a time. */
template <gemm_end END, int HALVES, int N>
__device__ __forceinline__ void store_tile(const gemm_args &a, const turned_sums<HALVES, N> &sum,
                                           const expert_tile &t, turned_rows &b) {
    enum {
        PER_RESULT = END == ends_gate ? 2 : 1, /* weights */
        SIZE = END == ends_gate ? 2 : 4,
        LANES = WARP_WEIGHTS / PER_RESULT * SIZE / 16, /* number of lanes that copy a row */
        AT_ONCE = 32 / LANES < turned_rows::ROWS ? 32 / LANES : turned_rows::ROWS,
    };
    const int lane = threadIdx.x % 32, row = lane / LANES,
              col = (t.col + (ptx::warp() - 4) * WARP_WEIGHTS) / PER_RESULT +
                    lane % LANES * (16 / SIZE);
    const uint32_t from = ptx::smem_addr(b.at) + row * turned_rows::PITCH + lane % LANES * 16;
    const int64_t pitch = a.y_row * SIZE;
    uint8_t *y = static_cast<uint8_t *>(a.y) + (t.row + row) * pitch + col * SIZE;
    const bool copies = row < AT_ONCE && col < a.n / PER_RESULT;
#pragma unroll
    for (int j = 0; j < HALVES * N / 4; j++) {
        const int half = j / (N / 4), at = j % (N / 4) * 4;
        __syncwarp(); /* the previous rows have been read */
        collect_eight<END>(b, sum.at[0][half] + at, sum.at[1][half] + at);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < turned_rows::ROWS; i += AT_ONCE)
            if (copies && 8 * j + i + row < t.rows)
                *reinterpret_cast<uint4 *>(y + (8 * j + i) * pitch) =
                    ptx::load_shared_u4(from + i * turned_rows::PITCH);
    }
}

/* Computes a tile of up to 2 N * HALVES rows. */
template <bool UNIFORM, int HALVES, int N>
__device__ __forceinline__ void compute_tile(const gemm_args &a, const expert_tile &t,
                                             expert_stage &next) {
    turned_sums<HALVES, N> sum;
    turned_rows &b = next.s.rows[ptx::warp() - 4];
#pragma unroll
    for (int i = 0; i < 2 * HALVES * N; i++)
        sum.at[i / N % 2][i / N / 2][i % N] = 0;
    multiply_tile<UNIFORM>(sum, next, (a.k + TILE_K - 1) / TILE_K);
    if (a.end == ends_gate)
        store_tile<ends_gate>(a, sum, t, b);
    else
        store_tile<ends_f32>(a, sum, t, b);
}

template <bool UNIFORM>
__device__ __forceinline__ void compute_tiles(const gemm_args &a, expert_memory &s) {
    expert_walk walk(a);
    expert_stage next(s);
    expert_tile t;
    for (int index = blockIdx.x; walk.find(index, t); index += gridDim.x)
        switch (boxes_of(t)) {
        case 1:
            compute_tile<UNIFORM, 1, 8>(a, t, next);
            break;
        case 2:
            compute_tile<UNIFORM, 1, 16>(a, t, next);
            break;
        case 3:
            compute_tile<UNIFORM, 1, 24>(a, t, next);
            break;
        case 4:
            compute_tile<UNIFORM, 1, 32>(a, t, next);
            break;
        case 5:
            compute_tile<UNIFORM, 1, 40>(a, t, next);
            break;
        case 6:
            compute_tile<UNIFORM, 1, 48>(a, t, next);
            break;
        case 7:
            compute_tile<UNIFORM, 1, 56>(a, t, next);
            break;
        case 8:
            compute_tile<UNIFORM, 1, 64>(a, t, next);
            break;
        case 9:
            compute_tile<UNIFORM, 1, 72>(a, t, next);
            break;
        default:
            compute_tile<UNIFORM, 2, 40>(a, t, next);
        }
}

template <bool UNIFORM>
__global__ void __launch_bounds__(kThreads, 1)
    expert_codes(const __grid_constant__ expert_params p) {
    extern __shared__ uint8_t raw[];
    auto &s = expert_memory::prepare(raw);
    let_next();
    wait_previous();
    if (threadIdx.x < 128) {
        ptx::registers_set<kLoadRegisters, kEntryRegisters>();
        if (threadIdx.x < 32)
            load_tiles(p, s);
        else if (threadIdx.x < 64)
            copy_row_scales(p, s);
    } else {
        ptx::registers_set<kMultiplyRegisters, kEntryRegisters>();
        compute_tiles<UNIFORM>(p.a, s);
    }
}

template <bool UNIFORM>
cudaError_t allow_memory() {
    return cudaFuncSetAttribute(expert_codes<UNIFORM>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                expert_memory::dynamic_bytes());
}

} // namespace

cudaError_t gemm_expert_codes_init() {
    const cudaError_t e = allow_memory<false>();
    return e == cudaSuccess ? allow_memory<true>() : e;
}

cudaError_t gemm_expert_codes(const stream_of &s, const gemm_args &a) {
    expert_params p = {};
    p.a = a;
    cudaError_t e = map_codes(&p.x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, BOX_ROWS);
    if (e == cudaSuccess)
        e = map_codes(&p.w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, WEIGHTS);
    if (e == cudaSuccess)
        e = map_floats(&p.scale, a.w_codes.scale, 2 * code_pitch(a.k), (a.n + 15) / 16, a.groups,
                       kScalesAtOnce, WEIGHTS / 16);
    return e == cudaSuccess ? launch(s, a.w_uniform ? expert_codes<true> : expert_codes<false>,
                                     dim3(static_cast<unsigned>(s.sms)), kThreads,
                                     expert_memory::dynamic_bytes(), p)
                            : e;
}

} // namespace device
