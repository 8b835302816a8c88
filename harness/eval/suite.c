#include "harness/eval/suite.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/share.h"

enum { kSuiteLimit = 1 << 20, kMostSamples = 100000 };

static const gen_sampling kDefaultSampling = {.temperature = 1, .top_p = 0.95, .max_tokens = 32768};
static const double kDefaultMargin = 2;

static snap_status add_task(suite *s, suite_task t, const char *where, snap_err *err) {
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].task == t.task)
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
        if (!*k)
            return err_set(err, SNAP_E_INPUT, "%s: unknown key '%s'", where, js_key(it));
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
    TRY(check_keys(o, (const char *const[]){"temperature", "top_p", "top_k", "max_tokens", NULL},
                   where, err));
    TRY(number_in(o, "temperature", 0, 100, &out->temperature, where, err));
    TRY(number_in(o, "top_p", 1e-9, 1, &out->top_p, where, err));
    TRY(integer_in(o, "top_k", 0, INT_MAX, &out->top_k, where, err));
    TRY(integer_in(o, "max_tokens", 1, INT_MAX, &out->max_tokens, where, err));
cleanup:
    return st;
}

static snap_status unknown_task(const char *name, const char *where, snap_err *err) {
    char names[400];
    task_names(names, sizeof names);
    return err_set(err, SNAP_E_USAGE, "%s: unknown task '%s' (tasks: %s)", where, name, names);
}

static snap_status read_task(suite *s, js *row, gen_sampling sampling, const char *where,
                             snap_err *err) {
    snap_status st;
    const char *name;
    TRY(check_keys(row, (const char *const[]){"task", "samples", NULL}, where, err));
    TRY(js_need_str(row, "task", &name, where, err));
    const task_spec *task = task_find(name);
    if (!task)
        return unknown_task(name, where, err);
    suite_task t = {task, task->samples, sampling};
    TRY(integer_in(row, "samples", 1, kMostSamples, &t.samples, where, err));
    TRY(add_task(s, t, where, err));
cleanup:
    return st;
}

static snap_status read_suite(suite *s, js *file, const char *where, snap_err *err) {
    snap_status st;
    js *tasks;
    gen_sampling sampling = kDefaultSampling;
    double margin = 0;
    if (!js_is_object(file))
        return err_set(err, SNAP_E_INPUT, "%s: a suite must be an object", where);
    TRY(check_keys(file, (const char *const[]){"about", "tasks", "sampling", "margin_pp", NULL},
                   where, err));
    TRY(read_sampling(file, &sampling, where, err));
    TRY(number_in(file, "margin_pp", 1e-6, 100, &margin, where, err));
    TRY(js_need_array(file, "tasks", &tasks, where, err));
    for (size_t i = 0; i < js_len(tasks); i++)
        TRY(read_task(s, js_at(tasks, i), sampling, where, err));
    s->margin_pp = s->margin_pp > 0 ? s->margin_pp : margin;
cleanup:
    return st;
}

static char *suite_path(const char *name) {
    if (strchr(name, '/') || text_ends(name, ".json"))
        return strdup(name);
    buf path = {0};
    (void)buf_printf(&path, "configs/suites/%s.json", name);
    char *found = path.failed ? NULL : share_find(buf_str(&path));
    buf_release(&path);
    return found;
}

static snap_status add_named(void *ctx, const char *name, snap_err *err) {
    suite *s = ctx;
    const task_spec *t = task_find(name);
    if (t)
        return add_task(s, (suite_task){t, t->samples, kDefaultSampling}, "--suite", err);
    char *path = suite_path(name);
    if (!path) {
        snap_err why = {0};
        (void)unknown_task(name, "--suite", &why);
        return err_set(err, SNAP_E_USAGE, "%s and no configs/suites/%s.json", why.text, name);
    }
    js *file = js_parse_file(path, kSuiteLimit, err);
    snap_status st = file ? read_suite(s, file, path, err)
                          : err_set(err, SNAP_E_INPUT, "cannot read suite '%s'", path);
    js_free(file);
    free(path);
    return st;
}

snap_status suite_resolve(const char *list, suite *out, snap_err *err) {
    *out = (suite){0};
    snap_status st = text_split(list, ',', "--suite", add_named, out, err);
    if (st == SNAP_OK && !out->n)
        st = err_set(err, SNAP_E_USAGE, "--suite '%s' names no task", list);
    if (!(out->margin_pp > 0))
        out->margin_pp = kDefaultMargin;
    return st;
}
