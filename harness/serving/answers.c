#include "harness/serving/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"

static const size_t kMostBytes = (size_t)4 << 30;

void answer_line_append(const serving_request *r, const task_problem *p, const chat_answer *a,
                        buf *out) {
    js *o = js_new_object();
    bool ok = o && js_set_int(o, "arm", r->arm) && js_set_int(o, "point", r->point) &&
              js_set_int(o, "block", r->block) && js_set_int(o, "index", r->index) &&
              js_set_str(o, "problem", p->id) && js_set_str(o, "finish_reason", a->finish_reason) &&
              js_set_str(o, "text", buf_str(&a->text));
    if (!ok || js_write(o, JS_COMPACT, out, NULL) != SNAP_OK)
        out->failed = true;
    (void)buf_puts(out, "\n");
    js_free(o);
}

snap_status answers_check_task(const task_set *task, snap_err *err) {
    const grader *g = task->grader;
    if (!grade_runs_programs(g) && !g->by_model && !g->recorded)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--grade: the answers of '%s' cannot be graded here, because they %s",
                   task->task->name,
                   grade_runs_programs(g) ? "are programs" : "need the verdict of another model");
}

/* The answers of one arm at one load point. */
typedef struct {
    double *scores; /* [problems]: correct answers to each problem */
    size_t *counts; /* [problems] */
    size_t answers, truncated;
} arm_answers;

typedef struct {
    const char *path;
    const task_set *task;
    int points, arms;
    arm_answers *cells; /* [points * arms] */
} comparison;

static snap_status take_line(void *ctx, js *o, long line, snap_err *err) {
    comparison *c = ctx;
    int64_t point = js_get_int(o, "point", -1), arm = js_get_int(o, "arm", -1);
    const char *id = js_get_str(o, "problem"), *text = js_get_str(o, "text");
    size_t at, n;
    const task_problem *p = id ? task_problem_find(c->task, id, &at) : NULL;
    if (!p || !text || point < 0 || point >= c->points || arm < 0 || arm >= c->arms)
        return err_set(err, SNAP_E_INPUT,
                       "%s:%ld: a line must have a point, an arm and a problem of this run, and a "
                       "text",
                       c->path, line);
    text = js_get_strn(o, "text", &n);
    arm_answers *to = &c->cells[point * c->arms + arm];
    grade_result r;
    bool truncated = text_equal(js_get_str(o, "finish_reason"), "length");
    snap_status st =
        grade_response(c->task->grader, p->gold,
                       (grade_input){.response = {text, n}, .truncated = truncated}, &r, err);
    if (st != SNAP_OK)
        return st;
    to->scores[at] += r.verdict == GRADE_CORRECT;
    to->counts[at]++;
    to->answers++;
    to->truncated += truncated;
    return SNAP_OK;
}

static double mean_accuracy(const arm_answers *a, size_t n) {
    double sum = 0;
    size_t problems = 0;
    for (size_t i = 0; i < n; i++)
        if (a->counts[i]) {
            sum += a->scores[i] / (double)a->counts[i];
            problems++;
        }
    return problems ? sum / (double)problems : (double)NAN;
}

/* Compares two arms over the problems that both answered. @x, @y: room for n values each. */
static stats_paired compare_scores(const arm_answers *a, const arm_answers *b, size_t n,
                                   double margin, double *x, double *y) {
    size_t m = 0;
    double answers = 0; /* number of answers of @a to the first of these problems */
    bool same = true;
    for (size_t i = 0; i < n; i++)
        if (a->counts[i] && b->counts[i]) {
            const double of_a = (double)a->counts[i], of_b = (double)b->counts[i];
            answers = m ? answers : of_a;
            same = same && of_a == answers && of_b == answers;
            x[m] = a->scores[i] / of_a;
            y[m++] = b->scores[i] / of_b;
        }
    return stats_compare(x, y, m, m && same ? 1 / answers : 0, margin);
}

static void fill_row(const arm_answers *a, const arm_answers *b, size_t n, parity_row *out) {
    const arm_answers *both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        size_t answers = both[k]->answers;
        out->answers[k] = answers;
        out->accuracy[k] = mean_accuracy(both[k], n);
        out->truncated[k] = answers ? (double)both[k]->truncated / (double)answers : (double)NAN;
    }
}

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the answers");
}

static snap_status make_cells(comparison *c, arena *mem, snap_err *err) {
    size_t n = (size_t)c->points * (size_t)c->arms;
    c->cells = arena_alloc(mem, n, sizeof *c->cells);
    for (size_t i = 0; i < n && c->cells; i++) {
        c->cells[i].scores = arena_alloc(mem, c->task->n, sizeof *c->cells[i].scores);
        c->cells[i].counts = arena_alloc(mem, c->task->n, sizeof *c->cells[i].counts);
        if (!c->cells[i].scores || !c->cells[i].counts)
            return no_memory(err);
    }
    return c->cells ? SNAP_OK : no_memory(err);
}

snap_status answers_compare(const char *path, const task_set *task, int points, int arms,
                            double margin, parity_row *out, snap_err *err) {
    comparison c = {.path = path, .task = task, .points = points, .arms = arms};
    arena mem = {0};
    buf text = {.limit = kMostBytes};
    double *x = arena_alloc(&mem, task->n, sizeof *x), *y = arena_alloc(&mem, task->n, sizeof *y);
    snap_status st;
    if (!x || !y) {
        arena_release(&mem);
        return no_memory(err);
    }
    TRY(make_cells(&c, &mem, err));
    TRY(fs_read_regular(path, &text, err));
    TRY(js_each_line(buf_str(&text), text.len, path, take_line, &c, err));
    for (int i = 0; i < points * (arms - 1); i++) {
        int point = i / (arms - 1), arm = 1 + i % (arms - 1);
        out[i] = (parity_row){.point = point, .arm = arm};
        const arm_answers *base = &c.cells[point * arms];
        out[i].diff = compare_scores(base, base + arm, task->n, margin, x, y);
        fill_row(base, base + arm, task->n, &out[i]);
    }
cleanup:
    buf_release(&text);
    arena_release(&mem);
    return st;
}
