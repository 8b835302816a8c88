/* score_groups.h - scores by the fields of a task (task_spec.groups): by length, by depth, by turn.
 *
 * A group is the problems of a task with one value of one field, or with one value each of the
 * first two fields. The groups of one field, or of the pair, are one family: Holm's adjustment of
 * their p values is over the family. */
#ifndef SNAPMLA_EVALS_SCORE_GROUPS_H
#define SNAPMLA_EVALS_SCORE_GROUPS_H

#include "evals/score.h"

/* A field with more values than GROUP_VALUES, such as a running number, makes no groups. */
enum { GROUP_VALUES = 64, GROUP_FIELDS = 2 };

typedef struct {
    size_t problems, scored; /* problems with scored samples; scored samples */
    stats_mean accuracy;     /* over the group's problems; in a task with conversations, over the
                                means of each conversation's problems in the group */
    stats_interval ci95;     /* t interval, or Wilson's if all problems have the same score */
    double prompt_tokens;    /* mean over the samples that report them; NAN if none does */
} group_arm;

typedef struct {
    const char *by[GROUP_FIELDS], *at[GROUP_FIELDS]; /* fields and their values; borrowed */
    size_t fields;                                   /* 1 or 2 */
    size_t problems;                                 /* problems of the group */
    group_arm *arms;                                 /* [n_arms] */
    stats_paired *pairs; /* [n_arms - 1]: the baseline with each of the other arms; n = 0 if the
                            comparison is refused */
    double *p_holm;      /* [n_arms - 1] of p_tost */
} group_score;

/**
 * score_groups - compute the scores of a task's groups
 *
 * @scores: the scores of the task. A pair of arms that is `refused` there is refused here, too. If
 *          it is `withheld` there, no group is called equivalent
 * @mem:    owns *out
 * @out:    *n groups: by field, then in the order of their values (of numbers, ascending; of other
 *          texts, as they come in the set)
 *
 * The metric is the verdict. SNAP_E_NOMEM.
 */
snap_status score_groups(const eval_plan *p, const sample_outcome *all, size_t task,
                         const task_score *scores, arena *mem, group_score **out, size_t *n,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
