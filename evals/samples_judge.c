#include "evals/samples_judge.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "base/term.h"
#include "base/text.h"
#include "evals/code/grade_code.h"

typedef struct {
    const eval_plan *plan;
    const judged_rows *rows;
    size_t task; /* the task that is being judged */
    code_judge *judge;
    parallel *pool;
    term_progress progress;
    pthread_mutex_t lock; /* guards progress and the fields below */
    size_t done;
    snap_err err;
} judging;

/* True if a row has the verdict of this grader for this gold. */
static bool has_verdict(const js *row, const grader *g, const char *gold) {
    return text_equal(js_get_str(row, "grader"), g->id) &&
           text_equal(js_get_str(row, "gold"), gold) && js_get_str(row, "verdict") != NULL;
}

static bool set_verdict(js *row, const grader *g, const char *gold, const code_grade *v) {
    const grade_result *r = &v->grade;
    bool failed = v->ran && v->result.outcome != CODE_PASSED;
    return js_set_str(row, "gold", gold) && js_set_str(row, "grader", g->id) &&
           js_set_str(row, "verdict", grade_verdict_name(r->verdict)) &&
           js_set_str(row, "extracted", r->rule ? r->extracted : NULL) &&
           js_set_str(row, "rule", r->rule) && js_set_str(row, "reason", r->reason) &&
           js_set_new(row, "result_code", v->ran ? js_new_int(v->result.outcome) : js_new_null()) &&
           js_set_new(row, "failed_test",
                      failed ? js_new_int((int64_t)v->result.test) : js_new_null());
}

snap_status samples_judge_check(const eval_plan *p, package_set *missing, snap_err *err) {
    bool programs = false;
    for (size_t i = 0; i < p->n_tasks; i++)
        programs = programs || grade_runs_programs(p->tasks[i].set.grader);
    sandbox *s = NULL;
    snap_status st = programs ? sandbox_open(&s, NULL, err) : SNAP_OK;
    *missing = s ? sandbox_missing(s) : 0;
    sandbox_close(s);
    return st;
}

/* ---- one problem ---- */

typedef struct {
    const task_problem *problem;
    code_tests tests;
    bool loaded; /* the tests are read when the first program needs them */
} question;

static snap_status judge_row(judging *j, question *q, js *row, snap_err *err) {
    const task_set *set = &j->plan->tasks[j->task].set;
    code_grade verdict;
    size_t n = 0;
    snap_status st = SNAP_OK;
    const char *text = js_get_strn(row, "response", &n);
    const grade_input in = {.response = {text ? text : "", text ? n : 0},
                            .truncated = js_get_bool(row, "truncated", false)};
    if (!q->loaded)
        TRY(task_tests(set, q->problem, &q->tests, err));
    q->loaded = true;
    TRY(code_grade_response(j->judge, set->grader, in, &q->tests, &verdict, err));
    if (!set_verdict(row, set->grader, q->problem->gold, &verdict))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a verdict"));
cleanup:
    return st;
}

static snap_status judge_cell(judging *j, question *q, size_t cell, snap_err *err) {
    const eval_plan *p = j->plan;
    js *row = NULL;
    snap_status st = j->rows->read(j->rows->ctx, cell, &row, err);
    bool due = st == SNAP_OK && row && !js_get_bool(row, "failed", false) &&
               (p->rejudge || !has_verdict(row, p->tasks[j->task].set.grader, q->problem->gold));
    if (due)
        st = judge_row(j, q, row, err);
    if (due && st == SNAP_OK)
        st = j->rows->write(j->rows->ctx, cell, row, err);
    js_free(row);
    return st;
}

static snap_status judge_problem(judging *j, size_t index, snap_err *err) {
    const eval_plan *p = j->plan;
    const eval_task *t = &p->tasks[j->task];
    question q = {.problem = &t->set.problems[index]};
    snap_status st = SNAP_OK;
    for (size_t arm = 0; arm < p->n_arms; arm++)
        for (int sample = 0; sample < t->samples && st == SNAP_OK; sample++)
            st = judge_cell(j, &q, plan_index(p, (plan_cell){j->task, arm, index, sample}), err);
    tests_release(&q.tests);
    return st;
}

/* ---- all problems ---- */

static void judge_one(void *ctx, int worker, int64_t index) {
    judging *j = ctx;
    snap_err err = {0};
    (void)worker;
    (void)pthread_mutex_lock(&j->lock);
    bool stop = j->err.code != SNAP_OK;
    (void)pthread_mutex_unlock(&j->lock);
    snap_status st = stop ? SNAP_OK : judge_problem(j, (size_t)index, &err);
    (void)pthread_mutex_lock(&j->lock);
    if (st != SNAP_OK)
        (void)err_set(&j->err, st, "%s", err.text);
    term_progress_update(&j->progress, (int64_t)++j->done, NULL);
    (void)pthread_mutex_unlock(&j->lock);
}

static snap_status judge_task(judging *j, snap_err *err) {
    const task_set *set = &j->plan->tasks[j->task].set;
    const judge_options options = {.kind = code_grader_kind(set->grader),
                                   .cancel = j->plan->cancel};
    snap_status st = judge_open(&j->judge, &options, err);
    if (st != SNAP_OK)
        return st;
    j->done = 0;
    j->progress = term_progress_start(set->task->name, (int64_t)set->n);
    parallel_for(j->pool, (int64_t)set->n, judge_one, j);
    term_progress_end(&j->progress);
    judge_close(j->judge);
    return j->err.code == SNAP_OK ? SNAP_OK : err_set(err, j->err.code, "%s", j->err.text);
}

snap_status samples_judge(const eval_plan *p, const judged_rows *rows, snap_err *err) {
    judging j = {.plan = p, .rows = rows};
    snap_status st = SNAP_OK;
    (void)pthread_mutex_init(&j.lock, NULL);
    for (; j.task < p->n_tasks && st == SNAP_OK; j.task++) {
        if (!grade_runs_programs(p->tasks[j.task].set.grader))
            continue;
        if (!j.pool)
            st = parallel_create(&j.pool, p->judge_jobs, err);
        if (st == SNAP_OK)
            st = judge_task(&j, err);
    }
    parallel_free(j.pool);
    (void)pthread_mutex_destroy(&j.lock);
    return st;
}
