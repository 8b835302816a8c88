#include "harness/eval/check_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "base/text.h"
#include "evals/code/grade_code.h"
#include "evals/task.h"

typedef struct {
    const check_task_options *o;
    task_set set;
    code_judge *judge; /* NULL: not opened yet */
    js *out;
} checking;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the check");
}

static snap_status find_task(const char *name, const task_spec **out, snap_err *err) {
    if (strchr(name, '/') || text_ends(name, ".json"))
        return task_open(name, out, err);
    snap_status st = task_find(name, out, err);
    return st == SNAP_OK && !*out ? task_unknown(name, NULL, "check-task", err) : st;
}

/* ---- answers ---- */

static snap_status run_program(checking *c, const task_problem *p, span response, grade_result *out,
                               snap_err *err) {
    const judge_options options = {.kind = code_grader_kind(c->set.grader), .cancel = c->o->cancel};
    code_tests tests = {0};
    code_grade grade;
    snap_status st = SNAP_OK;
    if (!c->judge)
        TRY(judge_open(&c->judge, &options, err));
    TRY(task_tests(&c->set, p, &tests, err));
    TRY(code_grade_response(c->judge, c->set.grader, (grade_input){.response = response}, &tests,
                            &grade, err));
    *out = grade.grade;
    out->reason = grade.ran ? code_grade_name(&grade) : out->reason;
cleanup:
    tests_release(&tests);
    return st;
}

static snap_status grade(checking *c, const task_problem *p, const char *response,
                         grade_result *out, snap_err *err) {
    span text = {response, strlen(response)};
    if (grade_runs_programs(c->set.grader))
        return run_program(c, p, text, out, err);
    return grade_response(c->set.grader, p->gold, (grade_input){.response = text}, out, err);
}

/* Adds "scores", such as {"strict": 1}, if the grader has more metrics than the verdict. */
static bool set_scores(js *row, const grader *g, const grade_result *r) {
    if (grade_metrics(g) == 1)
        return true;
    js *scores = js_new_object();
    bool ok = scores != NULL;
    for (int i = 1; i < grade_metrics(g) && ok; i++)
        ok = js_set_num(scores, g->metrics[i], r->also[i - 1].value);
    return js_set_new(row, "scores", scores) && ok;
}

static snap_status add_answer(checking *c, js *answers, const task_problem *p, const char *response,
                              snap_err *err) {
    grade_result r;
    snap_status st = grade(c, p, response, &r, err);
    if (st != SNAP_OK)
        return st;
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "response", response) &&
              js_set_str(row, "verdict", grade_verdict_name(r.verdict)) &&
              js_set_str(row, "extracted", r.rule ? r.extracted : NULL) &&
              js_set_str(row, "rule", r.rule) && js_set_str(row, "reason", r.reason) &&
              set_scores(row, c->set.grader, &r);
    return js_push_new(answers, row) && ok ? SNAP_OK : no_memory(err);
}

/* Forms in which a model may state an answer. */
static const char *const kForms[] = {"%s", "Answer: %s", "\\boxed{%s}", "#### %s", NULL};

/* Writes a gold in a form. */
static snap_status state(const char *form, const char *gold, buf *out, snap_err *err) {
    const char *hole = strstr(form, "%s");
    buf_clear(out);
    (void)buf_append(out, form, (size_t)(hole - form));
    (void)buf_puts(out, gold);
    (void)buf_puts(out, hole + 2);
    return buf_check(out, "an answer", err);
}

/* The first form in which the grader accepts the gold itself; the bare gold if there is none. */
static snap_status choose_form(checking *c, const task_problem *p, const char **out, buf *text,
                               snap_err *err) {
    grade_result r = {.verdict = GRADE_UNPARSED};
    snap_status st = SNAP_OK;
    for (const char *const *f = kForms; *f && r.verdict != GRADE_CORRECT; f++) {
        TRY(state(*f, p->gold, text, err));
        TRY(grade(c, p, buf_str(text), &r, err));
        *out = *f;
    }
    if (r.verdict != GRADE_CORRECT)
        *out = kForms[0];
cleanup:
    return st;
}

/* The gold of one of the first 100 problems that is wrong for @p; NULL if there is none. */
static snap_status other_gold(checking *c, const task_problem *p, const char **out, snap_err *err) {
    snap_status st = SNAP_OK;
    *out = NULL;
    for (size_t i = 0; i < c->set.n && i < 100 && !*out; i++) {
        const char *gold = c->set.problems[i].gold;
        grade_result r;
        grade_input in = {.response = {gold, strlen(gold)}, .extracted = true};
        if (strcmp(gold, p->gold) == 0)
            continue;
        TRY(grade_response(c->set.grader, p->gold, in, &r, err));
        if (r.verdict != GRADE_CORRECT)
            *out = gold;
    }
cleanup:
    return st;
}

/* Adds the gold, a wrong answer if there is one, and an empty one. Programs are graded only if they
 * are given, and what a model or another program judges is not graded. */
static snap_status add_usual_answers(checking *c, js *answers, const task_problem *p,
                                     snap_err *err) {
    const char *form = kForms[0], *other = NULL;
    buf text = {0};
    snap_status st = SNAP_OK;
    const grader *g = c->set.grader;
    if (grade_runs_programs(g) || g->by_model || g->recorded)
        return SNAP_OK;
    TRY(choose_form(c, p, &form, &text, err));
    TRY(state(form, p->gold, &text, err));
    TRY(add_answer(c, answers, p, buf_str(&text), err));
    TRY(other_gold(c, p, &other, err));
    if (other) {
        TRY(state(form, other, &text, err));
        TRY(add_answer(c, answers, p, buf_str(&text), err));
    }
    TRY(add_answer(c, answers, p, "", err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status add_answers(checking *c, js *answers, const task_problem *p, snap_err *err) {
    snap_status st = SNAP_OK;
    if (!c->o->n_answers)
        return add_usual_answers(c, answers, p, err);
    if (c->set.grader->by_model)
        return err_set(err, SNAP_E_USAGE,
                       "--answer: a judge model grades the answers of this task");
    if (c->set.grader->recorded)
        return err_set(err, SNAP_E_USAGE,
                       "--answer: another program has graded the answers of this task");
    for (int i = 0; i < c->o->n_answers && st == SNAP_OK; i++)
        st = add_answer(c, answers, p, c->o->answers[i], err);
    return st;
}

/* ---- problems ---- */

static bool set_messages(js *row, const task_problem *p) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; i < p->n_messages && ok; i++) {
        js *m = js_new_object();
        ok = m && js_set_str(m, "role", p->messages[i].role) &&
             js_set_str(m, "content", p->messages[i].content);
        ok = js_push_new(list, m) && ok;
    }
    return js_set_new(row, "messages", list) && ok;
}

static snap_status add_problem(checking *c, js *shown, const task_problem *p, snap_err *err) {
    js *row = js_new_object(), *answers = js_new_array();
    bool programs = grade_runs_programs(c->set.grader);
    bool ok = row && js_set_str(row, "id", p->id) &&
              js_set_str(row, "gold", programs ? NULL : p->gold) && set_messages(row, p);
    ok = js_set_new(row, "answers", answers) && ok;
    ok = js_push_new(shown, row) && ok;
    return ok ? add_answers(c, answers, p, err) : no_memory(err);
}

static snap_status add_problems(checking *c, snap_err *err) {
    js *shown = js_new_array();
    snap_status st = SNAP_OK;
    if (!js_set_new(c->out, "shown", shown))
        return no_memory(err);
    if (c->set.task->confidential)
        return js_set_str(c->out, "note",
                          "the authors of this set ask that its text is not published, so no "
                          "prompt is shown")
                   ? SNAP_OK
                   : no_memory(err);
    for (size_t i = 0; i < c->set.n && (int64_t)i < c->o->problems && st == SNAP_OK; i++)
        st = add_problem(c, shown, &c->set.problems[i], err);
    return st;
}

/* ---- checking a task ---- */

static snap_status describe(checking *c, const task_spec *t, const task_options *options,
                            snap_err *err) {
    const grader *g;
    snap_status st = task_grader(t, c->o->data, options, &g, err);
    if (st != SNAP_OK)
        return st;
    c->out = js_new_object();
    bool ok = c->out && js_set_str(c->out, "task", t->name) &&
              js_set_str(c->out, "title", t->title) && js_set_str(c->out, "grader", g->id) &&
              js_set_str(c->out, "file_sha256", t->file_sha256) &&
              js_set_int(c->out, "samples", t->samples) &&
              (t->margin_pp > 0 ? js_set_num(c->out, "margin_pp", t->margin_pp)
                                : js_set_str(c->out, "margin_pp", NULL));
    return ok ? SNAP_OK : no_memory(err);
}

/* Loads the data. If the user named none and there are none, a note says so. */
static snap_status load(checking *c, const task_spec *t, const task_options *options,
                        snap_err *err) {
    snap_err why = {0};
    char *found = c->o->data ? NULL : share_find("datasets");
    const char *data = c->o->data ? c->o->data : found ? found : ".";
    snap_status st = task_load(t, data, 0, options, &c->set, &why);
    free(found);
    if (st == SNAP_E_IO && !c->o->data)
        return js_set_str(c->out, "note", why.text) ? SNAP_OK : no_memory(err);
    if (st != SNAP_OK)
        return err_set(err, st, "%s", why.text);
    bool ok = js_set_str(c->out, "data", c->set.file) &&
              js_set_str(c->out, "data_sha256", c->set.sha256) &&
              js_set_int(c->out, "rows", (int64_t)c->set.rows) &&
              js_set_int(c->out, "problems", (int64_t)c->set.n);
    return ok ? add_problems(c, err) : no_memory(err);
}

snap_status check_task(const check_task_options *o, js **out, snap_err *err) {
    checking c = {.o = o};
    task_options options = {.lengths = o->lengths,
                            .tokenizer = o->tokenizer,
                            .chars_per_token = o->chars_per_token,
                            .seed = (uint64_t)o->seed};
    const task_spec *t;
    snap_status st;
    *out = NULL;
    TRY(task_policy_parse(o->math_policy, &options.policy, err));
    TRY(find_task(o->task, &t, err));
    TRY(describe(&c, t, &options, err));
    TRY(load(&c, t, &options, err));
    *out = c.out;
    c.out = NULL;
cleanup:
    judge_close(c.judge);
    task_set_release(&c.set);
    js_free(c.out);
    return st;
}
