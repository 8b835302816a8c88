/* Reads the options of a serving benchmark: loads, work and arms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "base/term.h"
#include "base/text.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/suite.h"
#include "harness/serving/serving_state.h"

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

/* True if each load is a closed loop. --prefixes 0 needs this, because it stands for the number of
 * users. */
static bool is_closed_loops(const serving_options *o) {
    bool open_search = o->search && text_starts(o->search, "rate:");
    return (o->concurrency || o->search) && !o->rate && !o->ramp && !o->speed && !open_search;
}

static snap_status check_options(const serving_options *o, snap_err *err) {
    if (!o->out)
        return err_set(err, SNAP_E_USAGE, "no folder for the run: give --out RUN");
    if (!o->arms.n || o->arms.n > SERVING_TARGETS_MAX)
        return err_set(err, SNAP_E_USAGE, "give 1 to %d arms: --arm NAME=URL",
                       (int)SERVING_TARGETS_MAX);
    if (o->speed && !o->trace)
        return err_set(err, SNAP_E_USAGE, "--speed needs --trace FILE");
    if (o->trace && o->prompts)
        return err_set(err, SNAP_E_USAGE, "--trace and --prompts cannot be given together");
    if (o->grade && !o->prompts)
        return err_set(err, SNAP_E_USAGE, "--grade needs --prompts task:NAME");
    if (o->ramp && o->duration_s <= 0)
        return err_set(err, SNAP_E_USAGE, "--ramp needs --duration S: the time of the ramp");
    if (!o->prefixes && !is_closed_loops(o))
        return err_set(
            err, SNAP_E_USAGE,
            "--prefixes 0 means one prefix for each user, so it needs --concurrency LIST "
            "or --search concurrency:A-B");
    return o->search ? check_search(o, err) : SNAP_OK;
}

static snap_status parse_part(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    if (!o->part != !o->meet)
        return err_set(err, SNAP_E_USAGE,
                       "--part I/N and --meet HOST:PORT must be given together: the parts begin "
                       "each block at the same time");
    if (o->part &&
        (shard_parse(o->part, &s->part, NULL) != SNAP_OK || s->part.of > MEETING_PARTS_MAX))
        return err_set(err, SNAP_E_USAGE,
                       "--part '%s' must be I/N, the number of this part and of all parts: 1/2 "
                       "and 2/2 (at most %d parts)",
                       o->part, MEETING_PARTS_MAX);
    if (o->part && (o->search || o->grade))
        return err_set(err, SNAP_E_USAGE,
                       "%s needs the requests of all parts: it cannot be given with --part",
                       o->search ? "--search" : "--grade");
    return SNAP_OK;
}

/* Each part needs at least one user. */
static snap_status check_users(const serving *s, snap_err *err) {
    for (int p = 0; p < s->out->points.n; p++) {
        int64_t users = s->out->points.at[p].load.users;
        if (users && users < s->part.of)
            return err_set(err, SNAP_E_USAGE,
                           "--concurrency %lld has fewer users than --part %s has parts",
                           (long long)users, s->opt->part);
    }
    return SNAP_OK;
}

/* Loads the task of --prompts task:NAME. */
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
        return serving_no_memory(err);
    for (int i = 0; i < s->out->n_arms && st == SNAP_OK; i++)
        st = parse_arm(s, i, err);
    return st;
}

static snap_status parse_search(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    serving_measure_options options = SERVING_MEASURE_DEFAULTS;
    load_range range;
    options.arms = o->arms.n;
    options.targets = o->targets;
    options.seed = (uint64_t)o->seed;
    snap_status st = load_range_parse(o->search, &range, err);
    if (st == SNAP_OK)
        s->search = load_search_make(&range, &options);
    return st == SNAP_OK
               ? arrival_pattern_parse(o->arrivals ? o->arrivals : "poisson", &s->pattern, err)
               : st;
}

static snap_status parse_load(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    return o->search ? parse_search(s, err)
                     : load_points_parse(o->concurrency, o->rate, o->ramp, o->speed, o->arrivals,
                                         &s->out->points, err);
}

snap_status serving_setup(serving *s, snap_err *err) {
    snap_status st;
    TRY(check_options(s->opt, err));
    TRY(parse_part(s, err));
    TRY(parse_load(s, err));
    TRY(check_users(s, err));
    TRY(parse_work(s, err));
    TRY(parse_arms(s, err));
cleanup:
    return st;
}

snap_status serving_setup_read(serving *s, snap_err *err) {
    const serving_options *o = s->opt;
    snap_status st = parse_load(s, err);
    s->out->n_arms = o->arms.n;
    s->out->arms = arena_alloc(s->mem, (size_t)o->arms.n + 1, sizeof *s->out->arms);
    if (!s->out->arms)
        return serving_no_memory(err);
    for (int i = 0; i < o->arms.n && st == SNAP_OK; i++) {
        eval_arm arm;
        st = arm_parse("--arm", o->arms.items[i], o->arms.from_file, s->mem, &arm, err);
        if (st == SNAP_OK)
            s->out->arms[i] = facts_of(&arm);
    }
    return st;
}
