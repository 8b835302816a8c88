/* Runs the arms in turns at a load point. */
#include <stdio.h>

#include "base/term.h"
#include "harness/eval/run_log.h"
#include "harness/serving/serving_state.h"

static const double kDefaultDurationS = 30;

static snap_status keep(void *ctx, const serving_request *r, const task_problem *problem,
                        const chat_answer *answer, snap_err *err) {
    return serving_files_add(ctx, r, problem, answer, err);
}

static snap_status drop(void *ctx, const serving_request *r, const task_problem *problem,
                        const chat_answer *answer, snap_err *err) {
    (void)ctx, (void)r, (void)problem, (void)answer, (void)err;
    return SNAP_OK;
}

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
                        .drain_s = s->opt->drain_s,
                        .part = s->part.index,
                        .parts = s->part.of};
}

/* Waits for the other parts at the beginning or the end of a block. */
static snap_status meet(serving *s, const char *where, int point, int arm, int block,
                        snap_err *err) {
    char step[MEETING_STEP];
    if (!s->meeting)
        return SNAP_OK;
    (void)snprintf(step, sizeof step, "%s of block %d %d %d", where, point, arm, block);
    return meeting_wait(s->meeting, step, err);
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
                       .drain_s = s->opt->drain_s,
                       .part = s->part.index,
                       .parts = s->part.of};
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

/* Runs block @block of some arms, all at the same time, unless it is complete. */
static snap_status run_block(serving *s, int point, const int *arms, int n, int block,
                             snap_err *err) {
    block_plan plans[SERVING_TARGETS_MAX];
    snap_status st = SNAP_OK;
    http *engine = s->engines[arms[0]];
    if (serving_files_has(&s->files, point, arms[0], block))
        return SNAP_OK;
    for (int i = 0; i < n; i++) {
        plans[i] = plan_of(s, point, arms[i], block);
        TRY(warm_up(s, point, arms[i], engine, err));
    }
    TRY(meet(s, "begin", point, arms[0], block, err));
    TRY(block_run(plans, n,
                  &(block_options){.work = &s->work,
                                   .engine = engine,
                                   .keep_text = s->opt->grade,
                                   .sink = keep,
                                   .sink_ctx = &s->files},
                  err));
    log_block(s, point, arms, n, block);
    TRY(meet(s, "end", point, arms[0], block, err));
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
    int n = s->out->n_arms, all[SERVING_TARGETS_MAX] = {0}, blocks = (int)s->opt->blocks;
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

snap_status serving_run_turn(serving *s, int point, int turn, snap_err *err) {
    int64_t done = 0;
    term_progress progress =
        term_progress_start(s->out->points.at[point].name, s->opt->blocks * s->out->n_arms);
    snap_status st = run_point(s, point, turn * (int)s->opt->blocks, &progress, &done, err);
    term_progress_end(&progress);
    return st;
}

snap_status serving_run_points(serving *s, snap_err *err) {
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
