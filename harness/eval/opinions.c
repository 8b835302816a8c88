#include "harness/eval/opinions.h"

#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "evals/opinion.h"
#include "harness/eval/judge_model.h"
#include "harness/eval/run_log.h"

enum { kMessages = 2 };

/* An undecided answer about which the judge model is asked. row, answer and text are set only while
 * the request is in progress. */
typedef struct {
    size_t cell;
    js *row;      /* owned */
    char *answer; /* owned: the extracted answer */
    buf text;     /* the text of the second message */
    gen_message messages[kMessages];
} question;

typedef struct {
    const eval_plan *plan;
    judged_rows rows;
    judge_model judge;
    fs_log *log;
    question *at; /* [n] */
    size_t n, room, next, asked, no_opinion;
    snap_status status; /* error of the source */
    snap_err *err;
    term_progress progress;
} inquiry;

static const task_set *set_of(const inquiry *q, plan_cell c) {
    return &q->plan->tasks[c.task].set;
}

/* ---- which answers are undecided ---- */

/* Whether the row keeps the whole answer. Half of an answer gets no opinion. */
static bool is_whole(const grade_result *r) {
    return strlen(r->extracted) + 4 < GRADE_EXTRACTED_MAX; /* it is cut between characters */
}

/* Reads and grades the row of a cell. *row, which the caller owns, is NULL unless the rules leave
 * the answer undecided and this judge has given no opinion about it. */
static snap_status read_undecided(inquiry *q, size_t cell, js **row, grade_result *r,
                                  snap_err *err) {
    plan_cell c = plan_cell_at(q->plan, cell);
    const task_set *set = set_of(q, c);
    const task_problem *p = &set->problems[c.problem];
    opinion said = OPINION_NONE;
    size_t n = 0;
    *row = NULL;
    snap_status st = q->rows.read(q->rows.ctx, cell, row, err);
    if (st != SNAP_OK || !*row)
        return st;
    const char *text = js_get_strn(*row, "response", &n);
    const grade_input in = {.response = {text ? text : "", text ? n : 0},
                            .truncated = js_get_bool(*row, "truncated", false)};
    bool failed = js_get_bool(*row, "failed", false);
    if (!failed)
        st = grade_response(set->grader, p->gold, in, r, err);
    if (st == SNAP_OK && !failed && r->undecided)
        (void)opinion_find(*row, p, r->extracted, q->judge.sha256, &said);
    if (st == SNAP_OK && !failed && r->undecided && is_whole(r) && said == OPINION_NONE)
        return SNAP_OK;
    js_free(*row);
    *row = NULL;
    return st;
}

static bool add(inquiry *q, size_t cell) {
    if (q->n == q->room) {
        size_t room = q->room ? 2 * q->room : 64;
        question *more = realloc(q->at, room * sizeof *more);
        if (!more)
            return false;
        q->at = more;
        q->room = room;
    }
    q->at[q->n++] = (question){.cell = cell};
    return true;
}

static snap_status collect(inquiry *q, snap_err *err) {
    for (size_t i = 0; i < plan_cells(q->plan); i++) {
        js *row = NULL;
        grade_result r;
        if (!set_of(q, plan_cell_at(q->plan, i))->grader->mathematical)
            continue;
        snap_status st = read_undecided(q, i, &row, &r, err);
        if (st != SNAP_OK)
            return st;
        bool kept = !row || add(q, i);
        js_free(row);
        if (!kept)
            return err_set(err, SNAP_E_NOMEM, "out of memory for the questions");
    }
    return SNAP_OK;
}

/* ---- requests and replies ---- */

static void question_end(question *x) {
    js_free(x->row);
    free(x->answer);
    buf_release(&x->text);
    x->row = NULL;
    x->answer = NULL;
}

static snap_status question_start(inquiry *q, question *x, snap_err *err) {
    plan_cell c = plan_cell_at(q->plan, x->cell);
    grade_result r;
    snap_status st = read_undecided(q, x->cell, &x->row, &r, err);
    if (st != SNAP_OK || !x->row)
        return st;
    x->answer = strdup(r.extracted);
    if (!x->answer)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a question");
    st = opinion_prompt(&set_of(q, c)->problems[c.problem], x->answer, &x->text, err);
    x->messages[0] = (gen_message){"system", opinion_instruction()};
    x->messages[1] = (gen_message){"user", buf_str(&x->text)};
    return st;
}

static bool next_question(void *ctx, gen_request *out) {
    inquiry *q = ctx;
    question *x = NULL;
    while (!(x && x->row) && q->next < q->n && q->status == SNAP_OK) {
        x = &q->at[q->next++];
        q->status = question_start(q, x, q->err);
    }
    if (!x || !x->row || q->status != SNAP_OK)
        return false;
    plan_cell c = plan_cell_at(q->plan, x->cell);
    *out = judge_model_request(&q->judge, q->plan, c);
    out->id = x - q->at;
    out->sample = (int)c.arm * q->plan->tasks[c.task].samples + c.sample; /* a replayed judge finds
                                                                             a reply by it */
    out->messages = x->messages;
    out->n_messages = kMessages;
    return true;
}

static snap_status take_reply(void *ctx, const gen_request *req, const gen_result *res,
                              snap_err *err) {
    inquiry *q = ctx;
    question *x = &q->at[req->id];
    plan_cell c = plan_cell_at(q->plan, x->cell);
    const task_problem *p = &set_of(q, c)->problems[c.problem];
    const char *text = res->text ? res->text : "";
    const char *why = res->error ? res->error : "unknown";
    const opinion_reply said = {.judge = q->judge.name,
                                .judge_sha256 = q->judge.sha256,
                                .reply = res->failed ? NULL : text,
                                .error = res->failed ? why : NULL};
    opinion is = res->failed ? OPINION_NONE : opinion_parse((span){text, strlen(text)});
    if (is == OPINION_NONE)
        run_log(q->log, "second opinion: %s/%s, sample %d of arm '%s': %s", req->task, req->problem,
                c.sample, q->plan->arms[c.arm].name,
                res->failed ? why : "the reply is neither YES nor NO");
    q->asked++;
    q->no_opinion += is == OPINION_NONE;
    term_progress_update(&q->progress, (int64_t)q->asked, NULL);
    snap_status st = opinion_set(x->row, p, x->answer, &said, err);
    if (st == SNAP_OK)
        st = q->rows.write(q->rows.ctx, x->cell, x->row, err);
    question_end(x);
    return st;
}

/* ---- all questions ---- */

/* Runs the requests. If no server can be reached, or the API key is refused, the remaining answers
 * stay without an opinion. */
static snap_status ask_all(inquiry *q, generator *gen, snap_err *err) {
    snap_err why = {0};
    q->progress = term_progress_start("second opinions", (int64_t)q->n);
    snap_status st = generator_run(gen, next_question, q, take_reply, q, &why);
    term_progress_end(&q->progress);
    if (st == SNAP_E_NET) {
        term_warn("the judge model gave no second opinion about %zu of %zu undecided answers; the "
                  "same command asks again: %s",
                  q->n - q->asked + q->no_opinion, q->n, why.text);
        return SNAP_OK;
    }
    return st == SNAP_OK ? SNAP_OK : err_set(err, st, "%s", why.text);
}

static bool any_mathematical(const eval_plan *plan) {
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].set.grader->mathematical)
            return true;
    return false;
}

snap_status opinions_ask(const eval_plan *plan, sample_store *store, const char *judge,
                         const generate_options *opt, results_journal *journal, fs_log *log,
                         arena *mem, snap_err *err) {
    generator *gen = NULL;
    snap_err why = {0};
    snap_status st = SNAP_OK;
    inquiry q = {.plan = plan, .rows = samples_rows(store), .log = log, .err = &why};
    if (!judge || !any_mathematical(plan))
        return SNAP_OK;
    TRY(judge_model_parse(judge, opt, mem, &q.judge, err));
    TRY(judge_model_record(journal, &q.judge, err));
    TRY(collect(&q, err));
    if (!q.n)
        goto cleanup;
    TRY(judge_model_open(&q.judge, opt, &gen, err));
    TRY(ask_all(&q, gen, err));
    if (q.status != SNAP_OK)
        TRY(err_set(err, q.status, "%s", why.text));
    run_log(log, "second opinions: %zu asked, %zu without an opinion", q.asked, q.no_opinion);
    TRY(samples_sync(store, err));
cleanup:
    generator_close(gen);
    for (size_t i = 0; i < q.n; i++) /* also those that were cancelled or given up */
        question_end(&q.at[i]);
    free(q.at);
    return st;
}
