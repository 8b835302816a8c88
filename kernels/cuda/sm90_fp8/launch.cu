#include "kernels/cuda/sm90_fp8/launch.h"

#include <algorithm>

#include "kernels/cuda/hopper.h"
#include "kernels/cuda/sm90_fp8/kernel.cuh"

namespace {

cudaError_t make_map(CUtensorMap *map, const void *at, int rank, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box) {
    return tensor_map_make(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, at, rank, dims, strides, box);
}

/* @box_rows: of queries that a CTA has room for; @blocks: of p.rows rows. */
cudaError_t make_maps(sm90_fp8::params &p, const fp8_decode_args &a, int box_rows, int blocks) {
    using namespace sm90_fp8;
    const cuuint64_t tokens = static_cast<cuuint64_t>(a.pages) * PAGE, rows = p.rows;
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
    cudaError_t e = make_map(&p.content, a.content, 3, content, content_stride, content_box);
    if (e == cudaSuccess)
        e = make_map(&p.rope, a.rope, 2, rope, rope_stride, content_box);
    if (e == cudaSuccess)
        e = make_map(&p.q, a.q, 4, q, q_stride, q_box);
    if (e == cudaSuccess)
        e = make_map(&p.q_rope_rows, a.q_rope, 3, q_rope, q_rope_stride, q_rope_box);
    return e;
}

/* The kernel for so many rows at most. */
struct variant {
    int rows;
    const void *kernel;
    size_t shared;
};

template <int Rows>
variant variant_of() {
    return {Rows, reinterpret_cast<const void *>(sm90_fp8::decode<Rows>),
            sizeof(sm90_fp8::shared_of<Rows>)};
}

const variant variants[] = {variant_of<16>(), variant_of<FP8_FEW_ROWS>(),
                            variant_of<sm90_fp8::ROWS>()};

const variant &variant_for(int tile_rows) {
    return variants[tile_rows <= 16 ? 0 : tile_rows <= FP8_FEW_ROWS ? 1 : 2];
}

/* Tiles of up to 16 or 32 rows take less time each than one of 64, but all of them read every page. So
 * only where each of every sequence has an SM to itself: up to so many pages an SM, or up to more where
 * nothing is cut, and so merged, unless so many SMs are idle that cutting would save as much. */
enum { kPagesAtOnce = 4, kPagesWhole = 12 };

bool worth_it(int sms, int64_t tiles, const sched_room &room) {
    const int64_t items = tiles * room.sequences, idle = sms - items;
    return idle >= 0 && (items * room.pages <= kPagesAtOnce * sms ||
                         (room.pages <= kPagesWhole && idle * room.pages <= kPagesAtOnce * sms));
}

/* The fewest tiles of equal height with at most so many rows. */
int equal_tiles(int rows, int most) {
    int tiles = (rows + most - 1) / most;
    while (rows % tiles != 0)
        tiles++;
    return tiles;
}

int tile_rows_of(int sms, int rows, const sched_room &room) {
    for (int few : {16, static_cast<int>(FP8_FEW_ROWS)}) {
        const int tiles = equal_tiles(rows, few);
        if (rows <= few)
            return few;
        if (2 * (rows / tiles) > few && worth_it(sms, tiles, room)) /* at least half full */
            return rows / tiles;
    }
    return sm90_fp8::ROWS;
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
    using namespace sm90_fp8;
    decode_grid grid = {};
    grid.tile_rows = tile_rows_of(sms, heads * s_q, room);
    grid.tile = grid.tile_rows <= FP8_FEW_ROWS ? sched_tile(PAGE, 5) : sched_tile(TILE);
    grid.parts = std::max(sms / fp8_row_tiles(grid, heads, s_q), 1);
    return grid;
}

cudaError_t fp8_decode_launch(const fp8_decode_args &a, bool may_cut, cudaStream_t stream) {
    sm90_fp8::params p = {};
    const variant &v = variant_for(a.grid.tile_rows);
    p.row_tiles = fp8_row_tiles(a.grid, a.heads, a.s_q);
    const bool few = v.rows <= FP8_FEW_ROWS;
    p.rows = a.heads * a.s_q / (few ? p.row_tiles : 1);
    cudaError_t e = make_maps(p, a, v.rows, a.batch * (few ? p.row_tiles : 1));
    if (e != cudaSuccess)
        return e;
    p.q_rope = static_cast<const uint8_t *>(a.q_rope);
    p.token_scale = a.token_scale;
    p.q_scale = a.q_scale;
    p.block_table = a.block_table;
    p.table_width = a.table_width;
    p.pages = a.pages;
    p.items = a.plan.items;
    p.parts = a.plan.parts;
    p.out = a.out;
    p.lse = a.lse;
    p.partial_out = a.partial_out;
    p.partial_lse = a.partial_lse;
    p.counters = a.counters;
    p.few_partials = static_cast<uint8_t *>(a.few_partials);
    p.few_bytes = static_cast<size_t>(a.few_slots) * FP8_FEW_BYTES;
    p.heads = a.heads;
    p.s_q = a.s_q;
    p.high_a = p.high_b = ptx::kDescriptorHigh;
    p.scale_log2 = a.softmax_scale * 1.44269504f;
    return decode_launch(v.kernel, p.row_tiles, a.grid.parts, sm90_fp8::kThreads, v.shared, &p,
                         may_cut, a.follows_prepare, stream);
}
