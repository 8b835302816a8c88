#include "harness/eval/forecast_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/share.h"
#include "base/text.h"
#include "evals/forecast.h"
#include "generator/local/follow.h"
#include "harness/eval/suite.h"

typedef struct {
    const forecast_options *opt;
    char *precision[FORECAST_FORMATS]; /* owned */
    local_model model[FORECAST_FORMATS];
    int n;
    int samples; /* largest number of answers to a problem, over all tasks */
    arena mem;
    suite suite;
    task_set set; /* of the current task */
    follow *follow;
    forecast_answer *answers;    /* [n][problems][samples of the task] */
    double *seen;                /* [problems] as in forecast_make(), of the format of a row */
    double kl[FORECAST_FORMATS]; /* follow_reading.kl, summed over the answers of the task */
    int64_t done;                /* answers of all tasks */
} forecasting;

/* ---- options ---- */

static snap_status add_format(void *ctx, const char *name, snap_err *err) {
    forecasting *f = ctx;
    kv_format parsed;
    snap_status st = kv_format_parse(name, &parsed, err);
    if (st != SNAP_OK)
        return st;
    if (f->n == FORECAST_FORMATS)
        return err_set(err, SNAP_E_USAGE, "at most %d precisions", FORECAST_FORMATS);
    f->precision[f->n] = strdup(name);
    return f->precision[f->n++] ? SNAP_OK
                                : err_set(err, SNAP_E_NOMEM, "out of memory for a precision");
}

static void override(const forecast_options *o, suite_task *t) {
    gen_sampling *s = &t->sampling;
    t->samples = o->samples ? (int)o->samples : t->samples;
    s->max_tokens = o->max_tokens ? (int)o->max_tokens : s->max_tokens;
    s->temperature = o->temperature >= 0 ? o->temperature : s->temperature;
    if (s->temperature <= 0)
        t->samples = 1; /* greedy answers are all the same */
}

static snap_status check_task(const suite_task *t, snap_err *err) {
    const gen_sampling *s = &t->sampling;
    const char *why = NULL;
    if (t->task->own_answers)
        why = "its conversations continue with the arm's own answers";
    else if (s->presence_penalty != 0 || s->frequency_penalty != 0 ||
             (s->repetition_penalty > 0 && s->repetition_penalty != 1))
        why = "its sampling has penalties";
    else if (t->samples > LOCAL_SEQUENCES)
        why = "a problem has more than 32 answers (give --samples)";
    else if (s->temperature > 0 && t->samples < 2)
        why =
            "one answer to each problem is too few for a temperature above 0 (give --samples 2 or "
            "more)";
    return why ? err_set(err, SNAP_E_USAGE, "--predict: '%s' cannot be predicted: %s",
                         t->task->name, why)
               : SNAP_OK;
}

static snap_status read_suite(forecasting *f, snap_err *err) {
    snap_status st;
    TRY(suite_resolve(f->opt->suite, &f->mem, &f->suite, err));
    for (size_t i = 0; i < f->suite.n; i++) {
        suite_task *t = &f->suite.tasks[i];
        override(f->opt, t);
        TRY(check_task(t, err));
        f->samples = t->samples > f->samples ? t->samples : f->samples;
    }
cleanup:
    return st;
}

static snap_status open_models(forecasting *f, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < f->n; i++) {
        const local_options how = {.precision = f->precision[i],
                                   .sequences = f->samples,
                                   .threads = f->opt->threads,
                                   .device = local_device_of(f->opt->device, i)};
        TRY(local_open(&f->model[i], f->opt->dir, &how, err));
    }
cleanup:
    return st;
}

/* ---- one task ---- */

static snap_status load_task(forecasting *f, const suite_task *t, const char *data, snap_err *err) {
    const task_options options = {
        .lengths = f->opt->lengths, .tokenizer = f->opt->dir, .seed = f->opt->seed};
    snap_status st = task_load(t->task, data, (size_t)f->opt->limit, &options, &f->set, err);
    const grader *g = f->set.grader;
    if (st == SNAP_OK && (grade_runs_programs(g) || g->by_model || g->recorded))
        st = err_set(err, SNAP_E_USAGE,
                     "--predict: '%s' cannot be predicted: its answers are not graded by rules",
                     t->task->name);
    return st;
}

static forecast_answer *answer_of(const forecasting *f, int format, size_t problem, int samples) {
    return f->answers + ((size_t)format * f->set.n + problem) * (size_t)samples;
}

static snap_status grade(const forecasting *f, const task_problem *p, const follow_answer *a,
                         bool *right, snap_err *err) {
    grade_result r = {0};
    const grade_input in = {.response = {buf_str(&a->text), a->text.len},
                            .truncated = a->truncated};
    snap_status st = grade_response(f->set.grader, p->gold, in, &r, err);
    *right = r.verdict == GRADE_CORRECT;
    return st;
}

static snap_status ask(forecasting *f, const suite_task *t, size_t problem, snap_err *err) {
    snap_status st;
    const task_problem *p = &f->set.problems[problem];
    const gen_sampling *s = &t->sampling;
    const sampling how = {
        .temperature = s->temperature, .top_p = s->top_p, .top_k = s->top_k, .min_p = s->min_p};
    const follow_answer *answers;
    rng seeds = rng_make(f->opt->seed, rng_stream_of(p->id));
    TRY(follow_prompt(f->follow, p->messages, p->n_messages, &how, rng_u64(&seeds), s->max_tokens,
                      &answers, err));
    for (int k = 0; k < t->samples; k++) {
        bool right;
        TRY(grade(f, p, &answers[k], &right, err));
        for (int m = 0; m < f->n; m++) {
            const follow_reading *r = &answers[k].reading[m];
            answer_of(f, m, problem, t->samples)[k] = (forecast_answer){.ratio = exp(r->log_ratio),
                                                                        .diverged = r->diverged,
                                                                        .unseen = r->unseen,
                                                                        .right = right};
            f->kl[m] += r->kl;
        }
    }
    f->done += t->samples;
    if (f->opt->progress)
        f->opt->progress(f->opt->ctx, f->done);
cleanup:
    return st;
}

static snap_status emit(const forecasting *f, const suite_task *t, int format, snap_err *err) {
    forecast made;
    snap_status st = forecast_make(answer_of(f, format, 0, t->samples), f->set.n,
                                   (size_t)t->samples, f->seen, &made, err);
    if (st != SNAP_OK)
        return st;
    model_record row = model_record_new("forecast");
    row.precision = kv_cache_precision(runner_cache(f->model[format].runner));
    row.reference = kv_cache_precision(runner_cache(f->model[0].runner));
    row.task = t->task->name;
    row.data_sha256 = f->set.sha256;
    row.problems = (int64_t)f->set.n;
    row.answers = row.problems * t->samples;
    row.mixed_problems = (int64_t)made.mixed;
    row.temperature = t->sampling.temperature;
    row.top_p = t->sampling.top_p;
    row.accuracy_pct = 100 * made.accuracy;
    row.kl_answer = f->kl[format] / (double)row.answers;
    row.diverged_pct = 100 * made.diverged;
    row.unseen_pct = 100 * made.unseen;
    row.delta_pp = 100 * made.delta;
    row.ci95_pp[0] = 100 * made.ci95.lo;
    row.ci95_pp[1] = 100 * made.ci95.hi;
    row.se_pp = 100 * made.se;
    row.assumed_se_pp = 100 * made.assumed_se;
    for (size_t i = 0; i < f->set.n; i++)
        f->seen[i] *= 100;
    row.seen_pp = (record_numbers){f->seen, f->set.n};
    return f->opt->emit(f->opt->ctx, &row, err);
}

static snap_status run_task(forecasting *f, const suite_task *t, const char *data, snap_err *err) {
    snap_status st;
    const follow_options what = {
        .models = f->model, .n = f->n, .answers = t->samples, .cancel = f->opt->cancel};
    memset(f->kl, 0, sizeof f->kl);
    TRY(load_task(f, t, data, err));
    f->answers = calloc((size_t)f->n * f->set.n * (size_t)t->samples, sizeof *f->answers);
    f->seen = calloc(f->set.n, sizeof *f->seen);
    if (!f->answers || !f->seen)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for answers"));
    TRY(follow_create(&f->follow, &what, err));
    for (size_t i = 0; i < f->set.n; i++)
        TRY(ask(f, t, i, err));
    for (int m = 1; m < f->n; m++)
        TRY(emit(f, t, m, err));
cleanup:
    follow_free(f->follow);
    f->follow = NULL;
    free(f->answers);
    f->answers = NULL;
    free(f->seen);
    f->seen = NULL;
    task_set_release(&f->set);
    f->set = (task_set){0};
    return st;
}

snap_status forecast_run(const forecast_options *opt, snap_err *err) {
    snap_status st;
    forecasting *f = calloc(1, sizeof *f);
    char *shipped = NULL;
    if (!f)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a forecast");
    f->opt = opt;
    TRY(text_split(opt->formats, ',', "precisions", add_format, f, err));
    if (f->n < 2)
        TRY(err_set(err, SNAP_E_USAGE, "--predict needs at least two --precisions"));
    TRY(read_suite(f, err));
    if (!opt->data && !(shipped = share_find("datasets")))
        TRY(err_set(err, SNAP_E_USAGE, "no data: give --data"));
    TRY(open_models(f, err));
    for (size_t i = 0; i < f->suite.n; i++)
        TRY(run_task(f, &f->suite.tasks[i], opt->data ? opt->data : shipped, err));
cleanup:
    for (int i = 0; i < f->n; i++) {
        local_close(&f->model[i]);
        free(f->precision[i]);
    }
    arena_release(&f->mem);
    free(shipped);
    free(f);
    return st;
}
