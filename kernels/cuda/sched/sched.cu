/* One block. Three plans are compared by the cost of their longest part:
 *   whole   sequences lie on a line of costs; a part takes those whose middle lies in its span
 *   pieces  every sequence in equal items of at most so many tiles, one item a part
 *   line    the line is cut at the borders of parts; a part may have the end of one sequence and the
 *           beginning of another
 * Threads take sequences first, then parts; scans number the items and slots. */
#include "kernels/cuda/sched/sched.h"

namespace {

enum {
    kThreads = 1024,
    kPage = 64,
    kMaxParts = kThreads - 1,
    kMaxCut = 2048,  /* sequences; beyond it whole ones balance well enough */
    kFixedTiles = 2, /* what an item costs beside its tiles: query, first loads, epilogue */
    kMergeTiles = 3, /* what merging partial results costs a part */
    kLeastTiles = 1, /* a cut leaves at least so many tiles on either side */
};

struct sequences {
    const int *lengths;
    int batch, max_tokens, tile;

    __device__ int tokens(int seq) const {
        return min(max(lengths[seq], 0), max_tokens);
    }
    __device__ int tiles(int seq) const {
        return (tokens(seq) + tile - 1) / tile;
    }
    __device__ int cost(int seq) const {
        return tiles(seq) + kFixedTiles;
    }
};

/* Entry i of an item; -1: there is none, or it is out of range. */
struct page_table {
    const int *entries;
    int width;

    __device__ int page(const sched_item &item, int tile, int i) const {
        const int at = item.tile_begin * (tile / kPage) + i;
        if (!entries || at * kPage >= item.tokens)
            return -1;
        return max(entries[static_cast<size_t>(item.seq) * width + at], -1);
    }
};

/* Where a border cuts a sequence; tile 0: it doesn't, the part begins with the sequence. */
struct border {
    int seq, tile;
};

struct shared {
    int warp_sum[kThreads / 32];
    int load[kMaxParts]; /* cost of a part that takes whole sequences */
    int most, most_tiles, piece;
    int begin[kMaxParts + 1]; /* first item of a part */
    border borders[kMaxParts];
    int cuts[kMaxParts + 1]; /* before border p */
    int start[kMaxCut];      /* of a sequence on the line, or its first item */
    int slot[kMaxCut];
};

/* Exclusive prefix sum over the block; *total gets the sum. */
__device__ int block_scan(shared &s, int value, int *total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(~0u, sum, step);
        if (lane >= step)
            sum += below;
    }
    __syncthreads();
    if (lane == 31)
        s.warp_sum[warp] = sum;
    __syncthreads();
    int warps = s.warp_sum[lane]; /* every warp adds up all of them */
    for (int step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(~0u, warps, step);
        if (lane >= step)
            warps += below;
    }
    *total = __shfl_sync(~0u, warps, 31);
    const int before = __shfl_sync(~0u, warps, max(warp - 1, 0));
    return (warp ? before : 0) + sum - value;
}

/* The sequences of one thread, and where they begin on the line. */
struct run {
    int begin, end, start;
};

/* ---- whole sequences, or so many equal items ------------------------------------------------- */

struct equal_cuts {
    int splits, parts, width;

    __device__ int count(int tiles) const {
        return max(min(splits, tiles), 1);
    }
    __device__ int begin(int tiles, int i) const {
        return static_cast<int>(static_cast<long long>(tiles) * i / count(tiles));
    }
    /* The part in whose span the middle of item i lies. */
    __device__ int part(int tiles, int i, int start) const {
        int middle = start + (begin(tiles, i) + begin(tiles, i + 1) + kFixedTiles) / 2;
        return min(middle / width, parts - 1);
    }
};

/* The longest part if whole sequences are dealt out. */
__device__ int longest_whole(shared &s, const sequences &seqs, const run &mine, int parts,
                             int width) {
    const equal_cuts whole = {1, parts, width};
    for (int p = threadIdx.x; p < parts; p += kThreads)
        s.load[p] = 0;
    s.most = 0;
    __syncthreads();
    int at = mine.start;
    for (int b = mine.begin; b < mine.end; b++) {
        atomicAdd(&s.load[whole.part(seqs.tiles(b), 0, at)], seqs.cost(b));
        at += seqs.cost(b);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < parts; p += kThreads)
        atomicMax(&s.most, s.load[p]);
    __syncthreads();
    return s.most;
}

__device__ void deal_equal(shared &s, const sched_plan &plan, const sequences &seqs,
                           const run &mine, const equal_cuts &cuts) {
    int items = 0, slots = 0, cut = 0, all_items, all_slots, all_cut;
    for (int b = mine.begin; b < mine.end; b++) {
        const int n = cuts.count(seqs.tiles(b));
        items += n;
        slots += n > 1 ? n : 0;
        cut += n > 1;
    }
    int item = block_scan(s, items, &all_items), slot = block_scan(s, slots, &all_slots);
    int nth_cut = block_scan(s, cut, &all_cut);
    if (threadIdx.x == 0)
        *plan.cut_count = all_cut;
    for (int p = threadIdx.x; p <= cuts.parts; p += kThreads)
        s.begin[p] = p == 0 ? 0 : all_items;
    __syncthreads();
    int at = mine.start;
    for (int b = mine.begin; b < mine.end; b++) {
        const int tiles = seqs.tiles(b), n = cuts.count(tiles);
        for (int i = 0; i < n; i++) {
            plan.items[item + i] = {b,
                                    seqs.tokens(b),
                                    cuts.begin(tiles, i),
                                    cuts.begin(tiles, i + 1),
                                    n > 1 ? slot + i : -1,
                                    slot,
                                    n};
            atomicMin(&s.begin[cuts.part(tiles, i, at)], item + i);
        }
        if (n > 1) {
            plan.cuts[nth_cut++] = {b, slot, n};
            slot += n;
        }
        item += n;
        at += tiles + kFixedTiles;
    }
    __syncthreads();
    /* A part without a first item of its own is empty: it begins where the next one does. */
    int least = 0;
    if (static_cast<int>(threadIdx.x) <= cuts.parts) {
        least = s.begin[threadIdx.x];
        for (int q = threadIdx.x + 1; q <= cuts.parts; q++)
            least = min(least, s.begin[q]);
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) <= cuts.parts)
        s.begin[threadIdx.x] = least;
}

/* ---- one item a part ------------------------------------------------------------------------- */

__device__ int pieces_of(int tiles, int width) {
    return max((tiles + width - 1) / width, 1);
}

/* About the smallest width at which all pieces have a part each; 0 if there is none. A warp tries one
 * of 32 candidates. Takes s.start for the tiles of sequences. */
__device__ int piece_width(shared &s, const sequences &seqs, int total_tiles, int parts) {
    const int batch = seqs.batch, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (batch > parts)
        return 0;
    if (threadIdx.x == 0) {
        s.most_tiles = 1;
        s.piece = 1 << 30;
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < batch) {
        s.start[threadIdx.x] = seqs.tiles(threadIdx.x);
        atomicMax(&s.most_tiles, s.start[threadIdx.x]);
    }
    __syncthreads();
    const int least = max((total_tiles + parts - 1) / parts, 1);
    int enough = s.most_tiles;
    if (parts > batch)
        enough = min(enough, (total_tiles + parts - batch - 1) / (parts - batch));
    const int step = max((enough - least + 30) / 31, 1), width = least + warp * step;
    int pieces = 0;
    for (int b = lane; b < batch; b += 32)
        pieces += pieces_of(s.start[b], width);
    pieces = __reduce_add_sync(~0u, pieces);
    if (lane == 0 && pieces <= parts)
        atomicMin(&s.piece, width);
    __syncthreads();
    return s.piece;
}

/* Parts are threads: each finds the sequence of its item. */
__device__ void deal_pieces(shared &s, const sched_plan &plan, const sequences &seqs, int parts,
                            int width) {
    const int t = threadIdx.x, tiles = t < seqs.batch ? seqs.tiles(t) : 0;
    const int own = t < seqs.batch ? pieces_of(tiles, width) : 0;
    int all, all_slots, all_cut;
    const int first = block_scan(s, own, &all);
    const int slot = block_scan(s, own > 1 ? own : 0, &all_slots);
    const int nth_cut = block_scan(s, own > 1, &all_cut);
    if (t < seqs.batch) {
        s.start[t] = first;
        s.slot[t] = own > 1 ? slot : -1;
        if (own > 1)
            plan.cuts[nth_cut] = {t, slot, own};
    }
    if (t == 0)
        *plan.cut_count = all_cut;
    for (int p = t; p <= parts; p += kThreads)
        s.begin[p] = min(p, all);
    __syncthreads();
    if (t >= all)
        return;
    int low = 0, high = seqs.batch;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (s.start[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    const int i = t - s.start[low], n = seqs.tiles(low), count = pieces_of(n, width);
    plan.items[t] = {low,
                     seqs.tokens(low),
                     static_cast<int>(static_cast<long long>(n) * i / count),
                     static_cast<int>(static_cast<long long>(n) * (i + 1) / count),
                     s.slot[low] < 0 ? -1 : s.slot[low] + i,
                     s.slot[low],
                     count};
}

/* ---- cut at the borders --------------------------------------------------------------------- */

/* Where border p falls: in the last sequence that begins at or before it. */
__device__ border find_border(const shared &s, const sequences &seqs, int at) {
    int low = 0, high = seqs.batch;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (s.start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    const int tiles = seqs.tiles(low), tile = at - s.start[low] - kFixedTiles / 2;
    if (tile < kLeastTiles)
        return {low, 0};
    return tile > tiles - kLeastTiles ? border{low + 1, 0} : border{low, tile};
}

/* Whether border p makes an item: it cuts, and not where the one before cuts already. */
__device__ bool makes_item(const shared &s, int p) {
    const border b = s.borders[p];
    return b.tile > 0 &&
           (p == 0 || s.borders[p - 1].seq != b.seq || s.borders[p - 1].tile != b.tile);
}

__device__ int first_border_from(int at, int width, int parts) {
    return min((at + width - 1) / width, parts);
}

__device__ void deal_cut(shared &s, const sched_plan &plan, const sequences &seqs, const run &mine,
                         int parts, int width) {
    int at = mine.start;
    for (int b = mine.begin; b < mine.end; b++) {
        s.start[b] = at;
        at += seqs.cost(b);
    }
    __syncthreads();
    const int p = threadIdx.x;
    if (p < parts)
        s.borders[p] = find_border(s, seqs, p * width);
    __syncthreads();
    const bool item = p < parts && makes_item(s, p);
    int all_cuts, all_slots, all_cut;
    const int before = block_scan(s, item, &all_cuts);
    if (p < parts)
        s.cuts[p] = before;
    if (p == 0)
        s.cuts[parts] = all_cuts;
    __syncthreads();

    int slots = 0, cut = 0;
    for (int b = mine.begin; b < mine.end; b++) {
        const int low = first_border_from(s.start[b], width, parts);
        const int high = first_border_from(s.start[b] + seqs.cost(b), width, parts);
        const int n = 1 + s.cuts[high] - s.cuts[low];
        slots += n > 1 ? n : 0;
        cut += n > 1;
    }
    int slot = block_scan(s, slots, &all_slots), nth_cut = block_scan(s, cut, &all_cut);
    if (p == 0)
        *plan.cut_count = all_cut;
    for (int b = mine.begin; b < mine.end; b++) {
        const int low = first_border_from(s.start[b], width, parts);
        const int high = first_border_from(s.start[b] + seqs.cost(b), width, parts);
        const int n = 1 + s.cuts[high] - s.cuts[low];
        int end = seqs.tiles(b);
        for (int q = low; q < high && n > 1; q++)
            if (makes_item(s, q)) {
                end = s.borders[q].tile;
                break;
            }
        plan.items[b + s.cuts[low]] = {b, seqs.tokens(b), 0, end, n > 1 ? slot : -1, slot, n};
        s.slot[b] = slot;
        if (n > 1) {
            plan.cuts[nth_cut++] = {b, slot, n};
            slot += n;
        }
    }
    __syncthreads();
    if (p < parts) {
        const border b = s.borders[p];
        /* A border that repeats a cut begins with the item of the first of its kind. */
        s.begin[p] = b.seq + before + (item ? 1 : 0);
        if (item) {
            const int low = first_border_from(s.start[b.seq], width, parts);
            const int high = first_border_from(s.start[b.seq] + seqs.cost(b.seq), width, parts);
            const int slot = s.slot[b.seq];
            int end = seqs.tiles(b.seq);
            for (int q = p + 1; q < parts && s.borders[q].seq == b.seq; q++)
                if (makes_item(s, q)) {
                    end = s.borders[q].tile;
                    break;
                }
            plan.items[s.begin[p]] = {b.seq,
                                      seqs.tokens(b.seq),
                                      b.tile,
                                      end,
                                      slot + 1 + before - s.cuts[low],
                                      slot,
                                      1 + s.cuts[high] - s.cuts[low]};
        }
    }
    if (p == 0)
        s.begin[parts] = seqs.batch + all_cuts;
}

/* ---- which plan ------------------------------------------------------------------------------ */

enum kind { EQUAL, PIECES, LINE };

struct choice {
    kind kind;
    int piece; /* tiles */
};

__device__ choice choose(shared &s, const sequences &seqs, const run &mine, int parts, int width,
                         int total, int splits) {
    if (splits != 0)
        return {EQUAL, 0};
    const int whole = longest_whole(s, seqs, mine, parts, width);
    const int piece = piece_width(s, seqs, total - seqs.batch * kFixedTiles, parts);
    const int line = seqs.batch <= kMaxCut ? width + 2 * kFixedTiles + 2 * kMergeTiles : 1 << 30;
    const int pieces = piece ? piece + kFixedTiles + kMergeTiles : 1 << 30;
    if (whole <= min(pieces, line))
        return {EQUAL, 0};
    return {pieces <= line ? PIECES : LINE, piece};
}

__global__ void __launch_bounds__(kThreads)
    schedule(sched_plan plan, sequences seqs, int parts, int splits, page_table table) {
    extern __shared__ int memory[];
    shared &s = *reinterpret_cast<shared *>(memory);
    const int each = (seqs.batch + kThreads - 1) / kThreads;
    run mine;
    mine.begin = min(static_cast<int>(threadIdx.x) * each, seqs.batch);
    mine.end = min(mine.begin + each, seqs.batch);
    int cost = 0, total;
    for (int b = mine.begin; b < mine.end; b++)
        cost += seqs.cost(b);
    mine.start = block_scan(s, cost, &total);
    const int width = (total + parts - 1) / parts;

    const choice plan_kind = choose(s, seqs, mine, parts, width, total, splits);
    if (plan_kind.kind == LINE)
        deal_cut(s, plan, seqs, mine, parts, width);
    else if (plan_kind.kind == PIECES)
        deal_pieces(s, plan, seqs, parts, plan_kind.piece);
    else
        deal_equal(s, plan, seqs, mine, {max(splits, 1), parts, width});
    __syncthreads();
    const int p = threadIdx.x;
    if (p >= parts)
        return;
    sched_part part = {s.begin[p], s.begin[p + 1], {-1, -1}, {}};
    if (part.first < part.last) {
        part.head = plan.items[part.first];
        part.page[0] = table.page(part.head, seqs.tile, 0);
        part.page[1] = table.page(part.head, seqs.tile, 1);
    }
    plan.parts[p] = part;
}

} // namespace

int sched_max_items(int batch, int parts, int splits) {
    return splits == 0 ? batch + parts : batch * splits;
}

cudaError_t sched_launch(const sched_plan &plan, const int *seqlens, int batch, int max_tokens,
                         int tile_tokens, int parts, int splits, cudaStream_t stream,
                         const int *block_table, int table_width) {
    if (parts < 1 || parts > kMaxParts)
        return cudaErrorInvalidValue;
    const sequences seqs = {seqlens, batch, max_tokens, tile_tokens};
    schedule<<<1, kThreads, sizeof(shared), stream>>>(plan, seqs, parts, splits,
                                                      {block_table, table_width});
    return cudaGetLastError();
}
