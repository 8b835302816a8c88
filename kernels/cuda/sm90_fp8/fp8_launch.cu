#include "kernels/cuda/sm90_fp8/fp8_launch.h"

#include <algorithm>

#include "kernels/cuda/hopper.h"
#include "kernels/cuda/sm90_fp8/fp8_kernel.cuh"

namespace {

cudaError_t make_map(CUtensorMap *map, const void *at, int rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    return tensor_map_make(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, at, rank, dims, strides, box);
}

/* @box_rows: query rows that a CTA has room for. @blocks: number of blocks of p.rows query rows. */
cudaError_t make_maps(sm90_fp8::params &p, const decode_args &a, int box_rows, int blocks) {
    using namespace sm90_fp8;
    const cuuint64_t tokens = static_cast<cuuint64_t>(a.cache.pages) * PAGE, rows = p.rows;
    const cuuint64_t batch = blocks;
    const cuuint64_t content[] = {SWIZZLE, tokens, COLUMNS}, content_stride[] = {CONTENT, SWIZZLE};
    const cuuint32_t content_box[] = {SWIZZLE, PAGE, COLUMNS};
    const cuuint64_t rope[] = {SWIZZLE, tokens}, rope_stride[] = {SWIZZLE};
    const cuuint64_t q[] = {SWIZZLE, rows, COLUMNS, batch};
    const cuuint64_t q_stride[] = {CONTENT, SWIZZLE, rows * CONTENT};
    const cuuint32_t q_box[] = {SWIZZLE, static_cast<cuuint32_t>(box_rows), COLUMNS, 1};
    const cuuint64_t q_rope[] = {SWIZZLE, rows, batch};
    const cuuint64_t q_rope_stride[] = {SWIZZLE, rows * SWIZZLE};
    const cuuint32_t q_rope_box[] = {SWIZZLE, static_cast<cuuint32_t>(box_rows), 1};
    cudaError_t e = make_map(&p.content, a.cache.content, 3, content, content_stride, content_box);
    if (e == cudaSuccess)
        e = make_map(&p.rope, a.cache.rope, 2, rope, rope_stride, content_box);
    if (e == cudaSuccess)
        e = make_map(&p.q, a.attn.q, 4, q, q_stride, q_box);
    if (e == cudaSuccess)
        e = make_map(&p.q_rope_rows, a.attn.q_rope, 3, q_rope, q_rope_stride, q_rope_box);
    return e;
}

/* The parts of a launch's time, in units of 10 ns. start: the time of a launch without work.
 * next: added for each sequence of a CTA after its first. tile: added for each tile of tokens.
 * merge: added for a merge. The numbers come from fits to some 500 measured steps:
 * docs/lab/2026-11-22-fp8-tile-height.md. test_grid checks the heights that fp8_grid() chooses with
 * them. */
struct launch_times {
    int start, next, tile, merge;
};

/* The kernel for tiles of at most `rows` rows. */
struct variant {
    int rows;
    sched_tile tile;
    launch_times times;
    const void *kernel;
    size_t shared;
};

template <int Rows>
variant variant_of(const sched_tile &tile, const launch_times &times) {
    return {Rows, tile, times, reinterpret_cast<const void *>(sm90_fp8::decode<Rows>),
            sizeof(sm90_fp8::shared_of<Rows>)};
}

const variant variants[] = {
    variant_of<16>(sched_tile(sm90_fp8::PAGE, 2, 10), {650, 230, 90, 160}),
    variant_of<FP8_FEW_ROWS>(sched_tile(sm90_fp8::PAGE, 2, 10), {720, 290, 125, 260}),
    variant_of<sm90_fp8::ROWS>(sched_tile(sm90_fp8::TILE, 2), {910, 430, 220, 360}),
};

const variant &variant_for(int tile_rows) {
    return variants[tile_rows <= 16 ? 0 : tile_rows <= FP8_FEW_ROWS ? 1 : 2];
}

/* The smallest number of tiles of equal height that have at most @most rows each. */
int equal_tiles(int rows, int most) {
    int tiles = (rows + most - 1) / most;
    while (rows % tiles != 0)
        tiles++;
    return tiles;
}

/* The height of the row tiles for the kernel whose tiles have at most @most rows. In the kernels
 * for at most 32 rows, several tiles have equal heights. Returns 0 if the kernel is no candidate: a
 * kernel for at most 32 rows that would need several tiles, if these would be at most half full or
 * more than the SMs; and the kernel for 64 rows, if there are at most 32 rows. */
int tile_rows_of(int sms, int rows, int most) {
    if (most > FP8_FEW_ROWS)
        return rows <= FP8_FEW_ROWS ? 0 : most;
    if (rows <= most)
        return most;
    const int tiles = equal_tiles(rows, most), height = rows / tiles;
    return tiles <= sms && 2 * height > most ? height : 0;
}

decode_grid grid_of(int sms, int rows, int tile_rows) {
    const int row_tiles = (rows + tile_rows - 1) / tile_rows;
    return {variant_for(tile_rows).tile, std::max(sms / row_tiles, 1), tile_rows};
}

/* Estimates the time of the CTA with the most work, in units of 10 ns, if the schedule (sched.h)
 * takes whole sequences or splits all of them equally. */
int64_t time_of(const decode_grid &grid, const sched_room &room) {
    const launch_times &t = variant_for(grid.tile_rows).times;
    const int64_t tokens = room.pages * sm90_fp8::PAGE;
    const int64_t tiles = std::max<int64_t>((tokens + grid.tile.tokens - 1) / grid.tile.tokens, 1);
    const int64_t rounds = (room.sequences + grid.parts - 1) / grid.parts;
    const int64_t pieces = std::min(std::max<int64_t>(grid.parts / room.sequences, 1), tiles);
    const int64_t piece = (tiles + pieces - 1) / pieces;
    const bool cut = piece + grid.tile.merge < tiles;
    return t.start + (rounds - 1) * t.next +
           (cut ? piece * t.tile + t.merge : rounds * tiles * t.tile);
}

} // namespace

cudaError_t fp8_decode_init(void) {
    cudaError_t e = tensor_map_init();
    for (const variant &v : variants)
        if (e == cudaSuccess)
            e = cudaFuncSetAttribute(v.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(v.shared));
    return e;
}

int fp8_row_tiles(const decode_grid &grid, int heads, int s_q) {
    return (heads * s_q + grid.tile_rows - 1) / grid.tile_rows;
}

decode_grid fp8_grid(int sms, int heads, int s_q, const sched_room &room) {
    const int rows = heads * s_q;
    decode_grid best = {};
    for (const variant &v : variants) {
        const int tile_rows = tile_rows_of(sms, rows, v.rows);
        if (tile_rows == 0)
            continue;
        const decode_grid grid = grid_of(sms, rows, tile_rows);
        if (best.tile_rows == 0 || time_of(grid, room) < time_of(best, room))
            best = grid;
    }
    return best;
}

cudaError_t fp8_decode_launch(const decode_args &a, cudaStream_t stream) {
    sm90_fp8::params p = {};
    const variant &v = variant_for(a.grid.tile_rows);
    p.row_tiles = fp8_row_tiles(a.grid, a.heads, a.step.s_q);
    const bool few = v.rows <= FP8_FEW_ROWS;
    p.rows = decode_rows(a) / (few ? p.row_tiles : 1);
    cudaError_t e = make_maps(p, a, v.rows, a.step.batch * (few ? p.row_tiles : 1));
    if (e != cudaSuccess)
        return e;
    p.q_rope = static_cast<const uint8_t *>(a.attn.q_rope);
    p.token_scale = a.cache.scale;
    p.q_scale = a.attn.q_scale;
    p.io = decode_io_of(a);
    p.partial_out = static_cast<__nv_bfloat16 *>(a.work.partial_out);
    p.partial_lse = a.work.partial_lse;
    p.counters = a.work.counters;
    p.few_partials = static_cast<uint8_t *>(a.work.few_partials);
    /* The distance between the partial results of two tiles of at most 32 rows. With a fixed number
     * of splits there is only one such tile, so the distance does not matter. */
    p.few_bytes = static_cast<size_t>(2 * a.grid.parts) * FP8_FEW_BYTES;
    p.heads = a.heads;
    p.s_q = a.step.s_q;
    p.high_a = p.high_b = ptx::kDescriptorHigh;
    p.scale_log2 = decode_scale_log2(a);
    return decode_launch(v.kernel, p.row_tiles, a.grid.parts, sm90_fp8::kThreads, v.shared, &p,
                         a.may_cut, a.follows_prepare, stream);
}
