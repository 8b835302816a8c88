/* reference.h - the reference: each arm's arithmetic in FP64, slow and simple, in host memory.
 *
 * It works in two steps. First, rows (queries or cached tokens) are brought into the form that an
 * arm's multiplier reads. Either the planes that a backend ran on are decoded, which judges only
 * the arithmetic. Or plain numbers are quantised in one of the formats of ref_format, which judges
 * the format as well. Second, ref_attend() computes one output row from them. judge.h compares a
 * backend's results with it.
 *
 * No function keeps state: threads may share all inputs. */
#ifndef SNAPMLA_KERNELS_REFERENCE_H
#define SNAPMLA_KERNELS_REFERENCE_H

#include <stdint.h>

#include "kernels/mla.h"

/* The forms of queries and cached tokens that the backends' arms have. kernels/format/format.h
 * brings any other cache format into rows. */
typedef enum {
    REF_PLAIN = 0, /* the given numbers, unquantised */
    REF_BF16,      /* the baseline arm */
    REF_SNAPMLA,   /* content e4m3, one scale per token; RoPE bf16, divided by that scale */
} ref_format;

/* How the probabilities P are rounded before the product P.V. */
typedef enum {
    REF_P_EXACT, /* FP64 */
    REF_P_BF16,  /* rounded to bf16: the BF16 arm; with REF_SNAPMLA this is the ablation "noPV" */
    REF_P_E4M3,  /* SnapMLA: P' = P a_k, P8 = e4m3(P' / sigma), one sigma = max P' / 448 per block
                    of 64 tokens */
} ref_pv;

/* The rounding that the arm of that format uses: EXACT for PLAIN, BF16 for BF16, E4M3 for
 * SNAPMLA. */
ref_pv ref_format_pv(ref_format f);

/* Rows in the form that a multiplier reads. Element d of row i stands for
 *     content[i][d] * scale[i][d / dims]    and    rope[i][d] * rope_scale[i][d / rope_dims].  */
typedef struct {
    int64_t rows;
    int d_c, d_r;
    int groups, dims; /* scales per row; columns that share one scale */
    int rope_groups, rope_dims;
    float *content;    /* [rows][d_c] */
    float *rope;       /* [rows][d_r] */
    float *scale;      /* [rows][groups] */
    float *rope_scale; /* [rows][rope_groups] */
} ref_rows;

/* Allocates rows of zeros. @dims and @rope_dims: divisors of d_c and d_r. The caller releases @r;
 * empty on failure. SNAP_E_NOMEM. */
snap_status ref_rows_init(ref_rows *r, int64_t rows, int d_c, int d_r, int dims, int rope_dims,
                          snap_err *err) SNAP_CHECK_RESULT;

void ref_rows_release(ref_rows *r); /* frees and zeroes; initialise with {0} */

/**
 * ref_rows_quantise - quantise plain numbers in a format
 *
 * @out: the caller releases it; empty on failure
 * @x:   fp32 [rows][d_c + d_r], RoPE last
 *
 * Errors: SNAP_E_SHAPE (rows below 0, d_c or d_r below 1), SNAP_E_NOMEM.
 */
snap_status ref_rows_quantise(ref_rows *out, ref_format f, const float *x, int64_t rows, int d_c,
                              int d_r, snap_err *err) SNAP_CHECK_RESULT;

/* Decodes tokens 0 .. tokens-1 of one sequence from its cache planes (host memory). @table_row: the
 * sequence's row of the block table. */
snap_status ref_rows_from_cache(ref_rows *out, mla_precision p, int d_c, int d_r,
                                const mla_cache *cache, const int32_t *table_row, int64_t tokens,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Decodes queries first .. first + rows - 1 of the query planes in @attn (host memory). */
snap_status ref_rows_from_queries(ref_rows *out, mla_precision p, int d_c, int d_r,
                                  const mla_attn *attn, int64_t first, int64_t rows,
                                  snap_err *err) SNAP_CHECK_RESULT;

/**
 * ref_attend - compute one output row
 *
 * @q, @query: the query is row @query of @q
 * @k:         tokens; the row sees the first @visible of them (0 or less: none)
 * @o:         fp64 [d_c], not rounded
 * @lse:       natural logarithm; -inf when nothing is visible; may be NULL
 *
 * All sums are FP64. Blocks of MLA_PAGE tokens are processed in order with a running maximum,
 * and P is rounded relative to that maximum. q and k may have different numbers of scales per row,
 * if one number divides the other.
 */
void ref_attend(const ref_rows *q, int64_t query, const ref_rows *k, int64_t visible,
                double softmax_scale, ref_pv pv, double *o, double *lse);

#endif
