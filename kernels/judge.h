/* judge.h - compares the rows that a backend computed with the FP64 reference of reference.h. */
#ifndef SNAPMLA_KERNELS_JUDGE_H
#define SNAPMLA_KERNELS_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/reference.h"

/* A step as a backend computed it. All pointers are host memory. The cache may be a copy that holds
 * only the pages in use, with a matching block table. */
typedef struct {
    mla_precision precision;
    int heads, d_c, d_r;
    mla_step step;
    mla_cache cache;
    mla_attn attn;     /* out and lse: the backend's results; lse may be NULL */
    mla_cut_sums sums; /* MLA_FP8: how the backend sums its scores */
} judge_step;

/* The rows to judge: all of them, or a seeded random sample without repetition. A sample has at
 * least one row of the longest sequence and, if its size is 2 or more, at least one of the
 * shortest. */
typedef struct {
    int64_t rows; /* sample size; 0, or a size above the number of rows: all rows */
    uint64_t seed;
} judge_sample;

/* Sums over the elements of the compared rows, without those that are not finite in out or ref: the
 * squares of out - ref, of ref and of out, and the products out * ref. */
typedef struct {
    double diff2, ref2, out2, dot;
} judge_sums;

typedef struct {
    int64_t rows;   /* number of rows compared */
    double out_rel; /* ||out - ref|| / ||ref|| over all compared rows together */
    double row_rel; /* ||out - ref|| / ||ref|| of the worst single row */
    double out_abs; /* largest absolute difference of one element */
    double cosine;  /* 1 - cosine similarity, over all rows together */
    double lse_err; /* largest |lse - ref| / max(1, |ref|); 0 if lse was not judged */
    /* As lse_err, but only over the rows whose error is above judge_bound.lse_err. For each of
     * them, the error is taken against the reference or against scores summed as the backend
     * declares (cut_sums.h), whichever is nearer. 0 if there is no such row. judge_known_rows()
     * copies lse_err to it. */
    double lse_alike;
    int64_t nonfinite; /* number of elements for which out or its reference is not finite, plus the
                          same for lse; an infinite lse that equals its reference is not counted */
    int worst_b, worst_s, worst_h; /* the row with the error row_rel */
    judge_sums sums;               /* out_rel and cosine are computed from these */
} judge_error;

/* Adds the errors of one step, @part, to @all, as if all rows had been judged together. Sequence 0
 * of the step is counted as sequence @first. */
void judge_add(judge_error *all, const judge_error *part, int first);

/* Judges the sampled rows. A row whose reference is zero must be zero: its row_rel is 0 or
 * infinity. SNAP_E_NOMEM. */
snap_status judge_rows(judge_error *out, const judge_step *in, ref_pv pv, judge_sample sample,
                       snap_err *err) SNAP_CHECK_RESULT;

/* The results of a step, with FP64 references for some of its rows from another source
 * (lab_attend). */
typedef struct {
    int heads, s_q, d_c;
    const uint16_t *out; /* bf16 [batch][s_q][heads][d_c] */
    const float *lse;    /* fp32 [batch][s_q][heads]; NULL: not judged */
    const int64_t *row;  /* [rows] the rows that have a reference */
    int rows;
    const double *ref, *ref_lse; /* [rows][d_c], [rows] */
} judge_known;
judge_error judge_known_rows(const judge_known *in);

/* The largest errors that a correct backend may have. judge_bound_of() gives them for a reference
 * that reads the same cache as the backend, so errors of quantising the cache do not count. @pv:
 * how the reference rounds its probabilities. MLA_FP8 has smaller bounds for REF_P_E4M3, which
 * rounds like the arm itself, than for exact probabilities. */
typedef struct {
    double out_rel, row_rel, lse_err;
} judge_bound;
judge_bound judge_bound_of(mla_precision p, ref_pv pv);

/* The bound for a comparison of @rows rows. out_rel holds for 64 rows and more. The error of fewer
 * rows together scatters more, so their bound is higher, up to row_rel for a single row. */
judge_bound judge_bound_rows(judge_bound bound, int64_t rows);

/* The LSE error to compare with bound.lse_err: lse_err if it is within the bound, else
 * lse_alike. */
double judge_lse(const judge_error *e, judge_bound bound);

/* Returns SNAP_OK or SNAP_E_WRONG. The message names the figure, its bound and the row with the
 * largest error of the output; or, if some elements are not finite, their number. */
snap_status judge_verdict(const judge_error *e, judge_bound bound, snap_err *err) SNAP_CHECK_RESULT;

#endif
