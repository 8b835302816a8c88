/* gemm_few() on Hopper. Weights are loaded by bulk copies, so a block can have loads in flight
 * while it multiplies, and while the previous kernel still runs.
 *
 * A tile is 16 rows of weights. A stage of the ring holds at most 1024 of their k. One warp loads
 * and eight multiply. The eight divide k by lines of 64, as in few.cu, and add up at the end of a
 * tile. Two blocks share an SM, so that one can load while the other ends a tile. The row pitch is
 * 64 bytes more than a multiple of 128, so a quarter of a warp, which reads 64 bytes of each of two
 * rows, has no bank conflicts. */
#include <algorithm>

#include "generator/local/cuda/sm90_few.cuh"

namespace device {
namespace {

enum {
    kSlice = 1024, /* numbers of k per stage */
    kMostStages = 4,
};

using barriers = shared_memory<kMostStages>;

struct params {
    gemm_args a;
    int stages, pitch, slice; /* pitch: bytes per row in shared memory; slice: numbers of k per
                                 stage */
};

__host__ __device__ inline int pitch_of(int slice) {
    return slice * 2 + (64 + 128 - slice * 2 % 128) % 128;
}

template <int TILES>
__device__ __forceinline__ void load_weights(const params &p, barriers &s, uint8_t *ring) {
    const gemm_args &a = p.a;
    tiles_of_block<TILES> t(a);
    const int lane = threadIdx.x % 32;
    const uint64_t once = ptx::policy_evict_first();
    int step = 0;
    bool waited = false;
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        if (!t.is_known(index) && !waited) {
            if (!a.experts.settled)
                wait_previous();
            t.read_lists();
            waited = true;
            if (index >= t.all)
                break;
        }
        const int group = t.group(index), row = min(index % t.cols * kRows + lane, a.n - 1);
        const bf16 *w = a.w + group * a.w_group + static_cast<int64_t>(row) * a.k;
        for (int pass = t.passes(index, group); pass > 0; pass--)
            for (int k = 0; k < a.k; k += p.slice, step++) {
                const int stage = step % p.stages;
                const uint32_t bytes = static_cast<uint32_t>(min(p.slice, a.k - k)) * 2;
                ptx::mbarrier_wait(&s.empty[stage], (step / p.stages + 1) % 2);
                if (lane == 0)
                    ptx::mbarrier_arrive_expect(&s.full[stage], kRows * bytes);
                __syncwarp();
                if (lane < kRows)
                    bulk_load_once(ring + (stage * kRows + lane) * p.pitch, w + k, bytes,
                                   &s.full[stage], once);
            }
    }
}

/* How many half lines (32 numbers of k) of each token a warp reads before it multiplies them. */
template <int TILES>
constexpr int kAtOnce = TILES == 1 ? 4 : 2;

/* The offset within k of half line @i of this warp, for this thread. */
__device__ __forceinline__ int half_at(int i) {
    const int warp = threadIdx.x / 32, t = threadIdx.x % 4;
    return (warp + i / 2 * kWarps) * kUnit + i % 2 * 32 + 8 * t;
}

/* Loads the activations of the tokens for the warp's next kAtOnce half lines. The first ones of a
 * stage are loaded before the warp waits for the weights of that stage. */
template <int TILES>
__device__ __forceinline__ void read_tokens(uint4 (&x)[kAtOnce<TILES>][TILES],
                                            const bf16 *const (&rows)[TILES], int tiles, int from,
                                            int k, int width) {
#pragma unroll
    for (int i = 0; i < kAtOnce<TILES>; i++)
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            const int col = half_at(from + i);
            x[i][j] = read_16(rows[j] + k + col, j < tiles && col < width);
        }
}

/* Multiplies a warp's part of a stage. Two independent sums shorten the dependency chain; they are
 * added at the end of a tile. */
template <int TILES>
__device__ __forceinline__ void
multiply_stage(float (&sum)[2][TILES][4], const bf16 *const (&rows)[TILES], int tiles,
               const uint8_t *stage, uint64_t *full, int parity, int pitch, int k, int width) {
    const int g = threadIdx.x % 32 / 4, lines = (width + kUnit - 1) / kUnit,
              halves = (lines + kWarps - 1) / kWarps * 2;
    const uint8_t *top = stage + g * pitch, *bottom = top + 8 * pitch;
#pragma unroll 1
    for (int from = 0; from < halves; from += kAtOnce<TILES>) {
        uint4 x[kAtOnce<TILES>][TILES], w0[kAtOnce<TILES>], w1[kAtOnce<TILES>];
        read_tokens<TILES>(x, rows, tiles, from, k, width);
        if (from == 0)
            ptx::mbarrier_wait(full, parity);
#pragma unroll
        for (int i = 0; i < kAtOnce<TILES>; i++) {
            const int col = half_at(from + i);
            w0[i] = read_16(top + col * 2, col < width);
            w1[i] = read_16(bottom + col * 2, col < width);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce<TILES>; i++)
#pragma unroll
            for (int j = 0; j < TILES; j++)
                if (j < tiles)
                    multiply_half(sum[i % 2][j], w0[i], w1[i], x[i][j]);
    }
}

template <int TILES>
__device__ __forceinline__ void multiply_tiles(const params &p, barriers &s, const uint8_t *ring,
                                               float *scratch) {
    const gemm_args &a = p.a;
    tiles_of_block<TILES> t(a);
    const int g = threadIdx.x % 32 / 4;
    int step = 0;
    t.read_lists();
    for (int index = blockIdx.x; index < t.all; index += gridDim.x) {
        const int group = t.group(index);
        const token_rows tokens = tokens_of(a, group);
        const bf16 *x = a.x + (a.listed ? 0 : group * a.x_group);
        for (int from = 0; from < tokens.count; from += TILES * kFewTokens) {
            const int left = min(tokens.count - from, TILES * kFewTokens);
            const int tiles = (left + kFewTokens - 1) / kFewTokens;
            float sum[2][TILES][4] = {};
            const bf16 *rows[TILES];
#pragma unroll
            for (int i = 0; i < TILES; i++)
                rows[i] = tokens.of(a, x, from + i * kFewTokens + g);
            for (int k = 0; k < a.k; k += p.slice, step++) {
                const int stage = step % p.stages;
                multiply_stage<TILES>(sum, rows, tiles, ring + stage * kRows * p.pitch,
                                      &s.full[stage], step / p.stages % 2, p.pitch, k,
                                      min(p.slice, a.k - k));
                __syncwarp();
                if (threadIdx.x % 32 == 0)
                    ptx::mbarrier_arrive(&s.empty[stage]);
            }
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[0][i][j] += sum[1][i][j];
            finish<TILES>(a, sum[0], scratch, {group, index % t.cols}, tokens.first + from, left);
        }
    }
}

template <int TILES>
__global__ void __launch_bounds__(kThreads + kLoadThreads, 2)
    few(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ barriers s;
    __shared__ float scratch[kWarps * TILES * kFewTokens * kPitch];
    s.prepare(p.stages);
    /* The next kernel may read the expert lists before it waits (settled). So if this kernel's own
     * lists may not be complete yet, it permits the next launch only after it has waited for them
     * itself. */
    if (!p.a.listed || p.a.experts.settled)
        let_next();
    if (threadIdx.x >= kThreads) {
        load_weights<TILES>(p, s, ring);
        wait_previous();
    } else {
        wait_previous();
        let_next();
        multiply_tiles<TILES>(p, s, ring, scratch);
    }
}

/* A block with a single tile gets only the stages that it needs, so that it can start beside the
 * previous kernel. */
template <int TILES>
cudaError_t launch_ring(const stream_of &s, const gemm_args &a) {
    params p = {};
    p.a = a;
    p.slice = std::min<int>(a.k, kSlice);
    p.pitch = pitch_of(p.slice);
    const int64_t tiles = static_cast<int64_t>((a.n + kRows - 1) / kRows) * a.groups;
    const int64_t blocks = std::min<int64_t>(tiles, kBlocksPerSm * s.sms);
    const int fitting = kRingBytes / (kRows * p.pitch), slices = (a.k + p.slice - 1) / p.slice;
    p.stages = std::min<int>({fitting, kMostStages, tiles == blocks ? slices : kMostStages});
    return launch(s, few<TILES>, dim3(static_cast<unsigned>(blocks)), kThreads + kLoadThreads,
                  static_cast<size_t>(p.stages * kRows * p.pitch), p);
}

template <int TILES>
cudaError_t allow_memory() {
    return cudaFuncSetAttribute(few<TILES>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                kRingBytes);
}

} // namespace

cudaError_t gemm_few_sm90_init() {
    cudaError_t e = allow_memory<1>();
    if (e == cudaSuccess)
        e = allow_memory<2>();
    return e == cudaSuccess ? allow_memory<4>() : e;
}

cudaError_t gemm_few_sm90(const stream_of &s, const gemm_args &a) {
    if (a.rows <= 8)
        return launch_ring<1>(s, a);
    return a.rows <= 16 ? launch_ring<2>(s, a) : launch_ring<4>(s, a);
}

} // namespace device
