#include "harness/serving/serving_run.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/share.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/run_files.h"
#include "harness/eval/run_log.h"
#include "harness/eval/suite.h"
#include "harness/serving/calibrate.h"
#include "harness/serving/serving_files.h"

enum { kMostArms = 16 };
static const double kDefaultDurationS = 30;

typedef struct {
    const serving_options *opt;
    serving_result *out;
    arena *mem;
    serving_work work;
    prompt_maker maker;
    trace trace;
    task_set task;
    gen_sampling sampling;
    serving_target targets[kMostArms];
    http *engines[kMostArms];
    int warm[kMostArms]; /* the load point at which an arm was warmed up, plus 1 */
    load_range range;    /* of the search */
    arrival_pattern pattern;
    double tried[LOAD_POINTS_MAX]; /* loads of the points that the search chose */
    int turns[LOAD_POINTS_MAX];    /* how often it chose each */
    int choices;
    serving_files files;
} serving;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the benchmark");
}

/* ---- options ---- */

static snap_status check_search(const serving_options *o, snap_err *err) {
    if (o->concurrency || o->rate || o->ramp || o->speed)
        return err_set(err, SNAP_E_USAGE,
                       "--search chooses the loads: leave out --concurrency, --rate, --ramp and "
                       "--speed");
    if (!o->targets.n)
        return err_set(err, SNAP_E_USAGE, "--search needs targets: --slo ttft_p99=500ms");
    if (o->blocks * LOAD_SEARCH_TURNS_EACH > SLICES_MOST)
        return err_set(err, SNAP_E_USAGE, "--search takes at most --blocks %d",
                       SLICES_MOST / LOAD_SEARCH_TURNS_EACH);
    if (o->arms.n > SERVING_ARMS_MAX)
        return err_set(err, SNAP_E_USAGE, "--search takes at most %d arms", SERVING_ARMS_MAX);
    return SNAP_OK;
}

static snap_status check_options(const serving_options *o, snap_err *err) {
    if (!o->out)
        return err_set(err, SNAP_E_USAGE, "no folder for the run: give --out RUN");
    if (!o->arms.n || o->arms.n > kMostArms)
        return err_set(err, SNAP_E_USAGE, "give 1 to %d arms: --arm NAME=URL", (int)kMostArms);
    if (o->speed && !o->trace)
        return err_set(err, SNAP_E_USAGE, "--speed needs --trace FILE");
    if (o->trace && o->prompts)
        return err_set(err, SNAP_E_USAGE, "--trace and --prompts cannot be given together");
    if (o->grade && !o->prompts)
        return err_set(err, SNAP_E_USAGE, "--grade needs --prompts task:NAME");
    if (o->ramp && o->duration_s <= 0)
        return err_set(err, SNAP_E_USAGE, "--ramp needs --duration S: the time of the ramp");
    return o->search ? check_search(o, err) : SNAP_OK;
}

/* The prompts of --prompts task:NAME. */
static snap_status load_task(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    suite found;
    char *data = o->data ? NULL : share_find("datasets");
    const char *from = o->data ? o->data : data;
    snap_status st = SNAP_OK;
    if (!text_starts(o->prompts, "task:"))
        TRY(err_set(err, SNAP_E_USAGE, "--prompts '%s' must be task:NAME", o->prompts));
    TRY(from ? SNAP_OK : err_set(err, SNAP_E_USAGE, "no data folder: give --data DIR"));
    TRY(suite_resolve(o->prompts + strlen("task:"), s->mem, &found, err));
    if (found.n != 1)
        TRY(err_set(err, SNAP_E_USAGE, "--prompts '%s' must name one task", o->prompts));
    TRY(task_load(found.tasks[0].task, from, 0, NULL, &s->task, err));
    s->sampling = found.tasks[0].sampling;
    s->work.task = &s->task;
    if (o->grade)
        TRY(answers_check_task(&s->task, err));
cleanup:
    free(data);
    return st;
}

static snap_status parse_work(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    snap_status st;
    s->sampling = (gen_sampling){.temperature = 0, .top_p = 1, .max_tokens = WORK_MOST_TOKENS};
    s->work = (serving_work){.seed = (uint64_t)o->seed,
                             .has_output = o->output != NULL,
                             .turns = (int)o->turns,
                             .prefix_share = o->prefix_share,
                             .prefixes = o->prefixes,
                             .maker = &s->maker};
    TRY(draw_parse("--input", o->input ? o->input : "512", 1, WORK_MOST_TOKENS, s->mem,
                   &s->work.input, err));
    TRY(draw_parse("--output", o->output ? o->output : "128", 1, WORK_MOST_TOKENS, s->mem,
                   &s->work.output, err));
    TRY(draw_parse("--think", o->think ? o->think : "0", 0, 86400, s->mem, &s->work.think, err));
    if (o->trace) {
        TRY(trace_read(o->trace, &s->trace, err));
        s->work.trace = &s->trace;
        if (s->trace.unanswered)
            term_warn("%s: %zu requests without an answer are left out", o->trace,
                      s->trace.unanswered);
    }
    if (o->prompts)
        TRY(load_task(s, err));
    s->work.has_output = o->output || (!o->prompts && !o->trace);
    if (o->temperature >= 0)
        s->sampling.temperature = o->temperature;
    if (o->max_tokens)
        s->sampling.max_tokens = (int)o->max_tokens;
cleanup:
    return st;
}

/* The URLs have no credentials: arm_parse() refuses them. */
static serving_arm_facts facts_of(const eval_arm *arm) {
    return (serving_arm_facts){.name = arm->name,
                               .endpoint = arm->spec,
                               .model = arm->model ? arm->model : "",
                               .precision = arm->precision ? arm->precision : ""};
}

static snap_status parse_arm(serving *s, int i, snap_err *err) {
    const serving_options *o = s->opt;
    eval_arm arm;
    bool ignore_eos = o->ignore_eos && !o->prompts;
    snap_status st = arm_parse("--arm", o->arms.items[i], o->arms.from_file, s->mem, &arm, err);
    if (st == SNAP_OK)
        st = serving_target_make(&arm, &s->sampling, ignore_eos, &o->generate, s->mem,
                                 &s->targets[i], err);
    for (int k = 0; k < i && st == SNAP_OK; k++)
        if (strcmp(s->targets[k].name, arm.name) == 0)
            st = err_set(err, SNAP_E_USAGE, "--arm %s: the name is given twice", arm.name);
    if (st == SNAP_OK)
        s->out->arms[i] = facts_of(&arm);
    return st;
}

static snap_status parse_arms(serving *s, snap_err *err) {
    snap_status st = SNAP_OK;
    s->out->n_arms = s->opt->arms.n;
    s->out->arms = arena_alloc(s->mem, (size_t)s->out->n_arms, sizeof *s->out->arms);
    if (!s->out->arms)
        return no_memory(err);
    for (int i = 0; i < s->out->n_arms && st == SNAP_OK; i++)
        st = parse_arm(s, i, err);
    return st;
}

/* ---- requests ---- */

static snap_status keep(void *ctx, const serving_request *r, const task_problem *problem,
                        const chat_answer *answer, snap_err *err) {
    return serving_files_add(ctx, r, problem, answer, err);
}

static snap_status drop(void *ctx, const serving_request *r, const task_problem *problem,
                        const chat_answer *answer, snap_err *err) {
    (void)ctx, (void)r, (void)problem, (void)answer, (void)err;
    return SNAP_OK;
}

/* ---- prompts ---- */

static snap_status restore_prompts(serving *s, const js *row) {
    s->maker.around = js_get_num(row, "around", s->maker.around);
    s->maker.tokens_per_word = js_get_num(row, "tokens_per_word", s->maker.tokens_per_word);
    s->out->counted = js_get_bool(row, "counted", false);
    return SNAP_OK;
}

static snap_status calibrate(serving *s, snap_err *err) {
    const js *before = results_journal_find(s->files.journal, "prompts");
    js *row;
    snap_status st;
    if (before)
        return restore_prompts(s, before);
    st = calibrate_prompts(&s->targets[0], s->engines[0], &s->maker, s->work.seed, &s->out->counted,
                           err);
    if (st != SNAP_OK)
        return st;
    if (!s->out->counted)
        term_warn("arm '%s' reports no usage: prompts have the stated number of %s, and TPOT is "
                  "unknown",
                  s->targets[0].name,
                  s->maker.one_token ? "the tokenizer's tokens, without those of the chat template"
                                     : "words");
    row = js_new_object();
    if (row && js_set_num(row, "around", s->maker.around) &&
        js_set_num(row, "tokens_per_word", s->maker.tokens_per_word) &&
        js_set_bool(row, "counted", s->out->counted))
        return run_journal_put(s->files.journal, "prompts", row, err);
    js_free(row);
    return no_memory(err);
}

static snap_status prepare_prompts(serving *s, snap_err *err) {
    s->out->counted = s->work.task != NULL;
    if (s->work.task)
        return SNAP_OK;
    snap_status st = prompts_open(&s->maker, s->opt->tokenizer, err);
    if (st == SNAP_OK && s->opt->tokenizer && !s->maker.one_token)
        term_warn("the vocabulary of '%s' has too few whole words: lengths of prompts are "
                  "approximate",
                  s->opt->tokenizer);
    return st == SNAP_OK ? calibrate(s, err) : st;
}

/* ---- blocks ---- */

static block_plan plan_of(serving *s, int point, int arm, int block) {
    const load_point *p = &s->out->points.at[point];
    bool by_trace = !p->load.users && p->load.rate <= 0;
    bool limited = s->opt->duration_s > 0 || s->opt->requests > 0 || by_trace;
    return (block_plan){.target = &s->targets[arm],
                        .arm = arm,
                        .point = point,
                        .block = block,
                        .load = p->load,
                        .duration_s = limited ? s->opt->duration_s : kDefaultDurationS,
                        .requests = s->opt->requests,
                        .drain_s = s->opt->drain_s};
}

static snap_status warm_up(serving *s, int point, int arm, http *engine, snap_err *err) {
    if (!s->opt->warmup || s->warm[arm] == point + 1)
        return SNAP_OK;
    s->warm[arm] = point + 1;
    int64_t users = s->out->points.at[point].load.users, n = s->opt->warmup;
    block_plan plan = {.target = &s->targets[arm],
                       .point = point,
                       .block = -1, /* other prompts than those of the blocks */
                       .load = {.users = users && users < n ? users : n},
                       .requests = n,
                       .drain_s = s->opt->drain_s};
    block_options options = {.work = &s->work, .engine = engine, .sink = drop};
    return block_run(&plan, 1, &options, err);
}

static void log_block(serving *s, int point, const int *arms, int n, int block) {
    http_stats stats = http_stats_of(s->engines[arms[0]]);
    run_log(&s->files.log,
            "%s, block %d of %s%s: %lld requests; lag of all events so far: p50 %.3f ms, p99 "
            "%.3f ms, max %.3f ms",
            s->out->points.at[point].name, block, s->targets[arms[0]].name,
            n > 1 ? " and the other arms" : "", (long long)s->files.written,
            (double)stats.lag_p50_ns * 1e-6, (double)stats.lag_p99_ns * 1e-6,
            (double)stats.lag_max_ns * 1e-6);
}

/* Runs block @block of some arms, all at the same time. */
static snap_status run_block(serving *s, int point, const int *arms, int n, int block,
                             snap_err *err) {
    block_plan plans[kMostArms];
    snap_status st = SNAP_OK;
    http *engine = s->engines[arms[0]];
    if (serving_files_has(&s->files, point, arms[0], block))
        return SNAP_OK;
    for (int i = 0; i < n; i++) {
        plans[i] = plan_of(s, point, arms[i], block);
        TRY(warm_up(s, point, arms[i], engine, err));
    }
    TRY(block_run(plans, n,
                  &(block_options){.work = &s->work,
                                   .engine = engine,
                                   .keep_text = s->opt->grade,
                                   .sink = keep,
                                   .sink_ctx = &s->files},
                  err));
    log_block(s, point, arms, n, block);
    TRY(serving_files_finish(&s->files, point, arms, n, block, err));
cleanup:
    return st;
}

/* Which arm takes turn @i: A B B A A B B A ... */
static int arm_of(int i, int n) {
    int round = i / n, at = i % n;
    return round % 2 ? n - 1 - at : at;
}

/* Runs the blocks of all arms at a load point, from block @first on. */
static snap_status run_point(serving *s, int point, int first, term_progress *progress,
                             int64_t *done, snap_err *err) {
    snap_status st = SNAP_OK;
    int n = s->out->n_arms, all[kMostArms] = {0}, blocks = (int)s->opt->blocks;
    for (int i = 0; i < n; i++)
        all[i] = i;
    for (int i = 0; i < blocks * n && st == SNAP_OK; i++, ++*done) {
        int arm = arm_of(i, n);
        term_progress_update(progress, *done, s->out->points.at[point].name);
        if (!s->opt->concurrent_arms)
            st = run_block(s, point, &arm, 1, first + i / n, err);
        else if (i % n == 0)
            st = run_block(s, point, all, n, first + i / n, err);
    }
    return st;
}

static snap_status run_points(serving *s, snap_err *err) {
    int points = s->out->points.n;
    int64_t done = 0;
    snap_status st = SNAP_OK;
    term_progress progress =
        term_progress_start("serving", points * s->opt->blocks * s->out->n_arms);
    for (int p = 0; p < points && st == SNAP_OK; p++)
        st = run_point(s, p, 0, &progress, &done, err);
    term_progress_end(&progress);
    return st;
}

/* ---- the search ---- */

/* Notes that the search chose a load. Returns its point; -1: there are too many. */
static int choose(serving *s, double load) {
    load_points *points = &s->out->points;
    int p = 0;
    while (p < points->n && fabs(s->tried[p] - load) > 1e-9 * load)
        p++;
    if (p == LOAD_POINTS_MAX)
        return -1;
    if (p == points->n) {
        points->at[points->n++] = load_range_point(&s->range, load, s->pattern);
        s->tried[p] = load;
    }
    s->turns[p]++;
    s->choices++;
    return p;
}

static void choice_key(char key[32], int choice) {
    (void)snprintf(key, 32, "choice %d", choice);
}

/* The choices of the runs that this one continues. */
static snap_status restore_choices(serving *s, snap_err *err) {
    char key[32];
    for (;;) {
        choice_key(key, s->choices);
        const js *row = results_journal_find(s->files.journal, key);
        double load = js_get_num(row, "load", 0);
        if (!row)
            return SNAP_OK;
        int p = load >= s->range.least && load <= s->range.most ? choose(s, load) : -1;
        if (p < 0 || s->turns[p] > LOAD_SEARCH_TURNS_EACH)
            return err_set(err, SNAP_E_INPUT,
                           "the journal of '%s' has an impossible load: choose "
                           "another --out",
                           s->opt->out);
    }
}

static snap_status keep_choice(serving *s, double load, snap_err *err) {
    char key[32];
    js *row = js_new_object();
    choice_key(key, s->choices);
    if (row && js_set_num(row, "load", load))
        return run_journal_put(s->files.journal, key, row, err);
    js_free(row);
    return no_memory(err);
}

/* Runs the blocks of one choice that are not complete. */
static snap_status run_choice(serving *s, int point, int turn, snap_err *err) {
    int64_t done = 0;
    term_progress progress =
        term_progress_start(s->out->points.at[point].name, s->opt->blocks * s->out->n_arms);
    snap_status st = run_point(s, point, (turn - 1) * (int)s->opt->blocks, &progress, &done, err);
    term_progress_end(&progress);
    return st;
}

static snap_status next_load(serving *s, double *load, snap_err *err) {
    serving_measure_options o = SERVING_MEASURE_DEFAULTS;
    request_list list = {0};
    char *lines = serving_files_path(&s->files, "requests.jsonl");
    snap_status st = lines ? request_lines_read(lines, &list, err) : no_memory(err);
    o.arms = s->out->n_arms;
    o.targets = s->opt->targets;
    o.seed = (uint64_t)s->opt->seed;
    if (st == SNAP_OK)
        st = load_search_next(&s->range, list.at, list.n, s->tried, s->turns, s->out->points.n, &o,
                              load, err);
    request_list_release(&list);
    free(lines);
    return st;
}

static snap_status run_search(serving *s, snap_err *err) {
    snap_status st = SNAP_OK;
    double load;
    for (int p = 0; p < s->out->points.n; p++)
        for (int turn = 1; turn <= s->turns[p]; turn++)
            TRY(run_choice(s, p, turn, err));
    for (;;) {
        TRY(next_load(s, &load, err));
        if (isnan(load) || s->out->points.n == LOAD_POINTS_MAX)
            break;
        TRY(keep_choice(s, load, err));
        int p = choose(s, load);
        TRY(run_choice(s, p, s->turns[p], err));
    }
cleanup:
    return st;
}

/* ---- the whole ---- */

static snap_status parse_load(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    if (!o->search)
        return load_points_parse(o->concurrency, o->rate, o->ramp, o->speed, o->arrivals,
                                 &s->out->points, err);
    snap_status st = load_range_parse(o->search, &s->range, err);
    return st == SNAP_OK
               ? arrival_pattern_parse(o->arrivals ? o->arrivals : "poisson", &s->pattern, err)
               : st;
}

/* Each request in flight needs a socket. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static snap_status open_engines(serving *s, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < s->out->n_arms && st == SNAP_OK; i++)
        st = http_create(&s->engines[i], BLOCK_IN_FLIGHT_MAX, s->opt->generate.cancel, err);
    return st;
}

static snap_status explain(const serving *s, snap_status st, snap_err *err) {
    char why[400] = "interrupted";
    if (st != SNAP_E_CANCELLED)
        (void)snprintf(why, sizeof why, "%.399s", err->text);
    *err = (snap_err){0};
    return err_set(err, st, "%s: complete blocks are kept in '%s'; the same command continues", why,
                   s->opt->out);
}

/* Reads the files: they also have what earlier, interrupted runs did. */
static snap_status read_result(serving *s, snap_err *err) {
    serving_result *r = s->out;
    char *lines = serving_files_path(&s->files, "requests.jsonl"),
         *answers = serving_files_path(&s->files, "answers.jsonl");
    snap_status st = lines && answers ? SNAP_OK : no_memory(err);
    TRY(st);
    TRY(request_lines_read(lines, &r->requests, err));
    if (!s->opt->grade || r->n_arms < 2)
        goto cleanup;
    r->n_parity = r->points.n * (r->n_arms - 1);
    r->parity = arena_alloc(s->mem, (size_t)r->n_parity, sizeof *r->parity);
    TRY(r->parity ? SNAP_OK : no_memory(err));
    TRY(answers_compare(answers, &s->task, r->points.n, r->n_arms, s->opt->margin_pp / 100,
                        r->parity, err));
cleanup:
    free(lines);
    free(answers);
    return st;
}

static snap_status run_all(serving *s, const js *config, snap_err *err) {
    const serving_options *o = s->opt;
    snap_status st;
    TRY(check_options(o, err));
    TRY(parse_load(s, err));
    TRY(parse_work(s, err));
    TRY(parse_arms(s, err));
    TRY(serving_files_open(&s->files, config, err));
    raise_file_limit();
    TRY(open_engines(s, err));
    if (o->search)
        TRY(restore_choices(s, err));
    TRY(serving_files_resume(&s->files, o->grade, s->out->points.n, s->out->n_arms,
                             (int)o->blocks * (o->search ? LOAD_SEARCH_TURNS_EACH : 1), err));
    TRY(prepare_prompts(s, err));
    st = o->search ? run_search(s, err) : run_points(s, err);
    if (st != SNAP_OK)
        TRY(explain(s, st, err));
    TRY(read_result(s, err));
cleanup:
    return st;
}

snap_status serving_run(const serving_options *o, const js *config, serving_result *out,
                        snap_err *err) {
    *out = (serving_result){0};
    serving *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    s->opt = o;
    s->out = out;
    s->mem = &out->mem;
    s->files = serving_files_make(o->out);
    snap_status st = run_all(s, config, err);
    for (int i = 0; i < kMostArms; i++) {
        http_free(s->engines[i]);
        serving_target_release(&s->targets[i]);
    }
    prompts_release(&s->maker);
    trace_release(&s->trace);
    task_set_release(&s->task);
    serving_files_close(&s->files);
    free(s);
    return st;
}

void serving_result_release(serving_result *r) {
    request_list_release(&r->requests);
    arena_release(&r->mem);
    *r = (serving_result){0};
}
