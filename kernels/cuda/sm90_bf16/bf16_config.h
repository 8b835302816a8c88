/* bf16_config.h - the shapes of the kernel and the constants that were tuned. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_CONFIG_H
#define SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_CONFIG_H

/* 1: pages come from an FP8 cache and become BF16 on the way; what sm90_ablation compiles. */
#ifndef SM90_BF16_WIDEN
#define SM90_BF16_WIDEN 0
#endif

namespace sm90_bf16 {

enum {
    ROWS = 64,                     /* query rows of one sequence a CTA: the M of one wgmma */
    PAGE = 64,                     /* tokens: the N of S, four k-steps of O */
    CONTENT = 512,                 /* d_c */
    ROPE = 64,                     /* d_r */
    WIDTH = CONTENT + ROPE,        /* of a row of the cache and of the queries */
    SWIZZLE = 128,                 /* bytes of a swizzled row: 64 numbers */
    COLUMNS = WIDTH * 2 / SWIZZLE, /* swizzled columns of a row; the last is RoPE */
    HALF = CONTENT / 2,            /* columns of O that a group has */
    TILE_BYTES = PAGE * SWIZZLE,   /* 64 x 64 numbers */
};

enum {
    kThreads = 384,
    kLaunchRegs = 65536 / kThreads / 8 * 8,
    kLoadRegs = SM90_BF16_WIDEN ? 72 : 24,
    kMathRegs = SM90_BF16_WIDEN ? 216 : 240,
    kPieces = 5, /* of a page, loaded and awaited apart: RoPE, then content by two columns */
};

/* The unit of a row's P is 2^E. E stays while the scores lie below E + kWindow, and becomes their
 * maximum when they leave: bf16 and fp32 are as precise at 2^kWindow as at 1. A row's largest P is exact
 * where E is its maximum, which matters where few rows make up an error, and costs little there. */
constexpr float kWindow = 8.0f;
enum { EXACT_ROWS = 8 };        /* up to so many rows: E is the maximum */
constexpr float kNone = -1e30f; /* E of a row that has seen no token */

} // namespace sm90_bf16

#endif
