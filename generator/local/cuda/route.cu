/* route(): normalises the rows, scores the experts in FP32, chooses them by the rules of
 * model/route.h, and sorts the (row, expert) pairs by expert. Up to kFewRows rows take one launch,
 * more rows take three further launches and a memset for sorting. sort_messages(): the same sorting
 * for rows whose experts were chosen before, by this rank or another one (EP).
 *
 * A block scores a group of rows against a slice of the experts. Every group reads the router's
 * weights again, from L2, so groups are large if there are many rows, and slices are many if there
 * are few groups. The last block of a group to finish makes the choice, one warp per row. With up
 * to kFewRows rows, the last block of all then sorts. */
#include <algorithm>
#include <climits>

#include "generator/local/cuda/choose.cuh"

namespace device {
namespace {

enum {
    kThreads = 256,
    kWarps = kThreads / 32,
    kFewRows = 64,
    kSlices = 16, /* most slices */
    /* Bytes of shared memory on an SM of Hopper, and those that a block takes beside its dynamic
     * ones. Only the number of slices depends on them. */
    kSharedOfSm = 227 << 10,
    kStatic = 1 << 10,
};

/* Whether this block is the last of @all blocks to arrive. The last one resets the counter to
 * zero. */
__device__ __forceinline__ bool last_of(int *ticket, int all) {
    __shared__ int mine;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        mine = atomicAdd(ticket, 1);
        if (mine == all - 1)
            *ticket = 0;
    }
    __syncthreads();
    __threadfence();
    return mine == all - 1;
}

/* ---- sorting: one block ---------------------------------------------------------------------- */

/* One warp turns the number of pairs of each expert into the index of its first pair. It also lists
 * the experts that have pairs; the shared ones come first. */
__device__ void scan_counts(const route_args &a, int *count) {
    const int experts = a.routed + a.shared, lane = threadIdx.x;
    int before = 0, active = a.shared;
    for (int from = 0; from < experts; from += 32) {
        const int e = from + lane, own = e < experts ? count[e] : 0;
        int sum = own;
        for (int m = 1; m < 32; m *= 2) {
            const int other = __shfl_up_sync(~0u, sum, m);
            sum += lane >= m ? other : 0;
        }
        const bool listed = own > 0 && e < a.routed;
        const unsigned used = __ballot_sync(~0u, listed);
        if (e >= a.routed && e < experts)
            a.active[e - a.routed] = e;
        if (listed)
            a.active[active + __popc(used & ((1u << lane) - 1))] = e;
        if (e < experts)
            a.first[e] = count[e] = before + sum - own;
        before += __shfl_sync(~0u, sum, 31);
        active += __popc(used);
    }
    if (lane == 0) {
        a.first[experts] = before;
        *a.count = active;
    }
}

/* Counting sort of all pairs. @count [experts + 1] is in shared memory. */
__device__ void sort_pairs(const route_args &a, int *count) {
    const int experts = a.routed + a.shared, slots = a.how.chosen + a.shared;
    const int pairs = a.rows * slots;
    for (int e = threadIdx.x; e <= experts; e += kThreads)
        count[e] = 0;
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += kThreads) {
        const int e = __ldcg(a.expert + p);
        if (e >= 0)
            atomicAdd(count + e, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32)
        scan_counts(a, count);
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += kThreads) {
        const int e = __ldcg(a.expert + p);
        const int at = e >= 0 ? atomicAdd(count + e, 1) : e;
        a.place[p] = at;
        if (at >= 0)
            a.row[at] = p / slots;
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Normalises rows of x into shared memory. The first expert slice of a row group also writes them
 * to global memory. */
template <int ROWS>
__device__ void normalise(const route_args &a, float *h, int from, float *scratch) {
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = from + r;
        float squares = 0;
        if (row >= a.rows)
            break;
        for (int i = threadIdx.x; i < a.hidden; i += kThreads) {
            const float x = a.x[row * a.hidden + i];
            h[r * a.hidden + i] = x;
            squares += x * x;
        }
        const float scale =
            norm_scale(block_sum(squares, scratch) / static_cast<float>(a.hidden) + a.eps);
        for (int i = threadIdx.x; i < a.hidden; i += kThreads) {
            const float x = h[r * a.hidden + i] * scale * a.norm[i];
            h[r * a.hidden + i] = x;
            if (blockIdx.y == 0) {
                a.packed[row * a.hidden + i] = __float2bfloat16_rn(x);
                if (a.message)
                    a.message[row * message_row(a.hidden, a.how.chosen) + i] =
                        __float2bfloat16_rn(x);
                if (a.identity)
                    a.identity[row * a.hidden + i] = x;
            }
        }
    }
    __syncthreads();
}

template <int ROWS>
__device__ void score(const route_args &a, const float *h, int from) {
    const int lane = threadIdx.x % 32;
    for (int e = blockIdx.y * kWarps + threadIdx.x / 32; e < a.how.experts;
         e += gridDim.y * kWarps) {
        const float *w = a.gate + static_cast<int64_t>(e) * a.hidden;
        float sum[ROWS] = {};
#pragma unroll 4
        for (int i = 4 * lane; i < a.hidden; i += 128) {
            const float4 f = __ldg(reinterpret_cast<const float4 *>(w + i));
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 x = *reinterpret_cast<const float4 *>(h + r * a.hidden + i);
                sum[r] += f.x * x.x + f.y * x.y + f.z * x.z + f.w * x.w;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float all = warp_sum(sum[r]);
            if (lane == 0 && from + r < a.rows)
                a.scores[static_cast<int64_t>(from + r) * a.how.experts + e] = all;
        }
    }
}

/* Prefetches this block's router weights into L2 while the previous kernel still runs. */
__device__ void prefetch_weights(const route_args &a) {
    const int lane = threadIdx.x % 32, line = 128 / sizeof(float);
    for (int e = blockIdx.y * kWarps + threadIdx.x / 32; e < a.how.experts; e += gridDim.y * kWarps)
        for (int i = lane * line; i < a.hidden; i += 32 * line)
            prefetch_line(a.gate + static_cast<int64_t>(e) * a.hidden + i);
}

template <int ROWS>
__global__ void __launch_bounds__(kThreads) route_rows(route_args a) {
    extern __shared__ char memory[];
    __shared__ float scratch[32];
    const int from = blockIdx.x * ROWS;
    let_next();
    if (ROWS == 1)
        prefetch_weights(a);
    wait_previous();
    normalise<ROWS>(a, reinterpret_cast<float *>(memory), from, scratch);
    score<ROWS>(a, reinterpret_cast<const float *>(memory), from);
    if (!last_of(a.ticket + 1 + blockIdx.x, gridDim.y))
        return;
    const int warps = min(kWarps, ROWS);
    const int warp = threadIdx.x / 32;
    if (warp < warps) {
        const choice_memory c(memory + warp * choice_memory::bytes(a.how), a.how);
        for (int r = warp; r < ROWS && from + r < a.rows; r += warps) {
            choose(a, c, from + r);
            write_choice(a, c, from + r);
        }
    }
    __syncthreads();
    if (a.rows <= kFewRows && !a.message && (gridDim.x == 1 || last_of(a.ticket, gridDim.x)))
        sort_pairs(a, reinterpret_cast<int *>(memory));
}

/* ---- sorting many pairs, in three launches --------------------------------------------------- */

enum { kPairsOfBlock = 2048 };

/* Counts the pairs of each expert among this block's pairs, in shared memory. */
__device__ void count_block(const route_args &a, int *count) {
    const int experts = a.routed + a.shared, pairs = a.rows * (a.how.chosen + a.shared);
    const int from = blockIdx.x * kPairsOfBlock, to = min(from + kPairsOfBlock, pairs);
    for (int e = threadIdx.x; e < experts; e += kThreads)
        count[e] = 0;
    __syncthreads();
    for (int p = from + threadIdx.x; p < to; p += kThreads)
        if (a.expert[p] >= 0)
            atomicAdd(count + a.expert[p], 1);
    __syncthreads();
}

__global__ void __launch_bounds__(kThreads) count_pairs(route_args a) {
    extern __shared__ int own[];
    let_next();
    wait_previous();
    count_block(a, own);
    for (int e = threadIdx.x; e < a.routed + a.shared; e += kThreads)
        if (own[e])
            atomicAdd(a.total + e, own[e]);
}

__global__ void __launch_bounds__(32) sum_counts(route_args a) {
    let_next();
    wait_previous();
    scan_counts(a, a.total);
}

__global__ void __launch_bounds__(kThreads) place_pairs(route_args a) {
    extern __shared__ int next[];
    let_next();
    wait_previous();
    const int slots = a.how.chosen + a.shared, pairs = a.rows * slots;
    const int from = blockIdx.x * kPairsOfBlock, to = min(from + kPairsOfBlock, pairs);
    count_block(a, next);
    for (int e = threadIdx.x; e < a.routed + a.shared; e += kThreads)
        next[e] = next[e] ? atomicAdd(a.total + e, next[e]) : 0;
    __syncthreads();
    for (int p = from + threadIdx.x; p < to; p += kThreads) {
        const int e = a.expert[p], at = e >= 0 ? atomicAdd(next + e, 1) : e;
        a.place[p] = at;
        if (at >= 0)
            a.row[at] = p / slots;
    }
}

cudaError_t sort_many(const stream_of &s, const route_args &a) {
    const size_t bytes = static_cast<size_t>(a.routed + a.shared) * sizeof(int);
    const int pairs = a.rows * (a.how.chosen + a.shared);
    const dim3 grid(static_cast<unsigned>((pairs + kPairsOfBlock - 1) / kPairsOfBlock));
    cudaError_t e = cudaMemsetAsync(a.total, 0, bytes, s.stream);
    if (e == cudaSuccess)
        e = launch(s, count_pairs, grid, kThreads, bytes, a);
    if (e == cudaSuccess)
        e = launch(s, sum_counts, dim3(1), 32, 0, a);
    return e == cudaSuccess ? launch(s, place_pairs, grid, kThreads, bytes, a) : e;
}

/* ---- rows that come with their choices ------------------------------------------------------- */

__global__ void __launch_bounds__(kThreads) drop(route_args a, int from) {
    let_next();
    wait_previous();
    const int k = a.how.chosen, pairs = (a.rows - from) * k;
    for (int p = blockIdx.x * kThreads + threadIdx.x; p < pairs; p += gridDim.x * kThreads) {
        const int64_t row = from + p / k;
        reinterpret_cast<int *>(a.message + row * message_row(a.hidden, k) + a.hidden)[p % k] =
            INT_MAX;
    }
}

/* Reads choice @pair from its message. Keeps the experts of this rank, and numbers them from 0. */
__device__ __forceinline__ void unpack(const route_args &a, const rank_rows &own, int pair) {
    const int k = a.how.chosen, row = pair / k, i = pair % k;
    const int *expert =
        reinterpret_cast<const int *>(a.message + row * message_row(a.hidden, k) + a.hidden);
    const int e = expert[i], here = e - own.first_expert;
    const bool gives_back = row >= own.first_row && row < own.first_row + own.count;
    a.weight[pair] = reinterpret_cast<const float *>(expert + k)[i];
    if (e < 0)
        a.expert[pair] = gives_back ? PLACE_ZERO : PLACE_ELSEWHERE;
    else
        a.expert[pair] = here >= 0 && here < a.routed ? here : PLACE_ELSEWHERE;
}

__global__ void __launch_bounds__(kThreads) unpack_pairs(route_args a, rank_rows own) {
    let_next();
    wait_previous();
    const int pairs = a.rows * a.how.chosen;
    for (int p = blockIdx.x * kThreads + threadIdx.x; p < pairs; p += gridDim.x * kThreads)
        unpack(a, own, p);
}

__global__ void __launch_bounds__(kThreads) unpack_and_sort(route_args a, rank_rows own) {
    extern __shared__ int count[];
    let_next();
    wait_previous();
    for (int p = threadIdx.x; p < a.rows * a.how.chosen; p += kThreads)
        unpack(a, own, p);
    __syncthreads();
    sort_pairs(a, count);
}

/* Sets the kernel's limit of dynamic shared memory, always to the same maximum. The limit belongs
 * to the process: if each model set only what it needs, one could lower it below what another
 * needs. */
cudaError_t allow_memory(const void *kernel) {
    int device = 0, most = 0;
    cudaFuncAttributes own;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&own, kernel);
    return e == cudaSuccess
               ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      most - static_cast<int>(own.sharedSizeBytes))
               : e;
}

/* The number of slices with which each SM has one or two blocks. */
template <int ROWS>
int slices_of(const stream_of &s, const route_args &a, size_t bytes) {
    const int groups = (a.rows + ROWS - 1) / ROWS,
              fit = std::min(2, std::max(1, kSharedOfSm / (static_cast<int>(bytes) + kStatic))),
              most = std::min<int>((a.how.experts + kWarps - 1) / kWarps, kSlices);
    return std::max(1, std::min(most, s.sms * fit / groups));
}

template <int ROWS>
cudaError_t launch_rows(const stream_of &s, const route_args &a) {
    const size_t bytes = std::max({static_cast<size_t>(ROWS) * a.hidden * sizeof(float),
                                   std::min<size_t>(ROWS, kWarps) * choice_memory::bytes(a.how),
                                   static_cast<size_t>(a.routed + a.shared + 1) * sizeof(int)});
    if (bytes > 47 * 1024) { /* the kernel also has static shared memory */
        const cudaError_t e = allow_memory(reinterpret_cast<const void *>(route_rows<ROWS>));
        if (e != cudaSuccess)
            return e;
    }
    const dim3 grid(static_cast<unsigned>((a.rows + ROWS - 1) / ROWS),
                    static_cast<unsigned>(slices_of<ROWS>(s, a, bytes)));
    return launch(s, route_rows<ROWS>, grid, kThreads, bytes, a);
}

cudaError_t score_and_choose(const stream_of &s, const route_args &a) {
    if (a.rows <= 8)
        return launch_rows<1>(s, a);
    if (a.rows <= 32)
        return launch_rows<2>(s, a);
    return a.rows > kFewRows && a.hidden <= 4096 ? launch_rows<8>(s, a) : launch_rows<4>(s, a);
}

} // namespace

cudaError_t route(const stream_of &s, const route_args &a) {
    const cudaError_t e = score_and_choose(s, a);
    return e == cudaSuccess && a.rows > kFewRows && !a.message ? sort_many(s, a) : e;
}

cudaError_t drop_choices(const stream_of &s, const route_args &a, int from) {
    const int blocks = ((a.rows - from) * a.how.chosen + kThreads - 1) / kThreads;
    return launch(s, drop, dim3(static_cast<unsigned>(blocks)), kThreads, 0, a, from);
}

cudaError_t sort_messages(const stream_of &s, const route_args &a, const rank_rows &own) {
    if (a.rows <= kFewRows)
        return launch(s, unpack_and_sort, dim3(1), kThreads,
                      static_cast<size_t>(a.routed + 1) * sizeof(int), a, own);
    const int blocks = (a.rows * a.how.chosen + kThreads - 1) / kThreads;
    const cudaError_t e =
        launch(s, unpack_pairs, dim3(static_cast<unsigned>(blocks)), kThreads, 0, a, own);
    return e == cudaSuccess ? sort_many(s, a) : e;
}

} // namespace device
