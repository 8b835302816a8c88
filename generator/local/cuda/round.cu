/* Rounds appended rows of the cache through a format. A block rounds one row. If tokens share
 * ranges (kernels/format/round_row.h), earlier launches clear the ranges and then collect them over
 * all tokens that share them. These are the tokens that a sequence appends in this step. If pages
 * have ranges, the earlier tokens of the page are also among them.
 *
 * This file is compiled without fused multiply-adds, which the host does not use either. */
#include "generator/local/cuda/round.h"

#include "generator/local/cuda/project.cuh"

namespace device {
namespace {

enum { kThreads = 256 };

struct round_args {
    row_format format;
    project_args rows; /* the rows that were appended */
    row_range *shared; /* [units][ranges]; a unit is a set of tokens that share ranges */
    int ranges;        /* of a unit */
};

__device__ __forceinline__ row_team block_team_of() {
    return {static_cast<int>(threadIdx.x), kThreads};
}

__device__ __forceinline__ uint16_t *stored_row(const round_args &a, int row, int64_t position) {
    return static_cast<uint16_t *>(a.rows.cache.content) +
           slot_of(a.rows, row, position) * (a.format.d_c + a.format.d_r);
}

/* The position of the first token that shares ranges with the one at @position. */
__device__ __forceinline__ int64_t first_of_unit(const round_args &a, int64_t position) {
    const int page = a.format.page_tokens;
    return page ? position / page * page : a.rows.length ? position : a.rows.start;
}

/* The ranges of the unit to which a row's token belongs. Each decoded row has a unit of its own. In
 * a chunk, each page is a unit, or without pages the whole chunk. */
__device__ __forceinline__ row_range *shared_of(const round_args &a, int row, int64_t position) {
    const int page = a.format.page_tokens;
    const int64_t unit = a.rows.length ? row : page ? position / page - a.rows.start / page : 0;
    return a.shared + unit * a.ranges;
}

/* Decode: block (i, j) adds token i of the unit of row j. Chunk: block (i, 0) adds token i, counted
 * from the first token of the chunk's first unit. */
__global__ void __launch_bounds__(kThreads) collect_ranges(const __grid_constant__ round_args a) {
    __shared__ row_memory memory;
    const int row = blockIdx.y;
    const int64_t last = position_of(a.rows, a.rows.length ? row : a.rows.rows - 1),
                  position = first_of_unit(a, a.rows.length ? last : a.rows.start) + blockIdx.x;
    let_next();
    wait_previous();
    if (last >= 0 && position <= last)
        row_add_ranges(block_team_of(), &a.format, stored_row(a, row, position),
                       shared_of(a, row, position), &memory);
}

__global__ void __launch_bounds__(kThreads) round_rows(const __grid_constant__ round_args a) {
    __shared__ row_memory memory;
    const int row = blockIdx.x;
    const int64_t position = position_of(a.rows, row);
    let_next();
    wait_previous();
    if (position >= a.format.exact) /* padding rows are at -1 */
        row_round(block_team_of(), &a.format, stored_row(a, row, position),
                  shared_of(a, row, position), &memory);
}

/* Rounds the groups of KIVI_TOKENS tokens that became complete. Decode: block i rounds the group of
 * row i if this row is the last of its group. Chunk: block i rounds the i-th group that the chunk
 * completes. A page of the cache holds whole groups, so the rows of a group are adjacent. */
__global__ void __launch_bounds__(kThreads) round_groups(const __grid_constant__ round_args a) {
    const int row = blockIdx.x;
    const int64_t last = a.rows.length
                             ? position_of(a.rows, row)
                             : (a.rows.start / KIVI_TOKENS + blockIdx.x + 1) * KIVI_TOKENS - 1;
    let_next();
    wait_previous();
    if (last < 0 || (last + 1) % KIVI_TOKENS)
        return;
    uint16_t *group = stored_row(a, row, last - (KIVI_TOKENS - 1));
    for (int d = threadIdx.x; d < a.format.d_c; d += kThreads)
        row_round_column(&a.format, group, KIVI_TOKENS, nullptr, d);
}

cudaError_t collect(const stream_of &s, const round_args &a) {
    const int64_t page = a.format.page_tokens, start = a.rows.start, rows = a.rows.rows;
    int64_t tokens = page ? page : 1, units = rows;
    if (!a.rows.length) {
        tokens = rows + (page ? start % page : 0);
        units = page ? (start + rows - 1) / page - start / page + 1 : 1;
    }
    const dim3 grid(static_cast<unsigned>(tokens),
                    a.rows.length ? static_cast<unsigned>(rows) : 1u);
    const cudaError_t e = cudaMemsetAsync(
        a.shared, 0, static_cast<size_t>(units * a.ranges) * sizeof *a.shared, s.stream);
    return e == cudaSuccess ? launch(s, collect_ranges, grid, kThreads, 0, a) : e;
}

} // namespace

int64_t round_ranges(const row_format &f, int64_t rows) {
    return (rows + 1) * row_shared_ranges(&f); /* a chunk may reach into rows + 1 pages */
}

cudaError_t round_appended(const stream_of &s, const row_format &f, const project_args &p,
                           row_range *shared) {
    const round_args a = {f, p, shared, row_shared_ranges(&f)};
    if (f.rule == ROW_KIVI) {
        const int64_t groups =
            p.length ? p.rows : (p.start + p.rows) / KIVI_TOKENS - p.start / KIVI_TOKENS;
        return groups ? launch(s, round_groups, dim3(static_cast<unsigned>(groups)), kThreads, 0, a)
                      : cudaSuccess;
    }
    const cudaError_t e = a.ranges ? collect(s, a) : cudaSuccess;
    return e == cudaSuccess
               ? launch(s, round_rows, dim3(static_cast<unsigned>(p.rows)), kThreads, 0, a)
               : e;
}

} // namespace device
