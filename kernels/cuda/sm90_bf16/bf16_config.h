/* bf16_config.h - the shapes of the kernel and its tuning constants. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_CONFIG_H
#define SNAPMLA_KERNELS_CUDA_SM90_BF16_BF16_CONFIG_H

/* 1: pages come from an FP8 cache and are converted to BF16 on chip; sm90_ablation compiles this
 * variant. */
#ifndef SM90_BF16_WIDEN
#define SM90_BF16_WIDEN 0
#endif

namespace sm90_bf16 {

enum {
    ROWS = 64,                     /* most query rows of a CTA: the M of one wgmma */
    PAGE = 64,                     /* tokens per page: the N of S, four k-steps of O */
    CONTENT = 512,                 /* d_c */
    ROPE = 64,                     /* d_r */
    WIDTH = CONTENT + ROPE,        /* columns of a row of the cache and of the queries */
    SWIZZLE = 128,                 /* bytes of a swizzled row: 64 numbers */
    COLUMNS = WIDTH * 2 / SWIZZLE, /* swizzled columns of a row; the last is RoPE */
    HALF = CONTENT / 2,            /* columns of O per group */
    TILE_BYTES = PAGE * SWIZZLE,   /* 64 x 64 numbers */
};

enum {
    kThreads = 384,
    kLaunchRegs = 65536 / kThreads / 8 * 8,
    kLoadRegs = SM90_BF16_WIDEN ? 72 : 24,
    kMathRegs = SM90_BF16_WIDEN ? 216 : 240,
    kPieces = 5, /* pieces of a page, each with its own barrier: RoPE, then four of two swizzled
                    columns of content each */
};

/* P of a row is 2^(score - E), with scores as base-2 logarithms. E, the row's reference exponent,
 * is called `unit` in the code. E stays the same while no score of a page exceeds E + kWindow;
 * otherwise E becomes the page's largest score. bf16 and fp32 are as precise at 2^kWindow as at 1.
 * Only if E is the largest score so far, the largest P of a row is 1, which bf16 represents
 * exactly. With at most EXACT_ROWS rows, the window is therefore 0. */
constexpr float kWindow = 8.0f;
enum { EXACT_ROWS = 8 };        /* with at most this many rows, E is the largest score so far */
constexpr float kNone = -1e30f; /* E of a row that has not seen a token */

} // namespace sm90_bf16

#endif
