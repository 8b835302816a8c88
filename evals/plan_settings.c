#include "evals/plan_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "generator/settings.h"

/* ---- names of what can differ ---- */

static const char *const kSettings[] = {"system", "body",      "template",
                                        "api",    "reasoning", "thinking_budget"};
enum { kSettingsCount = sizeof kSettings / sizeof *kSettings };

static bool setting_differs(const gen_settings *x, const gen_settings *y, int i) {
    const bool differs[kSettingsCount] = {!text_equal(x->system, y->system),
                                          !text_equal(x->body, y->body),
                                          !text_equal(x->prompt, y->prompt),
                                          x->completions != y->completions,
                                          x->opened != y->opened,
                                          x->thinking_budget != y->thinking_budget};
    return differs[i];
}

static bool is_listed(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; at && *at;) {
        size_t len = strcspn(at, ",");
        if (len == n && memcmp(at, name, n) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static snap_status check_name(void *ctx, const char *name, snap_err *err) {
    (void)ctx;
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(&(gen_sampling){0}, values);
    for (int i = 0; i < GEN_SAMPLING_VALUES; i++)
        if (strcmp(values[i].name, name) == 0)
            return SNAP_OK;
    for (int i = 0; i < kSettingsCount; i++)
        if (strcmp(kSettings[i], name) == 0)
            return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--may-differ: '%.40s' must be one of temperature, top_p, max_tokens, top_k, "
                   "min_p, presence_penalty, frequency_penalty, repetition_penalty, system, body, "
                   "template, api, reasoning, thinking_budget",
                   name);
}

snap_status plan_may_differ_check(const char *list, snap_err *err) {
    return list ? text_split(list, ',', "--may-differ", check_name, NULL, err) : SNAP_OK;
}

/* ---- comparing two arms ---- */

bool plan_refusal(const eval_plan *p, size_t task, size_t a, size_t b, char *why, size_t cap) {
    gen_sampling_value x[GEN_SAMPLING_VALUES], y[GEN_SAMPLING_VALUES];
    gen_sampling s = plan_sampling(p, task, a), t = plan_sampling(p, task, b);
    gen_sampling_values(&s, x);
    gen_sampling_values(&t, y);
    why[0] = '\0';
    for (int i = 0; i < GEN_SAMPLING_VALUES && !why[0]; i++)
        if ((x[i].value < y[i].value || x[i].value > y[i].value) &&
            !is_listed(p->may_differ, x[i].name))
            (void)snprintf(why, cap, "%s differs: %.10g against %.10g", x[i].name, x[i].value,
                           y[i].value);
    const gen_settings *first = &plan_settings(p, task, a)->all,
                       *second = &plan_settings(p, task, b)->all;
    for (int i = 0; i < kSettingsCount && !why[0]; i++)
        if (setting_differs(first, second, i) && !is_listed(p->may_differ, kSettings[i]))
            (void)snprintf(why, cap, "%s of the requests differs", kSettings[i]);
    return why[0] != '\0';
}

void plan_declared(const eval_plan *p, size_t task, size_t a, size_t b, buf *out) {
    gen_sampling_value x[GEN_SAMPLING_VALUES], y[GEN_SAMPLING_VALUES];
    gen_sampling s = plan_sampling(p, task, a), t = plan_sampling(p, task, b);
    gen_sampling_values(&s, x);
    gen_sampling_values(&t, y);
    size_t start = out->len;
    for (int i = 0; i < GEN_SAMPLING_VALUES; i++)
        if ((x[i].value < y[i].value || x[i].value > y[i].value) &&
            is_listed(p->may_differ, x[i].name))
            (void)buf_printf(out, "%s%s", out->len > start ? ", " : "", x[i].name);
    for (int i = 0; i < kSettingsCount; i++)
        if (setting_differs(&plan_settings(p, task, a)->all, &plan_settings(p, task, b)->all, i) &&
            is_listed(p->may_differ, kSettings[i]))
            (void)buf_printf(out, "%s%s", out->len > start ? ", " : "", kSettings[i]);
}

/* ---- merging ---- */

/* Writes an object with sorted keys, so that equal objects are equal texts. */
static snap_status write_kept(const js *v, arena *mem, const char **out, snap_err *err) {
    buf text = {0};
    snap_status st = v ? js_write(v, JS_COMPACT, &text, err) : SNAP_E_NOMEM;
    *out = st == SNAP_OK && !text.failed ? arena_strdup(mem, buf_str(&text)) : NULL;
    buf_release(&text);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a request's settings");
}

static js *parsed(const char *text) {
    return text ? js_parse(text, strlen(text), "body", NULL) : js_new_object();
}

static snap_status merge_body(const char *task, const char *arm, arena *mem, const char **out,
                              snap_err *err) {
    *out = NULL;
    if (!task && !arm)
        return SNAP_OK;
    js *all = parsed(task), *own = parsed(arm);
    bool ok = all && own && gen_merge(all, own, false);
    snap_status st = ok ? write_kept(all, mem, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for a request's settings");
    js_free(all);
    js_free(own);
    return st;
}

/* Merges the settings of an arm into those of a task. *out borrows texts of both, and @mem owns the
 * merged body. */
static snap_status merge(const gen_settings *task, const gen_settings *arm, arena *mem,
                         gen_settings *out, snap_err *err) {
    snap_status st;
    *out = *task;
    TRY(gen_settings_check(&(gen_settings){.body = task->body}, err));
    TRY(gen_settings_check(&(gen_settings){.body = arm->body}, err));
    TRY(merge_body(task->body, arm->body, mem, &out->body, err));
    out->system = arm->system ? arm->system : task->system;
    out->server = arm->server ? arm->server : task->server;
    out->thinking_budget = arm->thinking_budget ? arm->thinking_budget : task->thinking_budget;
    out->completions = arm->has_completions ? arm->completions : task->completions;
    out->parts = arm->has_parts ? arm->parts : task->parts;
    out->opened = arm->has_opened ? arm->opened : task->opened;
    out->completion_limit = task->completion_limit || arm->completion_limit;
    bool unused = task->completions && !out->completions; /* the arm does not use completions, so it
                                                             does not use the suite's template for
                                                             them */
    out->prompt = arm->prompt ? arm->prompt : unused ? NULL : task->prompt;
cleanup:
    return st;
}

/* A recorded answer needs no server: its settings are only compared. */
static snap_status check_sent(const eval_plan *p, size_t arm, const gen_settings *s,
                              snap_err *err) {
    gen_settings sent = *s;
    if (text_equal(p->arms[arm].kind, "replay") && !sent.server)
        sent.thinking_budget = 0;
    return gen_settings_check(&sent, err);
}

/* Refuses settings that only a server can use, if a checkpoint in this process answers. */
static snap_status check_local(const eval_plan *p, size_t task, size_t arm, const gen_settings *s,
                               snap_err *err) {
    gen_sampling sampling = plan_sampling(p, task, arm);
    bool penalty = sampling.presence_penalty < 0 || sampling.presence_penalty > 0 ||
                   sampling.frequency_penalty < 0 || sampling.frequency_penalty > 0;
    bool servers = s->body || s->prompt || s->thinking_budget || s->completions || s->opened;
    if (!text_equal(p->arms[arm].kind, "local") || !(penalty || servers))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "local: has neither presence_penalty, frequency_penalty, body, thinking_budget, "
                   "api nor reasoning; they are for servers");
}

static snap_status describe(eval_settings *s, arena *mem, snap_err *err) {
    js *v = gen_settings_json(&s->all);
    bool empty = v && !js_first(v);
    snap_status st = empty ? SNAP_OK : write_kept(v, mem, &s->json, err);
    js_free(v);
    return st == SNAP_OK && s->json ? hash_bytes(s->json, strlen(s->json), s->sha256, err) : st;
}

snap_status plan_settings_resolve(eval_plan *p, arena *mem, snap_err *err) {
    p->settings = calloc(p->n_tasks * p->n_arms + 1, sizeof *p->settings);
    if (!p->settings)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the requests' settings");
    for (size_t t = 0; t < p->n_tasks; t++)
        for (size_t a = 0; a < p->n_arms; a++) {
            eval_settings *s = &p->settings[t * p->n_arms + a];
            snap_status st = merge(&p->tasks[t].settings, &p->arms[a].settings, mem, &s->all, err);
            if (st == SNAP_OK)
                st = check_sent(p, a, &s->all, err);
            if (st == SNAP_OK)
                st = check_local(p, t, a, &s->all, err);
            if (st == SNAP_OK)
                st = describe(s, mem, err);
            if (st != SNAP_OK) {
                err_prefix(err, "arm '%s'", p->arms[a].name);
                return st;
            }
        }
    return SNAP_OK;
}

const eval_settings *plan_settings(const eval_plan *p, size_t task, size_t arm) {
    static const eval_settings none = {0};
    return p->settings ? &p->settings[task * p->n_arms + arm] : &none;
}
