/* fp8_config.h - the shapes of the kernel and its tuning constants. */
#ifndef SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_CONFIG_H
#define SNAPMLA_KERNELS_CUDA_SM90_FP8_FP8_CONFIG_H

/* The constants that sm90_ablation changes, to measure what a technique contributes. */
#ifndef SM90_FP8_STAGES
#define SM90_FP8_STAGES 5
#endif
#ifndef SM90_FP8_IN_PLACE
#define SM90_FP8_IN_PLACE 0 /* 1: products add to O inside the tensor cores, not in FP32 */
#endif
#ifndef SM90_FP8_PAGE_UNITS
/* 1: each page has its own unit of P, as in the paper (fp8_page_units.cuh). 0: a unit is kept over
 * many pages (fp8_units.cuh). */
#define SM90_FP8_PAGE_UNITS 0
#endif
#ifndef SM90_FP8_PAGE_ORDER
#define SM90_FP8_PAGE_ORDER 0 /* with page units, the page of a tile that is multiplied first */
#endif

namespace sm90_fp8 {

enum {
    ROWS = 64,     /* most query rows of a CTA: the M of one wgmma */
    PAGE = 64,     /* tokens per page */
    TILE = 128,    /* tokens per iteration of the loop over tiles: two pages */
    CONTENT = 512, /* d_c; also the bytes of a token's e4m3 content */
    ROPE = 64,     /* d_r, bf16 */
    SWIZZLE = 128, /* bytes of a swizzled row; content is four such columns */
    COLUMNS = CONTENT / SWIZZLE,
};

enum {
    kStages = SM90_FP8_STAGES, /* pages of content in shared memory */
    kThreads = 512,
    kLaunchRegs = 65536 / kThreads,
    kLoadRegs = 24,
    kSoftmaxRegs = 136,
    kOutputRegs = 176,
    kFewSoftmaxRegs = 104, /* this number and the next are for the kernels for at most 32 rows */
    kFewOutputRegs = 192,
};

/* The e4m3 numbers of P are P8 = e4m3(P' / 2^E), where P' = P a_k. E, the row's reference exponent,
 * is called `unit` in the code. E stays the same while upper bounds of P' / 448 (448 is the largest
 * e4m3) fit: that of the tile's first page lies in (2^(E - kWindow), 2^E], and that of the second
 * page is at most 2^E. A page that does not fit sets E so that the row's largest P8 in the page is
 * 448 / 2^kHeadroom, which e4m3 represents exactly; but the second page never lowers E. E is never
 * set more than kReach below its largest value in the item so far: P' that small would be lost in
 * fp32 sums anyway. */
constexpr float kHeadroom = 8.0f;
constexpr float kWindow = 12.0f;
constexpr float kReach = 40.0f;
constexpr float kNone = -1e30f;            /* E of a row that has not seen a token */
constexpr float kLog2Largest = 8.8073549f; /* log2(448), the largest e4m3 */

/* With page units, E of each page is log2 of its largest P' / 448 (fp8_page_units.cuh). O and the
 * sums are kept in units of 2^B. If E of a page is more than kShift above B, B rises by kShift, and
 * O and the sums of the row are multiplied by 2^-kShift. If E is more than 2 kShift above B, FP32
 * sums would lose what they hold: O and the sums become zero, and B becomes E. */
constexpr bool kPageUnits = SM90_FP8_PAGE_UNITS;
constexpr int kFirstPage = SM90_FP8_PAGE_ORDER;
constexpr float kShift = 48.0f;
constexpr float kShiftFactor = 0x1p-48f; /* 2^-kShift */
/* With page units, a_k is at least this: P is divided by a_k, and the a_k of tokens past the end is
 * 0. */
constexpr float kLeastScale = 1e-37f;

} // namespace sm90_fp8

#endif
