/* oracle.h - computes one decode step of some heads over one sequence in FP64, over the tokens that
 * a cache format holds (kernels/format/format.h) or over the exact ones (kernels/reference.h), and
 * measures how far two results differ. The heads are distributed over threads. */
#ifndef SNAPMLA_HARNESS_BENCH_ORACLE_H
#define SNAPMLA_HARNESS_BENCH_ORACLE_H

#include "base/err.h"
#include "base/parallel.h"
#include "kernels/format/format.h"

typedef struct {
    parallel *pool;
    const float *q;  /* [heads][d_c + d_r] */
    const float *kv; /* [context][d_c + d_r] */
    int heads, d_c, d_r;
    int64_t context;
    double softmax_scale;
} oracle_step;

typedef struct {
    double *o;   /* [heads][d_c] */
    double *lse; /* [heads] */
} oracle_result;

snap_status oracle_result_init(oracle_result *r, int heads, int d_c,
                               snap_err *err) SNAP_CHECK_RESULT;
void oracle_result_release(oracle_result *r);

/* Packs the tokens in a format with the step's widths, and computes attention over what it holds,
 * in the arithmetic of the format's arm. SNAP_E_SHAPE, SNAP_E_NOMEM. @out is from
 * oracle_result_init(). */
snap_status oracle_attend(const oracle_step *s, const cache_format *f, oracle_result *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The exact result: nothing is quantised, FP64 throughout. */
snap_status oracle_exact(const oracle_step *s, oracle_result *out, snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    double rmse, cosine_diff, rel_l2, max_abs; /* over the outputs of all heads */
    double lse_error;                          /* over the heads, the largest difference of the
                                                  log-sum-exp, divided by max(1, |true value|) */
} oracle_errors;

oracle_errors oracle_compare(const oracle_result *now, const oracle_result *truth, int heads,
                             int d_c);

#endif
