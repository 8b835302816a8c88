/* few.cuh - few sequences: one warp decides, a lane each, without waiting for the rest of the block. */
#pragma once
#include "kernels/cuda/sched/choice.cuh"
#include "kernels/cuda/sched/equal.cuh"
#include "kernels/cuda/sched/pieces.cuh"

namespace {

enum { kFew = 32 };

__device__ int warp_scan(int value, int *total) {
    const int lane = threadIdx.x & 31;
    int sum = value;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? below : 0;
    }
    *total = __shfl_sync(~0u, sum, 31);
    return sum - value;
}

/* piece_width() of the warp's sequences: a lane tries one of 32 candidates. */
__device__ int few_piece_width(int batch, int tiles, int total_tiles, int parts) {
    const int least = max(divide(total_tiles + parts - 1, parts), 1);
    int enough = max(__reduce_max_sync(~0u, tiles), 1), pieces = 0;
    if (batch > parts)
        return 0;
    if (parts > batch)
        enough = min(enough, divide(total_tiles + parts - batch - 1, parts - batch));
    const int step = max((enough - least + 30) / 31, 1);
    const int width = least + static_cast<int>(threadIdx.x & 31) * step;
    const float inverse = 1.0f / static_cast<float>(width);
#pragma unroll 1
    for (int b = 0; b < batch; b++) { /* exact: tiles are below 2^15 */
        const int t = __shfl_sync(~0u, tiles, b) - 1;
        int whole = static_cast<int>(static_cast<float>(t) * inverse);
        whole += (whole + 1) * width <= t;
        whole -= whole * width > t;
        pieces += max(whole, 0) + 1;
    }
    const uint32_t fits = __ballot_sync(~0u, pieces <= parts);
    return fits ? __shfl_sync(~0u, width, __ffs(static_cast<int>(fits)) - 1) : 0;
}

/* The longest part if whole sequences are dealt out. */
__device__ int few_whole(shared &s, const equal_cuts &whole, bool real, int tiles, int start) {
    const int part = whole.part(tiles, 0, start);
    s.load[part] = 0;
    __syncwarp();
    if (real)
        atomicAdd(&s.load[part], tiles + kFixedTiles);
    __syncwarp();
    return __reduce_max_sync(~0u, real ? s.load[part] : 0);
}

/* By the first warp: the choice, and where sequences lie if it is pieces. */
__device__ void decide_few(shared &s, const sched_plan &plan, const sequences &seqs, int parts) {
    const int b = threadIdx.x;
    const bool real = b < seqs.batch;
    const int tiles = real ? seqs.tiles(b) : 0;
    int total, all;
    const int start = warp_scan(real ? tiles + kFixedTiles : 0, &total);
    const int width = divide(total + parts - 1, parts);
    const int whole = few_whole(s, {1, parts, width}, real, tiles, start);
    const choice found =
        cheapest(seqs.batch, width, whole,
                 few_piece_width(seqs.batch, tiles, total - seqs.batch * kFixedTiles, parts));
    if (found.kind == PIECES) {
        const int own = real ? pieces_of(tiles, found.piece) : 0;
        const uint32_t before = warp_scan(static_cast<int>(count_pieces(own)), &all);
        if (real)
            place_sequence(s, plan, b, own, before);
    }
    if (b > 0)
        return;
    s.kind = found.kind;
    s.piece = found.piece;
    if (found.kind == PIECES) {
        s.pieces = all & (1 << kSlotBit) - 1;
        *plan.cut_count = static_cast<uint32_t>(all) >> kCutBit;
    }
}

} // namespace
