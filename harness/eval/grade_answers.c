#include "harness/eval/grade_answers.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/task.h"
#include "harness/eval/grade_programs.h"

static const size_t kInputLimit = (size_t)8 << 30;

typedef struct {
    const task_spec *task;
    const grader *grader;
    const char *name;
    buf *out;
} grading;

enum { kNumberMax = 32 };

/* A JSON number as text. */
static span number_text(const js *v, char out[kNumberMax]) {
    int n = js_is_int(v) ? snprintf(out, kNumberMax, "%lld", (long long)js_int(v))
                         : snprintf(out, kNumberMax, "%.15g", js_num(v));
    return (span){out, (size_t)n};
}

/* Writes the gold answer to @out if it is a JSON object, or if it must be made from a row in the
 * layout of the data set. Otherwise @out stays empty. */
static snap_status write_gold(const grading *g, const js *row, buf *out, snap_err *err) {
    const js *given = js_get(row, "gold");
    js *made = given || !g->task->gold_of ? NULL : g->task->gold_of(row);
    snap_status st = SNAP_OK;
    if (made || js_is_object(given))
        st = js_write(made ? made : given, JS_COMPACT, out, err);
    js_free(made);
    return st;
}

/* Reads and checks the gold answer: text from a string, a number or JSON. The text is borrowed from
 * the row, @number or @json. */
static snap_status gold_of(const grading *g, const js *row, const char *where,
                           char number[kNumberMax], buf *json, const char **out, snap_err *err) {
    const js *gold = js_get(row, "gold");
    size_t n = 0;
    snap_err why = {0};
    snap_status st = write_gold(g, row, json, err);
    if (st != SNAP_OK)
        return st;
    *out = json->len         ? buf_str(json)
           : js_is_num(gold) ? number_text(gold, number).s
                             : js_get_strn(row, "gold", &n);
    if (!*out && !gold)
        return err_set(err, SNAP_E_INPUT, "%s: no 'gold'", where);
    if (!*out)
        return err_set(err, SNAP_E_INPUT, "%s: 'gold' must be a string or a number", where);
    if (n && strlen(*out) != n)
        return err_set(err, SNAP_E_INPUT, "%s: 'gold' holds a NUL", where);
    if (grade_check_gold(g->grader, *out, &why) != SNAP_OK)
        return err_set(err, why.code, "%s: %s", where, why.text);
    return SNAP_OK;
}

/* Reads the answer, a string or a number, or else the response, a string or null. */
static snap_status input_of(const js *row, const char *where, char number[kNumberMax],
                            grade_input *in, snap_err *err) {
    const js *answer = js_get(row, "answer"), *response = js_get(row, "response");
    *in = (grade_input){.response = {"", 0}, .extracted = answer != NULL};
    in->truncated = text_equal(js_get_str(row, "finish_reason"), "length");
    if (in->extracted && js_is_num(answer)) {
        in->response = number_text(answer, number);
    } else if (in->extracted && js_is_str(answer)) {
        in->response.s = js_get_strn(row, "answer", &in->response.n);
    } else if (!in->extracted && js_is_str(response)) {
        in->response.s = js_get_strn(row, "response", &in->response.n);
    } else if (in->extracted || response) {
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be a string", where,
                       in->extracted ? "answer" : "response");
    }
    return SNAP_OK;
}

/* Adds {"instruction_strict": 0.5, ...} if the grader has more metrics than the verdict. */
static bool set_scores(js *row, const grader *g, const grade_result *r) {
    if (grade_metrics(g) == 1)
        return true;
    js *scores = js_new_object();
    bool ok = scores != NULL;
    for (int i = 1; i < grade_metrics(g) && ok; i++)
        ok = js_set_num(scores, g->metrics[i], r->also[i - 1].value);
    return js_set_new(row, "scores", scores) && ok;
}

static bool write_verdict(grading *g, const grade_result *r) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "verdict", grade_verdict_name(r->verdict)) &&
              js_set_str(row, "extracted", r->rule ? r->extracted : NULL) &&
              js_set_str(row, "rule", r->rule) && js_set_str(row, "reason", r->reason) &&
              js_set_bool(row, "truncated_box", r->open_box) && set_scores(row, g->grader, r) &&
              js_set_str(row, "grader", g->grader->id);
    ok = ok && js_write_shown(row, JS_COMPACT, g->out, NULL) == SNAP_OK && buf_puts(g->out, "\n");
    js_free(row);
    return ok;
}

static snap_status grade_line(void *ctx, js *row, long line, snap_err *err) {
    grading *g = ctx;
    snap_status st;
    char where[300], gold_number[kNumberMax], number[kNumberMax];
    const char *gold;
    grade_input in;
    grade_result r;
    snap_err why = {0};
    buf json = {0};
    (void)snprintf(where, sizeof where, "%.240s:%ld", g->name, line);
    if (!js_has(row, "answer") && !js_has(row, "response"))
        TRY(err_set(err, SNAP_E_INPUT, "%s: neither 'response' nor 'answer'", where));
    TRY(gold_of(g, row, where, gold_number, &json, &gold, err));
    TRY(input_of(row, where, number, &in, err));
    if (grade_response(g->grader, gold, in, &r, &why) != SNAP_OK)
        TRY(err_set(err, why.code, "%s: %s", where, why.text));
    if (!write_verdict(g, &r))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the verdicts"));
cleanup:
    buf_release(&json);
    return st;
}

/* The task of --task: its name, or the path of its file. */
static snap_status find_task(const char *name, const task_spec **out, snap_err *err) {
    char names[400];
    task_names(names, sizeof names);
    if (!name) {
        (void)err_set(err, SNAP_E_USAGE, "no task: give --task NAME (%s)", names);
        return SNAP_E_USAGE;
    }
    if (strchr(name, '/') || text_ends(name, ".json"))
        return task_open(name, out, err);
    snap_status st = task_find(name, out, err);
    if (st != SNAP_OK || *out)
        return st;
    (void)task_unknown(name, NULL, "--task", err);
    return SNAP_E_USAGE;
}

static snap_status find_grader(grading *g, const grade_options *given, snap_err *err) {
    const task_spec *t = NULL;
    snap_status st = find_task(given->task, &t, err);
    if (st != SNAP_OK)
        return st;
    g->task = t;
    if (t->grader->by_model)
        return err_set(err, SNAP_E_USAGE,
                       "task '%s' is judged by another model: use eval --judge-model", t->name);
    if (t->grader->recorded)
        return err_set(err, SNAP_E_USAGE,
                       "task '%s' takes the verdicts of another program: use eval", t->name);
    task_options o = {0};
    st = task_policy_parse(given->math_policy, &o.policy, err);
    if (st == SNAP_OK)
        st = judge_kind_parse(given->judge, &o.judge, err);
    return st == SNAP_OK ? task_grader(t, NULL, &o, &g->grader, err) : st;
}

snap_status grade_answers(const char *path, const grade_options *o, buf *out, snap_err *err) {
    snap_status st;
    grading g = {.name = strcmp(path, "-") == 0 ? "stdin" : path, .out = out};
    buf text = {.limit = kInputLimit};
    out->limit = kInputLimit;
    TRY(find_grader(&g, o, err));
    TRY(fs_read(path, &text, err));
    const grade_programs_options programs = {
        .task = g.task, .grader = g.grader, .jobs = o->jobs, .cancel = o->cancel};
    if (g.task->read_tests)
        TRY(grade_programs(&programs, &text, g.name, out, err));
    else
        TRY(js_each_line(buf_str(&text), text.len, g.name, grade_line, &g, err));
cleanup:
    buf_release(&text);
    return st;
}
