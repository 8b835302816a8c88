/* score.h - from verdicts to the parity table: what each arm scores, and what the difference is. */
#ifndef SNAPMLA_EVALS_SCORE_H
#define SNAPMLA_EVALS_SCORE_H

#include "evals/samples.h"
#include "evals/stats.h"

enum { SCORE_PASS_MAX = 20 };

/* One arm in one task. Rates are fractions; NAN where there is nothing to take them of. A failed
 * sample is excluded from all but `samples` and `failed`: it is infrastructure, not a wrong answer. */
typedef struct {
    size_t samples;      /* rows */
    size_t scored;       /* rows that did not fail */
    size_t failed;       /* rows that did */
    size_t missing;      /* planned, no row */
    size_t problems;     /* with at least one scored sample */
    stats_mean accuracy; /* mean over problems of the mean over samples; se clustered by problem */
    int n_pass;          /* pass@k for k = 1, 2, 4, ... and the planned samples of a problem */
    struct {
        int k;
        double rate; /* over the problems with k scored samples; NAN if there is none */
    } pass[SCORE_PASS_MAX];
    double majority; /* maj@k of all samples; NAN where a problem has one only. Votes are what was
                        extracted, word for word, but all correct answers are one; a tie counts
                        by the share of the correct among the first */
    double sampling_variance; /* mean over problems of p (1-p), unbiased; NAN for one sample */
    stats_interval ci95; /* Wilson's over problems for one sample each and for 0 and 1, else t */
    double truncated, empty, unparsed; /* of scored */
    size_t identical;   /* samples that repeat another one of the same problem word for word */
    double tokens_mean; /* completion tokens; over the scored samples that report them */
    double ttft_ms_median;
    double itl_ms_median; /* of the samples' medians: the pace of a typical stream */
    double itl_ms_p99;    /* median of the samples' 99th percentiles: its stalls */
    double
        tok_s; /* completion tokens over request time, summed over samples: speed of one stream */
} arm_score;

typedef struct {
    size_t baseline, arm; /* indices */
    char refused[160];    /* why there is no comparison; "" when there is one */
    stats_paired diff;    /* over problems with scored samples in both arms */
    double p_sign_flip;
    double p_mcnemar; /* NAN unless one sample a problem */
    stats_interval bootstrap95;
    bool has_length; /* token counts are known in both arms */
    stats_ratio length;
    double p_holm; /* p_tost, adjusted over the tasks of the run */
} pair_score;

/* Of one metric of a task. */
typedef struct task_score task_score;
struct task_score {
    arm_score *arms;   /* [n_arms] */
    pair_score *pairs; /* [n_arms - 1]: the baseline against each other arm */
    task_score *also;  /* [grade_metrics() - 1] of the grader's further metrics. A problem counts
                          there by its weight, as "instructions followed of all instructions": for
                          intervals, scores are linearised about the weighted mean. They have no
                          pass@k and maj@k, and are no tests of the family that p_holm adjusts for */
    arena mem;         /* of the first task's: what all of them hold */
};

/**
 * score_run - the scores of every task
 *
 * @outcomes: [plan_cells()], from samples_grade()
 * @out:      [n_tasks] scores; release with score_release()
 *
 * SNAP_E_NOMEM.
 */
snap_status score_run(const eval_plan *p, const sample_outcome *outcomes, task_score **out,
                      snap_err *err) SNAP_CHECK_RESULT;
void score_release(const eval_plan *p, task_score *scores);

#endif
