/* One block: a thread owns a run of sequences, and two scans place its items and slots. */
#include "kernels/cuda/sched/sched.h"

namespace {

enum {
    kThreads = 1024,
    kMaxParts = 1024,
    kFixedTiles = 2,   /* what an item costs beside its tiles: query, first loads, epilogue */
    kCombineTiles = 3, /* what merging partial results costs a step */
    kLeastTiles = 1,   /* a cut leaves at least so many tiles on either side */
};

struct shared {
    long long warp_sum[kThreads / 32];
    int load[kMaxParts];
    int part_begin[kMaxParts + 1];
    int most;
};

/* Exclusive prefix sum over the block; *total gets the sum. */
__device__ long long block_scan(shared &s, long long value, long long *total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long sum = value;
    for (int step = 1; step < 32; step *= 2) {
        long long below = __shfl_up_sync(~0u, sum, step);
        if (lane >= step)
            sum += below;
    }
    __syncthreads();
    if (lane == 31)
        s.warp_sum[warp] = sum;
    __syncthreads();
    long long before = 0;
    *total = 0;
    for (int i = 0; i < kThreads / 32; i++) {
        if (i < warp)
            before += s.warp_sum[i];
        *total += s.warp_sum[i];
    }
    return before + sum - value;
}

struct sequences {
    const int *lengths;
    int max_tokens, tile;

    __device__ int tiles(int seq) const {
        return (min(max(lengths[seq], 0), max_tokens) + tile - 1) / tile;
    }
    __device__ int cost(int seq) const {
        return tiles(seq) + kFixedTiles;
    }
};

/* Whole sequences, or each in `splits` equal items. */
struct equal_cuts {
    int splits, parts;
    long long width; /* cost of a part */

    __device__ int count(int tiles) const {
        return max(min(splits, tiles), 1);
    }
    __device__ int begin(int tiles, int i) const {
        return static_cast<int>(static_cast<long long>(tiles) * i / count(tiles));
    }
    /* The part in whose span the middle of item i lies. */
    __device__ int part(int tiles, int i, long long start) const {
        long long middle = start + (begin(tiles, i) + begin(tiles, i + 1) + kFixedTiles) / 2;
        return static_cast<int>(min(middle / width, static_cast<long long>(parts - 1)));
    }
};

/* Where the border of part p falls in a sequence that starts at `start` on the line of costs. */
__device__ int border_tile(long long border, long long start, int tiles) {
    long long tile = border - start - kFixedTiles / 2;
    if (tile < kLeastTiles)
        return 0;
    return tile > tiles - kLeastTiles ? tiles : static_cast<int>(tile);
}

/* Cuts a sequence at the borders inside it and returns the number of items; writes them if `items`
 * is not null. @first: index of its first item. */
__device__ int cut_sequence(sched_item *items, int *part_begin, int seq, int tiles, long long start,
                            long long width, int parts, int first, int slot) {
    int count = 1, tile = 0;
    if (items)
        items[first] = {seq, 0, tiles, slot};
    for (long long p = (start + width - 1) / width; p * width < start + tiles + kFixedTiles; p++) {
        if (p >= parts)
            break;
        int next = border_tile(p * width, start, tiles);
        if (next > tile && next < tiles) {
            if (items) {
                items[first + count - 1].tile_end = next;
                items[first + count] = {seq, next, tiles, slot + count};
            }
            tile = next;
            count++;
        }
        if (items)
            part_begin[p] = first + (next == tiles && tiles > 0 ? count : count - 1);
    }
    return count;
}

__global__ void __launch_bounds__(kThreads)
    schedule(sched_plan plan, sequences seqs, int batch, int parts, int splits) {
    __shared__ shared s;
    const int run = (batch + kThreads - 1) / kThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * run, batch),
              end = min(begin + run, batch);
    long long cost = 0, total;
    for (int b = begin; b < end; b++)
        cost += seqs.cost(b);
    const long long start = block_scan(s, cost, &total);
    const long long width = (total + parts - 1) / parts;

    /* Try whole sequences: the longest part decides. */
    equal_cuts whole = {max(splits, 1), parts, width};
    for (int p = threadIdx.x; p < parts; p += kThreads)
        s.load[p] = 0;
    s.most = 0;
    __syncthreads();
    long long at = start;
    for (int b = begin; b < end && splits == 0; b++) {
        atomicAdd(&s.load[whole.part(seqs.tiles(b), 0, at)], seqs.cost(b));
        at += seqs.cost(b);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < parts; p += kThreads)
        atomicMax(&s.most, s.load[p]);
    __syncthreads();
    const bool cut = splits == 0 && s.most > width + kFixedTiles + kCombineTiles;

    long long items = 0, slots = 0, cuts = 0, all_items, all_slots, all_cuts;
    at = start;
    for (int b = begin; b < end; b++) {
        int tiles = seqs.tiles(b);
        int n = cut ? cut_sequence(nullptr, nullptr, b, tiles, at, width, parts, 0, 0)
                    : whole.count(tiles);
        items += n;
        slots += n > 1 ? n : 0;
        cuts += n > 1;
        at += tiles + kFixedTiles;
    }
    int first = static_cast<int>(block_scan(s, items, &all_items));
    int slot = static_cast<int>(block_scan(s, slots, &all_slots));
    int nth_cut = static_cast<int>(block_scan(s, cuts, &all_cuts));
    if (threadIdx.x == 0)
        *plan.cut_count = static_cast<int>(all_cuts);
    for (int p = threadIdx.x; p <= parts; p += kThreads)
        s.part_begin[p] = p == 0 ? 0 : static_cast<int>(all_items);
    __syncthreads();

    at = start;
    for (int b = begin; b < end; b++) {
        int tiles = seqs.tiles(b), n;
        if (cut) {
            n = cut_sequence(nullptr, nullptr, b, tiles, at, width, parts, 0, 0);
            cut_sequence(plan.items, s.part_begin, b, tiles, at, width, parts, first,
                         n > 1 ? slot : -1);
        } else {
            n = whole.count(tiles);
            for (int i = 0; i < n; i++) {
                plan.items[first + i] = {b, whole.begin(tiles, i), whole.begin(tiles, i + 1),
                                         n > 1 ? slot + i : -1};
                atomicMin(&s.part_begin[whole.part(tiles, i, at)], first + i);
            }
        }
        if (n > 1)
            plan.cuts[nth_cut++] = {b, slot, n};
        first += n;
        slot += n > 1 ? n : 0;
        at += tiles + kFixedTiles;
    }
    __syncthreads();
    /* A part without a first item of its own is empty: it begins where the next one does. */
    for (int p = threadIdx.x; p <= parts; p += kThreads) {
        int least = s.part_begin[p];
        for (int q = p + 1; q <= parts; q++)
            least = min(least, s.part_begin[q]);
        plan.part_begin[p] = least;
    }
}

} // namespace

int sched_max_items(int batch, int parts, int splits) {
    return splits == 0 ? batch + parts : batch * splits;
}

cudaError_t sched_launch(const sched_plan &plan, const int *seqlens, int batch, int max_tokens,
                         int tile_tokens, int parts, int splits, cudaStream_t stream) {
    if (parts < 1 || parts > kMaxParts)
        return cudaErrorInvalidValue;
    schedule<<<1, kThreads, 0, stream>>>(plan, {seqlens, max_tokens, tile_tokens}, batch, parts,
                                         splits);
    return cudaGetLastError();
}
