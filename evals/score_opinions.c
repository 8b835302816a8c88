#include "evals/score_opinions.h"

#include <math.h>
#include <stdlib.h>

static bool is_scored(const sample_outcome *o) {
    return o->present && !o->failed && !o->unjudged;
}

static bool is_accepted(const sample_outcome *o) {
    return o->verdict == GRADE_CORRECT || (o->asked && o->said == OPINION_SAME);
}

/* The mean score of a problem in an arm; NAN without a scored sample. */
static double mean_of_problem(const eval_plan *p, const sample_outcome *all, plan_cell c) {
    double sum = 0, n = 0;
    for (c.sample = 0; c.sample < p->tasks[c.task].samples; c.sample++) {
        const sample_outcome *o = &all[plan_index(p, c)];
        sum += is_scored(o) && is_accepted(o);
        n += is_scored(o);
    }
    return sum / n;
}

static void count_opinions(const eval_plan *p, const sample_outcome *all, size_t task, size_t arm,
                           score_opinions *s) {
    size_t first = plan_index(p, (plan_cell){.task = task, .arm = arm});
    size_t cells = p->tasks[task].set.n * (size_t)p->tasks[task].samples;
    for (const sample_outcome *o = all + first; o < all + first + cells; o++) {
        if (!is_scored(o))
            continue;
        s->undecided += o->undecided;
        s->asked += o->asked;
        s->same += o->asked && o->said == OPINION_SAME;
        s->different += o->asked && o->said == OPINION_DIFFERENT;
    }
}

/* Writes the means of the problems that have a value in both arms to @x and @y. Returns their
 * number. */
static size_t pair_means(const eval_plan *p, const sample_outcome *all, size_t task, size_t arm,
                         double *x, double *y) {
    size_t n = 0;
    for (size_t i = 0; i < p->tasks[task].set.n; i++) {
        x[n] = mean_of_problem(p, all, (plan_cell){task, 0, i, 0});
        y[n] = mean_of_problem(p, all, (plan_cell){task, arm, i, 0});
        n += !isnan(x[n]) && !isnan(y[n]);
    }
    return n;
}

snap_status score_add_opinions(const eval_plan *p, const sample_outcome *outcomes, size_t task,
                               task_score *scores, snap_err *err) {
    double *x = calloc(2 * p->tasks[task].set.n + 2, sizeof *x);
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
    double *y = x + p->tasks[task].set.n + 1;
    for (size_t arm = 0; arm < p->n_arms; arm++) {
        score_opinions *s = &scores->arms[arm].opinions;
        size_t n = 0;
        count_opinions(p, outcomes, task, arm, s);
        for (size_t i = 0; i < p->tasks[task].set.n; i++) {
            x[n] = mean_of_problem(p, outcomes, (plan_cell){task, arm, i, 0});
            n += isnan(x[n]) ? 0 : 1;
        }
        s->accuracy = stats_mean_of(x, n);
        if (!arm || scores->pairs[arm - 1].refused[0])
            continue;
        n = pair_means(p, outcomes, task, arm, x, y);
        scores->pairs[arm - 1].with_opinions =
            stats_compare(x, y, n, 1.0 / p->tasks[task].samples, p->margin);
    }
    free(x);
    return SNAP_OK;
}
