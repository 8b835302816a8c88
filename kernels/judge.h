/* judge.h - is what a backend computed right? Its rows against reference.h. */
#ifndef SNAPMLA_KERNELS_JUDGE_H
#define SNAPMLA_KERNELS_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/reference.h"

/* A step as a backend got it, every pointer host memory. The pool may be a copy that holds only the
 * pages that matter, with a block table to match. */
typedef struct {
    mla_precision precision;
    int heads, d_c, d_r;
    mla_step step;
    mla_cache cache;
    mla_attn attn;     /* out and lse: what the backend returned; lse may be NULL */
    mla_cut_sums sums; /* MLA_FP8: the backend's */
} judge_step;

/* Which rows: all of them, or a seeded sample without repetition. Sampled rows prefer the shortest
 * and the longest sequence, which each get one. */
typedef struct {
    int64_t rows; /* 0 or more than there are = all */
    uint64_t seed;
} judge_sample;

/* Sums of squares over all compared rows, and of products. */
typedef struct {
    double diff2, ref2, out2, dot;
} judge_sums;

typedef struct {
    int64_t rows;   /* compared */
    double out_rel; /* ||out - ref|| / ||ref|| over all compared rows together */
    double row_rel; /* the same of the worst row */
    double out_abs; /* largest difference of an element */
    double cosine;  /* 1 - cosine similarity, all rows together */
    double lse_err; /* largest |lse - ref| / max(1, |ref|); 0 without lse */
    /* of rows beyond judge_bound.lse_err, against scores summed as the backend declares (cut_sums.h) if that
     * is nearer */
    double lse_alike;
    int64_t nonfinite; /* NaN or infinite in out, lse or the reference, and should not be */
    int worst_b, worst_s, worst_h; /* the row of row_rel */
    judge_sums sums;               /* what out_rel and cosine follow from */
} judge_error;

/* Another step's rows to those of @all, as if all had been judged together; @first: its sequence 0 there. */
void judge_add(judge_error *all, const judge_error *part, int first);

/* SNAP_E_NOMEM. A row whose reference is zero must be zero: its row_rel is 0 or infinity. */
snap_status judge_rows(judge_error *out, const judge_step *in, ref_pv pv, judge_sample sample,
                       snap_err *err) SNAP_CHECK_RESULT;

/* A step's results of which some rows are known in FP64 from elsewhere (lab_attend). */
typedef struct {
    int heads, s_q, d_c;
    const uint16_t *out; /* bf16 [batch][s_q][heads][d_c], and fp32 [batch][s_q][heads] */
    const float *lse;
    const int64_t *row; /* [rows]: which */
    int rows;
    const double *ref, *ref_lse; /* [rows][d_c], [rows] */
} judge_known;
judge_error judge_known_rows(const judge_known *in);

/* What a correct backend stays within, against the oracle of its own arithmetic (pv =
 * ref_format_pv) or against exact probabilities on the same cache. */
typedef struct {
    double out_rel, row_rel, lse_err;
} judge_bound;
judge_bound judge_bound_of(mla_precision p, ref_pv pv);

/* What is held against bound.lse_err: lse_err, or lse_alike where that is beyond it. */
double judge_lse(const judge_error *e, judge_bound bound);

/* SNAP_OK, or SNAP_E_WRONG naming the figure, its bound and the worst row. */
snap_status judge_verdict(const judge_error *e, judge_bound bound, snap_err *err) SNAP_CHECK_RESULT;

#endif
