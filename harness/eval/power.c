#include "harness/eval/power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evals/distributions.h"
#include "evals/stats.h"
#include "harness/eval/suite.h"
#include "harness/record/power_record.h"
#include "harness/record/results.h"
#include "harness/record/run.h"

static const int64_t kMost = INT64_C(1) << 30; /* samples or problems: larger plans are not
                                                  useful */

/* For each task: the number of problems, and an assumed mean of p (1-p) over them. */
static const struct {
    const char *task;
    int problems;
    double variance;
} planning[] = {
    {"aime24", 30, 0.08},          {"aime25", 30, 0.08},       {"hmmt_feb25", 30, 0.08},
    {"math500", 500, 0.035},       {"gsm8k", 1319, 0.03},      {"gpqa_diamond", 198, 0.115},
    {"beyond_aime", 100, 0.10},    {"mmlu_pro", 12032, 0.07},  {"mmlu_redux", 5330, 0.05},
    {"ifeval", 541, 0.07},         {"zebralogic", 1000, 0.06}, {"arena_hard", 750, 0.06},
    {"livecodebench", 1055, 0.07}, {"synth_aime", 12, 0.08},
};

typedef struct {
    const char *task, *source;
    int64_t problems, samples;
    double within, between, margin; /* fractions */
} question;

/* ---- the power of one question's test ---- */

static double se_of(const question *q, int64_t problems, int64_t samples) {
    return sqrt((q->between + q->within / (double)samples) / (double)problems);
}

static double power_of(const question *q, int64_t problems, int64_t samples) {
    if (problems < 2)
        return 0;
    return stats_tost_power(se_of(q, problems, samples), (double)problems - 1, q->margin);
}

typedef double (*power_fn)(const question *q, int64_t x);

static double power_by_samples(const question *q, int64_t samples) {
    return power_of(q, q->problems, samples);
}

static double power_by_problems(const question *q, int64_t problems) {
    return power_of(q, problems, q->samples);
}

/* The smallest x whose power is at least @wanted; 0 if kMost is not enough. The power must not fall
 * as x grows. */
static int64_t smallest(const question *q, power_fn power, double wanted) {
    int64_t lo = 0, hi = 1; /* lo is not enough; hi may be enough */
    while (hi < kMost && power(q, hi) < wanted) {
        lo = hi;
        hi *= 2;
    }
    if (power(q, hi) < wanted)
        return 0;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        *(power(q, mid) < wanted ? &lo : &hi) = mid;
    }
    return hi;
}

static int64_t count_of(int64_t n) {
    return n ? n : RECORD_NO_COUNT;
}

static js *row_of(const question *q, double wanted) {
    double se = se_of(q, q->problems, q->samples), df = (double)q->problems - 1;
    double half = df > 0 ? student_quantile(0.975, df) * se : (double)NAN;
    const power_record r = {.task = q->task,
                            .source = q->source,
                            .problems = q->problems,
                            .samples = q->samples,
                            .margin_pp = 100 * q->margin,
                            .within = q->within,
                            .between = q->between,
                            .se_pp = 100 * se,
                            .ci95_pp = 100 * half,
                            .power = power_of(q, q->problems, q->samples),
                            .power_wanted = wanted,
                            .samples_needed = count_of(smallest(q, power_by_samples, wanted)),
                            .problems_needed = count_of(smallest(q, power_by_problems, wanted))};
    return record_write(&power_type, &r);
}

/* ---- where the variances come from ---- */

static bool from_planning(question *q) {
    for (size_t i = 0; i < sizeof planning / sizeof *planning; i++)
        if (strcmp(planning[i].task, q->task) == 0) {
            q->source = "planning value";
            q->problems = planning[i].problems;
            q->within = 2 * planning[i].variance;
            return true;
        }
    return false;
}

/* The first comparison of the row whose difference has a standard error above 0; NULL if there is
 * none. */
static const pair_record *compared(const eval_record *row) {
    for (size_t i = 0; i < row->pairs.n; i++)
        if (row->pairs.at[i].se_pp > 0)
            return &row->pairs.at[i];
    return NULL;
}

static double variance_of(const eval_record *row, const char *name) {
    const arm_record *arm = eval_arm_of(row, name);
    return arm ? arm->sampling_variance : (double)NAN;
}

/* Splits the variance of the difference: `within` is the noise of the samples, `between` is the
 * rest. With one sample per problem the two cannot be separated, and all of it counts as noise. */
static snap_status from_row(question *q, const eval_record *row, snap_err *err) {
    const pair_record *pair = compared(row);
    if (!pair)
        return err_set(err, SNAP_E_USAGE, "--from: task '%s' compares no two arms that differ",
                       q->task);
    double n = (double)pair->problems, se = pair->se_pp / 100;
    double k = (double)row->samples_per_problem;
    q->within = variance_of(row, pair->baseline) + variance_of(row, pair->arm);
    if (isnan(q->within))
        q->within = n * se * se * k;
    q->between = fmax(0, n * se * se - q->within / k);
    q->source = "run";
    q->problems = row->problems;
    q->samples = q->samples ? q->samples : row->samples_per_problem;
    q->margin = q->margin > 0 ? q->margin : pair->margin_pp / 100;
    return SNAP_OK;
}

static const eval_record *find_row(const run_record *run, const char *task) {
    for (size_t i = 0; i < run->evals.n; i++)
        if (strcmp(run->evals.at[i].task, task) == 0)
            return &run->evals.at[i];
    return NULL;
}

static snap_status plan_task(const power_options *o, const run_record *run, question q, js *out,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    const eval_record *row = run ? find_row(run, q.task) : NULL;
    if (run && !row)
        return err_set(err, SNAP_E_USAGE, "--from: the run has no task '%s'", q.task);
    if (row)
        TRY(from_row(&q, row, err));
    else if (!from_planning(&q))
        return err_set(err, SNAP_E_USAGE, "no planning value for task '%s': give --from RUN",
                       q.task);
    if (o->limit && o->limit < q.problems)
        q.problems = o->limit;
    js *answer = row_of(&q, o->power);
    if (!js_push_new(out, answer))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the plan");
cleanup:
    return st;
}

static snap_status plan_suite(const power_options *o, const run_record *run, js *out,
                              snap_err *err) {
    suite s = {0};
    arena mem = {0};
    snap_status st = suite_resolve(o->suite, &mem, &s, err);
    double margin = o->margin_pp > 0 ? o->margin_pp : s.margin_pp;
    for (size_t i = 0; i < s.n && st == SNAP_OK; i++) {
        int64_t samples = o->samples ? o->samples : s.tasks[i].samples;
        st = plan_task(
            o, run,
            (question){.task = s.tasks[i].task->name, .samples = samples, .margin = margin / 100},
            out, err);
    }
    arena_release(&mem);
    return st;
}

static snap_status plan_run(const power_options *o, const run_record *run, js *out, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < run->evals.n && st == SNAP_OK; i++) {
        const eval_record *row = &run->evals.at[i];
        question q = {.task = row->task, .samples = o->samples, .margin = o->margin_pp / 100};
        if (compared(row))
            st = plan_task(o, run, q, out, err);
    }
    if (st == SNAP_OK && !js_len(out))
        st = err_set(err, SNAP_E_USAGE, "--from '%s' compares no two arms that differ", o->from);
    return st;
}

static snap_status load(const char *from, results **run, snap_err *err) {
    char *file = results_file_of(from);
    snap_status st = file ? results_load(run, file, err)
                          : err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    free(file);
    return st;
}

snap_status power_plan(const power_options *o, js **out, snap_err *err) {
    snap_status st = SNAP_OK;
    results *file = NULL;
    arena mem = {0};
    run_record run = {0};
    *out = NULL;
    js *rows = js_new_array();
    if (!rows)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the plan");
    if (!o->suite && !o->from)
        TRY(err_set(err, SNAP_E_USAGE, "nothing to plan: give --suite LIST or --from RUN"));
    if (o->from)
        TRY(load(o->from, &file, err));
    if (file)
        TRY(run_read(&run, file, &mem, err));
    TRY(o->suite ? plan_suite(o, file ? &run : NULL, rows, err) : plan_run(o, &run, rows, err));
    *out = rows;
    rows = NULL;
cleanup:
    arena_release(&mem);
    results_free(file);
    js_free(rows);
    return st;
}
