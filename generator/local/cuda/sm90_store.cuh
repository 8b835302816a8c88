/* sm90_store.cuh - stores the sums of a tile of gemm_many_codes() and gemm_stream_k().
 *
 * A thread has two of every eight columns of two rows (wgmma.cuh). A store of these registers would
 * touch eight rows, 16 or 32 bytes of each. So a warp first collects up to 128 bytes of each of its
 * 16 rows in shared memory. Then each of its stores writes four or more of these rows, 16 bytes
 * from each lane. */
#pragma once
#include "generator/local/cuda/sm90_many.cuh"

namespace device {
namespace {

/* The place in shared memory where a warp collects its rows. With this pitch, stores of FP32
 * results have no bank conflicts. */
struct __align__(16) row_buffer {
    enum { ROWS = 16, BYTES = 128, PITCH = 160 };
    uint8_t at[ROWS * PITCH];
};

/* The rows of y in which a warp stores. */
struct store_place {
    int64_t at;    /* index in y of its first row's first column */
    int rows;      /* rows that exist: 16, or fewer at the end of a group; 0 or less: none */
    int cols_left; /* columns of y from the first one of this warp to the end of the row */
};

/* Sizes for storing a part of a tile: 16 rows of 2 N columns for each warp. It is stored in pieces.
 * A piece has up to 128 bytes of each row. A warp needs COPIES stores for one piece. */
template <gemm_end END, int N>
struct stored_part {
    enum {
        SIZE = END == ends_f32 || END == ends_add_f32 ? 4 : 2,
        RESULTS = END == ends_gate ? N : 2 * N,
        ALL_BYTES = RESULTS * SIZE,
        BYTES = ALL_BYTES < row_buffer::BYTES ? ALL_BYTES : row_buffer::BYTES,
        PIECES = ALL_BYTES / BYTES,
        SUMS = N / PIECES,
        LANES = BYTES / 16, /* number of lanes that copy a row */
        ROWS_AT_ONCE = 32 / LANES,
        COPIES = row_buffer::ROWS / ROWS_AT_ONCE,
    };
};

/* Writes two results that lie next to each other in a row to shared memory. */
template <gemm_end END>
__device__ __forceinline__ void collect_two(uint32_t to, float x, float y) {
    if constexpr (END == ends_f32 || END == ends_add_f32)
        ptx::store_shared_v2(to, x, y);
    else
        ptx::store_shared_u1(to, ptx::pack_bf16x2(x, y));
}

/* Collects a piece. @sum: the thread's sums of the piece. */
template <gemm_end END, int SUMS>
__device__ __forceinline__ void collect(const row_buffer &b, const float *sum) {
    enum { SIZE = stored_part<END, SUMS>::SIZE };
    const int lane = threadIdx.x % 32;
    const uint32_t upper =
                       ptx::smem_addr(b.at) + lane / 4 * row_buffer::PITCH + lane % 4 * 2 * SIZE,
                   lower = upper + 8 * row_buffer::PITCH;
    if constexpr (END == ends_gate) {
#pragma unroll
        for (int i = 0; i < SUMS / 8; i++) {
            const float *gate = sum + 8 * i, *up = gate + 4;
            collect_two<END>(upper + 8 * i * SIZE, silu(gate[0]) * up[0], silu(gate[1]) * up[1]);
            collect_two<END>(lower + 8 * i * SIZE, silu(gate[2]) * up[2], silu(gate[3]) * up[3]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < SUMS / 4; i++) {
            collect_two<END>(upper + 8 * i * SIZE, sum[4 * i], sum[4 * i + 1]);
            collect_two<END>(lower + 8 * i * SIZE, sum[4 * i + 2], sum[4 * i + 3]);
        }
    }
}

/* Copies pieces between shared memory and y. With ends_add_f32, the old numbers of the next piece
 * are loaded while a piece is stored. */
template <gemm_end END, int N>
struct piece_copies {
    using part = stored_part<END, N>;
    uint8_t *y;   /* the lane's 16 bytes of the first piece, in the first row that it copies */
    int64_t step; /* bytes from one of its rows to the next */
    int row, col, rows, cols_left;
    float factor;
    float4 old[2][part::COPIES];

    __device__ piece_copies(const gemm_args &a, const store_place &p)
        : step(part::ROWS_AT_ONCE * a.y_row * part::SIZE), row(threadIdx.x % 32 / part::LANES),
          col(threadIdx.x % part::LANES * (16 / part::SIZE)), rows(p.rows), cols_left(p.cols_left),
          factor(a.factor) {
        y = static_cast<uint8_t *>(a.y) + (p.at + row * a.y_row + col) * part::SIZE;
    }
    __device__ bool exists(int piece, int copy) const {
        return row + copy * part::ROWS_AT_ONCE < rows &&
               col + piece * (part::BYTES / part::SIZE) < cols_left;
    }
    __device__ uint8_t *place(int piece, int copy) const {
        return y + copy * step + piece * part::BYTES;
    }
    __device__ void load_old(int piece) {
        if constexpr (END == ends_add_f32) {
#pragma unroll
            for (int i = 0; i < part::COPIES; i++)
                old[piece % 2][i] = exists(piece, i)
                                        ? *reinterpret_cast<const float4 *>(place(piece, i))
                                        : make_float4(0, 0, 0, 0);
        }
    }
    __device__ void store(const row_buffer &b, int piece) const {
        const int lane = threadIdx.x % 32;
        const uint32_t from =
            ptx::smem_addr(b.at) + row * row_buffer::PITCH + lane % part::LANES * 16;
#pragma unroll
        for (int i = 0; i < part::COPIES; i++) {
            uint4 x = ptx::load_shared_u4(from + i * part::ROWS_AT_ONCE * row_buffer::PITCH);
            if (!exists(piece, i))
                continue;
            if constexpr (END == ends_add_f32)
                x = added(x, old[piece % 2][i]);
            *reinterpret_cast<uint4 *>(place(piece, i)) = x;
        }
    }
    /* o + factor * x */
    __device__ uint4 added(const uint4 &x, const float4 &o) const {
        return {__float_as_uint(o.x + factor * __uint_as_float(x.x)),
                __float_as_uint(o.y + factor * __uint_as_float(x.y)),
                __float_as_uint(o.z + factor * __uint_as_float(x.z)),
                __float_as_uint(o.w + factor * __uint_as_float(x.w))};
    }
};

template <gemm_end END, int PARTS, int N>
__device__ __forceinline__ void store_as(const gemm_args &a, const float (&sum)[PARTS][N],
                                         const store_place &p, row_buffer &b) {
    using part = stored_part<END, N>;
    piece_copies<END, N> copies(a, p);
    copies.load_old(0);
#pragma unroll
    for (int i = 0; i < PARTS * part::PIECES; i++) {
        if (i + 1 < PARTS * part::PIECES)
            copies.load_old(i + 1);
        __syncwarp(); /* the previous piece has been read */
        collect<END, part::SUMS>(b, sum[i / part::PIECES] + i % part::PIECES * part::SUMS);
        __syncwarp();
        copies.store(b, i);
    }
}

/* Stores a warp's 16 rows of a tile: PARTS times 2 N columns. @b is the warp's own buffer. */
template <int PARTS, int N>
__device__ __forceinline__ void store_warp(const gemm_args &a, const float (&sum)[PARTS][N],
                                           const store_place &p, row_buffer &b) {
    switch (a.end) {
    case ends_f32:
        return store_as<ends_f32>(a, sum, p, b);
    case ends_add_f32:
        return store_as<ends_add_f32>(a, sum, p, b);
    case ends_bf16:
        return store_as<ends_bf16>(a, sum, p, b);
    case ends_gate:
        return store_as<ends_gate>(a, sum, p, b);
    }
}

} // namespace
} // namespace device
