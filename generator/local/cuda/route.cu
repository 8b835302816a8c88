/* route(): normalises the rows, scores the experts in FP32, chooses them by the rules of
 * model/route.h, and sorts the (row, expert) pairs by expert. Up to kFewRows rows take one launch,
 * more rows take three further launches and a memset for sorting. sort_messages(): the same sorting
 * for rows whose experts were chosen before, by this rank or another one (EP).
 *
 * A block scores a group of rows against some of the experts. Every group reads the router's
 * weights again, from L2. Two kernels compute scores:
 *   route_held   for few rows. A block has two experts, with their weights in registers. They are
 *                loaded as soon as the previous kernel leaves room on an SM.
 *   route_rows   for more rows, and for rows that are too wide for the registers. Groups are large
 *                if there are many rows, and slices of experts are many if there are few groups.
 * The last block of a group to finish makes the choice, one warp per row. With up to kFewRows rows,
 * the last block of all then sorts. */
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
    /* Bytes of shared memory that blocks can have on an SM of Hopper, and those that a block takes
     * beside its dynamic ones. Only the number of slices depends on them. */
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
    for (int e = threadIdx.x; e <= experts; e += blockDim.x)
        count[e] = 0;
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
        const int e = __ldcg(a.expert + p);
        if (e >= 0)
            atomicAdd(count + e, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32)
        scan_counts(a, count);
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
        const int e = __ldcg(a.expert + p);
        const int at = e >= 0 ? atomicAdd(count + e, 1) : e;
        a.place[p] = at;
        if (at >= 0)
            a.row[at] = p / slots;
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* How many warps choose at the same time. */
__host__ __device__ int choosing_warps(const route_args &a, int rows) {
    enum { kMostBytes = 96 << 10 };
    const int fit = static_cast<int>(kMostBytes / choice_memory::bytes(a.how)),
              warps = rows < kWarps ? rows : static_cast<int>(kWarps);
    return fit < 1 ? 1 : fit < warps ? fit : warps;
}

/* Called by all blocks of a group of rows, when they have written their scores. The last one makes
 * the choices, and the last one of all groups sorts. @group: the number of the group; @from, @rows:
 * its first row, and how many it has at most; @blocks: how many blocks it has; @memory: shared
 * memory of choice_bytes(). */
__device__ void choose_and_sort(const route_args &a, char *memory, int group, int from, int rows,
                                int blocks, int groups) {
    if (!last_of(a.ticket + 1 + group, blocks))
        return;
    const int warps = choosing_warps(a, rows), warp = threadIdx.x / 32;
    if (warp < warps) {
        const choice_memory c(memory + warp * choice_memory::bytes(a.how), a.how);
        for (int r = warp; r < rows && from + r < a.rows; r += warps) {
            choose(a, c, from + r);
            write_choice(a, c, from + r);
            __syncwarp(); /* the next row has the same memory */
        }
    }
    __syncthreads();
    if (a.rows <= kFewRows && !a.message && (groups == 1 || last_of(a.ticket, groups)))
        sort_pairs(a, reinterpret_cast<int *>(memory));
}

/* Bytes of shared memory for choosing and sorting. */
size_t choice_bytes(const route_args &a, int rows) {
    return std::max(static_cast<size_t>(choosing_warps(a, rows)) * choice_memory::bytes(a.how),
                    static_cast<size_t>(a.routed + a.shared + 1) * sizeof(int));
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { kAtOnce = 8 }; /* loads of 16 bytes that a thread has in flight */

/* Loads four numbers from @first on, four from @first + @step on, and so on. Numbers from @end on
 * are zero. */
__device__ __forceinline__ void load_several(float4 (&v)[kAtOnce], const float *from, int first,
                                             int step, int end) {
#pragma unroll
    for (int i = 0; i < kAtOnce; i++)
        v[i] = first + i * step < end ? *reinterpret_cast<const float4 *>(from + first + i * step)
                                      : make_float4(0, 0, 0, 0);
}

/* Writes four numbers of a normalised row. */
__device__ __forceinline__ void write_four(const route_args &a, int64_t row, int col,
                                           const float4 &v) {
    const uint2 rounded = normed(v, 1, 1, make_float4(1, 1, 1, 1));
    *reinterpret_cast<uint2 *>(a.packed + row * a.hidden + col) = rounded;
    if (a.message)
        *reinterpret_cast<uint2 *>(a.message + row * message_row(a.hidden, a.how.chosen) + col) =
            rounded;
    if (a.identity)
        *reinterpret_cast<float4 *>(a.identity + row * a.hidden + col) = v;
}

/* ---- few rows, weights in registers ---------------------------------------------------------- */

enum {
    kHeldThreads = 512,
    kHeldWarps = kHeldThreads / 32,
    kHeldExperts = 2,                      /* of a block */
    kHeldRows = kHeldWarps / kHeldExperts, /* most rows of a group: each warp adds up one score */
    kHeldParts = 4,
    kHeldWidth = 4 * kHeldThreads * kHeldParts, /* widest row */
    kHeldMost = 16, /* most rows; with 16, route_rows takes as long or longer on an H200 */
};

/* A thread's part of a row: four numbers of each 4 * kHeldThreads. */
struct held_row {
    float4 part[kHeldParts];

    static __device__ int column(int i) {
        return 4 * (threadIdx.x + i * kHeldThreads);
    }
    __device__ void load(const float *row, int width) {
#pragma unroll
        for (int i = 0; i < kHeldParts; i++)
            part[i] = column(i) < width ? *reinterpret_cast<const float4 *>(row + column(i))
                                        : make_float4(0, 0, 0, 0);
    }
    __device__ void multiply(const held_row &by) {
#pragma unroll
        for (int i = 0; i < kHeldParts; i++) {
            part[i].x *= by.part[i].x;
            part[i].y *= by.part[i].y;
            part[i].z *= by.part[i].z;
            part[i].w *= by.part[i].w;
        }
    }
    __device__ float dot(const held_row &w) const {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kHeldParts; i++)
            sum += part[i].x * w.part[i].x + part[i].y * w.part[i].y + part[i].z * w.part[i].z +
                   part[i].w * w.part[i].w;
        return sum;
    }
};

/* Writes the norm of row @row. All threads of a block must call this. */
__device__ void write_normed(const route_args &a, int64_t row, const held_row &x, float *scratch) {
    const float scale =
        norm_scale(block_sum(x.dot(x), scratch) / static_cast<float>(a.hidden) + a.eps);
#pragma unroll
    for (int i = 0; i < kHeldParts; i++) {
        const int col = held_row::column(i);
        if (col >= a.hidden)
            return;
        const float4 v = x.part[i], w = *reinterpret_cast<const float4 *>(a.norm + col);
        write_four(a, row, col,
                   {v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w});
    }
}

/* The sums of the warps of a block: for each row, its squares and its products with each expert's
 * weights. */
struct held_sums {
    float squares[kHeldRows][kHeldWarps], score[kHeldRows][kHeldExperts][kHeldWarps];
};

/* Adds up one score in each warp. The norm's scale multiplies the sum, not its terms. */
__device__ void add_scores(const route_args &a, const held_sums &s, int from, int rows) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / kHeldExperts,
              own = warp % kHeldExperts, expert = blockIdx.x * kHeldExperts + own;
    if (row >= rows || expert >= a.how.experts)
        return;
    const float squares = warp_sum(lane < kHeldWarps ? s.squares[row][lane] : 0.0f),
                score = warp_sum(lane < kHeldWarps ? s.score[row][own][lane] : 0.0f);
    if (lane == 0)
        a.scores[static_cast<int64_t>(from + row) * a.how.experts + expert] =
            score * norm_scale(squares / static_cast<float>(a.hidden) + a.eps);
}

/* A block scores @group rows against kHeldExperts experts. It loads their weights, and multiplies
 * them with those of the norm, before it waits for the rows. */
__global__ void __launch_bounds__(kHeldThreads) route_held(route_args a, int group) {
    extern __shared__ __align__(16) char memory[];
    __shared__ float scratch[32];
    __shared__ held_sums sums;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * kHeldExperts;
    const int from = blockIdx.y * group, rows = min(group, a.rows - from);
    held_row x, next, w[kHeldExperts];
    let_next();
    next.load(a.norm, a.hidden);
#pragma unroll
    for (int e = 0; e < kHeldExperts; e++) {
        const int64_t expert = min(first + e, a.how.experts - 1);
        w[e].load(a.gate + expert * a.hidden, a.hidden);
        w[e].multiply(next);
    }
    if (a.bias && 32 * threadIdx.x < a.how.experts)
        prefetch_line(a.bias + 32 * threadIdx.x);
    wait_previous();
    next.load(a.x + static_cast<int64_t>(from) * a.hidden, a.hidden);
    for (int r = 0; r < rows; r++) {
        x = next;
        if (r + 1 < rows)
            next.load(a.x + static_cast<int64_t>(from + r + 1) * a.hidden, a.hidden);
        const float squares = warp_sum(x.dot(x));
        if (lane == 0)
            sums.squares[r][warp] = squares;
#pragma unroll
        for (int e = 0; e < kHeldExperts; e++) {
            const float score = warp_sum(x.dot(w[e]));
            if (lane == 0)
                sums.score[r][e][warp] = score;
        }
        if (r % gridDim.x == blockIdx.x)
            write_normed(a, from + r, x, scratch);
    }
    __syncthreads();
    add_scores(a, sums, from, rows);
    choose_and_sort(a, memory, blockIdx.y, from, group, gridDim.x, gridDim.y);
}

/* ---- more rows ------------------------------------------------------------------------------- */

/* Copies a row of x to @h in shared memory. Returns the sum of a thread's squares. */
__device__ float copy_row(const route_args &a, float *h, int64_t row) {
    const int step = 4 * kThreads;
    float squares = 0;
    for (int from = 4 * threadIdx.x; from < a.hidden; from += kAtOnce * step) {
        float4 x[kAtOnce];
        load_several(x, a.x + row * a.hidden, from, step, a.hidden);
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            squares += squares_of(x[i]);
            if (from + i * step < a.hidden)
                *reinterpret_cast<float4 *>(h + from + i * step) = x[i];
        }
    }
    return squares;
}

/* Multiplies a row in shared memory by @scale and by the norm's weights. */
__device__ void scale_row(const route_args &a, float *h, int64_t row, float scale) {
    const int step = 4 * kThreads;
    for (int from = 4 * threadIdx.x; from < a.hidden; from += kAtOnce * step) {
        float4 w[kAtOnce];
        load_several(w, a.norm, from, step, a.hidden);
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            const int col = from + i * step;
            if (col >= a.hidden)
                continue;
            float4 &x = *reinterpret_cast<float4 *>(h + col);
            x = {x.x * scale * w[i].x, x.y * scale * w[i].y, x.z * scale * w[i].z,
                 x.w * scale * w[i].w};
            if (blockIdx.y == 0)
                write_four(a, row, col, x);
        }
    }
}

/* Normalises rows of x into shared memory. The first expert slice of a row group also writes them
 * to global memory. */
template <int ROWS>
__device__ void normalise(const route_args &a, float *h, int from, float *scratch) {
    for (int r = 0; r < ROWS && from + r < a.rows; r++) {
        float *own = h + r * a.hidden;
        const float squares = block_sum(copy_row(a, own, from + r), scratch);
        scale_row(a, own, from + r, norm_scale(squares / static_cast<float>(a.hidden) + a.eps));
    }
    __syncthreads();
}

template <int ROWS>
__device__ void score(const route_args &a, const float *h, int from) {
    const int lane = threadIdx.x % 32, step = 4 * 32;
    for (int e = blockIdx.y * kWarps + threadIdx.x / 32; e < a.how.experts;
         e += gridDim.y * kWarps) {
        float sum[ROWS] = {};
        for (int first = 4 * lane; first < a.hidden; first += kAtOnce * step) {
            float4 w[kAtOnce];
            load_several(w, a.gate + static_cast<int64_t>(e) * a.hidden, first, step, a.hidden);
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) {
                const int col = first + i * step < a.hidden ? first + i * step : first;
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const float4 x = *reinterpret_cast<const float4 *>(h + r * a.hidden + col);
                    sum[r] += w[i].x * x.x + w[i].y * x.y + w[i].z * x.z + w[i].w * x.w;
                }
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

template <int ROWS>
__global__ void __launch_bounds__(kThreads) route_rows(route_args a) {
    extern __shared__ __align__(16) char memory[];
    __shared__ float scratch[32];
    const int from = blockIdx.x * ROWS;
    let_next();
    wait_previous();
    normalise<ROWS>(a, reinterpret_cast<float *>(memory), from, scratch);
    score<ROWS>(a, reinterpret_cast<const float *>(memory), from);
    choose_and_sort(a, memory, blockIdx.x, from, ROWS, gridDim.y, gridDim.x);
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

/* Lets a kernel have @bytes of dynamic shared memory. The limit is always set to the same maximum,
 * because it belongs to the process: if each model set only what it needs, one could lower it below
 * what another needs. */
cudaError_t allow_memory(const void *kernel, size_t bytes) {
    if (bytes <= 47 * 1024) /* every kernel may have this much beside its static shared memory */
        return cudaSuccess;
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
    const size_t bytes =
        std::max(static_cast<size_t>(ROWS) * a.hidden * sizeof(float), choice_bytes(a, ROWS));
    const cudaError_t e = allow_memory(reinterpret_cast<const void *>(route_rows<ROWS>), bytes);
    if (e != cudaSuccess)
        return e;
    const dim3 grid(static_cast<unsigned>((a.rows + ROWS - 1) / ROWS),
                    static_cast<unsigned>(slices_of<ROWS>(s, a, bytes)));
    return launch(s, route_rows<ROWS>, grid, kThreads, bytes, a);
}

/* Takes the smallest groups with which there is at most one block for each SM, if any are small
 * enough. */
cudaError_t launch_held(const stream_of &s, const route_args &a) {
    const int blocks = (a.how.experts + kHeldExperts - 1) / kHeldExperts;
    const int groups =
        std::max({1, std::min(s.sms / blocks, a.rows), (a.rows + kHeldRows - 1) / kHeldRows});
    const int group = (a.rows + groups - 1) / groups;
    const size_t bytes = choice_bytes(a, group);
    const cudaError_t e = allow_memory(reinterpret_cast<const void *>(route_held), bytes);
    const dim3 grid(static_cast<unsigned>(blocks),
                    static_cast<unsigned>((a.rows + group - 1) / group));
    return e == cudaSuccess ? launch(s, route_held, grid, kHeldThreads, bytes, a, group) : e;
}

cudaError_t score_and_choose(const stream_of &s, const route_args &a) {
    if (a.rows <= kHeldMost && a.hidden <= kHeldWidth)
        return launch_held(s, a);
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
