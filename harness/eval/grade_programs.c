#include "harness/eval/grade_programs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/term.h"
#include "base/text.h"
#include "evals/code/grade_code.h"

/* A line of the input and the verdict about it, as a line of the output. */
typedef struct {
    span text;
    long number;
    buf verdict;
} line;

typedef struct {
    const grade_programs_options *o;
    const char *name;
    line *lines;
    size_t n, room, done;
    code_judge *judge;
    term_progress progress;
    pthread_mutex_t lock; /* protects progress, done and err */
    snap_err err;
} grading;

/* ---- a row ---- */

/* "code" is a program, and "response" is a text that contains one. The rows of MBPP have the
 * reference solution as "code", so in tasks with assertions a "response" beside it is judged. In a
 * row of another task it would not be clear which of the two is meant. */
static snap_status read_input(const grading *g, js *row, const char *where, grade_input *in,
                              snap_err *err) {
    const js *code = js_get(row, "code"), *response = js_get(row, "response");
    *in = (grade_input){.response = {"", 0}};
    if (code && js_has(row, "response")) {
        if (g->o->grader != &grader_assertions)
            return err_set(err, SNAP_E_USAGE,
                           "%s: both 'code' and 'response'; keep the one that is to be judged",
                           where);
        code = NULL;
    }
    in->extracted = code != NULL;
    in->truncated = text_equal(js_get_str(row, "finish_reason"), "length");
    if (!code && !js_has(row, "response"))
        return err_set(err, SNAP_E_INPUT, "%s: neither 'code' nor 'response'", where);
    if (code ? !js_is_str(code) : response && !js_is_str(response))
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be a string", where,
                       code ? "code" : "response");
    const char *text = js_get_strn(row, code ? "code" : "response", &in->response.n);
    in->response.s = text ? text : "";
    return SNAP_OK;
}

static js *parse_row(const grading *g, const line *l, char where[300], grade_input *in,
                     code_tests *tests, snap_err *err) {
    (void)snprintf(where, 300, "%.240s:%ld", g->name, l->number);
    *tests = (code_tests){0};
    js *row = js_parse(l->text.s, l->text.n, where, err);
    if (row && !js_is_object(row))
        (void)err_set(err, SNAP_E_INPUT, "%s: a row must be an object", where);
    else if (row && read_input(g, row, where, in, err) == SNAP_OK &&
             g->o->task->read_tests(g->o->task, row, tests, where, err) == SNAP_OK)
        return row;
    tests_release(tests);
    js_free(row);
    return NULL;
}

static snap_status write_verdict(const grading *g, const code_grade *v, const code_tests *tests,
                                 buf *out, snap_err *err) {
    js *row = js_new_object();
    const grade_result *r = &v->grade;
    bool failed = v->ran && v->result.outcome != CODE_PASSED;
    bool ok =
        row && js_set_str(row, "verdict", code_grade_name(v)) &&
        js_set_new(row, "result_code", v->ran ? js_new_int(v->result.outcome) : js_new_null()) &&
        js_set_new(row, "failed_test",
                   failed ? js_new_int((int64_t)v->result.test) : js_new_null()) &&
        js_set_int(row, "passed", (int64_t)v->result.passed) &&
        js_set_int(row, "tests", (int64_t)tests->n) &&
        js_set_str(row, "extracted", r->rule ? r->extracted : NULL) &&
        js_set_str(row, "rule", r->rule) && js_set_str(row, "reason", r->reason) &&
        js_set_str(row, "grader", g->o->grader->id);
    snap_status st = ok ? js_write(row, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the verdicts");
    js_free(row);
    (void)buf_puts(out, "\n");
    return st;
}

static snap_status judge_line(grading *g, line *l, snap_err *err) {
    char where[300];
    grade_input in = {.response = {"", 0}};
    code_tests tests;
    code_grade verdict;
    snap_status st = SNAP_OK;
    js *row = parse_row(g, l, where, &in, &tests, err);
    if (!row)
        return err ? err->code : SNAP_E_INPUT;
    TRY(code_grade_response(g->judge, g->o->grader, in, &tests, &verdict, err));
    TRY(write_verdict(g, &verdict, &tests, &l->verdict, err));
cleanup:
    tests_release(&tests);
    js_free(row);
    return st;
}

/* ---- grading all lines ---- */

static snap_status add_line(grading *g, span text, long number, snap_err *err) {
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 64;
        line *more = realloc(g->lines, room * sizeof *more);
        if (!more)
            return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", g->name);
        g->lines = more;
        g->room = room;
    }
    g->lines[g->n++] = (line){.text = text, .number = number};
    return SNAP_OK;
}

/* Finds all lines and checks their form, so that no program runs if one line is malformed. */
static snap_status find_lines(grading *g, const buf *text, snap_err *err) {
    const char *s = buf_str(text);
    long number = 0;
    snap_status st = SNAP_OK;
    for (size_t from = 0; from < text->len && st == SNAP_OK;) {
        const char *end = memchr(s + from, '\n', text->len - from);
        size_t n = end ? (size_t)(end - s) - from : text->len - from;
        number++;
        if (!text_is_blank(s + from, n))
            st = add_line(g, (span){s + from, n}, number, err);
        from += n + 1;
    }
    for (size_t i = 0; i < g->n && st == SNAP_OK; i++) {
        char where[300];
        grade_input in;
        code_tests tests;
        snap_err why = {0};
        js *row = parse_row(g, &g->lines[i], where, &in, &tests, &why);
        if (!row)
            st = err_set(err, why.code, "%s", why.text);
        if (row)
            tests_release(&tests);
        js_free(row);
    }
    return st;
}

static void judge_one(void *ctx, int worker, int64_t index) {
    grading *g = ctx;
    snap_err err = {0};
    (void)worker;
    (void)pthread_mutex_lock(&g->lock);
    bool stop = g->err.code != SNAP_OK;
    (void)pthread_mutex_unlock(&g->lock);
    snap_status st = stop ? SNAP_OK : judge_line(g, &g->lines[index], &err);
    (void)pthread_mutex_lock(&g->lock);
    if (st != SNAP_OK)
        (void)err_set(&g->err, st, "%s", err.text);
    term_progress_update(&g->progress, (int64_t)++g->done, NULL);
    (void)pthread_mutex_unlock(&g->lock);
}

static snap_status judge_all(grading *g, snap_err *err) {
    parallel *pool = NULL;
    snap_status st = parallel_create(&pool, g->o->jobs, err);
    if (st != SNAP_OK)
        return st;
    (void)pthread_mutex_init(&g->lock, NULL);
    g->progress = term_progress_start("grade", (int64_t)g->n);
    parallel_for(pool, (int64_t)g->n, judge_one, g);
    term_progress_end(&g->progress);
    parallel_free(pool);
    (void)pthread_mutex_destroy(&g->lock);
    return g->err.code == SNAP_OK ? SNAP_OK : err_set(err, g->err.code, "%s", g->err.text);
}

snap_status grade_programs(const grade_programs_options *o, const buf *text, const char *name,
                           buf *out, snap_err *err) {
    snap_status st;
    grading g = {.o = o, .name = name};
    const judge_options judging = {.kind = code_grader_kind(o->grader), .cancel = o->cancel};
    TRY(find_lines(&g, text, err));
    TRY(judge_open(&g.judge, &judging, err));
    TRY(judge_all(&g, err));
    for (size_t i = 0; i < g.n; i++)
        (void)buf_append(out, buf_str(&g.lines[i].verdict), g.lines[i].verdict.len);
    TRY(buf_check(out, "the verdicts", err));
cleanup:
    for (size_t i = 0; i < g.n; i++)
        buf_release(&g.lines[i].verdict);
    free(g.lines);
    judge_close(g.judge);
    return st;
}
