#include "harness/eval/games.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "base/text.h"
#include "evals/arena.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/run_log.h"

enum { kMessages = 2 };

/* An answer, its reference and the games between them. It is freed when both games are over, or at
 * the end of games_play(). */
typedef struct match match;
struct match {
    match *previous_open, *next_open; /* links in the list of open matches */
    size_t cell;
    js *row, *reference_row; /* owned; reference_row is NULL if the data set has the reference, or
                                if the store lacks the row */
    span answer, reference;
    gen_message messages[ARENA_GAMES][kMessages];
    buf text[ARENA_GAMES]; /* text of the second message of each game */
    arena_game result[ARENA_GAMES];
    char *answers[ARENA_GAMES]; /* the judge's answers, or the errors of failed games; owned; result
                                   points to them */
    int started, over;
};

typedef struct {
    const eval_plan *plan;
    judged_rows rows;
    judge_model judge;
    fs_log *log;
    size_t next; /* index of the next cell to visit */
    match *open; /* matches that are not over */
    match *half; /* match whose second game has not started; NULL: none */
    snap_status status;
    snap_err *err;
    term_progress progress;
    int64_t games;
} judging;

/* ---- a match ---- */

static void match_free(match *m) {
    if (!m)
        return;
    for (int g = 0; g < ARENA_GAMES; g++) {
        buf_release(&m->text[g]);
        free(m->answers[g]);
    }
    js_free(m->row);
    js_free(m->reference_row);
    free(m);
}

static void link_match(judging *t, match *m) {
    m->next_open = t->open;
    if (t->open)
        t->open->previous_open = m;
    t->open = m;
}

static void unlink_match(judging *t, match *m) {
    *(m->previous_open ? &m->previous_open->next_open : &t->open) = m->next_open;
    if (m->next_open)
        m->next_open->previous_open = m->previous_open;
}

static span response_of(const js *row) {
    size_t n = 0;
    const char *s = js_get_strn(row, "response", &n);
    return s ? (span){s, n} : (span){"", 0};
}

static bool is_answered(const js *row) {
    return row && !js_get_bool(row, "failed", false);
}

static snap_status find_reference(judging *t, match *m, const task_problem *p, plan_cell c,
                                  snap_err *err) {
    const char *given = arena_reference(p);
    snap_status st = SNAP_OK;
    if (given) {
        m->reference = (span){given, strlen(given)};
        return SNAP_OK;
    }
    c.arm = 0;
    st = t->rows.read(t->rows.ctx, plan_index(t->plan, c), &m->reference_row, err);
    m->reference = response_of(m->reference_row);
    return st;
}

static snap_status write_prompts(match *m, const task_problem *p, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int g = 0; g < ARENA_GAMES && st == SNAP_OK; g++) {
        st = arena_game_prompt(p, g, m->reference, m->answer, &m->text[g], err);
        m->messages[g][0] = (gen_message){"system", arena_instruction(p)};
        m->messages[g][1] = (gen_message){"user", buf_str(&m->text[g])};
    }
    return st;
}

/* Makes the match of a cell. *out is NULL if the cell gets no game, for example because it has been
 * judged or because its reference is missing or failed. If the cell's answer is itself a reference,
 * its row gets its verdict here. */
static snap_status match_make(judging *t, size_t cell, match **out, snap_err *err) {
    plan_cell c = plan_cell_at(t->plan, cell);
    const task_set *set = &t->plan->tasks[c.task].set;
    const task_problem *p = &set->problems[c.problem];
    snap_status st;
    *out = NULL;
    match *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a game");
    m->cell = cell;
    TRY(t->rows.read(t->rows.ctx, cell, &m->row, err));
    if (!is_answered(m->row))
        goto cleanup;
    if (c.arm == 0 && !arena_reference(p)) {
        TRY(arena_set_reference(m->row, set->grader, err));
        TRY(t->rows.write(t->rows.ctx, cell, m->row, err));
        goto cleanup;
    }
    TRY(find_reference(t, m, p, c, err));
    m->answer = response_of(m->row);
    if ((m->reference_row && !is_answered(m->reference_row)) ||
        (!arena_reference(p) && !m->reference_row) ||
        arena_is_judged(m->row, t->judge.name, m->reference))
        goto cleanup;
    TRY(write_prompts(m, p, err));
    link_match(t, m);
    *out = m;
    m = NULL;
cleanup:
    match_free(m);
    return st;
}

/* ---- the judge's requests and answers ---- */

static bool is_due(const judging *t, size_t cell) {
    return t->plan->tasks[plan_cell_at(t->plan, cell).task].set.grader->by_model;
}

static gen_request request_of(const judging *t, match *m) {
    plan_cell c = plan_cell_at(t->plan, m->cell);
    gen_request q = judge_model_request(&t->judge, t->plan, c);
    int game = m->started++, samples = t->plan->tasks[c.task].samples;
    q.id = (int64_t)(intptr_t)m;
    q.sample = ((int)c.arm * samples + c.sample) * ARENA_GAMES + game; /* a replayed judge
                                                                          finds its answer by
                                                                          this number */
    q.messages = m->messages[game];
    q.n_messages = kMessages;
    q.sampling.seed = (uint64_t)game;
    return q;
}

static bool next_game(void *ctx, gen_request *out) {
    judging *t = ctx;
    size_t cells = plan_cells(t->plan);
    while (!t->half && t->next < cells && t->status == SNAP_OK) {
        size_t cell = t->next++;
        if (is_due(t, cell))
            t->status = match_make(t, cell, &t->half, t->err);
    }
    if (!t->half || t->status != SNAP_OK)
        return false;
    *out = request_of(t, t->half);
    if (t->half->started == ARENA_GAMES)
        t->half = NULL;
    return true;
}

static snap_status end_match(judging *t, match *m, snap_err *err) {
    plan_cell c = plan_cell_at(t->plan, m->cell);
    const task_set *set = &t->plan->tasks[c.task].set;
    snap_status st =
        arena_set_games(m->row, set->grader, t->judge.name, m->reference, m->result, err);
    return st == SNAP_OK ? t->rows.write(t->rows.ctx, m->cell, m->row, err) : st;
}

static snap_status take_game(void *ctx, const gen_request *req, const gen_result *res,
                             snap_err *err) {
    judging *t = ctx;
    match *m = (match *)(intptr_t)req->id;
    int game = req->sample % ARENA_GAMES;
    const char *text = res->failed ? res->error : res->text;
    snap_status st = SNAP_OK;
    m->answers[game] = strdup(text ? text : "");
    if (!m->answers[game])
        return err_set(err, SNAP_E_NOMEM, "out of memory for a verdict");
    m->result[game] =
        (arena_game){res->failed ? NULL : m->answers[game], res->failed ? m->answers[game] : NULL};
    if (res->failed)
        run_log(t->log, "judge: %s/%s, game %d failed after %d attempts: %s", req->task,
                req->problem, game + 1, res->attempts, m->answers[game]);
    term_progress_update(&t->progress, ++t->games, NULL);
    if (++m->over < ARENA_GAMES)
        return SNAP_OK;
    st = end_match(t, m, err);
    unlink_match(t, m);
    match_free(m);
    return st;
}

/* ---- all games ---- */

static size_t count_due(const judging *t) {
    size_t n = 0;
    for (size_t i = 0; i < plan_cells(t->plan); i++)
        n += is_due(t, i);
    return n;
}

snap_status games_check(const eval_plan *plan, const char *judge, snap_err *err) {
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].set.grader->by_model && !judge && !plan->rejudge)
            return err_set(err, SNAP_E_USAGE,
                           "task '%s' is judged by another model: give --judge-model GENERATOR",
                           plan->tasks[i].set.task->name);
    return SNAP_OK;
}

snap_status games_play(const eval_plan *plan, sample_store *store, const char *judge,
                       const generate_options *opt, results_journal *journal, fs_log *log,
                       arena *mem, snap_err *err) {
    generator *gen = NULL;
    snap_status st = SNAP_OK;
    snap_err why = {0};
    judging t = {.plan = plan, .rows = samples_rows(store), .log = log, .err = &why};
    size_t due = count_due(&t);
    if (!judge || !due)
        return SNAP_OK;
    TRY(judge_model_parse(judge, opt, mem, &t.judge, err));
    TRY(judge_model_record(journal, &t.judge, err));
    TRY(judge_model_open(&t.judge, opt, &gen, err));
    t.progress = term_progress_start("judge", (int64_t)due * ARENA_GAMES);
    st = generator_run(gen, next_game, &t, take_game, &t, err);
    term_progress_end(&t.progress);
    if (st == SNAP_OK && t.status != SNAP_OK)
        st = err_set(err, t.status, "%s", why.text);
    run_log(log, "judge: %lld games", (long long)t.games);
    if (st == SNAP_OK)
        st = samples_sync(store, err);
cleanup:
    generator_close(gen);
    for (match *m = t.open, *next_open; m;
         m = next_open) { /* games that were cancelled or given up */
        next_open = m->next_open;
        match_free(m);
    }
    return st;
}
