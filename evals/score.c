#include "evals/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evals/lost.h"
#include "evals/score_opinions.h"
#include "evals/votes.h"

/* The samples of one problem in one arm. */
static const sample_outcome *samples_of(const eval_plan *p, const sample_outcome *all, size_t t,
                                        size_t arm, size_t problem) {
    return all + plan_index(p, (plan_cell){.task = t, .arm = arm, .problem = problem});
}

double score_step(const eval_task *t) {
    return 1.0 / (double)t->samples / (double)(t->set.turns > 1 ? t->set.turns : 1);
}

static bool is_scored(const sample_outcome *o) {
    return o->present && !o->failed && !o->unjudged;
}

/* Collects values of samples, and the weight of each. */
typedef size_t (*gather_fn)(const sample_outcome *o, size_t count, int slot, double *x, double *w);

/* Stores the values of the scored samples among the @count samples at @o in @x, and their weights
 * in @w. Returns the number of values. @slot: index in `also`; -1: the verdict, as 1 or 0. */
static size_t gather_scores(const sample_outcome *o, size_t count, int slot, double *x, double *w) {
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        if (!is_scored(&o[k]))
            continue;
        x[n] = slot < 0 ? (double)(o[k].verdict == GRADE_CORRECT) : o[k].also[slot].value;
        w[n++] = slot < 0 ? 1 : o[k].also[slot].weight;
    }
    return n;
}

/* The values of one statistical unit. A problem that belongs to no conversation (@turns = 1) has
 * the values of its samples. A conversation has the means of its problems, each with the weight
 * that makes the weighted mean over conversations the mean over problems. */
static size_t gather_unit(const sample_outcome *o, size_t turns, size_t count, gather_fn gather,
                          int slot, double *x, double *w) {
    size_t n = 0;
    if (turns == 1)
        return gather(o, count, slot, x, w);
    for (size_t i = 0; i < turns; i++) {
        size_t got = gather(o + i * count, count, slot, x + n, w + n);
        if (!got)
            continue;
        x[n] = stats_mean_of(x + n, got).mean;
        w[n] = stats_mean_of(w + n, got).mean;
        n++;
    }
    for (size_t i = 0; i < n; i++)
        w[i] *= (double)n;
    return n;
}

static size_t gather_tokens(const sample_outcome *o, size_t count, int slot, double *x, double *w) {
    size_t n = 0;
    (void)slot;
    for (size_t k = 0; k < count; k++) {
        if (!is_scored(&o[k]) || o[k].completion_tokens < 0)
            continue;
        x[n] = (double)o[k].completion_tokens;
        w[n++] = 1;
    }
    return n;
}

/* 1 for each sample that failed or has no verdict of a judge model, 0 for each other row. */
static size_t gather_failed(const sample_outcome *o, size_t count, int slot, double *x, double *w) {
    size_t n = 0;
    (void)slot;
    for (size_t k = 0; k < count; k++) {
        if (!o[k].present)
            continue;
        x[n] = o[k].failed || o[k].unjudged;
        w[n++] = 1;
    }
    return n;
}

static size_t gather_repaired(const sample_outcome *o, size_t count, int slot, double *x,
                              double *w) {
    size_t n = 0;
    (void)slot;
    for (size_t k = 0; k < count; k++) {
        if (!is_scored(&o[k]))
            continue;
        x[n] = o[k].repaired;
        w[n++] = 1;
    }
    return n;
}

/* Working memory for one metric of one task. K is the number of samples per problem. */
typedef struct {
    int slot;        /* index of the metric in a sample's `also`; -1: the verdict */
    double *samples; /* [2 * problems * K] values of both arms of a pair, or of one arm */
    double *weights; /* [2 * problems * K] weights of these values */
    double *a, *b;   /* [problems] for each arm: means of the problems that have scored samples */
    stats_problem *problems;
    uint64_t *hashes; /* [K] */
} scratch;

static void scratch_release(scratch *s) {
    free(s->samples);
    free(s->a);
    free(s->b);
    free(s->hashes);
    free(s->weights);
    free(s->problems);
}

static snap_status scratch_make(const eval_task *t, scratch *s, snap_err *err) {
    size_t n = t->set.n, cells = n * (size_t)t->samples;
    s->samples = calloc(2 * cells + 1, sizeof *s->samples);
    s->a = calloc(n + 1, sizeof *s->a);
    s->b = calloc(n + 1, sizeof *s->b);
    s->weights = calloc(2 * cells + 1, sizeof *s->weights);
    s->problems = calloc(n + 1, sizeof *s->problems);
    s->hashes = calloc((size_t)t->samples + 1, sizeof *s->hashes);
    if (s->hashes && s->samples && s->a && s->b && s->weights && s->problems)
        return SNAP_OK;
    return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
}

/* ---- weights ---- */

/* mean: the weighted mean over problems. per_weight: 1 / the mean weight. */
typedef struct {
    double mean, per_weight;
} weighted_mean;

static void weighted_mean_add(weighted_mean *w, const double *x, const double *weights, size_t n) {
    for (size_t k = 0; k < n; k++) { /* both fields are sums until weighted_mean_end() */
        w->mean += weights[k] * x[k] / (double)n;
        w->per_weight += weights[k] / (double)n;
    }
}

static void weighted_mean_end(weighted_mean *w, size_t problems) {
    w->mean /= w->per_weight;
    w->per_weight = (double)problems / w->per_weight;
}

/* Linearises a ratio: changes the values so that the mean of their problem means is the weighted
 * mean, and their spread gives its standard error to first order. */
static void linearise(weighted_mean w, const double *weights, double *x, size_t n) {
    for (size_t k = 0; k < n; k++) {
        double more = weights[k] * w.per_weight;
        if (fabs(more - 1) > 1e-9) /* if the weight is the mean weight, the value stays exactly the
                                      same */
            x[k] = w.mean + more * (x[k] - w.mean);
    }
}

/* ---- one arm ---- */

static size_t count_identical(const sample_outcome *o, size_t count, uint64_t *hashes) {
    size_t n = 0;
    for (size_t k = 0; k < count; k++)
        if (o[k].text_hash)
            hashes[n++] = o[k].text_hash;
    return votes_repeats(hashes, n);
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *x, size_t n) {
    if (!n)
        return NAN;
    qsort(x, n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void count_rows(const sample_outcome *o, size_t cells, arm_score *s) {
    size_t truncated = 0, empty = 0, unparsed = 0;
    for (size_t i = 0; i < cells; i++) {
        s->samples += o[i].present;
        s->missing += !o[i].present;
        s->failed += o[i].failed || o[i].unjudged;
        if (!is_scored(&o[i]))
            continue;
        s->scored++;
        s->repaired += o[i].repaired;
        truncated += o[i].truncated;
        empty += o[i].empty;
        unparsed += o[i].verdict == GRADE_UNPARSED;
    }
    double scored = (double)s->scored; /* without samples: 0 / 0 = NAN */
    s->truncated = (double)truncated / scored;
    s->empty = (double)empty / scored;
    s->unparsed = (double)unparsed / scored;
}

/* Median of a time over the scored samples in which it is known. @offset: place of the time in a
 * sample_outcome. */
static double median_time(const sample_outcome *o, size_t cells, size_t offset, double *x) {
    size_t n = 0;
    for (size_t i = 0; i < cells; i++) {
        double ms = *(const double *)(const void *)((const char *)&o[i] + offset);
        if (is_scored(&o[i]) && !isnan(ms))
            x[n++] = ms;
    }
    return median(x, n);
}

/* The mean of counts over the scored samples that have them; NAN if none has. */
static double mean_count(const sample_outcome *o, size_t cells, size_t offset) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < cells; i++) {
        int64_t count = *(const int64_t *)(const void *)((const char *)&o[i] + offset);
        if (!is_scored(&o[i]) || count < 0)
            continue;
        sum += (double)count;
        n++;
    }
    return sum / (double)n;
}

/* The mean of the completion tokens that are not reasoning, over the scored samples that have both
 * counts. A sample whose counts contradict each other is left out. */
static double mean_answer_tokens(const sample_outcome *o, size_t cells) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < cells; i++) {
        int64_t all = o[i].completion_tokens, reasoning = o[i].reasoning_tokens;
        if (!is_scored(&o[i]) || reasoning < 0 || all < reasoning)
            continue;
        sum += (double)(all - reasoning);
        n++;
    }
    return sum / (double)n;
}

static void measure_lengths(const sample_outcome *o, size_t cells, arm_score *s) {
    s->reasoning_tokens_mean = mean_count(o, cells, offsetof(sample_outcome, reasoning_tokens));
    s->answer_tokens_mean = mean_answer_tokens(o, cells);
    s->reasoning_chars_mean = mean_count(o, cells, offsetof(sample_outcome, reasoning_chars));
    s->answer_chars_mean = mean_count(o, cells, offsetof(sample_outcome, answer_chars));
}

static void measure_rows(const sample_outcome *o, size_t cells, double *x, arm_score *s) {
    double tokens = 0, timed_tokens = 0, ms = 0;
    size_t known = 0;
    for (size_t i = 0; i < cells; i++) {
        if (!is_scored(&o[i]) || o[i].completion_tokens < 0)
            continue;
        known++;
        tokens += (double)o[i].completion_tokens;
        if (!isnan(o[i].total_ms)) {
            timed_tokens += (double)o[i].completion_tokens;
            ms += o[i].total_ms;
        }
    }
    s->tokens_mean = tokens / (double)known;
    measure_lengths(o, cells, s);
    s->tok_s = timed_tokens / (ms / 1000);
    s->ttft_ms_median = median_time(o, cells, offsetof(sample_outcome, ttft_ms), x);
    s->itl_ms_median = median_time(o, cells, offsetof(sample_outcome, itl_ms_p50), x);
    s->itl_ms_p99 = median_time(o, cells, offsetof(sample_outcome, itl_ms_p99), x);
}

/* The 95 % interval of an accuracy. Wilson's interval is used if @rate is set. It is also used if
 * all problems are always solved, or all never, because then their spread is zero. */
static stats_interval arm_interval(const arm_score *s, bool rate) {
    stats_interval ci = stats_mean_interval(s->accuracy, 0.95);
    bool extreme = s->accuracy.mean <= 0 || s->accuracy.mean >= 1;
    if (s->problems && (rate || extreme))
        ci = stats_wilson((size_t)llround(s->accuracy.mean * (double)s->problems), s->problems,
                          0.95);
    if (isnan(ci.lo))
        return ci;
    return (stats_interval){fmax(ci.lo, 0), fmin(ci.hi, 1)};
}

/* ---- several samples of a problem together ---- */

static uint64_t vote_of(const sample_outcome *o) {
    if (!is_scored(o) || o->verdict == GRADE_UNPARSED)
        return 0;
    return o->verdict == GRADE_CORRECT ? 1 : o->answer_hash | 2; /* never 1, which is the vote for a
                                                                    correct answer */
}

/* 1 if the answer with most votes is correct, 0 if not (a fraction if several lead); NAN without
 * scored samples. */
static double majority_of(const sample_outcome *o, size_t count, uint64_t *votes) {
    size_t n = 0, scored = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t vote = vote_of(&o[i]);
        scored += is_scored(&o[i]);
        if (vote)
            votes[n++] = vote;
    }
    return scored ? votes_majority(votes, n, 1) : (double)NAN;
}

/* A mean over the values that are not NAN. */
typedef struct {
    double sum, n;
} average;

static void average_add(average *a, double x) {
    a->sum += isnan(x) ? 0 : x;
    a->n += isnan(x) ? 0 : 1;
}

static void choose_ks(int samples, arm_score *s) {
    for (int k = 1; k < samples && s->n_pass < SCORE_PASS_MAX - 1; k *= 2)
        s->pass[s->n_pass++].k = k;
    s->pass[s->n_pass++].k = samples;
}

static void score_together(const sample_outcome *o, const eval_task *et, scratch *tmp,
                           arm_score *s) {
    size_t k = (size_t)et->samples;
    double *x = tmp->samples;
    bool rate = tmp->slot < 0; /* values are 0 or 1; other metrics may have values in between */
    average pass[SCORE_PASS_MAX] = {{0, 0}}, majority = {0}, variance = {0};
    if (rate)
        choose_ks(et->samples, s);
    for (size_t i = 0; i < et->set.n; i++) {
        size_t n = gather_scores(o + i * k, k, tmp->slot, x, tmp->weights), correct = 0;
        for (size_t j = 0; j < n; j++)
            correct += x[j] > 0;
        for (int j = 0; j < s->n_pass; j++)
            average_add(&pass[j], stats_pass_at_k(n, correct, (size_t)s->pass[j].k));
        average_add(&majority,
                    rate && k > 1 ? majority_of(o + i * k, k, tmp->hashes) : (double)NAN);
        average_add(&variance, stats_sampling_variance(x, n));
    }
    for (int j = 0; j < s->n_pass; j++)
        s->pass[j].rate = pass[j].sum / pass[j].n;
    s->majority = majority.sum / majority.n;
    s->sampling_variance = variance.sum / variance.n;
}

/* Stores in tmp->a the means of the problems (or conversations) that have scored samples,
 * linearised if weights differ. Returns their number. */
static size_t score_problems(const sample_outcome *o, const eval_task *et, scratch *tmp) {
    size_t k = (size_t)et->samples, problems = 0, at = 0;
    weighted_mean w = {0};
    for (size_t i = 0, turns = 1; i < et->set.n; i += turns) {
        double *x = tmp->samples + at, *weights = tmp->weights + at;
        turns = task_span(&et->set, i);
        size_t n = gather_unit(o + i * k, turns, k, gather_scores, tmp->slot, x, weights);
        if (!n)
            continue;
        tmp->problems[problems++] = (stats_problem){.a = x, .n_a = n};
        weighted_mean_add(&w, x, weights, n);
        at += n;
    }
    weighted_mean_end(&w, problems);
    linearise(w, tmp->weights, tmp->samples, at);
    for (size_t i = 0; i < problems; i++)
        tmp->a[i] = stats_mean_of(tmp->problems[i].a, tmp->problems[i].n_a).mean;
    return problems;
}

/* True if the scores are 0 or 1 from one sample per problem. */
static bool are_rates(const double *x, size_t n, int samples) {
    bool rates = samples == 1;
    for (size_t i = 0; i < n && rates; i++)
        rates = x[i] == 0 || x[i] == 1;
    return rates;
}

static arm_score score_arm(const eval_plan *p, const sample_outcome *all, size_t t, size_t arm,
                           scratch *tmp) {
    arm_score s = {0};
    const eval_task *et = &p->tasks[t];
    size_t k = (size_t)et->samples, cells = et->set.n * k;
    const sample_outcome *o = samples_of(p, all, t, arm, 0);
    count_rows(o, cells, &s);
    measure_rows(o, cells, tmp->samples, &s);
    score_together(o, et, tmp, &s);
    for (size_t i = 0; i < et->set.n; i++)
        s.identical += count_identical(o + i * k, k, tmp->hashes);
    s.problems = score_problems(o, et, tmp);
    s.accuracy = stats_mean_of(tmp->a, s.problems);
    s.ci95 = arm_interval(&s, are_rates(tmp->a, s.problems, et->set.turns > 1 ? 0 : et->samples));
    return s;
}

/* ---- two arms ---- */

/* Collects the samples of both arms for the problems (or conversations) in which both arms have a
 * value. Returns their number. */
static size_t gather_pairs(const eval_plan *p, const sample_outcome *all, size_t t,
                           const pair_score *pair, gather_fn gather, scratch *tmp) {
    const eval_task *et = &p->tasks[t];
    size_t k = (size_t)et->samples, n = 0;
    double *x = tmp->samples, *w = tmp->weights;
    for (size_t i = 0, turns = 1; i < et->set.n; i += turns) {
        stats_problem q = {.a = x};
        turns = task_span(&et->set, i);
        q.n_a = gather_unit(samples_of(p, all, t, pair->baseline, i), turns, k, gather, tmp->slot,
                            x, w);
        q.b = x + q.n_a;
        q.n_b = gather_unit(samples_of(p, all, t, pair->arm, i), turns, k, gather, tmp->slot,
                            x + q.n_a, w + q.n_a);
        if (!q.n_a || !q.n_b)
            continue;
        x += q.n_a + q.n_b;
        w += q.n_a + q.n_b;
        tmp->problems[n++] = q;
    }
    return n;
}

static void mean_pairs(scratch *tmp, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tmp->a[i] = stats_mean_of(tmp->problems[i].a, tmp->problems[i].n_a).mean;
        tmp->b[i] = stats_mean_of(tmp->problems[i].b, tmp->problems[i].n_b).mean;
    }
}

static void linearise_pairs(scratch *tmp, size_t n) {
    weighted_mean a = {0}, b = {0};
    double *x = tmp->samples, *w = tmp->weights;
    for (size_t i = 0; i < n; i++) {
        const stats_problem *q = &tmp->problems[i];
        weighted_mean_add(&a, x, w, q->n_a);
        weighted_mean_add(&b, x + q->n_a, w + q->n_a, q->n_b);
        x += q->n_a + q->n_b;
        w += q->n_a + q->n_b;
    }
    weighted_mean_end(&a, n);
    weighted_mean_end(&b, n);
    x = tmp->samples;
    w = tmp->weights;
    for (size_t i = 0; i < n; i++) {
        const stats_problem *q = &tmp->problems[i];
        linearise(a, w, x, q->n_a);
        linearise(b, w + q->n_a, x + q->n_a, q->n_b);
        x += q->n_a + q->n_b;
        w += q->n_a + q->n_b;
    }
    mean_pairs(tmp, n);
}

/* Counts which arm is better on each problem, using the original scores, not the linearised
 * ones. */
static void count_better(const scratch *tmp, size_t n, stats_paired *diff) {
    diff->a_better = diff->b_better = 0;
    for (size_t i = 0; i < n; i++) {
        diff->a_better += tmp->a[i] > tmp->b[i];
        diff->b_better += tmp->b[i] > tmp->a[i];
    }
}

static void score_length(const eval_plan *p, const sample_outcome *all, size_t t, pair_score *pair,
                         scratch *tmp) {
    size_t n = gather_pairs(p, all, t, pair, gather_tokens, tmp);
    mean_pairs(tmp, n);
    pair->has_length = n > 0 && stats_mean_of(tmp->a, n).mean > 0;
    if (pair->has_length)
        pair->length = stats_ratio_of(tmp->a, tmp->b, n);
}

/* The p value of the sign-flip test for the share of samples that @gather marks with 1: does it
 * differ between the arms? */
static double test_shares(const eval_plan *p, const sample_outcome *all, size_t t,
                          const pair_score *pair, gather_fn gather, scratch *tmp) {
    size_t n = gather_pairs(p, all, t, pair, gather, tmp);
    mean_pairs(tmp, n);
    return stats_sign_flip(tmp->a, tmp->b, n, p->tasks[t].sampling.seed);
}

static lost_count count_lost(const eval_plan *p, const arm_score *arms, size_t arm) {
    return (lost_count){p->arms[arm].name, (int64_t)arms[arm].samples, (int64_t)arms[arm].scored};
}

static void withhold(const eval_plan *p, const arm_score *arms, pair_score *pair) {
    if (lost_too_many(count_lost(p, arms, pair->baseline), count_lost(p, arms, pair->arm),
                      p->max_lost_pct, pair->withheld, sizeof pair->withheld) &&
        pair->diff.verdict == STATS_EQUIVALENT)
        pair->diff.verdict = STATS_NOT_SHOWN;
}

static snap_status score_pair(const eval_plan *p, const sample_outcome *all, size_t t,
                              const arm_score *arms, pair_score *pair, scratch *tmp,
                              snap_err *err) {
    pair->p_mcnemar = pair->p_sign_flip = pair->p_holm = pair->diff.p_tost = NAN;
    pair->p_failed = pair->p_repaired = NAN;
    if (plan_refusal(p, t, pair->baseline, pair->arm, pair->refused, sizeof pair->refused))
        return SNAP_OK;
    pair->p_failed = test_shares(p, all, t, pair, gather_failed, tmp);
    pair->p_repaired = test_shares(p, all, t, pair, gather_repaired, tmp);
    score_length(p, all, t, pair, tmp);
    const eval_task *et = &p->tasks[t];
    uint64_t seed = et->sampling.seed;
    size_t n = gather_pairs(p, all, t, pair, gather_scores, tmp);
    stats_paired better = {0};
    mean_pairs(tmp, n);
    count_better(tmp, n, &better);
    linearise_pairs(tmp, n);
    double step = tmp->slot < 0 ? score_step(et) : 0; /* other metrics can have any value */
    pair->diff = stats_compare(tmp->a, tmp->b, n, step, p->margin);
    pair->diff.a_better = better.a_better;
    pair->diff.b_better = better.b_better;
    withhold(p, arms, pair);
    pair->p_sign_flip = stats_sign_flip(tmp->a, tmp->b, n, seed);
    if (et->samples == 1 && et->set.turns <= 1 && n && tmp->slot < 0)
        pair->p_mcnemar = stats_mcnemar(pair->diff.a_better, pair->diff.b_better);
    return stats_bootstrap(tmp->problems, n, STATS_BOOTSTRAP_DRAWS, seed, &pair->bootstrap95, err);
}

/* Adjusts p values for one pair of arms: its tests in all tasks are one family. */
static snap_status adjust(const eval_plan *p, task_score *scores, size_t pair, snap_err *err) {
    double *x = calloc(p->n_tasks + 1, sizeof *x);
    if (!x)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
    for (size_t t = 0; t < p->n_tasks; t++)
        x[t] = scores[t].pairs[pair].diff.p_tost;
    stats_holm(x, p->n_tasks);
    for (size_t t = 0; t < p->n_tasks; t++)
        scores[t].pairs[pair].p_holm = x[t];
    free(x);
    return SNAP_OK;
}

/* ---- all tasks ---- */

static snap_status score_metric(const eval_plan *p, const sample_outcome *all, size_t t, int metric,
                                task_score *out, snap_err *err) {
    bool by_model = p->tasks[t].set.grader->by_model;
    scratch tmp = {.slot = by_model ? metric : metric - 1};
    snap_status st = scratch_make(&p->tasks[t], &tmp, err);
    for (size_t a = 0; a < p->n_arms && st == SNAP_OK; a++)
        out->arms[a] = score_arm(p, all, t, a, &tmp);
    for (size_t a = 1; a < p->n_arms && st == SNAP_OK; a++) {
        out->pairs[a - 1].arm = a;
        st = score_pair(p, all, t, out->arms, &out->pairs[a - 1], &tmp, err);
    }
    scratch_release(&tmp);
    return st;
}

static snap_status score_task(const eval_plan *p, const sample_outcome *all, size_t t,
                              task_score *out, snap_err *err) {
    snap_status st = score_metric(p, all, t, 0, out, err);
    if (st == SNAP_OK && p->tasks[t].set.grader->mathematical)
        st = score_add_opinions(p, all, t, out, err);
    for (int m = 1; m < grade_metrics(p->tasks[t].set.grader) && st == SNAP_OK; m++)
        st = score_metric(p, all, t, m, &out->also[m - 1], err);
    return st;
}

static bool score_make(const eval_plan *p, arena *mem, task_score *s) {
    s->arms = arena_alloc(mem, p->n_arms, sizeof *s->arms);
    s->pairs = arena_alloc(mem, p->n_arms, sizeof *s->pairs);
    return s->arms && s->pairs;
}

static bool score_make_all(const eval_plan *p, arena *mem, task_score *s, int metrics) {
    s->also = arena_alloc(mem, GRADE_METRICS, sizeof *s->also);
    bool ok = s->also && score_make(p, mem, s);
    for (int m = 1; m < metrics && ok; m++)
        ok = score_make(p, mem, &s->also[m - 1]);
    return ok;
}

static task_score *scores_new(const eval_plan *p) {
    task_score *scores = calloc(p->n_tasks + 1, sizeof *scores);
    bool ok = scores != NULL;
    for (size_t t = 0; t < p->n_tasks && ok; t++)
        ok = score_make_all(p, &scores[0].mem, &scores[t], grade_metrics(p->tasks[t].set.grader));
    if (ok)
        return scores;
    score_release(p, scores);
    return NULL;
}

snap_status score_run(const eval_plan *p, const sample_outcome *outcomes, task_score **out,
                      snap_err *err) {
    snap_status st = SNAP_OK;
    *out = NULL;
    task_score *scores = scores_new(p);
    if (!scores)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the scores");
    for (size_t t = 0; t < p->n_tasks; t++)
        TRY(score_task(p, outcomes, t, &scores[t], err));
    for (size_t pair = 0; pair + 1 < p->n_arms; pair++)
        TRY(adjust(p, scores, pair, err));
    *out = scores;
    scores = NULL;
cleanup:
    score_release(p, scores);
    return st;
}

pooled_score score_pooled(const eval_plan *p, const task_score *scores, size_t pair) {
    pooled_score s = {"", "", {0}};
    stats_pool pool = {0};
    for (size_t t = 0; t < p->n_tasks; t++) {
        const pair_score *task = &scores[t].pairs[pair];
        stats_pool_add(&pool, &task->diff, score_step(&p->tasks[t]), p->margin);
        s.refused = s.refused[0] ? s.refused : task->refused;
        s.withheld = s.withheld[0] ? s.withheld : task->withheld;
    }
    s.diff = stats_pool_end(&pool, p->margin);
    if (s.withheld[0] && s.diff.verdict == STATS_EQUIVALENT)
        s.diff.verdict = STATS_NOT_SHOWN;
    return s;
}

void score_release(const eval_plan *p, task_score *scores) {
    (void)p;
    if (scores)
        arena_release(&scores[0].mem);
    free(scores);
}
