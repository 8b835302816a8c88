/* score.h - computes scores from the outcomes of samples: the accuracy of each arm and the
 * difference between arms. */
#ifndef SNAPMLA_EVALS_SCORE_H
#define SNAPMLA_EVALS_SCORE_H

#include "evals/samples.h"
#include "evals/stats.h"

/* The turns of a conversation are not independent. So the statistical unit of a task with
 * conversations is the conversation, wherever this file and stats.h say problem, except in
 * arm_score.pass, majority, sampling_variance and identical. Accuracies are means over problems. */

enum { SCORE_PASS_MAX = 20 };

/* The smallest difference that the score of a problem (or conversation) can have, other than 0. */
double score_step(const eval_task *t);

/* The second opinions about an arm's undecided answers (opinion.h). asked = same + different +
 * those without an opinion. */
typedef struct {
    size_t undecided, asked, same, different;
    stats_mean accuracy; /* if the answers that are "same" counted as correct */
} score_opinions;

/* Scores of one arm in one task. Rates are fractions; NAN if there are no samples for them. A
 * failed sample counts only in `samples` and `failed`: a failure is an infrastructure problem, not
 * a wrong answer. So does a sample that needs the verdict of a judge model, except that it may
 * count in `identical`. */
typedef struct {
    size_t samples;      /* samples that have a row */
    size_t scored;       /* samples that have a row, did not fail and need no further verdict */
    size_t failed;       /* samples that failed, or have no verdict yet of a judge model or a
                            recording */
    size_t missing;      /* planned samples without a row */
    size_t repaired;     /* scored samples that were not Unicode */
    size_t problems;     /* number of problems with at least one scored sample */
    stats_mean accuracy; /* mean over problems of the mean over their samples; standard error
                            clustered by problem */
    int n_pass;          /* number of entries in pass[]: k = 1, 2, 4, ... and the planned samples
                            per problem */
    struct {
        int k;
        double rate; /* over the problems with at least k scored samples; NAN if none */
    } pass[SCORE_PASS_MAX];
    double majority; /* maj@k over all scored samples of a problem; NAN with one sample per problem.
                        A vote is the extracted text; unparsed samples have no vote; all correct
                        answers are one vote. If several answers lead, the problem counts as the
                        fraction of them that is correct (0 or 1/leaders). */
    double sampling_variance; /* variance of a sample's score around its problem's mean, p (1-p) for
                                 a rate: unbiased, mean over the problems with two and more scored
                                 samples; NAN if there is none */
    stats_interval ci95;      /* t interval; Wilson's interval over problems at accuracy 0 or 1, or
                                 if each problem has one sample and its score is 0 or 1 */
    double truncated, empty, unparsed; /* fractions of scored */
    score_opinions opinions;           /* zeros unless the grader is `mathematical` */
    size_t identical;   /* samples whose text repeats that of an earlier sample of the same
                           problem */
    double tokens_mean; /* mean completion tokens of the scored samples that report them */
    /* Means over the scored samples that have the count (samples.h). An answer's tokens are the
     * completion tokens that are not reasoning. */
    double reasoning_tokens_mean, answer_tokens_mean, reasoning_chars_mean, answer_chars_mean;
    double ttft_ms_median;
    double itl_ms_median; /* median over samples of their median time between pieces */
    double itl_ms_p99;    /* median over samples of their 99th percentile: the stalls */
    double tok_s; /* completion tokens / second of request time, each summed over samples: speed of
                     one stream */
} arm_score;

typedef struct {
    size_t baseline, arm; /* indices of the arms */
    char refused[160];    /* why the arms cannot be compared (the fields below are then not
                             computed); "" if they can */
    char withheld[160]; /* why the verdict cannot be "equivalent" (lost.h); "" if it can. With such
                           a reason, "not shown" replaces "equivalent" in `diff` */
    double p_failed, p_repaired; /* p values of sign-flip tests over problems: does the share of
                                    failed samples differ between the arms, and does that of
                                    repaired samples? NAN for no problem */
    stats_paired diff;           /* over problems with scored samples in both arms */
    double p_sign_flip;
    double p_mcnemar; /* NAN unless there is one sample per problem and the metric is the verdict */
    stats_interval bootstrap95;
    bool has_length; /* there are problems for which both arms report token counts */
    stats_ratio length;
    double p_holm;              /* p_tost after Holm's adjustment over the tasks of the run */
    stats_paired with_opinions; /* the comparison with the accuracies of score_opinions; n = 0
                                   unless the grader is `mathematical` */
} pair_score;

/* Scores of one metric of a task. */
typedef struct task_score task_score;
struct task_score {
    arm_score *arms;   /* [n_arms] */
    pair_score *pairs; /* [n_arms - 1]: the baseline with each of the other arms */
    task_score *also;  /* [grade_metrics() - 1], one for each further metric. In these metrics, and
                          in that of a judge model, a problem counts by its weight, for example by
                          its number of instructions. For intervals, scores are then linearised
                          around the weighted mean. Such metrics have no pass@k, maj@k and McNemar
                          test. p_holm does not count the further metrics. */
    arena mem;         /* only the first task's arena is used. It owns `arms`, `pairs` and `also` of
                          all tasks */
};

/**
 * score_run - compute the scores of every task
 *
 * @outcomes: [plan_cells()], from samples_grade()
 * @out:      [n_tasks] scores; release with score_release()
 *
 * SNAP_E_NOMEM.
 */
snap_status score_run(const eval_plan *p, const sample_outcome *outcomes, task_score **out,
                      snap_err *err) SNAP_CHECK_RESULT;
void score_release(const eval_plan *p, task_score *scores);

/* An arm compared with the baseline over all tasks (stats_pool_add()). `refused` and `withheld` are
 * those of the first task that has such a text. */
typedef struct {
    const char *refused, *withheld; /* as in pair_score; borrowed from @scores */
    stats_paired diff;
} pooled_score;
pooled_score score_pooled(const eval_plan *p, const task_score *scores, size_t pair);

#endif
