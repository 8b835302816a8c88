/* verify_samples.c - computes the accuracies of a result again from its samples. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/bundle.h"
#include "harness/record/run.h"

static const double kSlack = 1e-6; /* percentage points */

/* arms: {"<task>\n<arm>": {"scored", "failed", "problems": {"<problem>": {"n", "correct"}}}}; name:
 * of the samples in messages */
typedef struct {
    js *arms;
    const char *name;
} counter;

static js *object_at(js *o, const char *key) {
    if (!js_get_object(o, key) && !js_set_new(o, key, js_new_object()))
        return NULL;
    return js_get_object(o, key);
}

static bool add(js *o, const char *key, int64_t n) {
    return js_set_int(o, key, js_get_int(o, key, 0) + n);
}

static void key_of(const char *task, const char *arm, char out[256]) {
    (void)snprintf(out, 256, "%.120s\n%.120s", task, arm);
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
    bool ok = problems != NULL;
    if (js_get_bool(row, "failed", false)) {
        ok = ok && add(cell, "failed", 1);
    } else if (verdict) {
        js *score = ok ? object_at(problems, problem) : NULL;
        ok = score && add(score, "n", 1) &&
             add(score, "correct", strcmp(verdict, "correct") == 0) && add(cell, "scored", 1);
    }
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for samples");
}

/* The accuracy in percent: mean over the problems of the mean over their samples. */
static double accuracy_of(const js *cell) {
    js *problems = js_get_object(cell, "problems");
    double sum = 0, n = 0;
    for (void *it = js_first(problems); it; it = js_next(problems, it), n++)
        sum += (double)js_get_int(js_value(it), "correct", 0) /
               (double)js_get_int(js_value(it), "n", 1);
    return n > 0 ? 100 * sum / n : (double)NAN;
}

static void check_arm(const counter *c, const char *task, const arm_record *arm, const char *where,
                      verify_findings *f) {
    const char *name = arm->name;
    char key[256];
    key_of(task, name, key);
    const js *cell = js_get_object(c->arms, key);
    int64_t scored = arm->scored;
    double stored = arm->accuracy_pct;
    f->checks += 2;
    if (!cell) {
        verify_add(f, VERIFY_FORM, where, "%s: samples.jsonl has no sample of this arm", name);
        return;
    }
    if (js_get_int(cell, "scored", 0) != scored)
        verify_add(f, VERIFY_FORM, where, "%s: %lld scored samples, but samples.jsonl has %lld",
                   name, (long long)scored, (long long)js_get_int(cell, "scored", 0));
    else if (!isnan(stored) && fabs(stored - accuracy_of(cell)) > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "%s: an accuracy of %.4f, but its samples give %.4f", name, stored,
                   accuracy_of(cell));
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
            check_arm(&c, eval->task, &eval->arms.at[k], where, f);
    }
cleanup:
    js_free(c.arms);
    arena_release(&mem);
    return st;
}
