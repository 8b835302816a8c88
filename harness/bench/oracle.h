/* oracle.h - one decode step of some heads over one sequence by the FP64 oracle
 * (kernels/reference.h), the heads shared out among threads, and how far two results are apart. */
#ifndef SNAPMLA_HARNESS_BENCH_ORACLE_H
#define SNAPMLA_HARNESS_BENCH_ORACLE_H

#include "base/err.h"
#include "base/parallel.h"
#include "kernels/reference.h"

/* How a config of the ablation treats its numbers. */
typedef struct {
    const char *name;
    ref_format queries, tokens;
    ref_pv pv;
} oracle_config;

/* "bf16", "snapmla", "A" .. "F", "noPV" */
enum { ORACLE_CONFIGS = 9 };
extern const oracle_config oracle_configs[ORACLE_CONFIGS];

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

/* SNAP_E_SHAPE where a format does not take these widths; SNAP_E_NOMEM. */
snap_status oracle_attend(const oracle_step *s, const oracle_config *c, oracle_result *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* FP64 throughout. */
snap_status oracle_exact(const oracle_step *s, oracle_result *out, snap_err *err) SNAP_CHECK_RESULT;

typedef struct {
    double rmse, cosine_diff, rel_l2, max_abs; /* of the outputs, all heads together */
    double lse_error;                          /* largest, over max(1, |LSE|) */
} oracle_errors;

oracle_errors oracle_compare(const oracle_result *now, const oracle_result *truth, int heads,
                             int d_c);

#endif
