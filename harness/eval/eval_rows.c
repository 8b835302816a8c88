#include "harness/eval/eval_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/settings.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/origins.h"
#include "harness/eval/shared.h"
#include "harness/fetch/manifest.h"
#include "harness/record/eval.h"
#include "harness/record/provenance.h"

/* State while a row is made. */
typedef struct {
    const eval_plan *plan;
    const results_journal *journal;
    arena *mem;
    bool failed; /* out of memory */
} maker;

/* Sets an interval, scaled. An end that does not exist is NAN, which is written as null. */
static void set_interval(double to[2], stats_interval ci, double scale) {
    to[0] = scale * ci.lo;
    to[1] = scale * ci.hi;
}

/* Shortens absolute paths in a text to their last name. The arena owns the copy. */
static const char *without_folders(maker *m, const char *text) {
    char *name = text ? provenance_cut_folders(text) : NULL;
    const char *copy = name ? arena_strdup(m->mem, name) : NULL;
    m->failed |= text && !copy;
    free(name);
    return copy;
}

/* ---- arms ---- */

static void set_counts(arm_record *a, const arm_score *s) {
    a->samples = (int64_t)s->samples;
    a->scored = (int64_t)s->scored;
    a->failed = (int64_t)s->failed;
    a->repaired = (int64_t)s->repaired;
    a->identical_samples = (int64_t)s->identical;
    a->truncated_pct = 100 * s->truncated;
    a->empty_pct = 100 * s->empty;
    a->unparsed_pct = 100 * s->unparsed;
    a->failed_pct = 100 * ((double)s->failed / (double)s->samples);
    a->repaired_pct = 100 * ((double)s->repaired / (double)s->scored);
}

/* Stores the reasons of failures, and the rest as the last reason. */
static void set_failures(maker *m, arm_record *a, const failure_tally *t) {
    a->failures.at = arena_alloc(m->mem, t->n + 1, sizeof *a->failures.at);
    m->failed |= !a->failures.at;
    for (size_t i = 0; a->failures.at && i < t->n; i++)
        a->failures.at[a->failures.n++] = (failure_record){t->at[i].text, t->at[i].n};
    if (a->failures.at && t->other)
        a->failures.at[a->failures.n++] = (failure_record){FAILURE_OTHER, t->other};
    if (!a->failures.n)
        a->failures.at = NULL; /* not written */
}

static void set_passes(maker *m, arm_record *a, const arm_score *s) {
    a->pass_at.at = arena_alloc(m->mem, (size_t)s->n_pass + 1, sizeof *a->pass_at.at);
    m->failed |= !a->pass_at.at;
    for (int i = 0; a->pass_at.at && i < s->n_pass; i++)
        a->pass_at.at[a->pass_at.n++] = (pass_record){s->pass[i].k, 100 * s->pass[i].rate};
}

/* An arm that shared a server or device with another one has no times (shared.h). */
static void set_times(const eval_plan *plan, arm_record *a, size_t index, const arm_score *s) {
    const eval_arm *other = shared_with(plan, index);
    a->shared_with = other ? other->name : NULL;
    if (other)
        return;
    a->ttft_ms_median = s->ttft_ms_median;
    a->itl_ms_median = s->itl_ms_median;
    a->itl_ms_p99 = s->itl_ms_p99;
    a->tok_s = s->tok_s;
}

/* Sets the texts of the arm's settings, and of its sampling if that is not the task's. */
static void set_request(maker *m, arm_record *a, size_t task, size_t index) {
    gen_sampling_value own[GEN_SAMPLING_VALUES], usual[GEN_SAMPLING_VALUES];
    gen_sampling x = plan_sampling(m->plan, task, index), y = m->plan->tasks[task].sampling;
    gen_sampling_values(&x, own);
    gen_sampling_values(&y, usual);
    buf text = {0};
    bool differs = false;
    for (int i = 0; i < GEN_SAMPLING_VALUES; i++) {
        differs |= own[i].value < usual[i].value || own[i].value > usual[i].value;
        if (gen_sampling_is_on(&own[i]))
            (void)buf_printf(&text, "%s%s %.10g", text.len ? ", " : "", own[i].name, own[i].value);
    }
    a->request = plan_settings(m->plan, task, index)->json;
    a->sampling = differs ? arena_strdup(m->mem, buf_str(&text)) : NULL;
    m->failed |= text.failed || (differs && !a->sampling);
    buf_release(&text);
}

static void set_opinions(arm_record *a, const score_opinions *s) {
    a->opinions = (opinion_record){.exists = true,
                                   .undecided = (int64_t)s->undecided,
                                   .asked = (int64_t)s->asked,
                                   .accepted = (int64_t)s->same,
                                   .refused = (int64_t)s->different,
                                   .none = (int64_t)(s->undecided - s->same - s->different),
                                   .accuracy_pct = 100 * s->accuracy.mean};
}

static void fill_arm(maker *m, arm_record *a, size_t task, size_t index, const arm_score *s) {
    const eval_arm *arm = &m->plan->arms[index];
    bool http = strcmp(arm->kind, "http") == 0;
    /* The journal's row about the arm's files has keys of an arm. */
    m->failed |= !record_read(&arm_type, origins_find(m->journal, arm->name), m->mem, a);
    a->name = arm->name;
    a->generator = arm->kind;
    a->endpoint = http ? arm->spec : NULL;
    a->source = without_folders(m, http ? NULL : arm->spec);
    a->model = without_folders(m, arm->model);
    a->device = without_folders(m, arm->device);
    a->layout = arm->layout ? arm->layout : "";
    a->precision = without_folders(m, arm->precision);
    a->origin = "measured";
    set_counts(a, s);
    a->accuracy_pct = 100 * s->accuracy.mean;
    a->se_pct = 100 * s->accuracy.se;
    set_interval(a->ci95_pct, s->ci95, 100);
    set_passes(m, a, s);
    a->maj_at_k_pct = 100 * s->majority;
    a->sampling_variance = s->sampling_variance;
    a->completion_tokens_mean = s->tokens_mean;
    a->reasoning_tokens_mean = s->reasoning_tokens_mean;
    a->answer_tokens_mean = s->answer_tokens_mean;
    a->reasoning_chars_mean = s->reasoning_chars_mean;
    a->answer_chars_mean = s->answer_chars_mean;
    set_request(m, a, task, index);
    set_times(m->plan, a, index, s);
    m->failed |= !clients_find(m->journal, arm->name, m->mem, &a->client);
}

/* ---- pairs ---- */

/* Whether the comparison detected that a damaged arm is worse; NULL for any other arm and for a
 * refused comparison. */
static const char *sensitivity(eval_control control, const stats_paired *diff,
                               const char *refused) {
    if (control != CONTROL_DAMAGED || refused[0])
        return NULL;
    return stats_detects_loss(diff) ? "sees damage" : "blind";
}

static void set_difference(pair_record *o, const stats_paired *diff) {
    o->delta_pp = 100 * diff->delta;
    o->se_pp = 100 * diff->se;
    set_interval(o->ci90_pp, diff->ci90, 100);
    set_interval(o->ci95_pp, diff->ci95, 100);
    o->verdict = stats_verdict_name(diff->verdict);
    o->p_tost = diff->p_tost;
    o->discordant.exists = true;
    o->discordant.baseline_only = (int64_t)diff->a_better;
    o->discordant.arm_only = (int64_t)diff->b_better;
}

/* @step: smallest difference of a problem's score; 0: unknown */
static void set_detectable(pair_record *o, const stats_paired *diff, double step) {
    o->detectable_pp = 100 * stats_detectable_loss(diff, step, PAIR_DETECTS);
}

static void set_comparison(pair_record *o, const pair_score *p, double step) {
    set_difference(o, &p->diff);
    set_detectable(o, &p->diff, step);
    set_interval(o->bootstrap95_pp, p->bootstrap95, 100);
    o->p_sign_flip = p->p_sign_flip;
    o->p_mcnemar = p->p_mcnemar;
    o->p_holm = p->p_holm;
    o->p_failed = p->p_failed;
    o->p_repaired = p->p_repaired;
    if (!p->has_length)
        return;
    o->length.exists = true;
    o->length.ratio = p->length.ratio;
    set_interval(o->length.ci95_ratio, p->length.ci95, 1);
    o->length.delta_tokens = p->length.delta;
    set_interval(o->length.ci95_tokens, p->length.delta_ci95, 1);
}

/* Sets the fields that a refused comparison has too. */
static void start_pair(const eval_plan *plan, pair_record *o, size_t arm, const stats_paired *diff,
                       const char *withheld, const char *refused) {
    record_init(&pair_type, o);
    o->baseline = plan->arms[0].name;
    o->arm = plan->arms[arm].name;
    o->control = eval_control_name(plan->arms[arm].control);
    o->sensitivity = sensitivity(plan->arms[arm].control, diff, refused);
    o->problems = (int64_t)diff->n;
    o->margin_pp = 100 * plan->margin;
    o->max_lost_pct = plan->max_lost_pct;
    o->withheld = withheld;
    o->refused = refused;
}

static void fill_pair(maker *m, pair_record *o, size_t task, const pair_score *p, double step) {
    start_pair(m->plan, o, p->arm, &p->diff, p->withheld, p->refused);
    buf declared = {0};
    plan_declared(m->plan, task, p->baseline, p->arm, &declared);
    o->declared = declared.len ? arena_strdup(m->mem, buf_str(&declared)) : NULL;
    m->failed |= declared.failed || (declared.len && !o->declared);
    buf_release(&declared);
    if (!p->refused[0])
        set_comparison(o, p, step);
}

js *eval_pooled_row(const eval_plan *plan, const task_score *scores, size_t pair) {
    pooled_score s = score_pooled(plan, scores, pair);
    const char **names = calloc(plan->n_tasks + 1, sizeof(const char *));
    pair_record o;
    if (!names)
        return NULL;
    for (size_t t = 0; t < plan->n_tasks; t++)
        names[t] = plan->tasks[t].set.task->name;
    start_pair(plan, &o, pair + 1, &s.diff, s.withheld, s.refused);
    o.tasks = (record_texts){names, plan->n_tasks};
    if (!s.refused[0])
        set_difference(&o, &s.diff);
    js *row = record_write(&pair_type, &o);
    free(names);
    return row;
}

/* ---- values of a task's row ---- */

static eval_dataset dataset_of(const task_set *set) {
    const char *slash = strrchr(set->file, '/');
    return (eval_dataset){.file = slash ? slash + 1 : set->file,
                          .sha256 = set->sha256,
                          .rows = (int64_t)set->rows,
                          .manifest = manifest_check(set->task->name, set->sha256)};
}

/* The value of a parameter of the sampling; NAN if it is off. */
static double on(double value, double off) {
    return value < off || value > off ? value : (double)NAN;
}

static eval_sampling sampling_of(gen_sampling s) {
    return (eval_sampling){
        .temperature = s.temperature,
        .top_p = s.top_p,
        .top_k = s.top_k,
        .max_tokens = s.max_tokens,
        .seed = (int64_t)s.seed,
        .min_p = on(s.min_p, 0),
        .presence_penalty = on(s.presence_penalty, 0),
        .frequency_penalty = on(s.frequency_penalty, 0),
        .repetition_penalty = s.repetition_penalty > 0 ? on(s.repetition_penalty, 1) : (double)NAN};
}

/* Sets the second opinions. They are about the verdict, so the rows of further metrics have
 * none. */
static void fill_opinions(eval_record *e, const task_score *score) {
    for (size_t a = 0; a < e->arms.n; a++)
        set_opinions(&e->arms.at[a], &score->arms[a].opinions);
    for (size_t i = 0; i < e->pairs.n; i++) {
        const stats_paired *d = &score->pairs[i].with_opinions;
        if (score->pairs[i].refused[0])
            continue;
        e->pairs.at[i].opinions = (opinion_difference){.exists = true, .delta_pp = 100 * d->delta};
        set_interval(e->pairs.at[i].opinions.ci95_pp, d->ci95, 100);
    }
}

static void fill_arms(maker *m, eval_record *e, size_t task, const task_score *score, double step) {
    size_t n = m->plan->n_arms;
    e->arms.at = arena_alloc(m->mem, n + 1, sizeof *e->arms.at);
    e->pairs.at = arena_alloc(m->mem, n + 1, sizeof *e->pairs.at);
    m->failed |= !e->arms.at || !e->pairs.at;
    for (size_t a = 0; a < n && !m->failed; a++)
        fill_arm(m, &e->arms.at[e->arms.n++], task, a, &score->arms[a]);
    for (size_t a = 1; a < n && !m->failed; a++)
        fill_pair(m, &e->pairs.at[e->pairs.n++], task, &score->pairs[a - 1], step);
}

/* ---- groups ---- */

static record_texts texts_of(maker *m, const char *const *at, size_t n) {
    const char **copy = arena_alloc(m->mem, n, sizeof *copy);
    m->failed |= !copy;
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = at[i];
    return (record_texts){copy, copy ? n : 0};
}

static group_arm_record group_arm_of(const char *name, const group_arm *a) {
    group_arm_record r = {.name = name,
                          .problems = (int64_t)a->problems,
                          .scored = (int64_t)a->scored,
                          .accuracy_pct = 100 * a->accuracy.mean,
                          .prompt_tokens_mean = a->prompt_tokens};
    set_interval(r.ci95_pct, a->ci95, 100);
    return r;
}

static void fill_group(maker *m, group_record *to, const group_score *g, const task_score *score,
                       double step) {
    const eval_plan *p = m->plan;
    *to = (group_record){.by = texts_of(m, g->by, g->fields),
                         .at = texts_of(m, g->at, g->fields),
                         .problems = (int64_t)g->problems};
    to->arms.at = arena_alloc(m->mem, p->n_arms, sizeof *to->arms.at);
    to->pairs.at = arena_alloc(m->mem, p->n_arms, sizeof *to->pairs.at);
    m->failed |= !to->arms.at || !to->pairs.at;
    for (size_t a = 0; a < p->n_arms && !m->failed; a++)
        to->arms.at[to->arms.n++] = group_arm_of(p->arms[a].name, &g->arms[a]);
    for (size_t a = 1; a < p->n_arms && !m->failed; a++) {
        const pair_score *whole = &score->pairs[a - 1];
        pair_record *pair = &to->pairs.at[to->pairs.n++];
        start_pair(p, pair, a, &g->pairs[a - 1], whole->withheld, whole->refused);
        if (whole->refused[0])
            continue;
        set_difference(pair, &g->pairs[a - 1]);
        set_detectable(pair, &g->pairs[a - 1], step);
        pair->p_holm = g->p_holm[a - 1];
    }
}

static void fill_groups(maker *m, eval_record *e, const group_score *groups, size_t n,
                        const task_score *score, double step) {
    if (!n)
        return;
    e->groups.at = arena_alloc(m->mem, n, sizeof *e->groups.at);
    m->failed |= !e->groups.at;
    for (size_t i = 0; i < n && !m->failed; i++)
        fill_group(m, &e->groups.at[e->groups.n++], &groups[i], score, step);
}

js *eval_row(const eval_plan *plan, size_t index, int metric, const task_score *score,
             const group_score *groups, size_t n_groups, const failure_tally *failures,
             const results_journal *journal) {
    const eval_task *t = &plan->tasks[index];
    const char *name = t->set.grader->metrics[metric];
    arena mem = {0};
    maker m = {plan, journal, &mem, false};
    eval_record e;
    char task[120]; /* "ifeval", "ifeval:prompt_loose" */
    (void)snprintf(task, sizeof task, "%s%s%s", t->set.task->name, metric ? ":" : "",
                   metric ? name : "");
    record_init(&eval_type, &e);
    e.task = task;
    e.title = t->set.task->title;
    e.metric = name;
    e.dataset = dataset_of(&t->set);
    e.prompt_sha256 = t->set.prompt_sha256;
    e.grader = t->set.grader->id;
    e.task_sha256 = t->set.task->file_sha256;
    e.sampling = sampling_of(t->sampling);
    e.problems = (int64_t)t->set.n;
    e.samples_per_problem = t->samples;
    e.turns = t->set.turns > 1 ? t->set.turns : RECORD_NO_COUNT;
    e.chance_pct = t->set.task->chance > 0 ? 100 * t->set.task->chance : (double)NAN;
    e.margin_pp = 100 * plan->margin;
    e.max_lost_pct = plan->max_lost_pct;
    if (t->set.grader->by_model || t->set.grader->mathematical)
        m.failed |= !judge_model_find(journal, &mem, &e.judge);
    double step = metric || t->set.grader->by_model ? 0 : score_step(t);
    fill_arms(&m, &e, index, metric ? &score->also[metric - 1] : score, step);
    for (size_t a = 0; a < e.arms.n && !metric; a++)
        set_failures(&m, &e.arms.at[a], &failures[a]);
    if (!metric)
        fill_groups(&m, &e, groups, n_groups, score, step);
    if (!metric && e.judge.exists && t->set.grader->mathematical)
        fill_opinions(&e, score);
    js *row = m.failed ? NULL : record_write(&eval_type, &e);
    arena_release(&mem);
    return row;
}
