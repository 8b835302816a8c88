/* fp8_config.h - the shapes of the kernel and the constants that were tuned. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_CONFIG_H
#define SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_CONFIG_H

/* What sm90_ablation changes, to measure what it is worth. */
#ifndef SM90_FP8_STAGES
#define SM90_FP8_STAGES 5
#endif
#ifndef SM90_FP8_IN_PLACE
#define SM90_FP8_IN_PLACE 0 /* 1: products add to O in the tensor cores, not in FP32 */
#endif

namespace sm90_fp8 {

enum {
    ROWS = 64,     /* query rows of one sequence a CTA: the M of one wgmma */
    PAGE = 64,     /* tokens */
    TILE = 128,    /* tokens a step: two pages */
    CONTENT = 512, /* d_c, bytes of e4m3 */
    ROPE = 64,     /* d_r, bf16 */
    SWIZZLE = 128, /* bytes of a swizzled row; content is four such columns */
    COLUMNS = CONTENT / SWIZZLE,
};

enum {
    kStages = SM90_FP8_STAGES, /* pages of content on chip */
    kThreads = 512,
    kLaunchRegs = 65536 / kThreads,
    kLoadRegs = 24,
    kSoftmaxRegs = 136,
    kOutputRegs = 176,
    kFewSoftmaxRegs = 104, /* of at most 32 rows */
    kFewOutputRegs = 192,
};

/* The unit of a row's P is 2^E. E is held while the tile's largest P lies in (2^(E - kWindow), 2^E]
 * of e4m3's range, else it is set so that the largest P is kHeadroom below the largest e4m3, and thus a
 * number of e4m3 itself; never more than kReach below the largest E so far, whose tokens are then
 * beyond fp32's precision anyway. */
constexpr float kHeadroom = 8.0f;
constexpr float kWindow = 12.0f;
constexpr float kReach = 40.0f;
constexpr float kNone = -1e30f;            /* E of a row that has seen no token */
constexpr float kLog2Largest = 8.8073549f; /* log2(448), the largest e4m3 */

} // namespace sm90_fp8

#endif
