/* verify_samples.c - computes the accuracies of a result again from its samples. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/bundle.h"
#include "harness/record/run.h"

static const double kSlack = 1e-6; /* percentage points */

/* arms: {"<task>\n<arm>": {"scored", "failed", "repaired", "unweighted", "problems": {"<problem>":
 * {"n", "correct", "sums": {"<metric>": Σ weight * value}, "weights": {"<metric>": Σ weight}}}}}.
 * unweighted: scored samples that lack the weights of their scores. name: of the samples in
 * messages */
typedef struct {
    js *arms;
    const char *name;
} counter;

static js *object_at(js *o, const char *key) {
    if (!js_get_object(o, key) && !js_set_new(o, key, js_new_object()))
        return NULL;
    return js_get_object(o, key);
}

static bool add(js *o, const char *key, double x) {
    return js_set_num(o, key, js_get_num(o, key, 0) + x);
}

static double count_of(const js *cell, const char *key) {
    return js_get_num(cell, key, 0);
}

static void key_of(const char *task, const char *arm, char out[256]) {
    (void)snprintf(out, 256, "%.120s\n%.120s", task, arm);
}

/* Adds the values of the metrics of a row. A game's weight is the number of its battles. */
static bool add_scores(js *cell, js *problem, const js *row) {
    js *scores = js_get_object(row, "scores");
    const js *weights = js_get_object(row, "weights");
    double battles = js_get_num(row, "battles", (double)NAN);
    bool ok = true;
    for (void *it = js_first(scores); it && ok; it = js_next(scores, it)) {
        double weight = js_get_num(weights, js_key(it), battles);
        js *sums = object_at(problem, "sums"), *all = object_at(problem, "weights");
        if (isnan(weight))
            ok = add(cell, "unweighted", 1);
        else
            ok = sums && all && add(sums, js_key(it), weight * js_num(js_value(it))) &&
                 add(all, js_key(it), weight);
    }
    return ok;
}

static snap_status count_line(void *ctx, js *row, long line, snap_err *err) {
    counter *c = ctx;
    const char *task = js_get_str(row, "task"), *arm = js_get_str(row, "arm");
    const char *problem = js_get_str(row, "problem"), *verdict = js_get_str(row, "verdict");
    char key[256];
    if (!task || !arm || !problem)
        return err_set(err, SNAP_E_INPUT, "%s:%ld: a sample must have 'task', 'arm' and 'problem'",
                       c->name, line);
    key_of(task, arm, key);
    js *cell = object_at(c->arms, key), *problems = cell ? object_at(cell, "problems") : NULL;
    bool ok = problems != NULL, failed = js_get_bool(row, "failed", false);
    if (failed || !verdict) {
        ok = ok && add(cell, "failed", 1);
    } else {
        js *score = ok ? object_at(problems, problem) : NULL;
        ok = score && add(score, "n", 1) &&
             add(score, "correct", strcmp(verdict, "correct") == 0) && add(cell, "scored", 1) &&
             add(cell, "repaired", js_get_bool(row, "repaired", false)) &&
             add_scores(cell, score, row);
    }
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for samples");
}

/* The accuracy in percent: mean over the problems of the mean over their samples. For a metric that
 * the samples have scores of, the weighted mean of these. NAN if it cannot be known. */
static double accuracy_of(const js *cell, const char *metric) {
    js *problems = js_get_object(cell, "problems");
    double sum = 0, weight = 0;
    for (void *it = js_first(problems); it; it = js_next(problems, it)) {
        const js *p = js_value(it), *sums = js_get_object(p, "sums");
        double n = js_get_num(p, "n", 1);
        bool scored = js_has(sums, metric);
        sum += (scored ? js_get_num(sums, metric, 0) : js_get_num(p, "correct", 0)) / n;
        weight += scored ? js_get_num(js_get_object(p, "weights"), metric, 0) / n : 1;
    }
    return weight > 0 ? 100 * sum / weight : (double)NAN;
}

/* Compares a number of the result with that of the samples. Older results lack some numbers. */
static void check_count(const char *arm, const char *what, int64_t stored, const js *cell,
                        const char *where, verify_findings *f) {
    double counted = count_of(cell, what);
    f->checks++;
    if (stored != RECORD_NO_COUNT && (double)stored != counted)
        verify_add(f, VERIFY_FORM, where, "%s: %lld %s samples, but samples.jsonl has %.0f", arm,
                   (long long)stored, what, counted);
}

/* Samples are stored under the name of the task; the row of a further metric is named
 * "task:metric". */
static void check_arm(const counter *c, const eval_record *eval, const arm_record *arm,
                      const char *where, verify_findings *f) {
    const char *name = arm->name, *colon = strchr(eval->task, ':');
    char key[256], task[121];
    size_t n = colon ? (size_t)(colon - eval->task) : strlen(eval->task);
    (void)snprintf(task, sizeof task, "%.*s", (int)(n < sizeof task ? n : sizeof task - 1),
                   eval->task);
    key_of(task, name, key);
    const js *cell = js_get_object(c->arms, key);
    double stored = arm->accuracy_pct;
    f->checks++;
    if (!cell) {
        verify_add(f, VERIFY_FORM, where, "%s: samples.jsonl has no sample of this arm", name);
        return;
    }
    check_count(name, "scored", arm->scored, cell, where, f);
    check_count(name, "failed", arm->failed, cell, where, f);
    check_count(name, "repaired", arm->repaired, cell, where, f);
    double counted = accuracy_of(cell, eval->metric);
    bool known = !(colon && count_of(cell, "unweighted") > 0);
    if (known && (double)arm->scored == count_of(cell, "scored") && !isnan(stored) &&
        fabs(stored - counted) > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "%s: an accuracy of %.4f, but its samples give %.4f", name, stored, counted);
}

snap_status verify_samples(const results *r, const buf *samples, const char *name,
                           verify_findings *f, snap_err *err) {
    counter c = {js_new_object(), name};
    arena mem = {0};
    run_record run;
    snap_status st = SNAP_OK;
    TRY(run_read(&run, r, &mem, err));
    TRY(c.arms ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for samples"));
    TRY(js_each_line(buf_str(samples), samples->len, name, count_line, &c, err));
    for (size_t i = 0; i < run.evals.n; i++) {
        const eval_record *eval = &run.evals.at[i];
        char where[32];
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        for (size_t k = 0; k < eval->arms.n; k++)
            check_arm(&c, eval, &eval->arms.at[k], where, f);
    }
cleanup:
    js_free(c.arms);
    arena_release(&mem);
    return st;
}
