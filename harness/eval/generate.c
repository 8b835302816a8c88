#include "harness/eval/generate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/term.h"
#include "base/text.h"
#include "generator/generator.h"
#include "harness/eval/arm_secrets.h"
#include "harness/eval/clients.h"
#include "harness/eval/run_log.h"
#include "harness/eval/shared.h"

/* An arm stops after kGiveUpAfter consecutive failures: the server is down or refuses requests. */
enum { kGiveUpAfter = 64, kPollMs = 50, kLagWarnMs = 20 };
static const int64_t kSyncNs = 1000000000;

/* The state that all arms share. */
typedef struct {
    const eval_plan *plan;
    sample_store *store;
    fs_log *log;
    atomic_bool stop; /* after a failure: start no new request */
    atomic_int running;
    _Atomic int64_t finished, failed;
} shared_run;

typedef struct {
    shared_run *run;
    size_t arm;
    generator *gen;
    plan_cell next; /* the next cell to consider */
    int turn;       /* current turn of the conversations that continue with the arm's own answers */
    arena messages; /* of the requests of this turn */
    int failures;   /* consecutive failures */
    pthread_t thread;
    bool started;
    snap_status status;
    snap_err err;
} arm_run;

/* ---- the order of requests: by task, then sample, then problem; for the local generator by task,
 * then problem, then sample, because the samples of a problem share the cache pages of its prompt
 * ---- */

static void advance(const eval_plan *p, plan_cell *c) {
    const eval_task *t = &p->tasks[c->task];
    bool together = text_equal(p->arms[c->arm].kind, "local");
    if (together && ++c->sample < t->samples)
        return;
    c->sample = together ? 0 : c->sample;
    if (++c->problem < t->set.n)
        return;
    c->problem = 0;
    if (!together && ++c->sample < t->samples)
        return;
    c->sample = 0;
    c->task++;
}

/* ---- conversations with the arm's own answers: all requests of one turn, then those of the next
 * ---- */

/* The turn in which a cell is requested. */
static int turn_of(const eval_plan *p, plan_cell c) {
    const task_set *set = &p->tasks[c.task].set;
    return set->task->own_answers ? set->problems[c.problem].turn : 0;
}

/* True if all earlier turns have an answer. */
static bool may_follow(const shared_run *r, plan_cell c, int turns) {
    for (plan_cell before = c; turns > 0; turns--) {
        before.problem--;
        if (!samples_done(r->store, plan_index(r->plan, before)))
            return false;
    }
    return true;
}

/* Puts the arm's answers into the messages, in place of those of the data set. */
static snap_status use_own_answers(arm_run *a, plan_cell c, int turns, gen_request *out,
                                   snap_err *err) {
    const shared_run *r = a->run;
    gen_message *messages =
        arena_alloc(&a->messages, (size_t)out->n_messages + 1, sizeof *messages);
    plan_cell before = c;
    snap_status st = SNAP_OK;
    if (!messages)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
    memcpy(messages, out->messages, (size_t)out->n_messages * sizeof *messages);
    before.problem -= (size_t)turns;
    for (int i = 0; i < out->n_messages && st == SNAP_OK; i++) {
        buf text = {0};
        if (strcmp(messages[i].role, "assistant") != 0)
            continue;
        st = samples_answer(r->store, plan_index(r->plan, before), &text, err);
        messages[i].content = arena_strdup(&a->messages, buf_str(&text));
        if (st == SNAP_OK && !messages[i].content)
            st = err_set(err, SNAP_E_NOMEM, "out of memory for a conversation");
        before.problem++;
        buf_release(&text);
    }
    out->messages = messages;
    return st;
}

static bool next_request(void *ctx, gen_request *out) {
    arm_run *a = ctx;
    const shared_run *r = a->run;
    for (; a->next.task < r->plan->n_tasks; advance(r->plan, &a->next)) {
        if (atomic_load(&r->stop))
            return false;
        if (!plan_in_shard(r->plan, a->next) ||
            samples_done(r->store, plan_index(r->plan, a->next)) ||
            turn_of(r->plan, a->next) != a->turn || !may_follow(r, a->next, a->turn))
            continue;
        *out = plan_request(r->plan, a->next);
        if (a->turn)
            a->status = use_own_answers(a, a->next, a->turn, out, &a->err);
        if (a->status != SNAP_OK)
            return false;
        advance(r->plan, &a->next);
        return true;
    }
    return false;
}

static const char *arm_name(const arm_run *a) {
    return a->run->plan->arms[a->arm].name;
}

static snap_status take_result(void *ctx, const gen_request *req, const gen_result *res,
                               snap_err *err) {
    arm_run *a = ctx;
    snap_status st = samples_append(a->run->store, req, res, err);
    if (st != SNAP_OK)
        return st;
    atomic_fetch_add(&a->run->finished, 1);
    a->failures = res->failed ? a->failures + 1 : 0;
    if (!res->failed)
        return SNAP_OK;
    atomic_fetch_add(&a->run->failed, 1);
    const char *why = plan_public_message(a->run->plan, req, res->error ? res->error : "unknown");
    run_log(a->run->log, "arm %s: %s/%s sample %d failed after %d attempts: %s", arm_name(a),
            req->task, req->problem, req->sample, res->attempts, why);
    if (a->failures < kGiveUpAfter)
        return SNAP_OK;
    return err_set(err, SNAP_E_NET, "%d requests in a row failed, the last one: %s", kGiveUpAfter,
                   why);
}

static int most_turns(const eval_plan *p) {
    int most = 1;
    for (size_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].set.task->own_answers && p->tasks[i].set.turns > most)
            most = p->tasks[i].set.turns;
    return most;
}

static snap_status run_turn(arm_run *a) {
    a->next = (plan_cell){.arm = a->arm};
    snap_status st = generator_run(a->gen, next_request, a, take_result, a, &a->err);
    arena_release(&a->messages);
    return a->status != SNAP_OK ? a->status : st;
}

static void *run_arm(void *ctx) {
    arm_run *a = ctx;
    int turns = most_turns(a->run->plan);
    for (; a->turn < turns && a->status == SNAP_OK && !atomic_load(&a->run->stop); a->turn++)
        a->status = run_turn(a);
    if (a->status != SNAP_OK) {
        err_prefix(&a->err, "arm '%s'", arm_name(a));
        atomic_store(&a->run->stop, true);
    }
    atomic_fetch_sub(&a->run->running, 1);
    return NULL;
}

/* ---- all arms ---- */

static snap_status open_arm(arm_run *a, const generate_options *opt, snap_err *err) {
    const eval_arm *arm = &a->run->plan->arms[a->arm];
    arena secrets = {0};
    generator_options g = {.model = arm->model,
                           .no_stream = arm->no_stream || opt->no_stream,
                           .max_retries = arm->max_retries,
                           .timeout_s = arm->timeout_s,
                           .deadline_s = arm->deadline_s,
                           .requests_per_minute = arm->rpm,
                           .tokens_per_minute = arm->tpm,
                           .in_flight = arm->in_flight ? arm->in_flight : opt->in_flight,
                           .device = arm->device,
                           .layout = arm->layout,
                           .precision = arm->precision,
                           .context = arm->context,
                           .cache_bytes = (int64_t)arm->cache_mb << 20,
                           .threads = arm->threads,
                           .chat_template = arm->chat_template,
                           .cancel = opt->cancel};
    snap_status st = arm_secrets_read(arm, opt, &secrets, &g, err);
    if (st == SNAP_OK && (st = generator_open(&a->gen, arm->spec, &g, err)) != SNAP_OK)
        err_prefix(err, "arm '%s'", arm_name(a));
    arena_release(&secrets);
    return st;
}

static int64_t left_to_do(const shared_run *r) {
    return (int64_t)(plan_shard_cells(r->plan) - samples_done_count(r->store));
}

static snap_status start(arm_run *a, snap_err *err) {
    atomic_fetch_add(&a->run->running, 1);
    a->started = pthread_create(&a->thread, NULL, run_arm, a) == 0;
    if (a->started)
        return SNAP_OK;
    atomic_fetch_sub(&a->run->running, 1);
    atomic_store(&a->run->stop, true);
    return err_set(err, SNAP_E_NOMEM,
                   "cannot start a thread for an arm: memory or the limit on threads is exhausted");
}

static void show_progress(shared_run *r, term_progress *progress) {
    char note[40] = "";
    int64_t failed = atomic_load(&r->failed);
    if (failed)
        (void)snprintf(note, sizeof note, "%lld failed", (long long)failed);
    term_progress_update(progress, atomic_load(&r->finished), failed ? note : NULL);
}

/* While the arms run, updates the progress and, about every second, forces the rows to disk.
 * If that fails, the arms stop. */
static snap_status watch(shared_run *r, int64_t total, snap_err *err) {
    snap_status st = SNAP_OK;
    term_progress progress = term_progress_start("eval", total);
    progress.before = atomic_load(&r->finished);
    int64_t synced = clock_now_ns();
    while (atomic_load(&r->running) > 0) {
        clock_sleep_ns((int64_t)kPollMs * 1000000);
        show_progress(r, &progress);
        if (st == SNAP_OK && clock_now_ns() - synced > kSyncNs) {
            st = samples_sync(r->store, err);
            synced = clock_now_ns();
        }
        if (st != SNAP_OK)
            atomic_store(&r->stop, true);
    }
    term_progress_end(&progress);
    return st;
}

/* Finds the error that explains the others: if there is one, an error that is not the cancellation
 * that all arms share. */
static snap_status first_failure(const arm_run *arms, size_t n, snap_err *err) {
    const arm_run *worst = NULL;
    for (size_t i = 0; i < n; i++)
        if (arms[i].status != SNAP_OK && (!worst || worst->status == SNAP_E_CANCELLED))
            worst = &arms[i];
    return worst ? err_set(err, worst->status, "%s", worst->err.text) : SNAP_OK;
}

static snap_status finish(shared_run *r, arm_run *arms, int64_t total, snap_status st,
                          snap_err *err) {
    snap_status watched = watch(r, total, err);
    for (size_t i = 0; i < r->plan->n_arms; i++) {
        if (arms[i].started)
            (void)pthread_join(arms[i].thread, NULL);
        arms[i].started = false;
    }
    st = st == SNAP_OK ? watched : st;
    snap_status synced = samples_sync(r->store, st == SNAP_OK ? err : NULL);
    st = st == SNAP_OK ? synced : st;
    return st == SNAP_OK ? first_failure(arms, r->plan->n_arms, err) : st;
}

static snap_status report_load(const arm_run *a, results_journal *journal, fs_log *log,
                               snap_err *err) {
    generator_load load;
    if (!a->gen || !generator_load_of(a->gen, &load) || !load.transfers)
        return SNAP_OK;
    run_log(log,
            "arm %s: %lld transfers on %lld connections, %lld outages; client lag p99 %.2f ms, "
            "longest %.2f ms",
            arm_name(a), (long long)load.transfers, (long long)load.connections,
            (long long)load.outages, (double)load.lag_p99_ns / 1e6, (double)load.lag_max_ns / 1e6);
    if (load.lag_p99_ns > kLagWarnMs * INT64_C(1000000))
        term_warn(
            "arm %s: this client handled network events up to %.0f ms late (p99), so its times "
            "to first token and between tokens are too long by that; reserve a core for it, or "
            "lower --in-flight",
            arm_name(a), (double)load.lag_p99_ns / 1e6);
    return clients_record(journal, arm_name(a), &load, err);
}

snap_status generate_samples(const eval_plan *plan, sample_store *store,
                             const generate_options *opt, results_journal *journal, fs_log *log,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    shared_run run = {.plan = plan, .store = store, .log = log};
    int64_t total = left_to_do(&run);
    arm_run *arms = calloc(plan->n_arms, sizeof *arms);
    if (!arms)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arms");
    for (size_t i = 0; i < plan->n_arms; i++) {
        arms[i] = (arm_run){.run = &run, .arm = i};
        TRY(open_arm(&arms[i], opt, err)); /* open all arms before the first request */
    }
    for (int later = 0; later < 2 && st == SNAP_OK; later++) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n_arms && st == SNAP_OK; i++)
            if (shared_runs_later(&plan->arms[i]) == later) {
                st = start(&arms[i], err);
                n++;
            }
        if (n)
            st = finish(&run, arms, total, st, err);
    }
    for (size_t i = 0; i < plan->n_arms; i++) {
        snap_status reported = report_load(&arms[i], journal, log, st == SNAP_OK ? err : NULL);
        st = st == SNAP_OK ? reported : st;
    }
cleanup:
    for (size_t i = 0; i < plan->n_arms; i++)
        generator_close(arms[i].gen);
    free(arms);
    return st;
}
