#include "harness/eval/planning.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/share.h"
#include "base/term.h"
#include "base/text.h"
#include "evals/lost.h"
#include "evals/plan_settings.h"
#include "evals/samples_judge.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/games.h"
#include "harness/eval/shard.h"
#include "harness/eval/suite.h"

typedef struct {
    eval_options *opt;
    arena *mem;
    eval_plan *plan;
} planning;

static void override_sampling(const eval_options *o, suite_task *t) {
    t->samples = o->samples ? (int)o->samples : t->samples;
    t->sampling.seed = (uint64_t)o->seed;
    t->sampling.max_tokens = o->max_tokens ? (int)o->max_tokens : t->sampling.max_tokens;
    t->sampling.temperature = o->temperature >= 0 ? o->temperature : t->sampling.temperature;
    t->sampling.top_p = o->top_p > 0 ? o->top_p : t->sampling.top_p;
    if (o->thinking_budget)
        t->settings.thinking_budget = o->thinking_budget;
}

/* The folder whose tokenizer counts the tokens of generated texts. */
static const char *tokenizer_folder(const eval_plan *p, const eval_options *o) {
    static const char kLocal[] = "local:";
    for (size_t i = 0; i < p->n_arms && !o->tokenizer; i++)
        if (text_starts(p->arms[i].spec, kLocal))
            return p->arms[i].spec + strlen(kLocal);
    return o->tokenizer;
}

static snap_status plan_tasks(eval_plan *p, const eval_options *o, const suite *s, snap_err *err) {
    if (s->n > 1 && !fs_is_dir(o->data) && fs_exists(o->data))
        return err_set(err, SNAP_E_USAGE, "--data '%s' is one file, --suite names %zu tasks",
                       o->data, s->n);
    p->max_lost_pct = o->max_lost_pct >= 0 ? o->max_lost_pct : LOST_MAX_PCT;
    p->margin = (o->margin_pp > 0 ? o->margin_pp : s->margin_pp) / 100;
    p->tasks = calloc(s->n, sizeof *p->tasks);
    if (!p->tasks)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the tasks");
    task_options options = {.lengths = o->lengths,
                            .tokenizer = tokenizer_folder(p, o),
                            .chars_per_token = o->chars_per_token,
                            .seed = (uint64_t)o->seed,
                            .gpqa_password = o->gpqa_password,
                            .keep_text = o->keep_gpqa_text,
                            .lcb_version = o->lcb_version,
                            .lcb_from = o->lcb_from,
                            .lcb_to = o->lcb_to};
    snap_status st = task_policy_parse(o->math_policy, &options.policy, err);
    if (st == SNAP_OK)
        st = judge_kind_parse(o->judge, &options.judge, err);
    for (size_t i = 0; i < s->n && st == SNAP_OK; i++) {
        suite_task t = s->tasks[i];
        override_sampling(o, &t);
        eval_task *to = &p->tasks[p->n_tasks++];
        *to = (eval_task){.samples = t.samples, .sampling = t.sampling, .settings = t.settings};
        st = task_load(t.task, o->data, (size_t)o->limit, &options, &to->set, err);
    }
    return st;
}

/* Adds the arm in arms[n_arms], which was filled before. SNAP_E_USAGE if its name is taken. */
static snap_status add_arm(eval_plan *p, const char *flag, const char *text, snap_err *err) {
    const char *name = p->arms[p->n_arms].name;
    for (size_t i = 0; i < p->n_arms; i++)
        if (text_equal(p->arms[i].name, name))
            return err_set(err, SNAP_E_USAGE, "%s %.*s: the name '%s' is taken", flag,
                           (int)strcspn(text, "=,"), text, name);
    p->n_arms++;
    return SNAP_OK;
}

/* The content of files that an arm names becomes part of the option, because the run is stored with
 * it and may be graded again without them. */
static void keep_files(const eval_arm *a, opt_list *list, int i) {
    list->items[i] = a->text ? a->text : list->items[i];
}

/* The control "seeds": the baseline with another seed. It shows how much the baseline differs from
 * itself by chance. */
static snap_status plan_other_seeds(planning *e, eval_arm *a, snap_err *err) {
    const eval_arm *baseline = &e->plan->arms[0];
    buf name = {0};
    if (text_equal(baseline->kind, "replay"))
        return err_set(err, SNAP_E_USAGE,
                       "--control seeds: arm '%s' is recorded, so it cannot be run with other "
                       "seeds",
                       baseline->name);
    (void)buf_printf(&name, "%s.control", baseline->name);
    *a = *baseline;
    a->name = arena_strdup(e->mem, buf_str(&name));
    a->has_seed = true;
    a->seed = (baseline->has_seed ? a->seed : (uint64_t)e->opt->seed) + 1;
    a->control = CONTROL_SEEDS;
    buf_release(&name);
    return a->name ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the arms");
}

/* The control "damaged=auto": the baseline with a coarser cache. choose_damage() sets the
 * precision. */
static snap_status plan_auto_damaged(planning *e, eval_arm *a, snap_err *err) {
    const eval_arm *baseline = &e->plan->arms[0];
    if (!text_equal(baseline->kind, "local"))
        return err_set(err, SNAP_E_USAGE,
                       "--control damaged=auto: arm '%s' is not local, so this program cannot "
                       "damage its cache (give damaged=GENERATOR)",
                       baseline->name);
    *a = *baseline;
    a->name = "damaged";
    a->precision = NULL;
    a->control = CONTROL_DAMAGED;
    return SNAP_OK;
}

/* Sets the precision of damaged local arms that have none, such as "damaged=auto": that of the
 * first task that names one, else int4: a kept run shows that a model loses its answers in it
 * (docs/lab/2026-11-29-damage-seen.md). */
static void choose_damage(eval_plan *p, const suite *s) {
    static const char kCoarse[] = "int4";
    const char *precision = NULL;
    for (size_t i = 0; i < s->n && !precision; i++)
        precision = s->tasks[i].task->damaged;
    for (size_t i = 0; i < p->n_arms; i++)
        if (p->arms[i].control == CONTROL_DAMAGED && text_equal(p->arms[i].kind, "local") &&
            !p->arms[i].precision)
            p->arms[i].precision = precision ? precision : kCoarse;
}

static snap_status plan_control(planning *e, int i, snap_err *err) {
    eval_plan *p = e->plan;
    const char *kind = e->opt->controls.items[i];
    eval_arm *a = &p->arms[p->n_arms];
    snap_status st;
    if (strcmp(kind, "seeds") == 0) {
        TRY(plan_other_seeds(e, a, err));
    } else if (strcmp(kind, "damaged=auto") == 0) {
        TRY(plan_auto_damaged(e, a, err));
    } else if (text_starts(kind, "damaged=")) {
        TRY(arm_parse("--control", kind, e->opt->controls.from_file, e->mem, a, err));
        a->control = CONTROL_DAMAGED;
        keep_files(a, &e->opt->controls, i);
    } else {
        TRY(err_set(err, SNAP_E_USAGE,
                    "--control '%.*s' is neither 'seeds' nor 'damaged=auto' nor "
                    "'damaged=GENERATOR[,KEY=VALUE...]'",
                    (int)strcspn(kind, "=,"), kind));
    }
    TRY(add_arm(p, "--control", kind, err));
cleanup:
    return st;
}

static snap_status plan_arms(planning *e, snap_err *err) {
    eval_plan *p = e->plan;
    opt_list *list = &e->opt->arms, *controls = &e->opt->controls;
    snap_status st = SNAP_OK;
    if (!list->n)
        return err_set(err, SNAP_E_USAGE, "no arm: give --arm NAME=GENERATOR, the baseline first");
    p->arms = calloc((size_t)list->n + (size_t)controls->n, sizeof *p->arms);
    if (!p->arms)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arms");
    for (int i = 0; i < list->n; i++) {
        TRY(arm_parse("--arm", list->items[i], list->from_file, e->mem, &p->arms[p->n_arms], err));
        keep_files(&p->arms[p->n_arms], list, i);
        TRY(add_arm(p, "--arm", list->items[i], err));
    }
    for (int i = 0; i < controls->n; i++)
        TRY(plan_control(e, i, err));
cleanup:
    return st;
}

static snap_status find_data(planning *e, snap_err *err) {
    if (e->opt->data)
        return SNAP_OK;
    char *found = share_find("datasets");
    e->opt->data = found ? arena_strdup(e->mem, found) : NULL;
    free(found);
    return e->opt->data ? SNAP_OK : err_set(err, SNAP_E_USAGE, "no data folder: give --data DIR");
}

static snap_status plan_shard(planning *e, snap_err *err) {
    eval_shard s;
    snap_status st = shard_parse(e->opt->shard, &s, err);
    e->plan->shard = s.of ? s.index - 1 : 0;
    e->plan->shards = s.of;
    return st;
}

/* Checks that programs can be judged, before anything is generated. */
static snap_status check_judge(const planning *e, snap_err *err) {
    package_set missing = 0;
    buf names = {0}, debian = {0};
    snap_status st;
    TRY(samples_judge_check(e->plan, &missing, err));
    packages_append(missing, "", ", ", &names);
    packages_append(missing, "python3-", " ", &debian);
    TRY(buf_check(&names, "the names of packages", err));
    TRY(buf_check(&debian, "the names of packages", err));
    if (missing)
        term_warn("programs may import %s, which this machine lacks: judging ends with an error at "
                  "the first one that fails for this reason (apt-get install %s)",
                  buf_str(&names), buf_str(&debian));
cleanup:
    buf_release(&names);
    buf_release(&debian);
    return st;
}

snap_status planning_make(eval_plan *plan, eval_options *options, arena *mem, snap_err *err) {
    planning all = {options, mem, plan}, *e = &all;
    snap_status st;
    suite s;
    if (!e->opt->suite)
        return err_set(err, SNAP_E_USAGE, "no task: give --suite NAME[,NAME...]");
    TRY(plan_shard(e, err));
    TRY(plan_arms(e, err));
    TRY(suite_resolve(e->opt->suite, mem, &s, err));
    choose_damage(plan, &s);
    TRY(find_data(e, err));
    TRY(plan_tasks(plan, e->opt, &s, err));
    plan->may_differ = e->opt->may_differ;
    TRY(plan_may_differ_check(plan->may_differ, err));
    TRY(plan_settings_resolve(plan, mem, err));
    e->plan->judge_jobs = (int)e->opt->judge_jobs;
    e->plan->rejudge = e->opt->regrade && !e->opt->keep_verdicts;
    e->plan->cancel = e->opt->generate.cancel;
    TRY(check_judge(e, err));
    if (!e->opt->regrade) /* a regrade keeps the judge's existing verdicts */
        TRY(games_check(e->plan, e->opt->judge_model, err));
cleanup:
    return st;
}
