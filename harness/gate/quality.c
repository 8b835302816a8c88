#include "harness/gate/quality.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/lost.h"
#include "evals/stats.h"
#include "harness/gate/verdicts.h"
#include "harness/record/run.h"

static const size_t kLimit = (size_t)1 << 30; /* bytes of samples.jsonl */
static const double kMargin = 2;              /* percentage points, if a run has no margin */

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for verdicts");
}

/* ---- one comparison ---- */

typedef struct {
    char name[160];
    double delta, ci90[2], margin; /* percentage points */
    double p;                      /* for the hypothesis of no difference */
    const char *verdict;           /* "equivalent", "different", ...; without meaning if refused */
    const char *refused;           /* why the comparison was refused; "" if it was not */
    char lost[160];                /* why lost samples forbid "ok" (evals/lost.h); "" if not */
} comparison;

static const char *judge(const comparison *c, double p_holm, double alpha, const char **reason) {
    *reason = NULL;
    if (c->refused[0]) {
        *reason = c->refused;
        return "invalid";
    }
    bool different = strcmp(c->verdict, "different") == 0;
    bool worse = !(c->ci90[0] > -c->margin) && different && c->delta < 0;
    if (worse && p_holm <= alpha)
        return "regressed";
    if (c->lost[0]) {
        *reason = c->lost;
        return "inconclusive";
    }
    if (strcmp(c->verdict, "equivalent") == 0 || c->ci90[0] > -c->margin)
        return "ok";
    if (different && c->delta > 0)
        return "ok";
    *reason = "not enough evidence for either worse or equivalent: more problems or samples are "
              "needed";
    return "inconclusive";
}

static js *row_of(const comparison *c, double p_holm, double alpha) {
    const char *reason, *verdict = judge(c, p_holm, alpha, &reason);
    verdict_record v = verdict_start("quality", c->name, verdict, reason, VERDICT_QUALITY);
    v.delta_pp = c->delta;
    v.margin_pp = c->margin;
    v.p_holm = p_holm;
    v.ci90[0] = c->ci90[0];
    v.ci90[1] = c->ci90[1];
    return record_write(&verdict_type, &v);
}

/* ---- within the current run ---- */

/* The p-value for "no difference": that of the run's sign-flip test, else that of a normal
 * distribution with the standard error, else 1. */
static double p_of(const pair_record *pair) {
    double p = isnan(pair->p_sign_flip) ? erfc(fabs(pair->delta_pp / pair->se_pp) / sqrt(2.0))
                                        : pair->p_sign_flip;
    return isnan(p) ? 1 : p;
}

static comparison of_pair(const eval_record *eval, const pair_record *pair) {
    comparison c = {.delta = pair->delta_pp,
                    .ci90 = {pair->ci90_pp[0], pair->ci90_pp[1]},
                    .margin = isnan(pair->margin_pp) ? kMargin : pair->margin_pp,
                    .p = p_of(pair),
                    .verdict = pair->verdict,
                    .refused = pair->refused};
    (void)snprintf(c.name, sizeof c.name, "%.48s: %.48s against %.48s", eval->task, pair->arm,
                   pair->baseline);
    (void)eval_lost_too_many(eval, pair, c.lost, sizeof c.lost);
    return c;
}

typedef struct {
    comparison *all;
    size_t n, capacity;
} list;

static bool push(list *l, const comparison *c) {
    if (l->n == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 32;
        comparison *all = realloc(l->all, capacity * sizeof *all);
        if (!all)
            return false;
        l->all = all;
        l->capacity = capacity;
    }
    l->all[l->n++] = *c;
    return true;
}

static bool add_pairs(list *l, const eval_list *evals) {
    bool ok = true;
    for (size_t i = 0; i < evals->n; i++) {
        const eval_record *eval = &evals->at[i];
        for (size_t k = 0; k < eval->pairs.n && ok; k++) {
            comparison c = of_pair(eval, &eval->pairs.at[k]);
            ok = eval->pairs.at[k].control[0] || push(l, &c);
        }
    }
    return ok;
}

/* ---- between two runs ---- */

/* cells: scores of problems: {"<task>\n<arm>": {"<problem>": {"n", "correct"}}}.
 * rows: {"<task>\n<arm>": {"samples", "scored"}} */
typedef struct {
    js *cells, *rows;
    const char *path;
} scores;

static js *object_at(js *o, const char *key) {
    if (!js_get_object(o, key) && !js_set_new(o, key, js_new_object()))
        return NULL;
    return js_get_object(o, key);
}

static snap_status read_sample(void *ctx, js *row, long line, snap_err *err) {
    scores *s = ctx;
    const char *task = js_get_str(row, "task"), *arm = js_get_str(row, "arm");
    const char *problem = js_get_str(row, "problem"), *verdict = js_get_str(row, "verdict");
    char key[256];
    if (!task || !arm || !problem)
        return err_set(err, SNAP_E_INPUT, "%s:%ld: a sample must have 'task', 'arm' and 'problem'",
                       s->path, line);
    (void)snprintf(key, sizeof key, "%.120s\n%.120s", task, arm);
    js *count = object_at(s->rows, key);
    if (!count || !js_set_int(count, "samples", js_get_int(count, "samples", 0) + 1) ||
        !js_set_int(count, "scored", js_get_int(count, "scored", 0) + (verdict != NULL)))
        return no_memory(err);
    if (!verdict) /* the sample failed or was not judged yet */
        return SNAP_OK;
    js *cell = object_at(s->cells, key), *score = cell ? object_at(cell, problem) : NULL;
    bool ok = score && js_set_int(score, "n", js_get_int(score, "n", 0) + 1) &&
              js_set_int(score, "correct",
                         js_get_int(score, "correct", 0) + (strcmp(verdict, "correct") == 0));
    return ok ? SNAP_OK : no_memory(err);
}

static snap_status read_scores(scores *s, const char *path, snap_err *err) {
    buf text = {.limit = kLimit};
    snap_status st = SNAP_OK;
    *s = (scores){js_new_object(), js_new_object(), path};
    TRY(s->cells && s->rows ? SNAP_OK : no_memory(err));
    TRY(fs_read_regular(path, &text, err));
    TRY(js_each_line(buf_str(&text), text.len, path, read_sample, s, err));
cleanup:
    buf_release(&text);
    return st;
}

static double score_of(const js *score) {
    return (double)js_get_int(score, "correct", 0) / (double)js_get_int(score, "n", 1);
}

/* The scores of both runs for the problems that both have. Returns how many these are. */
static size_t shared_problems(js *a, const js *b, double *x, double *y) {
    size_t n = 0;
    for (void *it = js_first(a); it; it = js_next(a, it)) {
        const js *other = js_get_object(b, js_key(it));
        if (!other)
            continue;
        x[n] = score_of(js_value(it));
        y[n++] = score_of(other);
    }
    return n;
}

static const eval_record *eval_of(const run_record *r, const char *task) {
    for (size_t i = 0; i < r->evals.n; i++)
        if (strcmp(r->evals.at[i].task, task) == 0)
            return &r->evals.at[i];
    return NULL;
}

/* Why the two runs of a task cannot be compared; "" if they can. */
static const char *why_not(const eval_record *a, const eval_record *b) {
    if (!a || !b)
        return "a run has samples of this task but no row";
    if (strcmp(a->dataset.sha256, b->dataset.sha256) != 0)
        return "not comparable: the data differ";
    if (strcmp(a->prompt_sha256, b->prompt_sha256) != 0)
        return "not comparable: the prompts differ";
    if (a->task_sha256[0] && b->task_sha256[0] && strcmp(a->task_sha256, b->task_sha256) != 0)
        return "not comparable: the task files differ";
    if (strcmp(a->grader, b->grader) != 0)
        return "not comparable: the graders differ";
    if (!record_equal(&eval_sampling_type, &a->sampling, &b->sampling))
        return "not comparable: the sampling differs";
    return "";
}

/* Why one arm of the two runs of a task cannot be compared; "" if it can. */
static const char *why_not_arm(const eval_record *a, const eval_record *b, const char *name) {
    const arm_record *x = eval_arm_of(a, name), *y = eval_arm_of(b, name);
    if (!x || !y)
        return "";
    if (strcmp(x->sampling, y->sampling) != 0)
        return "not comparable: the arm's sampling differs";
    if (strcmp(x->request, y->request) != 0)
        return "not comparable: the settings of the arm's requests differ";
    return "";
}

/* The first of two values that exists, else the third. */
static double first_of(double a, double b, double otherwise) {
    return !isnan(a) ? a : !isnan(b) ? b : otherwise;
}

/* The margin of a run's task. In older files, only comparisons have it. */
static double margin_of(const eval_record *eval) {
    const pair_record *pair = eval && eval->pairs.n ? eval->pairs.at : NULL;
    return first_of(eval ? eval->margin_pp : (double)NAN, pair ? pair->margin_pp : (double)NAN,
                    kMargin);
}

static lost_count lost_in(const scores *s, const char *key, const char *name) {
    const js *count = js_get_object(s->rows, key);
    return (lost_count){name, js_get_int(count, "samples", 0), js_get_int(count, "scored", 0)};
}

static double max_lost_of(const eval_record *eval) {
    const pair_record *pair = eval && eval->pairs.n ? eval->pairs.at : NULL;
    return first_of(eval ? eval->max_lost_pct : (double)NAN,
                    pair ? pair->max_lost_pct : (double)NAN, LOST_MAX_PCT);
}

static snap_status compare_cell(list *l, const char *key, const scores *x_run, const scores *y_run,
                                const run_record *a, const run_record *b, uint64_t seed,
                                snap_err *err) {
    js *before = js_get_object(x_run->cells, key);
    const js *after = js_get_object(y_run->cells, key);
    size_t room = 1;
    for (void *it = js_first(before); it; it = js_next(before, it))
        room++;
    double *x = malloc(room * sizeof *x), *y = malloc(room * sizeof *y);
    const char *end = strchr(key, '\n');
    char task[128];
    (void)snprintf(task, sizeof task, "%.*s", (int)(end - key), key);
    const eval_record *eval = eval_of(b, task);
    size_t n = x && y ? shared_problems(before, after, x, y) : 0;
    comparison c = {.margin = margin_of(eval), .refused = why_not(eval_of(a, task), eval)};
    if (!c.refused[0])
        c.refused = why_not_arm(eval_of(a, task), eval, end + 1);
    if (!c.refused[0] && !n)
        c.refused = "the runs share no judged problem";
    double step = eval ? eval_step(eval) : 0;
    stats_paired diff = stats_compare(x ? x : &c.p, y ? y : &c.p, n, step, c.margin / 100);
    c.delta = 100 * diff.delta;
    c.ci90[0] = 100 * diff.ci90.lo;
    c.ci90[1] = 100 * diff.ci90.hi;
    c.verdict = stats_verdict_name(diff.verdict);
    c.p = n ? stats_sign_flip(x, y, n, seed) : 1;
    (void)snprintf(c.name, sizeof c.name, "%.48s: %.48s, now against before", task, end + 1);
    (void)lost_too_many(lost_in(x_run, key, "the baseline run"), lost_in(y_run, key, "the new run"),
                        max_lost_of(eval), c.lost, sizeof c.lost);
    bool ok = x && y && push(l, &c);
    free(x);
    free(y);
    return ok ? SNAP_OK : no_memory(err);
}

static snap_status add_runs(list *l, const run_record *a, const run_record *b,
                            const gate_quality_options *opt, snap_err *err) {
    scores before = {0}, after = {0};
    snap_status st = SNAP_OK;
    TRY(read_scores(&before, opt->baseline_samples, err));
    TRY(read_scores(&after, opt->current_samples, err));
    for (void *it = js_first(before.cells); it; it = js_next(before.cells, it)) {
        if (js_get_object(after.cells, js_key(it)))
            TRY(compare_cell(l, js_key(it), &before, &after, a, b, opt->seed, err));
    }
cleanup:
    js_free(before.cells);
    js_free(before.rows);
    js_free(after.cells);
    js_free(after.rows);
    return st;
}

/* Adds a row for each task of which only the baseline has a row. */
static bool add_missing(const run_record *a, const run_record *b, js *rows) {
    bool ok = true;
    for (size_t i = 0; i < a->evals.n && ok; i++) {
        const char *task = a->evals.at[i].task;
        if (!eval_of(b, task))
            ok = js_push_new(
                rows, verdict_new("quality", task, "missing", "the current run does not have it"));
    }
    return ok;
}

/* ---- checking the quality of a run ---- */

snap_status gate_check_quality(const results *baseline, const results *current,
                               const gate_quality_options *opt, js *rows, snap_err *err) {
    list l = {0};
    arena mem = {0};
    run_record before, after;
    double *p = NULL;
    snap_status st = SNAP_OK;
    if (baseline)
        TRY(run_read(&before, baseline, &mem, err));
    TRY(run_read(&after, current, &mem, err));
    bool ok = add_pairs(&l, &after.evals);
    if (ok && baseline && opt->baseline_samples && opt->current_samples)
        TRY(add_runs(&l, &before, &after, opt, err));
    p = malloc((l.n + 1) * sizeof *p);
    ok = ok && p;
    for (size_t i = 0; i < l.n && ok; i++)
        p[i] = l.all[i].p;
    if (ok)
        stats_holm(p, l.n);
    for (size_t i = 0; i < l.n && ok; i++)
        ok = js_push_new(rows, row_of(&l.all[i], p[i], opt->alpha));
    ok = ok && (!baseline || add_missing(&before, &after, rows));
    st = ok ? SNAP_OK : no_memory(err);
cleanup:
    free(p);
    free(l.all);
    arena_release(&mem);
    return st;
}
