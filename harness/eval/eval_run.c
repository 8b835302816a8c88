#include "harness/eval/eval_run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/term.h"
#include "base/text.h"
#include "evals/lost.h"
#include "evals/samples_judge.h"
#include "evals/score.h"
#include "harness/eval/arm_secrets.h"
#include "harness/eval/eval_rows.h"
#include "harness/eval/failures.h"
#include "harness/eval/games.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/opinions.h"
#include "harness/eval/origins.h"
#include "harness/eval/planning.h"
#include "harness/eval/run_files.h"
#include "harness/eval/run_log.h"
#include "harness/eval/run_options.h"
#include "harness/record/provenance.h"

typedef struct {
    eval_options opt; /* a regrade adds options from the journal */
    arena mem;        /* texts of the arms */
    eval_plan plan;
    results_journal *journal;
    sample_store *store;
    fs_log log;
    sample_outcome *outcomes;
    task_score *scores;
    results *results;
} eval;

static void release(eval *e) {
    score_release(&e->plan, e->scores);
    free(e->outcomes);
    results_free(e->results);
    fs_log_close(&e->log);
    samples_close(e->store);
    results_journal_close(e->journal);
    plan_release(&e->plan);
    arena_release(&e->mem);
}

/* The path of a file of the RUN folder, in the arena. If memory for it runs out, base/fault.h notes
 * that, and the path is empty, which cannot be opened. */
static const char *file_in(eval *e, const char *name) {
    const char *path = run_file(&e->mem, e->opt.out, name);
    return path ? path : "";
}

/* ---- the RUN folder ---- */

static bool has_samples(eval *e) {
    struct stat sb;
    return stat(file_in(e, "samples.jsonl"), &sb) == 0 && sb.st_size > 0;
}

/* A folder holds either one shard of a run or the whole run. */
static snap_status check_shard(const eval *e, snap_err *err) {
    const char *was = js_get_str(results_journal_find(e->journal, RUN_OPTIONS), "shard");
    if (text_equal(was, e->opt.shard))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "'%s' has shard %s, not shard %s (choose another --out)",
                   e->opt.out, was ? was : "1/1", e->opt.shard ? e->opt.shard : "1/1");
}

/* Checks that the folder belongs to this plan, and stores the plan in its journal. A folder without
 * samples may be reused by any plan, for instance after an error in an option. */
static snap_status check_folder(eval *e, snap_err *err) {
    const js *recorded = results_journal_find(e->journal, RUN_IDENTITY);
    snap_status st = SNAP_OK;
    if (recorded && has_samples(e)) {
        TRY(plan_check_identity(&e->plan, recorded, e->opt.out, err));
        TRY(check_shard(e, err));
    } else {
        TRY(run_journal_put(e->journal, RUN_IDENTITY, plan_identity(&e->plan), err));
    }
    if (!e->opt.regrade && results_journal_find(e->journal, RUN_MERGED))
        /* the merged run may get samples of its own now */
        TRY(run_journal_put(e->journal, RUN_MERGED, js_new_object(), err));
    if (!e->opt.regrade)
        TRY(run_journal_put(e->journal, RUN_OPTIONS, run_options_json(&e->opt), err));
cleanup:
    return st;
}

/* The configuration that the result file stores. For a regrade it is that of the run that made the
 * samples, with the regrade's own values of some options. The caller owns it; NULL when out of
 * memory. */
static js *configuration(const eval *e, const js *given) {
    const eval_options *o = &e->opt;
    const js *made = o->regrade ? results_journal_find(e->journal, RUN_CONFIG) : NULL;
    if (!made)
        return given ? js_copy(given) : js_new_object();
    js *c = js_copy(made);
    if (c && js_set_bool(c, "regrade", true) && js_set_str(c, "out", o->out) &&
        js_set_str(c, "data", o->data) && js_set_num(c, "margin", o->margin_pp) &&
        js_set_num(c, "max-lost", o->max_lost_pct) && js_set_str(c, "may-differ", o->may_differ) &&
        js_set_str(c, "math-policy", o->math_policy) && js_set_str(c, "judge", o->judge))
        return c;
    js_free(c);
    return NULL;
}

static snap_status start_results(eval *e, const js *given, snap_err *err) {
    js *config = configuration(e, given);
    snap_status st = config ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    if (st == SNAP_OK && !e->opt.regrade)
        st = results_journal_append(e->journal, RUN_CONFIG, config, err);
    if (st == SNAP_OK)
        st = results_new(&e->results, "eval", config, e->opt.seed, err);
    js_free(config);
    return st;
}

/* ---- the steps ---- */

/* Extends the error that stopped a run: how many samples are kept, and how to continue. */
static snap_status explain_resume(const eval *e, snap_status st, snap_err *err) {
    size_t done = samples_done_count(e->store), all = plan_shard_cells(&e->plan);
    char why[400] = "interrupted";
    if (st != SNAP_E_CANCELLED)
        (void)snprintf(why, sizeof why, "%.399s", err->text);
    err->text[0] = '\0';
    err->code = SNAP_OK;
    return err_set(err, st, "%s: %zu of %zu samples are kept in '%s'; the same command continues",
                   why, done, all, e->opt.out);
}

static snap_status generate(eval *e, snap_err *err) {
    size_t all = plan_shard_cells(&e->plan), before = samples_done_count(e->store);
    run_log(&e->log, "%zu of %zu samples exist", before, all);
    if (e->opt.regrade || before == all)
        return SNAP_OK;
    snap_status st = origins_record(e->journal, &e->plan, err);
    if (st != SNAP_OK)
        return st;
    st = generate_samples(&e->plan, e->store, &e->opt.generate, e->journal, &e->log, err);
    run_log(&e->log, "generated %zu samples%s%s", samples_done_count(e->store) - before,
            st == SNAP_OK ? "" : ", stopped: ", st == SNAP_OK ? "" : err->text);
    bool kept = st == SNAP_E_CANCELLED || (st != SNAP_OK && samples_done_count(e->store));
    return kept ? explain_resume(e, st, err) : st;
}

static snap_status ask_judge(eval *e, snap_err *err) {
    snap_status st = games_play(&e->plan, e->store, e->opt.judge_model, &e->opt.generate,
                                e->journal, &e->log, &e->mem, err);
    if (st == SNAP_OK)
        st = opinions_ask(&e->plan, e->store, e->opt.judge_model, &e->opt.generate, e->journal,
                          &e->log, &e->mem, err);
    if (st == SNAP_E_CANCELLED) {
        *err = (snap_err){0};
        return err_set(err, st,
                       "interrupted: the finished judgments are kept in '%s'; "
                       "the same command continues",
                       e->opt.out);
    }
    return st;
}

static snap_status judge_samples(eval *e, snap_err *err) {
    snap_status st;
    e->outcomes = calloc(plan_cells(&e->plan) + 1, sizeof *e->outcomes);
    if (!e->outcomes)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the verdicts");
    TRY(samples_grade(e->store, e->outcomes, err));
    if (!e->plan.shards)
        TRY(score_run(&e->plan, e->outcomes, &e->scores, err));
cleanup:
    return st;
}

static void warn_undetected_loss(const eval *e, size_t t) {
    for (size_t a = 1; a < e->plan.n_arms; a++) {
        const pair_score *pair = &e->scores[t].pairs[a - 1];
        if (e->plan.arms[a].control == CONTROL_DAMAGED && !pair->refused[0] &&
            !stats_detects_loss(&pair->diff))
            term_warn(
                "%s: these problems and samples do not detect the damaged arm '%s', so a missing "
                "difference between the other arms means little: take more samples (see "
                "'eval plan'), or a set that is harder for the model",
                e->plan.tasks[t].set.task->name, e->plan.arms[a].name);
    }
}

/* Warns if damage can hardly be seen, because the baseline's accuracy is nearly 100 % or is not
 * shown to be better than guessing. */
static void warn_blind(const eval *e, size_t t) {
    const eval_task *task = &e->plan.tasks[t];
    const arm_score *base = &e->scores[t].arms[0];
    if (e->plan.n_arms < 2 || !base->scored || task->set.grader->by_model)
        return;
    if (base->accuracy.mean >= 0.995)
        term_warn("%s: arm '%s' answers nearly everything right, so only large damage can be seen: "
                  "take harder problems",
                  task->set.task->name, e->plan.arms[0].name);
    else if (base->accuracy.mean <= 0 || base->ci95.lo <= task->set.task->chance)
        term_warn("%s: arm '%s' is not shown to be better than guessing, so damage can hardly be "
                  "seen: take easier problems, or a stronger model",
                  task->set.task->name, e->plan.arms[0].name);
}

/* Warns if an arm differs from the baseline in how many samples failed, or were repaired. */
static void warn_unequal(const eval *e, size_t t, size_t a) {
    const pair_score *pair = &e->scores[t].pairs[a - 1];
    const arm_score *x = &e->scores[t].arms[0], *y = &e->scores[t].arms[a];
    const struct {
        const char *what;
        double p;
        size_t x, y;
    } shares[] = {{"failed", pair->p_failed, x->failed, y->failed},
                  {"repaired (not Unicode)", pair->p_repaired, x->repaired, y->repaired}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (shares[i].p < LOST_LEVEL)
            term_warn(
                "%s, arms %s and %s: %zu and %zu samples are %s, more than chance explains "
                "(sign-flip test over problems, p %s %.3f): look at the servers before you compare "
                "the accuracies",
                e->plan.tasks[t].set.task->name, e->plan.arms[0].name, e->plan.arms[a].name,
                shares[i].x, shares[i].y, shares[i].what, shares[i].p < 0.001 ? "<" : "=",
                shares[i].p < 0.001 ? 0.001 : shares[i].p);
}

static snap_status warn_failed(const eval *e, size_t t, size_t a, snap_err *err) {
    const arm_score *s = &e->scores[t].arms[a];
    failure_tally tally = {0};
    buf why = {0};
    snap_status st = SNAP_OK;
    if (s->failed)
        st = failures_collect(&e->plan, e->store, e->outcomes, t, a, &tally, err);
    failures_write(&tally, &why);
    if (st == SNAP_OK)
        st = buf_check(&why, "the reasons of failures", err);
    if (s->failed && st == SNAP_OK)
        term_warn("%s, arm %s: %zu of %zu samples failed and are not scored; the same command "
                  "tries them again. Reasons (more in '%s/log'): %s",
                  e->plan.tasks[t].set.task->name, e->plan.arms[a].name, s->failed, s->samples,
                  e->opt.out, buf_str(&why));
    buf_release(&why);
    return st;
}

/* Warnings that a reader of the table must see. */
static snap_status warn(const eval *e, snap_err *err) {
    for (size_t t = 0; t < e->plan.n_tasks; t++) {
        const char *task = e->plan.tasks[t].set.task->name;
        warn_undetected_loss(e, t);
        warn_blind(e, t);
        for (size_t a = 0; a < e->plan.n_arms; a++) {
            const arm_score *s = &e->scores[t].arms[a];
            const char *arm = e->plan.arms[a].name;
            snap_status st = warn_failed(e, t, a, err);
            if (st != SNAP_OK)
                return st;
            if (a)
                warn_unequal(e, t, a);
            if (s->missing)
                term_warn(
                    "%s, arm %s: %zu samples are missing; run without --regrade to generate them",
                    task, arm, s->missing);
            if (s->identical && plan_sampling(&e->plan, t, a).temperature > 0)
                term_warn("%s, arm %s: %zu samples repeat another one of their problem word for "
                          "word: does the server support 'seed' and 'temperature'?",
                          task, arm, s->identical);
        }
    }
    return SNAP_OK;
}

/* Adds the rows of a task, one for each metric. The first has the reasons of failures. */
static snap_status save_task(eval *e, size_t t, snap_err *err) {
    snap_status st = SNAP_OK;
    group_score *groups = NULL;
    size_t n_groups = 0;
    arena mem = {0};
    failure_tally *why = calloc(e->plan.n_arms + 1, sizeof *why);
    if (!why)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    for (size_t a = 0; a < e->plan.n_arms; a++)
        TRY(failures_collect(&e->plan, e->store, e->outcomes, t, a, &why[a], err));
    if (e->plan.tasks[t].set.task->groups[0])
        TRY(score_groups(&e->plan, e->outcomes, t, &e->scores[t], &mem, &groups, &n_groups, err));
    for (int m = 0; m < grade_metrics(e->plan.tasks[t].set.grader); m++)
        TRY(results_add(e->results, "evals",
                        eval_row(&e->plan, t, m, &e->scores[t], groups, n_groups, why, e->journal),
                        err));
cleanup:
    arena_release(&mem);
    free(why);
    return st;
}

static snap_status save(eval *e, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t t = 0; t < e->plan.n_tasks; t++)
        TRY(save_task(e, t, err));
    for (size_t pair = 0; e->plan.n_tasks > 1 && pair + 1 < e->plan.n_arms; pair++)
        TRY(results_add(e->results, "pooled", eval_pooled_row(&e->plan, e->scores, pair), err));
    TRY(results_save(e->results, file_in(e, "run.json"), err));
    if (e->opt.report)
        TRY(e->opt.report(e->results, e->opt.out, e->opt.keep_gpqa_text, err));
    run_log(&e->log, "wrote run.json%s", e->opt.report ? " and the report" : "");
cleanup:
    return st;
}

/* An arm without a scored sample is an error. */
static snap_status check_arms(const eval *e, snap_err *err) {
    for (size_t a = 0; a < e->plan.n_arms; a++) {
        size_t scored = 0, failed = 0;
        for (size_t t = 0; t < e->plan.n_tasks; t++) {
            scored += e->scores[t].arms[a].scored;
            failed += e->scores[t].arms[a].failed;
        }
        if (!scored)
            return err_set(err, SNAP_E_NET, "arm '%s': all %zu samples failed (see '%s/log')",
                           e->plan.arms[a].name, failed, e->opt.out);
    }
    return SNAP_OK;
}

/* Plans the run, and reads the secrets of its arms: an option that is refused must not be stored,
 * because it may hold a key by mistake. */
static snap_status plan_and_check(eval *e, snap_err *err) {
    snap_status st = planning_make(&e->plan, &e->opt, &e->mem, err);
    if (st == SNAP_OK)
        st = arm_secrets_check(&e->plan, &e->opt.generate, err);
    return st == SNAP_OK ? judge_model_check(e->opt.judge_model, &e->opt.generate, err) : st;
}

snap_status eval_run(const eval_options *options, const js *config, results **out, snap_err *err) {
    snap_status st;
    eval e = {.opt = *options, .log = FS_LOG_CLOSED};
    snap_err unused = {0};
    err = err ? err : &unused;
    *out = NULL;
    if (!options->out)
        return err_set(err, SNAP_E_USAGE, "no folder for the run: give --out RUN");
    if (!options->regrade)
        TRY(plan_and_check(&e, err)); /* before anything is written */
    if (options->regrade && !fs_exists(file_in(&e, "journal")))
        TRY(err_set(err, SNAP_E_USAGE, "'%s' has no run to grade again", options->out));
    TRY(fs_mkdirs(options->out, err));
    TRY(run_journal_open(&e.journal, options->out, err));
    if (options->regrade) {
        TRY(run_options_recall(&e.opt, e.journal, err));
        TRY(planning_make(&e.plan, &e.opt, &e.mem, err));
    }
    TRY(check_folder(&e, err));
    TRY(fs_log_open(&e.log, file_in(&e, "log"), err));
    TRY(start_results(&e, config, err));
    TRY(samples_open(&e.store, &e.plan, file_in(&e, "samples.jsonl"), err));
    TRY(generate(&e, err));
    TRY(ask_judge(&e, err));
    TRY(judge_samples(&e, err));
    if (e.plan.shards)
        goto cleanup; /* statistics of a part of the questions would mislead */
    TRY(warn(&e, err));
    TRY(save(&e, err));
    st = check_arms(&e, err);
    *out = e.results;
    e.results = NULL;
cleanup:
    release(&e);
    return st;
}
