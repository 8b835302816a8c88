/* reference.h - the judge: each arm's arithmetic in FP64, slow and obvious, in host memory.
 *
 * Three steps. Rows (queries or cached tokens) are brought to what an arm's multiplier reads, either
 * by decoding the very planes that a backend ran on (only the arithmetic is judged then) or by
 * quantising plain numbers in one of the formats of the ablation (the format is judged as well).
 * ref_attend() computes one output row from them. judge.h compares a backend's step with it.
 *
 * Everything here is a pure function of its arguments: threads may share all inputs. */
#ifndef SNAPMLA_KERNELS_REFERENCE_H
#define SNAPMLA_KERNELS_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/mla.h"

/* Cache formats. A to E quantise queries and tokens alike; every format but PLAIN and BF16 carries
 * content (and in A, B and C RoPE) as e4m3 values times an FP32 scale. */
typedef enum {
    REF_PLAIN = 0, /* "plain": the numbers as given, unquantised */
    REF_BF16,      /* "bf16": the baseline arm */
    REF_SNAPMLA,   /* "snapmla": content e4m3 with a scale a token; RoPE bf16 in units of it */
    REF_A,         /* "A": as snapmla, and RoPE e4m3 with its own scale a token */
    REF_B,         /* "B": content and RoPE e4m3, scale 1.0 */
    REF_C,         /* "C": content and RoPE e4m3, one scale for the whole tensor */
    REF_D,         /* "D": content e4m3 with a scale for 64 tokens x 128 dims; RoPE bf16 */
    REF_E,         /* "E": content e4m3 with a scale for each 128 dims of a token; RoPE bf16 */
    REF_F,         /* "F": as snapmla, scale rounded up to a power of two; RoPE exact */
    REF_FORMATS
} ref_format;

const char *ref_format_name(ref_format f);
bool ref_format_parse(const char *name, ref_format *out); /* by those names, exactly */

/* Average bytes of cache that a token takes in a format; 4 bytes a number for PLAIN. */
double ref_format_token_bytes(ref_format f, int d_c, int d_r);

/* How the probabilities enter P.V. */
typedef enum {
    REF_P_EXACT, /* FP64 */
    REF_P_BF16,  /* rounded to bf16 block by block: the BF16 arm, and "noPV" with REF_SNAPMLA */
    REF_P_E4M3,  /* SnapMLA's reconstruction: P' = P a_k, P8 = e4m3(P' / sigma), sigma a block */
} ref_pv;

/* What the arm of that format does: EXACT for PLAIN, BF16 for BF16, E4M3 for all others. */
ref_pv ref_format_pv(ref_format f);

/* Rows as a multiplier reads them. Element d of row i stands for
 *     content[i][d] * scale[i][d / dims]        and        rope[i][d] * rope_scale[i].  */
typedef struct {
    int64_t rows;
    int d_c, d_r;
    int groups, dims;  /* scales a row; columns that share one */
    float *content;    /* [rows][d_c] */
    float *rope;       /* [rows][d_r] */
    float *scale;      /* [rows][groups] */
    float *rope_scale; /* [rows] */
} ref_rows;

void ref_rows_release(ref_rows *r); /* the struct is reusable; initialise with {0} */

/**
 * ref_rows_quantise - plain numbers in a format
 *
 * @out: released by the caller, empty on failure
 * @x:   fp32 [rows][d_c + d_r], RoPE last; for D row 0 begins a block of 64
 *
 * Errors: SNAP_E_SHAPE (D and E need d_c to be a multiple of 128), SNAP_E_NOMEM.
 */
snap_status ref_rows_quantise(ref_rows *out, ref_format f, const float *x, int64_t rows, int d_c,
                              int d_r, snap_err *err) SNAP_CHECK_RESULT;

/* The same numbers back, bf16-rounded as an eval arm would store them: y may be x. What
 * `precision=A` appends to its BF16 cache. */
snap_status ref_quantise_dequantise(ref_format f, const float *x, float *y, int64_t rows, int d_c,
                                    int d_r, snap_err *err) SNAP_CHECK_RESULT;

/* Tokens 0 .. tokens-1 of one sequence from its cache planes (host memory). @table_row: its row of
 * the block table. */
snap_status ref_rows_from_cache(ref_rows *out, mla_precision p, int d_c, int d_r,
                                const mla_cache *cache, const int32_t *table_row, int64_t tokens,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Queries first .. first + rows - 1 of the query planes in @attn (host memory). */
snap_status ref_rows_from_queries(ref_rows *out, mla_precision p, int d_c, int d_r,
                                  const mla_attn *attn, int64_t first, int64_t rows,
                                  snap_err *err) SNAP_CHECK_RESULT;

/**
 * ref_attend - one output row
 *
 * @q, @query: the query is row @query of @q
 * @k:         tokens; the row sees the first @visible of them (0 allowed)
 * @o:         fp64 [d_c], not rounded
 * @lse:       natural logarithm; -inf when nothing is visible; may be NULL
 *
 * All sums are FP64. Blocks of MLA_PAGE tokens are taken in order with a running maximum, so that
 * the rounding of P is the arm's own. The scales of q and k may come in different groups.
 */
void ref_attend(const ref_rows *q, int64_t query, const ref_rows *k, int64_t visible,
                double softmax_scale, ref_pv pv, double *o, double *lse);

#endif
