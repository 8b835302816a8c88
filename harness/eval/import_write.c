/* import_write.c - writes the task file, its problems and the recordings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/share.h"
#include "base/text.h"
#include "evals/taskfile/task_file.h"
#include "harness/eval/import_parts.h"

typedef struct {
    const import_options *o;
    const import_arm *arms;
    char by[200];     /* "lm-eval 0.4.9" */
    char metric[200]; /* "exact_match,strict-match", as lm-eval names it with its filter */
    char *task_path;
    task_file *task; /* the task file that was written */
    task_set set;    /* its problems */
    js *summary;     /* of the arms */
} writing;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for an imported log");
}

/* Writes OUT/NAME, or OUT/arm-NAME.jsonl for an arm. @path may be NULL; else the caller frees
 * *path. */
static snap_status write_file(const import_options *o, const char *arm, const char *name,
                              const buf *text, char **path, snap_err *err) {
    buf full = {0};
    snap_status st;
    (void)buf_printf(&full, "%s/%s%s%s", o->out, arm ? "arm-" : "", name, arm ? ".jsonl" : "");
    TRY(buf_check(&full, "a path", err));
    TRY(buf_check(text, buf_str(&full), err));
    TRY(fs_write_atomic(buf_str(&full), buf_str(text), text->len, err));
    if (path && !(*path = buf_steal(&full)))
        st = no_memory(err);
cleanup:
    buf_release(&full);
    return st;
}

/* Appends the object as one line and frees it. @complete: it has all members. */
static snap_status add_line(js *row, bool complete, buf *out, snap_err *err) {
    snap_status st = row && complete ? js_write(row, JS_COMPACT, out, err) : no_memory(err);
    (void)buf_puts(out, "\n");
    js_free(row);
    return st;
}

/* ---- writing the task file ---- */

/* Names the program whose logs these are with each of its versions once, and the metric with its
 * filter. */
static void name_programs(writing *w) {
    size_t at = 0;
    for (int i = 0; i < w->o->n && at < sizeof w->by; i++) {
        const foreign_log *log = &w->arms[i].log;
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = strcmp(w->arms[k].log.version, log->version) == 0;
        if (!seen)
            at += (size_t)snprintf(w->by + at, sizeof w->by - at, "%s%s%s%s", at ? " and " : "",
                                   at ? "" : log->from, at ? "" : " ",
                                   log->version[0] ? log->version : "of unknown version");
    }
    const char *filter = w->arms[0].filter;
    bool named = filter && strcmp(filter, "none") != 0;
    (void)snprintf(w->metric, sizeof w->metric, "%.80s%s%.80s", w->o->metric ? w->o->metric : "",
                   named ? "," : "", named ? filter : "");
}

/* Copies how a task file finds and compares answers. */
static snap_status copy_rules(const char *task, js *out, snap_err *err) {
    static const char *const keys[] = {"extract", "grader", "metrics"};
    char name[300];
    js *file = NULL;
    bool is_path = strchr(task, '/') || text_ends(task, ".json"), ok = true;
    (void)snprintf(name, sizeof name, "configs/tasks/%.200s.json", task);
    char *found = is_path ? strdup(task) : share_find(name);
    if (!found)
        return err_set(err, SNAP_E_USAGE,
                       "--task: '%s' is neither a task file nor the name of a task that is one",
                       task);
    snap_status st = SNAP_OK;
    file = js_parse_file(found, FOREIGN_LOG_LIMIT, err);
    if (!file)
        TRY(err ? err->code : SNAP_E_INPUT);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && ok; i++) {
        const js *v = js_get(file, keys[i]);
        ok = !v || js_set_new(out, keys[i], js_copy(v));
    }
    if (!ok)
        TRY(no_memory(err));
    const js *given = js_get(out, "grader");
    const char *kind = js_str(given) ? js_str(given) : js_get_str(given, "name");
    if (text_equal(kind, "assertions") || text_equal(kind, "stdin") || text_equal(kind, "judge"))
        TRY(err_set(err, SNAP_E_USAGE,
                    "--task: the grader '%s' needs more than the log has of a problem", kind));
cleanup:
    free(found);
    js_free(file);
    return st;
}

static snap_status set_grader(const writing *w, js *task, snap_err *err) {
    if (w->o->task)
        return copy_rules(w->o->task, task, err);
    js *recorded = js_new_object();
    bool ok = recorded && js_set_str(recorded, "name", "recorded") &&
              js_set_str(recorded, "metric", w->metric) && js_set_str(recorded, "by", w->by);
    return js_set_new(task, "grader", recorded) && ok ? SNAP_OK : no_memory(err);
}

static int64_t most_samples(const import_arm *arm) {
    int64_t most = 1;
    for (size_t i = 0; i < arm->n; i++) {
        int64_t n = js_get_int(arm->rows[i], "sample", 0) + 1;
        most = n > most ? n : most;
    }
    return most;
}

static snap_status write_task(writing *w, snap_err *err) {
    js *task = js_new_object();
    const import_arm *arm = &w->arms[0];
    char title[600];
    buf text = {0};
    snap_status st = SNAP_OK;
    if (w->o->metric)
        (void)snprintf(title, sizeof title, "%s (judged by %s: %s)", arm->log.task, w->by,
                       w->metric);
    else
        (void)snprintf(title, sizeof title, "%s (answers of %s)", arm->log.task, w->by);
    if (!task || !js_set_str(task, "task", arm->log.task) || !js_set_str(task, "title", title) ||
        !js_set_str(task, "data", "problems.jsonl") || !js_set_str(task, "id", "problem") ||
        !js_set_str(task, "prompt", "{{prompt}}") || !js_set_str(task, "answer", "{{gold}}") ||
        !js_set_int(task, "samples", most_samples(arm)))
        TRY(no_memory(err));
    TRY(set_grader(w, task, err));
    TRY(js_write(task, JS_PRETTY, &text, err));
    (void)buf_puts(&text, "\n");
    TRY(write_file(w->o, NULL, "task.json", &text, &w->task_path, err));
cleanup:
    js_free(task);
    buf_release(&text);
    return st;
}

/* ---- the problems ---- */

static bool is_new_problem(const import_arm *arm, size_t i) {
    return i == 0 || strcmp(js_get_str(arm->rows[i], "problem"),
                            js_get_str(arm->rows[i - 1], "problem")) != 0;
}

/* The prompt or the right answer; "(none)" if the row has none, because a task needs both. */
static const char *text_of(const js *row, const char *key) {
    const char *text = js_get_str(row, key);
    return text && !text_is_blank(text, strlen(text)) ? text : "(none)";
}

static snap_status write_problems(const writing *w, snap_err *err) {
    const import_arm *arm = &w->arms[0];
    buf text = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < arm->n; i++) {
        const js *row = arm->rows[i];
        if (!is_new_problem(arm, i))
            continue;
        js *problem = js_new_object();
        bool ok = problem && js_set_str(problem, "problem", js_get_str(row, "problem")) &&
                  js_set_str(problem, "prompt", text_of(row, "prompt")) &&
                  js_set_str(problem, "gold", text_of(row, "gold"));
        TRY(add_line(problem, ok, &text, err));
    }
    TRY(write_file(w->o, NULL, "problems.jsonl", &text, NULL, err));
cleanup:
    buf_release(&text);
    return st;
}

/* Reads what was written, as a run will. This checks the golds. */
static snap_status load(writing *w, snap_err *err) {
    buf text = {.limit = TASK_FILE_LIMIT};
    snap_status st;
    TRY(fs_read_regular(w->task_path, &text, err));
    TRY(task_file_parse(buf_str(&text), text.len, w->task_path, w->o->out, &w->task, err));
    TRY(task_load(task_file_spec(w->task), w->o->out, 0, NULL, &w->set, err));
cleanup:
    buf_release(&text);
    return st;
}

/* ---- verdicts ---- */

/* Names the metrics that a row has. */
static snap_status no_metric(const js *row, const char *metric, snap_err *err) {
    const js *scores = js_get_object(row, "scores");
    char names[400] = "";
    size_t at = 0;
    for (void *it = js_first(scores); it && at < sizeof names; it = js_next(scores, it))
        at +=
            (size_t)snprintf(names + at, sizeof names - at, "%s%.80s", at ? ", " : "", js_key(it));
    return err_set(err, SNAP_E_USAGE, "%s has no verdict '%s'; it has %s", js_get_str(row, "where"),
                   metric, at ? names : "none");
}

static snap_status verdict_of(const js *row, const char *metric, const char **out, snap_err *err) {
    const js *v = js_get(js_get_object(row, "scores"), metric);
    const char *word = js_str(v);
    double x = js_is_bool(v) ? js_true(v) : js_is_num(v) ? js_num(v) : -1;
    if (!v)
        return no_metric(row, metric, err);
    if (text_equal(word, "N")) {
        *out = grade_verdict_name(GRADE_UNPARSED);
        return SNAP_OK;
    }
    bool correct = text_equal(word, "C") || (x >= 1 && x <= 1);
    bool wrong = text_equal(word, "I") || (x >= 0 && x <= 0);
    if (!correct && !wrong)
        return err_set(err, SNAP_E_USAGE,
                       "%s: '%s' is neither right (1, true, C) nor wrong (0, false, I); such "
                       "scores cannot be taken, but --task can judge again",
                       js_get_str(row, "where"), metric);
    *out = grade_verdict_name(correct ? GRADE_CORRECT : GRADE_WRONG);
    return SNAP_OK;
}

static snap_status set_verdict(const writing *w, const js *row, js *line, snap_err *err) {
    const char *metric = w->o->metric, *verdict = NULL;
    const char *answer = js_get_str(js_get_object(row, "answers"), metric);
    snap_status st = verdict_of(row, metric, &verdict, err);
    if (st != SNAP_OK)
        return st;
    bool ok = js_set_str(line, "grader", w->set.grader->id) &&
              js_set_str(line, "verdict", verdict) &&
              js_set_str(line, "extracted", answer ? answer : js_get_str(row, "extracted"));
    return ok ? SNAP_OK : no_memory(err);
}

/* ---- recordings ---- */

static bool copy_members(const js *row, js *line) {
    static const char *const keys[] = {
        "problem",  "sample",        "response",          "reasoning",
        "error",    "finish_reason", "completion_tokens", "reasoning_tokens",
        "total_ms", "prompt_tokens"};
    bool ok = true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && ok; i++) {
        const js *v = js_get(row, keys[i]);
        ok = !v || js_set_new(line, keys[i], js_copy(v));
    }
    return ok;
}

static snap_status add_recorded(const writing *w, const import_arm *arm, const js *row, buf *out,
                                snap_err *err) {
    const task_problem *p = task_problem_find(&w->set, js_get_str(row, "problem"), NULL);
    js *line = js_new_object();
    snap_status st = SNAP_OK;
    if (!p)
        TRY(err_set(err, SNAP_E_INPUT, "%s: the problem was not written",
                    js_get_str(row, "where")));
    if (!line || !copy_members(row, line) || !js_set_str(line, "task", arm->log.task) ||
        !js_set_str(line, "arm", arm->name) || !js_set_str(line, "prompt_sha256", p->prompt_sha256))
        TRY(no_memory(err));
    if (w->o->metric && !js_has(row, "error"))
        TRY(set_verdict(w, row, line, err));
    st = add_line(line, true, out, err);
    line = NULL;
cleanup:
    js_free(line);
    return st;
}

static snap_status add_summary(writing *w, const import_arm *arm, const char *path, snap_err *err) {
    js *o = js_new_object();
    const char *verdict = NULL;
    int64_t failed = 0, correct = 0;
    for (size_t i = 0; i < arm->n; i++) {
        bool error = js_has(arm->rows[i], "error");
        failed += error;
        if (w->o->metric && !error &&
            verdict_of(arm->rows[i], w->o->metric, &verdict, err) == SNAP_OK)
            correct += text_equal(verdict, grade_verdict_name(GRADE_CORRECT));
    }
    bool ok = o && js_set_str(o, "name", arm->name) && js_set_str(o, "file", path) &&
              js_set_int(o, "samples", (int64_t)arm->n) && js_set_int(o, "failed", failed) &&
              js_set_new(o, "correct", w->o->metric ? js_new_int(correct) : js_new_null());
    return js_push_new(w->summary, o) && ok ? SNAP_OK : no_memory(err);
}

static snap_status write_arm(writing *w, const import_arm *arm, snap_err *err) {
    buf text = {0};
    char *path = NULL;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < arm->n; i++)
        TRY(add_recorded(w, arm, arm->rows[i], &text, err));
    TRY(write_file(w->o, arm->name, arm->name, &text, &path, err));
    TRY(add_summary(w, arm, path, err));
cleanup:
    free(path);
    buf_release(&text);
    return st;
}

static js *summary_of(writing *w) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "task", w->task_path) &&
              js_set_str(o, "by", w->o->metric ? w->by : NULL) &&
              js_set_str(o, "metric", w->o->metric) && js_set_str(o, "filter", w->arms[0].filter) &&
              js_set_int(o, "problems", (int64_t)w->set.n) && js_set_new(o, "arms", w->summary);
    w->summary = NULL;
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

snap_status import_write(const import_options *o, const import_arm *arms, js **out, snap_err *err) {
    writing w = {.o = o, .arms = arms, .summary = js_new_array()};
    snap_status st;
    if (!w.summary)
        return no_memory(err);
    name_programs(&w);
    TRY(write_problems(&w, err));
    TRY(write_task(&w, err));
    TRY(load(&w, err));
    for (int i = 0; i < o->n; i++)
        TRY(write_arm(&w, &arms[i], err));
    *out = summary_of(&w);
    st = *out ? SNAP_OK : no_memory(err);
cleanup:
    task_set_release(&w.set);
    task_file_free(w.task);
    free(w.task_path);
    js_free(w.summary);
    return st;
}
