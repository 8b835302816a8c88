/* verify_samples.c - computes the accuracies of a result again from its samples. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "harness/audit/bundle.h"
#include "harness/eval/failures.h"
#include "harness/record/run.h"

static const double kSlack = 1e-6; /* percentage points */

/* arms: {"<task>\n<arm>": {"scored", "failed", "repaired", "unweighted", "requests", "undecided",
 * "asked", "accepted", "refused", "errors", "problems": {"<problem>": {"n", "correct", "accepted",
 * "sums": {"<metric>": Σ weight * value}, "weights": {"<metric>": Σ weight}}}}}.
 * requests: {"<hash of the settings of requests>": 1}. errors: {"<message>": number of samples}.
 * unweighted: number of scores that lack a weight. name: of the samples in messages */
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

/* Counts the second opinion about an undecided answer. */
static bool add_opinion(js *cell, js *problem, const js *row) {
    const js *said = js_get_object(row, "opinion");
    const char *verdict = js_get_str(said, "verdict");
    bool same = text_equal(verdict, "same"), undecided = js_get_bool(row, "undecided", false);
    return !undecided || (add(cell, "undecided", 1) && add(cell, "asked", said != NULL) &&
                          add(cell, "accepted", same) && add(problem, "accepted", same) &&
                          add(cell, "refused", text_equal(verdict, "different")));
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
    const char *request = js_get_str(row, "request_sha256");
    js *requests = ok ? object_at(cell, "requests") : NULL;
    ok = requests && js_set_int(requests, request ? request : "", 1);
    if (failed || !verdict) {
        js *errors = ok ? object_at(cell, "errors") : NULL;
        const char *error = failed ? js_get_str(row, "error") : FAILURE_UNJUDGED;
        ok = errors && add(cell, "failed", 1) && add(errors, error ? error : "", 1);
    } else {
        js *score = ok ? object_at(problems, problem) : NULL;
        ok = score && add(score, "n", 1) &&
             add(score, "correct", strcmp(verdict, "correct") == 0) && add(cell, "scored", 1) &&
             add(cell, "repaired", js_get_bool(row, "repaired", false)) &&
             add_scores(cell, score, row) && add_opinion(cell, score, row);
    }
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for samples");
}

/* The accuracy in percent: the mean over the problems of the mean over their samples. If the
 * samples have scores of @metric, it is the weighted mean of these scores. NAN if all weights are
 * 0. */
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

/* The accuracy in percent if the answers that the judge model accepts count as correct. */
static double accuracy_with_opinions(const js *cell) {
    js *problems = js_get_object(cell, "problems");
    double sum = 0, n = 0;
    for (void *it = js_first(problems); it; it = js_next(problems, it), n++) {
        const js *p = js_value(it);
        sum += (js_get_num(p, "correct", 0) + js_get_num(p, "accepted", 0)) / js_get_num(p, "n", 1);
    }
    return 100 * sum / n;
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

static void check_opinions(const arm_record *arm, const js *cell, const char *where,
                           verify_findings *f) {
    const opinion_record *o = &arm->opinions;
    if (!o->exists)
        return;
    check_count(arm->name, "undecided", o->undecided, cell, where, f);
    check_count(arm->name, "asked", o->asked, cell, where, f);
    check_count(arm->name, "accepted", o->accepted, cell, where, f);
    check_count(arm->name, "refused", o->refused, cell, where, f);
    double counted = accuracy_with_opinions(cell);
    f->checks++;
    if (!isnan(o->accuracy_pct) && fabs(o->accuracy_pct - counted) > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "%s: an accuracy with second opinions of %.4f, but its samples give %.4f",
                   arm->name, o->accuracy_pct, counted);
}

/* Compares the reasons of failures with those that the samples state. */
static void check_failures(const arm_record *arm, const js *cell, const char *where,
                           verify_findings *f) {
    failure_tally t = {0};
    js *errors = js_get_object(cell, "errors");
    for (void *it = js_first(errors); it; it = js_next(errors, it))
        failures_add(&t, js_key(it), (int64_t)js_num(js_value(it)));
    failures_keep(&t, FAILURE_KEPT);
    bool same = !arm->failures.n || arm->failures.n == t.n + (t.other > 0);
    for (size_t i = 0; i < arm->failures.n && i < t.n; i++)
        same = same && arm->failures.at[i].count == t.at[i].n &&
               strcmp(arm->failures.at[i].reason, t.at[i].text) == 0;
    f->checks++;
    if (!same)
        verify_add(f, VERIFY_FORM, where,
                   "%s: the reasons of failed samples are not those of samples.jsonl", arm->name);
}

/* Compares the hash of the settings of the requests with the hash that the samples state. */
static snap_status check_request(const arm_record *arm, const js *cell, const char *where,
                                 verify_findings *f, snap_err *err) {
    char hash[HASH_HEX] = "";
    js *requests = js_get_object(cell, "requests");
    if (arm->request[0]) {
        snap_status st = hash_bytes(arm->request, strlen(arm->request), hash, err);
        if (st != SNAP_OK)
            return st;
    }
    f->checks++;
    for (void *it = js_first(requests); it; it = js_next(requests, it))
        if (strcmp(js_key(it), hash) != 0)
            verify_add(
                f, VERIFY_MIXED, where,
                "%s: a sample was requested with the settings %.12s, the result states %.12s",
                arm->name, js_key(it)[0] ? js_key(it) : "(none)", hash[0] ? hash : "(none)");
    return SNAP_OK;
}

/* Samples are stored under the name of the task; the row of a further metric is named
 * "task:metric". */
static snap_status check_arm(const counter *c, const eval_record *eval, const arm_record *arm,
                             const char *where, verify_findings *f, snap_err *err) {
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
        return SNAP_OK;
    }
    check_count(name, "scored", arm->scored, cell, where, f);
    check_count(name, "failed", arm->failed, cell, where, f);
    check_count(name, "repaired", arm->repaired, cell, where, f);
    check_opinions(arm, cell, where, f);
    check_failures(arm, cell, where, f);
    double counted = accuracy_of(cell, eval->metric);
    bool known = !(colon && count_of(cell, "unweighted") > 0);
    if (known && (double)arm->scored == count_of(cell, "scored") && !isnan(stored) &&
        fabs(stored - counted) > kSlack)
        verify_add(f, VERIFY_CORRECTNESS, where,
                   "%s: an accuracy of %.4f, but its samples give %.4f", name, stored, counted);
    return check_request(arm, cell, where, f, err);
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
            TRY(check_arm(&c, eval, &eval->arms.at[k], where, f, err));
    }
cleanup:
    js_free(c.arms);
    arena_release(&mem);
    return st;
}
