#include "evals/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/text.h"
#include "generator/settings.h"

void plan_release(eval_plan *p) {
    for (size_t i = 0; i < p->n_tasks; i++)
        task_set_release(&p->tasks[i].set);
    free(p->tasks);
    free(p->arms);
    free(p->settings);
    *p = (eval_plan){0};
}

const char *eval_control_name(eval_control c) {
    static const char *const names[] = {NULL, "seeds", "damaged"};
    return names[c];
}

/* ---- cells: task, arm, problem, sample ---- */

static size_t task_cells(const eval_plan *p, size_t task) {
    return p->n_arms * p->tasks[task].set.n * (size_t)p->tasks[task].samples;
}

size_t plan_cells(const eval_plan *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_tasks; i++)
        n += task_cells(p, i);
    return n;
}

bool plan_in_shard(const eval_plan *p, plan_cell c) {
    if (p->shards <= 1)
        return true;
    size_t conversation = p->tasks[c.task].set.problems[c.problem].conversation;
    return (conversation + (size_t)c.sample) % (size_t)p->shards == (size_t)p->shard;
}

size_t plan_shard_cells(const eval_plan *p) {
    size_t n = 0;
    for (size_t i = 0; i < plan_cells(p); i++)
        n += plan_in_shard(p, plan_cell_at(p, i));
    return n;
}

plan_cell plan_cell_at(const eval_plan *p, size_t index) {
    plan_cell c = {0};
    while (index >= task_cells(p, c.task))
        index -= task_cells(p, c.task++);
    size_t samples = (size_t)p->tasks[c.task].samples, problems = p->tasks[c.task].set.n;
    c.sample = (int)(index % samples);
    c.problem = index / samples % problems;
    c.arm = index / samples / problems;
    return c;
}

size_t plan_index(const eval_plan *p, plan_cell c) {
    size_t before = 0;
    for (size_t i = 0; i < c.task; i++)
        before += task_cells(p, i);
    const eval_task *t = &p->tasks[c.task];
    return before + (c.arm * t->set.n + c.problem) * (size_t)t->samples + (size_t)c.sample;
}

gen_sampling plan_sampling(const eval_plan *p, size_t task, size_t arm) {
    gen_sampling s = p->tasks[task].sampling;
    const eval_arm *a = &p->arms[arm];
    s.seed = a->has_seed ? a->seed : s.seed;
    s.temperature = a->temperature >= 0 ? a->temperature : s.temperature;
    s.top_p = a->top_p > 0 ? a->top_p : s.top_p;
    s.max_tokens = a->max_tokens > 0 ? a->max_tokens : s.max_tokens;
    s.top_k = a->has_top_k ? a->more.top_k : s.top_k;
    s.min_p = a->has_min_p ? a->more.min_p : s.min_p;
    s.presence_penalty = a->has_presence_penalty ? a->more.presence_penalty : s.presence_penalty;
    s.frequency_penalty =
        a->has_frequency_penalty ? a->more.frequency_penalty : s.frequency_penalty;
    s.repetition_penalty =
        a->has_repetition_penalty ? a->more.repetition_penalty : s.repetition_penalty;
    return s;
}

uint64_t plan_seed(const eval_plan *p, plan_cell c) {
    const task_set *set = &p->tasks[c.task].set;
    char number[16];
    (void)snprintf(number, sizeof number, "%d", c.sample);
    /* each name selects a random stream, and the first number of that stream is the next seed */
    const char *const names[] = {set->task->name, set->problems[c.problem].id, number};
    uint64_t seed = plan_sampling(p, c.task, c.arm).seed;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rng r = rng_make(seed, rng_stream_of(names[i]));
        seed = rng_u64(&r);
    }
    return seed >> 33;
}

gen_request plan_request(const eval_plan *p, plan_cell c) {
    const task_set *set = &p->tasks[c.task].set;
    const task_problem *problem = &set->problems[c.problem];
    gen_request r = {.id = (int64_t)plan_index(p, c),
                     .task = set->task->name,
                     .problem = problem->id,
                     .sample = c.sample,
                     .messages = problem->messages,
                     .n_messages = problem->n_messages,
                     .prompt_sha256 = problem->prompt_sha256,
                     .sampling = plan_sampling(p, c.task, c.arm)};
    const eval_settings *settings = plan_settings(p, c.task, c.arm);
    r.settings = &settings->all;
    r.settings_sha256 = settings->sha256[0] ? settings->sha256 : NULL;
    r.sampling.seed = plan_seed(p, c);
    return r;
}

const char *plan_public_message(const eval_plan *p, const gen_request *req, const char *message) {
    plan_cell c = plan_cell_at(p, (size_t)req->id);
    const task_set *set = &p->tasks[c.task].set;
    return task_public_message(set, &set->problems[c.problem], message);
}

/* ---- resuming ---- */

static const char kTaskFile[] = "task_sha256";

/* Parameters that are off are left out, except top_k. The identity of a run is then the same as
 * with older versions, which did not have the other parameters, so their runs can continue. */
static void put_sampling(gen_sampling s, buf *out) {
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(&s, values);
    (void)buf_printf(out, "temperature %.10g, top_p %.10g, top_k %d, max_tokens %d, seed %" PRIu64,
                     s.temperature, s.top_p, s.top_k, s.max_tokens, s.seed);
    for (int i = 4; i < GEN_SAMPLING_VALUES; i++)
        if (gen_sampling_is_on(&values[i]))
            (void)buf_printf(out, ", %s %.10g", values[i].name, values[i].value);
}

static js *task_identity(const eval_plan *p, size_t task) {
    const eval_task *t = &p->tasks[task];
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "dataset_sha256", t->set.sha256);
    if (ok && t->set.task->file_sha256)
        ok = js_set_str(o, kTaskFile, t->set.task->file_sha256);
    for (size_t a = 0; a < p->n_arms && ok; a++) {
        const char *settings = plan_settings(p, task, a)->json;
        buf text = {0};
        char key[160];
        put_sampling(plan_sampling(p, task, a), &text);
        (void)snprintf(key, sizeof key, "sampling of arm %.100s", p->arms[a].name);
        ok = !text.failed && js_set_str(o, key, buf_str(&text));
        (void)snprintf(key, sizeof key, "request of arm %.100s", p->arms[a].name);
        ok = ok && js_set_str(o, key, settings ? settings : "");
        buf_release(&text);
    }
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static js *arm_identity(const eval_arm *a) {
    js *o = js_new_object();
    bool file = strcmp(a->kind, "http") != 0;
    bool ok = o && js_set_str(o, "generator", file ? a->spec : a->kind) &&
              js_set_str(o, "model", a->model ? a->model : "") &&
              js_set_str(o, "precision", a->precision ? a->precision : "");
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

js *plan_identity(const eval_plan *p) {
    js *o = js_new_object();
    bool ok = o != NULL;
    char key[160];
    for (size_t i = 0; i < p->n_arms && ok; i++) {
        (void)snprintf(key, sizeof key, "arm %.100s", p->arms[i].name);
        ok = js_set_new(o, key, arm_identity(&p->arms[i]));
    }
    for (size_t i = 0; i < p->n_tasks && ok; i++) {
        (void)snprintf(key, sizeof key, "task %.100s", p->tasks[i].set.task->name);
        ok = js_set_new(o, key, task_identity(p, i));
    }
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static snap_status compare_part(const char *part, const js *was, js *is, const char *run,
                                snap_err *err) {
    for (void *it = js_first(is); it; it = js_next(is, it)) {
        const char *key = js_key(it), *now = js_str(js_value(it));
        const char *then = js_get_str(was, key);
        if (!then && strcmp(key, kTaskFile) == 0)
            continue;                       /* a run of a version that did not record it */
        bool older = !then && now && !*now; /* older runs had no settings, and lack the key */
        if (!older && !text_equal(now, then))
            return err_set(err, SNAP_E_USAGE,
                           "'%s' holds a run of another configuration: %s, %s was '%s', now '%s' "
                           "(choose another --out)",
                           run, part, key, then ? then : "absent", now);
    }
    return SNAP_OK;
}

static snap_status compare_identities(const js *was, js *is, const char *run, snap_err *err) {
    snap_status st = SNAP_OK;
    for (void *it = js_first(is); it && st == SNAP_OK; it = js_next(is, it)) {
        const js *then = js_get_object(was, js_key(it));
        if (!then)
            st = err_set(err, SNAP_E_USAGE,
                         "'%s' holds a run of another configuration: it has no %s (choose "
                         "another --out)",
                         run, js_key(it));
        else
            st = compare_part(js_key(it), then, js_value(it), run, err);
    }
    return st;
}

snap_status plan_check_identity(const eval_plan *p, const js *recorded, const char *run,
                                snap_err *err) {
    js *now = plan_identity(p);
    if (!now)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the plan");
    snap_status st = compare_identities(recorded, now, run, err);
    js_free(now);
    return st;
}
