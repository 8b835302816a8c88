#include "harness/eval/suite.h"

#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/nearest.h"
#include "base/share.h"
#include "base/text.h"
#include "evals/taskfile/task_file.h"
#include "harness/eval/suite_names.h"
#include "harness/eval/suite_request.h"

enum { kSuiteLimit = 1 << 20, kMostSamples = 100000 };

static const gen_sampling kDefaultSampling = {.temperature = 1, .top_p = 0.95, .max_tokens = 32768};
static const double kDefaultMargin = 2;

static bool is_path(const char *name) {
    return strchr(name, '/') || text_ends(name, ".json");
}

static snap_status add_task(suite *s, suite_task t, const char *where, snap_err *err) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->tasks[i].task->name, t.task->name) == 0)
            return err_set(err, SNAP_E_USAGE, "%s: task '%s' is given twice", where, t.task->name);
    if (s->n == SUITE_TASKS)
        return err_set(err, SNAP_E_USAGE, "%s: more than %d tasks", where, SUITE_TASKS);
    s->tasks[s->n++] = t;
    return SNAP_OK;
}

/* ---- a suite file ---- */

static snap_status check_keys(js *o, const char *const *known, const char *where, snap_err *err) {
    for (void *it = js_first(o); it; it = js_next(o, it)) {
        const char *const *k = known;
        while (*k && strcmp(*k, js_key(it)) != 0)
            k++;
        char hint[NEAREST_HINT];
        if (!*k)
            return err_set(err, SNAP_E_INPUT, "%s: unknown key '%.100s'%s", where, js_key(it),
                           nearest_hint(js_key(it), known, "", hint));
    }
    return SNAP_OK;
}

/* Reads a number within bounds. If it is absent, *value keeps the default. */
static snap_status number_in(const js *o, const char *key, double min, double max, double *value,
                             const char *where, snap_err *err) {
    if (!js_get(o, key))
        return SNAP_OK;
    snap_status st = js_need_num(o, key, value, where, err);
    if (st == SNAP_OK && (*value < min || *value > max))
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must be %g..%g", where, key, min, max);
    return st;
}

static snap_status integer_in(const js *o, const char *key, int min, int max, int *value,
                              const char *where, snap_err *err) {
    double x = *value;
    snap_status st = number_in(o, key, min, max, &x, where, err);
    if (st == SNAP_OK && js_get(o, key) && !js_is_int(js_get(o, key)))
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must be an integer", where, key);
    if (st == SNAP_OK)
        *value = (int)x;
    return st;
}

static snap_status read_sampling(const js *file, gen_sampling *out, const char *where,
                                 snap_err *err) {
    snap_status st = SNAP_OK;
    js *o = NULL;
    if (!js_get(file, "sampling"))
        return SNAP_OK;
    TRY(js_need_object(file, "sampling", &o, where, err));
    TRY(check_keys(o,
                   (const char *const[]){"temperature", "top_p", "top_k", "max_tokens", "min_p",
                                         "presence_penalty", "frequency_penalty",
                                         "repetition_penalty", NULL},
                   where, err));
    TRY(number_in(o, "temperature", 0, 100, &out->temperature, where, err));
    TRY(number_in(o, "top_p", 1e-9, 1, &out->top_p, where, err));
    TRY(integer_in(o, "top_k", 0, INT_MAX, &out->top_k, where, err));
    TRY(integer_in(o, "max_tokens", 1, INT_MAX, &out->max_tokens, where, err));
    TRY(number_in(o, "min_p", 0, 1, &out->min_p, where, err));
    TRY(number_in(o, "presence_penalty", -2, 2, &out->presence_penalty, where, err));
    TRY(number_in(o, "frequency_penalty", -2, 2, &out->frequency_penalty, where, err));
    TRY(number_in(o, "repetition_penalty", 1e-9, 2, &out->repetition_penalty, where, err));
cleanup:
    return st;
}

/* The task of that name, or of the task file if the name is a path. */
static snap_status find_task(const char *name, const char *folder, const char *where,
                             const task_spec **out, snap_err *err) {
    if (!is_path(name)) {
        snap_status st = task_find(name, out, err);
        return st == SNAP_OK && !*out ? task_unknown(name, NULL, where, err) : st;
    }
    char *path = name[0] == '/' ? strdup(name) : fs_join(folder, name);
    if (!path) {
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name);
        return SNAP_E_NOMEM;
    }
    snap_status st = task_open(path, out, err);
    free(path);
    return st;
}

static snap_status read_task(suite *s, js *row, gen_sampling sampling, const char *folder,
                             const char *where, snap_err *err) {
    snap_status st;
    const char *name;
    const task_spec *task = NULL;
    TRY(check_keys(row, (const char *const[]){"task", "samples", NULL}, where, err));
    TRY(js_need_str(row, "task", &name, where, err));
    TRY(find_task(name, folder, where, &task, err));
    suite_task t = {.task = task, .samples = task->samples, .sampling = sampling};
    TRY(integer_in(row, "samples", 1, kMostSamples, &t.samples, where, err));
    TRY(add_task(s, t, where, err));
cleanup:
    return st;
}

static snap_status read_suite(suite *s, js *file, const char *folder, const char *where,
                              snap_err *err) {
    snap_status st;
    js *tasks;
    gen_sampling sampling = kDefaultSampling;
    double margin = 0;
    if (!js_is_object(file))
        return err_set(err, SNAP_E_INPUT, "%s: a suite must be an object", where);
    TRY(check_keys(
        file, (const char *const[]){"about", "tasks", "sampling", "request", "margin_pp", NULL},
        where, err));
    TRY(read_sampling(file, &sampling, where, err));
    TRY(number_in(file, "margin_pp", 1e-6, 100, &margin, where, err));
    TRY(js_need_array(file, "tasks", &tasks, where, err));
    size_t first = s->n;
    for (size_t i = 0; i < js_len(tasks); i++)
        TRY(read_task(s, js_at(tasks, i), sampling, folder, where, err));
    for (size_t i = first; i < s->n; i++)
        TRY(suite_request_read(file, s->mem, &s->tasks[i].settings, where, err));
    s->margin_pp = s->margin_pp > 0 ? s->margin_pp : margin;
cleanup:
    return st;
}

/* ---- the parts of --suite ---- */

static snap_status add_default(suite *s, const task_spec *t, snap_err *err) {
    return add_task(s, (suite_task){.task = t, .samples = t->samples, .sampling = kDefaultSampling},
                    "--suite", err);
}

static snap_status add_task_file(suite *s, const char *path, snap_err *err) {
    const task_spec *t;
    snap_status st = task_open(path, &t, err);
    return st == SNAP_OK ? add_default(s, t, err) : st;
}

/* Adds what a file describes: a task if it has the key "task", else a suite. */
static snap_status add_file(suite *s, const char *path, snap_err *err) {
    js *file = js_parse_file(path, kSuiteLimit, err);
    char *copy = file ? strdup(path) : NULL;
    snap_status st;
    if (!file)
        return err && err->code != SNAP_OK ? err->code : SNAP_E_INPUT;
    if (!copy)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    else if (!task_file_is_one(file))
        st = read_suite(s, file, dirname(copy), path, err);
    else if (js_has(file, "tasks"))
        st = err_set(err, SNAP_E_INPUT, "%s: has 'tasks', as a suite, and 'task', as a task", path);
    else
        st = add_task_file(s, path, err);
    free(copy);
    js_free(file);
    return st;
}

static snap_status add_named(void *ctx, const char *name, snap_err *err) {
    suite *s = ctx;
    const task_spec *t = NULL;
    snap_err why = {0};
    buf path = {0};
    if (is_path(name))
        return add_file(s, name, err);
    snap_status st = task_find(name, &t, err);
    if (st != SNAP_OK)
        return st;
    if (t)
        return add_default(s, t, err);
    (void)buf_printf(&path, "configs/suites/%s.json", name);
    char *found = path.failed ? NULL : share_find(buf_str(&path));
    buf_release(&path);
    if (found) {
        st = add_file(s, found, err);
    } else {
        const char *suites[SUITE_NAMES + 1];
        suite_names(s->mem, suites);
        (void)task_unknown(name, suites, "--suite", &why);
        st = err_set(err, SNAP_E_USAGE, "%s and no configs/suites/%s.json", why.text, name);
    }
    free(found);
    return st;
}

/* The margin of the first task that has one. */
static double task_margin(const suite *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].task->margin_pp > 0)
            return s->tasks[i].task->margin_pp;
    return kDefaultMargin;
}

snap_status suite_resolve(const char *list, arena *mem, suite *out, snap_err *err) {
    *out = (suite){.mem = mem};
    snap_status st = text_split(list, ',', "--suite", add_named, out, err);
    if (st == SNAP_OK && !out->n)
        st = err_set(err, SNAP_E_USAGE, "--suite '%s' names no task", list);
    if (!(out->margin_pp > 0))
        out->margin_pp = task_margin(out);
    return st;
}
