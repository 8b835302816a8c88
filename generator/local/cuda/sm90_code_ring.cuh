/* sm90_code_ring.cuh - a ring buffer in shared memory. gemm_many_codes() and gemm_stream_k() load
 * their operands into it with TMA. One element of the ring is called a stage: the operands for 128
 * numbers of k. This file also has the tensor maps of the loads. */
#pragma once
#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/sm90_store.cuh"

namespace device {
namespace {

enum {
    TILE_K = CODE_BLOCK,
    kScalesAtOnce = 4, /* scales of two blocks of k: TMA copies at least 16 bytes of a row */
    kScalesAhead = 4,  /* A load of row scales must begin at a multiple of 16 bytes. So it begins
                          up to three scales before the tile, and has four more than the tile */
    kMultiplyWarps = 8,
};

/* The ring. Each stage holds a tile of x with ROWS rows, a tile of w with COLS rows, and their
 * scales: one number for each row of x, and four for each 16 rows of w. */
template <int ROWS, int COLS>
struct __align__(1024) shared_memory {
    enum {
        STAGES = ROWS + COLS > 320   ? 4
                 : ROWS + COLS > 256 ? 5
                                     : 1536 / (ROWS + COLS),
        SCALES = COLS / 16 * kScalesAtOnce,
        ROW_BYTES = TILE_K + 4, /* bytes of a row of x: the codes and the scale */
        STAGE_BYTES = ROWS * ROW_BYTES + kScalesAhead * 4 + COLS * TILE_K + SCALES * 4,
        SCALE_PITCH = SCALES < 32 ? 32 : SCALES, /* stages begin at multiples of 128 bytes */
        ROW_SCALE_PITCH = ROWS + 32,
    };
    uint8_t x[STAGES][ROWS * TILE_K];
    uint8_t w[STAGES][COLS * TILE_K];
    float row_scale[STAGES][ROW_SCALE_PITCH];
    float scale[STAGES][SCALE_PITCH];
    row_buffer rows[kMultiplyWarps];
    uint64_t full[STAGES], empty[STAGES];

    /* Initialises the barriers and returns the ring. All threads of a block must call this. @raw:
     * dynamic shared memory of dynamic_bytes() bytes. The compiler cannot compute the result of
     * the shuffle again, so it keeps the address in a register. Without the shuffle, it computed
     * the address anew for each stage, before the first product. */
    static __device__ __forceinline__ shared_memory &prepare(uint8_t * raw) {
        const uintptr_t at = (reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024;
        auto &s = *reinterpret_cast<shared_memory *>(__shfl_sync(~0u, at, 0));
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                ptx::mbarrier_init(&s.full[i], 1);
                ptx::mbarrier_init(&s.empty[i], kMultiplyWarps);
            }
            ptx::mbarrier_init_fence();
        }
        __syncthreads();
        return s;
    }
    /* The start of dynamic shared memory need not be a multiple of 1024. */
    static constexpr int dynamic_bytes() {
        static_assert(sizeof(shared_memory) + 1024 <= 227 * 1024, "exceeds an SM's memory");
        static_assert(ROW_SCALE_PITCH % 32 == 0 && SCALE_PITCH % 32 == 0, "misaligned for TMA");
        return sizeof(shared_memory) + 1024;
    }
};

/* A position in the ring. An mbarrier passes through phases, one for each time that its stage is
 * used. @parity is 0 or 1: the parity of the phase that comes next at this stage. */
template <int STAGES>
struct ring_place {
    int stage = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* The next stage that a warp multiplies. advance() already tests whether that stage has been
 * loaded, while the tensor cores still multiply the previous one. So wait() often need not wait. */
template <int ROWS, int COLS>
struct next_stage {
    shared_memory<ROWS, COLS> &s;
    ring_place<shared_memory<ROWS, COLS>::STAGES> at;
    bool loaded = false;

    __device__ explicit next_stage(shared_memory<ROWS, COLS> &s) : s(s) {
    }
    /* Waits until the stage has been loaded, and returns its number. */
    __device__ __forceinline__ int wait() const {
        if (!loaded)
            ptx::mbarrier_wait(&s.full[at.stage], at.parity);
        return at.stage;
    }
    __device__ __forceinline__ void advance() {
        at.advance();
        loaded = ptx::mbarrier_test(&s.full[at.stage], at.parity);
    }
};

/* Marks a stage as free, so that the loading thread can fill it again. All lanes of a warp must
 * call this. */
__device__ __forceinline__ void release(uint64_t *empty) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        ptx::mbarrier_arrive(empty);
}

/* The tensor maps of a product. */
struct code_maps {
    CUtensorMap x, w, row_scale, scale;
};

/* @rows, @cols: rows of x and of w that one load copies. */
inline cudaError_t make_maps(code_maps *m, const gemm_args &a, int rows, int cols) {
    cudaError_t e = map_codes(&m->x, a.x_codes.code, a.k, a.x_rows, 0, TILE_K, rows);
    if (e == cudaSuccess)
        e = map_codes(&m->w, a.w_codes.code, a.k, a.n, a.groups, TILE_K, cols);
    if (e == cudaSuccess)
        e = map_floats(&m->row_scale, a.x_codes.scale, row_scale_pitch(a.x_rows), code_blocks(a.k),
                       0, rows + kScalesAhead, 1);
    return e == cudaSuccess ? map_floats(&m->scale, a.w_codes.scale, 2 * code_pitch(a.k),
                                         (a.n + 15) / 16, a.groups, kScalesAtOnce, cols / 16)
                            : e;
}

} // namespace
} // namespace device
