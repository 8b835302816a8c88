/* verify_quality.c - checks accuracies, their comparisons and their data sets, and the ratios of
 * gates against the ratios of their sessions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/stats.h"
#include "harness/audit/audit.h"
#include "harness/measure/rank.h"

static const double kSlack = 1e-6; /* percentage points */

static bool exists(const double ci[2]) {
    return !isnan(ci[0]) && !isnan(ci[1]);
}

static bool is_inside(double x, const double ci[2]) {
    return x >= ci[0] - kSlack && x <= ci[1] + kSlack;
}

/* ---- evals ---- */

/* Checks that the reasons of failures explain all failed samples. Older results have none. */
static void check_failures(const arm_record *arm, const char *where, verify_findings *f) {
    int64_t sum = 0;
    for (size_t i = 0; i < arm->failures.n; i++)
        sum += arm->failures.at[i].count;
    f->checks++;
    if (arm->failures.n && sum != arm->failed)
        verify_add(f, VERIFY_FORM, where, "%s: %lld failed samples, but reasons for %lld",
                   arm->name, (long long)arm->failed, (long long)sum);
}

static void check_arm(const arm_record *arm, const char *where, verify_findings *f) {
    double accuracy = arm->accuracy_pct;
    f->checks += 2;
    if (arm->scored + arm->failed > arm->samples)
        verify_add(f, VERIFY_FORM, where, "%s: the scored and failed samples outnumber all samples",
                   arm->name);
    if (!isnan(accuracy) && exists(arm->ci95_pct) && !is_inside(accuracy, arm->ci95_pct))
        verify_add(f, VERIFY_FORM, where, "%s: an accuracy of %.2f outside its interval", arm->name,
                   accuracy);
    const opinion_record *o = &arm->opinions;
    if (o->exists &&
        (o->accepted + o->refused + o->none != o->undecided || o->accuracy_pct < accuracy - kSlack))
        verify_add(f, VERIFY_FORM, where, "%s: the second opinions contradict each other",
                   arm->name);
    if (!isnan(accuracy) && arm->scored == 0)
        verify_add(f, VERIFY_CORRECTNESS, where, "%s: an accuracy without a scored sample",
                   arm->name);
}

/* Checks the verdict against the confidence intervals and the margin, and the intervals against
 * each other. */
static void check_verdict(const pair_record *pair, const char *where, verify_findings *f) {
    const double *ci90 = pair->ci90_pp, *ci95 = pair->ci95_pp, margin = pair->margin_pp;
    bool has90 = exists(ci90), has95 = exists(ci95);
    f->checks++;
    if (strcmp(pair->verdict, "equivalent") == 0 && has90 &&
        (ci90[0] < -margin - kSlack || ci90[1] > margin + kSlack))
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "'equivalent' with a 90 %% interval of [%.2f, %.2f] and a margin of %.2f",
                   ci90[0], ci90[1], margin);
    if (strcmp(pair->verdict, "equivalent") == 0 && pair->p_tost > 0.05 + kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where, "'equivalent' with a p TOST of %.3f",
                   pair->p_tost);
    if (strcmp(pair->verdict, "different") == 0 && has95 && ci95[0] < -kSlack && ci95[1] > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where, "'different' with a 95 %% interval around 0");
    if (has90 && has95 && (ci90[0] < ci95[0] - kSlack || ci90[1] > ci95[1] + kSlack))
        verify_add(f, VERIFY_FORM, where, "the 90 %% interval is wider than the 95 %% one");
}

/* Checks the verdict against the samples that the arms lost. */
static void check_lost(const eval_record *eval, const pair_record *pair, const char *where,
                       verify_findings *f) {
    char why[160];
    bool many = eval_lost_too_many(eval, pair, why, sizeof why);
    bool stated = !isnan(pair->max_lost_pct) && !pair->refused[0];
    f->checks++;
    if (many && strcmp(pair->verdict, "equivalent") == 0)
        verify_add(f, VERIFY_CORRECTNESS, where, "'equivalent', but %s", why);
    else if (stated && strcmp(pair->withheld, why) != 0)
        verify_add(f, VERIFY_CORRECTNESS, where, "withheld is '%.100s', the samples give '%s'",
                   pair->withheld, why);
}

static const pair_record *pair_of(const eval_record *eval, const pair_record *like) {
    for (size_t i = 0; i < eval->pairs.n; i++)
        if (strcmp(eval->pairs.at[i].arm, like->arm) == 0 &&
            strcmp(eval->pairs.at[i].baseline, like->baseline) == 0)
            return &eval->pairs.at[i];
    return NULL;
}

static const eval_record *task_of(const run_record *r, const char *name, const pair_record *pair) {
    for (size_t i = 0; i < r->evals.n; i++)
        if (strcmp(r->evals.at[i].task, name) == 0 && pair_of(&r->evals.at[i], pair))
            return &r->evals.at[i];
    return NULL;
}

/* Computes a comparison over all tasks again from those of the tasks. A joined file may have
 * several runs with the same tasks and arms, so it is not checked. */
static void check_pooled(const run_record *r, const pair_record *pooled, const char *where,
                         verify_findings *f) {
    stats_pool pool = {0};
    const char *withheld = "";
    double margin = pooled->margin_pp / 100;
    for (size_t i = 0; i < pooled->tasks.n; i++) {
        const eval_record *eval = task_of(r, pooled->tasks.at[i], pooled);
        const pair_record *pair = eval ? pair_of(eval, pooled) : NULL;
        if (!pair) {
            verify_add(f, VERIFY_FORM, where, "no row of the task '%.80s'", pooled->tasks.at[i]);
            return;
        }
        const stats_paired task = {.n = (size_t)(pair->problems > 0 ? pair->problems : 0),
                                   .delta = pair->delta_pp / 100,
                                   .se = pair->se_pp / 100};
        stats_pool_add(&pool, &task, eval_step(eval), margin);
        withheld = withheld[0] ? withheld : pair->withheld;
    }
    stats_paired all = stats_pool_end(&pool, margin);
    bool equivalent = all.verdict == STATS_EQUIVALENT && !withheld[0];
    f->checks += 2;
    if (fabs(100 * all.delta - pooled->delta_pp) > kSlack ||
        fabs(100 * all.se - pooled->se_pp) > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "a difference of %.4f +- %.4f over all tasks, but the tasks give %.4f +- %.4f",
                   pooled->delta_pp, pooled->se_pp, 100 * all.delta, 100 * all.se);
    if (equivalent != (strcmp(pooled->verdict, "equivalent") == 0))
        verify_add(f, VERIFY_CORRECTNESS, where, "'%s' over all tasks; the tasks give '%s'",
                   pooled->verdict, equivalent ? "equivalent" : "not equivalent");
}

/* The accuracy of an arm from the groups of the field @by. *problems is set to the number of
 * problems in these groups. */
static double accuracy_of_groups(const eval_record *eval, const char *by, const char *arm,
                                 int64_t *problems) {
    double sum = 0, n = 0;
    *problems = 0;
    for (size_t i = 0; i < eval->groups.n; i++) {
        const group_record *g = &eval->groups.at[i];
        if (g->by.n != 1 || strcmp(g->by.at[0], by) != 0)
            continue;
        *problems += g->problems;
        for (size_t k = 0; k < g->arms.n; k++)
            if (strcmp(g->arms.at[k].name, arm) == 0 && g->arms.at[k].problems > 0) {
                sum += g->arms.at[k].accuracy_pct * (double)g->arms.at[k].problems;
                n += (double)g->arms.at[k].problems;
            }
    }
    return sum / n;
}

/* Checks the verdicts of groups. If all problems are in the groups of one field, these must give
 * the arm's accuracy. Groups of conversations weigh their problems differently, so they are not
 * compared with it. */
static void check_groups(const eval_record *eval, const char *where, verify_findings *f) {
    for (size_t i = 0; i < eval->groups.n; i++) {
        const group_record *g = &eval->groups.at[i];
        for (size_t k = 0; k < g->pairs.n; k++)
            check_verdict(&g->pairs.at[k], where, f);
        for (size_t k = 0; k < eval->arms.n && g->by.n == 1 && eval->turns <= 1; k++) {
            const arm_record *a = &eval->arms.at[k];
            int64_t problems;
            double accuracy = accuracy_of_groups(eval, g->by.at[0], a->name, &problems);
            f->checks++;
            if (problems == eval->problems && fabs(accuracy - a->accuracy_pct) > kSlack)
                verify_add(f, VERIFY_CORRECTNESS, where,
                           "%s: an accuracy of %.4f, but its groups by %s give %.4f", a->name,
                           a->accuracy_pct, g->by.at[0], accuracy);
        }
    }
}

static void check_eval(const eval_record *eval, const char *where, verify_findings *f) {
    for (size_t i = 0; i < eval->arms.n; i++) {
        check_arm(&eval->arms.at[i], where, f);
        check_failures(&eval->arms.at[i], where, f);
    }
    for (size_t i = 0; i < eval->pairs.n; i++) {
        const pair_record *pair = &eval->pairs.at[i];
        f->checks++;
        if (!eval_arm_of(eval, pair->arm) || !eval_arm_of(eval, pair->baseline))
            verify_add(f, VERIFY_FORM, where, "a comparison of arms that the row does not have");
        if (!isnan(eval->margin_pp) && fabs(eval->margin_pp - pair->margin_pp) > kSlack)
            verify_add(f, VERIFY_FORM, where, "a comparison with another margin than its row");
        check_verdict(pair, where, f);
        check_lost(eval, pair, where, f);
    }
    check_groups(eval, where, f);
    if (strcmp(eval->dataset.manifest, "differs") == 0)
        verify_add(f, VERIFY_NOTE, where, "%s: the data differ from the manifest", eval->task);
    if (strcmp(eval->dataset.manifest, "unverified") == 0)
        verify_add(f, VERIFY_NOTE, where,
                   "%s: the data are unverified: the manifest has no checksum for them",
                   eval->task);
}

/* ---- verdicts of a gate ---- */

static void check_gate_row(const verdict_record *row, const char *where, verify_findings *f) {
    rank_estimate e;
    if (!row->log_ratios.n || row->log_ratios.n > RANK_MAX)
        return;
    f->checks++;
    if (rank_centre(row->log_ratios.at, row->log_ratios.n, 0.05, &e, NULL) != SNAP_OK)
        f->failed = true;
    else if (!isnan(row->ratio) && fabs(row->ratio - exp(e.centre)) > 1e-6 * row->ratio)
        verify_add(f, VERIFY_FORM, where, "a ratio of %.6g; its sessions give %.6g", row->ratio,
                   exp(e.centre));
}

void verify_quality(const run_record *r, verify_findings *f) {
    char where[32];
    for (size_t i = 0; i < r->evals.n; i++) {
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        check_eval(&r->evals.at[i], where, f);
    }
    for (size_t i = 0; i < r->pooled.n; i++) {
        (void)snprintf(where, sizeof where, "pooled[%zu]", i);
        check_verdict(&r->pooled.at[i], where, f);
        if (!r->sources.n && !r->pooled.at[i].refused[0])
            check_pooled(r, &r->pooled.at[i], where, f);
    }
    for (size_t i = 0; i < r->verdicts.n; i++) {
        (void)snprintf(where, sizeof where, "verdicts[%zu]", i);
        check_gate_row(&r->verdicts.at[i], where, f);
    }
}
