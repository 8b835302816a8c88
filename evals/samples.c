#include "evals/samples.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/text.h"
#include "evals/arena.h"
#include "evals/extract.h"
#include "generator/settings.h"

enum { kRowLimit = 256 << 20 };

typedef struct {
    int64_t at; /* offset of the row; -1: none */
    size_t len; /* including the newline */
    bool failed;
} slot;

struct sample_store {
    const eval_plan *plan;
    char *path;
    fs_log log;
    int64_t end;
    slot *slots; /* [cells] */
    size_t cells;
    slot *foreign; /* rows that belong to no cell of this plan */
    size_t n_foreign, foreign_room;
    bool dirty; /* rows were appended since the last sync */
    pthread_mutex_t lock;
};

/* ---- building a row ---- */

static bool set_count(js *row, const char *key, int64_t value) {
    return js_set_new(row, key, value >= 0 ? js_new_int(value) : js_new_null());
}

static bool set_ms(js *row, const char *key, int64_t ns) {
    return js_set_new(row, key, ns > 0 ? js_new_num((double)ns / 1e6) : js_new_null());
}

static js *sampling_json(gen_sampling s) {
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(&s, values);
    js *o = js_new_object();
    bool ok = o != NULL;
    for (int i = 0; i < GEN_SAMPLING_VALUES && ok; i++) {
        const gen_sampling_value *v = &values[i];
        bool whole = text_equal(v->name, "max_tokens") || text_equal(v->name, "top_k");
        if (gen_sampling_is_on(v))
            ok = whole ? js_set_int(o, v->name, (int64_t)v->value)
                       : js_set_num(o, v->name, v->value);
    }
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

/* Sets the fields that are known before the response is generated. */
static bool set_question(js *row, const eval_plan *p, plan_cell c) {
    const task_set *set = &p->tasks[c.task].set;
    const task_problem *problem = &set->problems[c.problem];
    const eval_arm *arm = &p->arms[c.arm];
    const eval_settings *settings = plan_settings(p, c.task, c.arm);
    return js_set_str(row, "task", set->task->name) && js_set_str(row, "problem", problem->id) &&
           js_set_int(row, "sample", c.sample) && js_set_str(row, "arm", arm->name) &&
           js_set_str(row, "model", arm->model) && js_set_str(row, "precision", arm->precision) &&
           js_set_str(row, "prompt_sha256", problem->prompt_sha256) &&
           js_set_new(row, "sampling", sampling_json(plan_sampling(p, c.task, c.arm))) &&
           (!settings->json || js_set_str(row, "request_sha256", settings->sha256)) &&
           js_set_int(row, "seed", (int64_t)plan_seed(p, c)) &&
           js_set_str(row, "gold", problem->gold) &&
           (!set->keep_prompts || js_set_str(row, "prompt", problem->messages[0].content));
}

static int64_t characters(const char *s, size_t n) {
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

/* Sets the lengths of the reasoning and of the rest, if there is reasoning or the server counts its
 * tokens. The reasoning is in a field of its own or, with its tags, in the text. */
static bool set_lengths(js *row, const gen_result *res, span text, span visible) {
    int64_t answer = characters(visible.s, visible.n);
    int64_t reasoning = characters(text.s, text.n) - answer;
    reasoning += res->reasoning ? characters(res->reasoning, strlen(res->reasoning)) : 0;
    if (res->failed || (!reasoning && res->reasoning_tokens < 0))
        return true;
    return set_count(row, "reasoning_tokens", res->reasoning_tokens) &&
           js_set_int(row, "reasoning_chars", reasoning) && js_set_int(row, "answer_chars", answer);
}

static bool set_answer(js *row, const gen_result *res, const char *error) {
    const char *text = res->failed ? NULL : res->text;
    size_t n = text ? strlen(text) : 0;
    span visible = extract_visible((span){text, n}, NULL);
    return js_set_str(row, "response", text) &&
           js_set_str(row, "reasoning", res->failed ? NULL : res->reasoning) &&
           js_set_str(row, "finish_reason", res->finish_reason) &&
           set_count(row, "prompt_tokens", res->prompt_tokens) &&
           set_count(row, "completion_tokens", res->completion_tokens) &&
           set_lengths(row, res, (span){text, n}, visible) &&
           js_set_int(row, "attempts", res->attempts) &&
           (!res->repaired || js_set_bool(row, "repaired", true)) &&
           set_ms(row, "ttft_ms", res->first_token_ns) &&
           set_ms(row, "itl_ms_mean", res->itl_mean_ns) &&
           set_ms(row, "itl_ms_p50", res->itl_p50_ns) &&
           set_ms(row, "itl_ms_p99", res->itl_p99_ns) && set_ms(row, "total_ms", res->total_ns) &&
           js_set_bool(row, "failed", res->failed) && js_set_str(row, "error", error) &&
           js_set_bool(row, "truncated", text_equal(res->finish_reason, "length")) &&
           js_set_bool(row, "empty", !res->failed && text_is_blank(visible.s, visible.n));
}

/* Sets the verdict that an answer came with, if the grader takes such verdicts. */
static bool set_recorded(js *row, const grader *g, const gen_result *res) {
    const gen_verdict *v = &res->recorded;
    if (!g->recorded || res->failed)
        return true;
    return js_set_str(row, "grader", v->grader) && js_set_str(row, "verdict", v->verdict) &&
           js_set_str(row, "extracted", v->extracted) && js_set_str(row, "rule", "recorded") &&
           js_set_str(row, "reason", "the verdict of another program");
}

static snap_status check_recorded(const gen_request *req, const grader *g, const gen_result *res,
                                  snap_err *err) {
    const gen_verdict *v = &res->recorded;
    if (!g->recorded || res->failed || (v->verdict && text_equal(v->grader, g->id)))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "the answer to problem '%.80s' has no verdict of the grader '%s': only "
                   "recordings of 'eval import --metric' have one",
                   req->problem, g->id);
}

/* Writes the row as one line and frees it. */
static snap_status row_line(js *row, bool complete, buf *line, snap_err *err) {
    snap_status st = complete ? js_write(row, JS_COMPACT, line, err)
                              : err_set(err, SNAP_E_NOMEM, "out of memory for a sample");
    js_free(row);
    if (st == SNAP_OK)
        (void)buf_puts(line, "\n");
    return st == SNAP_OK ? buf_check(line, "a sample", err) : st;
}

/* ---- finding stored rows ---- */

/* Finds the cell that a row belongs to; false if the plan has no such cell. */
static bool cell_of(const eval_plan *p, const js *row, plan_cell *c) {
    const char *task = js_get_str(row, "task"), *arm = js_get_str(row, "arm");
    const char *problem = js_get_str(row, "problem");
    int64_t sample = js_get_int(row, "sample", -1);
    *c = (plan_cell){0};
    if (!task || !arm || !problem)
        return false;
    while (c->task < p->n_tasks && strcmp(p->tasks[c->task].set.task->name, task) != 0)
        c->task++;
    while (c->arm < p->n_arms && strcmp(p->arms[c->arm].name, arm) != 0)
        c->arm++;
    if (c->task == p->n_tasks || c->arm == p->n_arms || sample < 0 ||
        sample >= p->tasks[c->task].samples)
        return false;
    c->sample = (int)sample;
    return task_problem_find(&p->tasks[c->task].set, problem, &c->problem) != NULL;
}

static snap_status check_row(const eval_plan *p, plan_cell c, const js *row, const char *where,
                             snap_err *err) {
    const task_problem *problem = &p->tasks[c.task].set.problems[c.problem];
    const eval_settings *settings = plan_settings(p, c.task, c.arm);
    const char *differs = NULL;
    if (!text_equal(js_get_str(row, "prompt_sha256"), problem->prompt_sha256))
        differs = "prompt";
    else if (!text_equal(js_get_str(row, "model"), p->arms[c.arm].model))
        differs = "model";
    else if (js_get_int(row, "seed", -1) != (int64_t)plan_seed(p, c))
        differs = "seed";
    else if (!text_equal(js_get_str(row, "request_sha256"),
                         settings->json ? settings->sha256 : NULL))
        differs = "system message, body or other setting of the request";
    if (!differs)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "%s: the row has another %s than this run (choose another --out)", where,
                   differs);
}

static bool keep_foreign(sample_store *s, slot row) {
    if (s->n_foreign == s->foreign_room) {
        size_t room = s->foreign_room ? 2 * s->foreign_room : 64;
        slot *more = realloc(s->foreign, room * sizeof *more);
        if (!more)
            return false;
        s->foreign = more;
        s->foreign_room = room;
    }
    s->foreign[s->n_foreign++] = row;
    return true;
}

/* Records a row for a cell. The latest row counts, but a failure never replaces a success. */
static void enter(sample_store *s, size_t cell, slot row) {
    slot *now = &s->slots[cell];
    if (now->at < 0 || now->failed || !row.failed)
        *now = row;
}

static snap_status scan_row(sample_store *s, const char *line, size_t n, const char *where,
                            snap_err *err) {
    snap_err why = {0};
    js *row = js_parse(line, n, where, &why);
    slot here = {.at = s->end, .len = n, .failed = js_get_bool(row, "failed", false)};
    plan_cell c;
    snap_status st = SNAP_OK;
    if (!row)
        return err_set(err, why.code, "%s", why.text);
    if (!js_is_object(row)) {
        st = err_set(err, SNAP_E_INPUT, "%s: a row must be an object", where);
    } else if (!cell_of(s->plan, row, &c)) {
        if (!keep_foreign(s, here))
            st = err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    } else if ((st = check_row(s->plan, c, row, where, err)) == SNAP_OK) {
        enter(s, plan_index(s->plan, c), here);
    }
    js_free(row);
    return st;
}

static snap_status scan(sample_store *s, snap_err *err) {
    FILE *f;
    snap_status st = fs_stream_regular(s->path, &f, err);
    if (st != SNAP_OK)
        return st;
    char *line = NULL, where[300];
    size_t room = 0;
    ssize_t n;
    for (long number = 1; st == SNAP_OK && (n = getline(&line, &room, f)) >= 0; number++) {
        (void)snprintf(where, sizeof where, "%.240s:%ld", s->path, number);
        if (n > kRowLimit)
            st = err_set(err, SNAP_E_INPUT, "%s: the row exceeds %d MiB", where, kRowLimit >> 20);
        else if (!text_is_blank(line, (size_t)n))
            st = scan_row(s, line, (size_t)n, where, err);
        s->end += n;
    }
    if (st == SNAP_OK && !feof(f)) /* getline() also ends the loop when memory runs out */
        st = err_set_errno(err, "cannot read '%s'", s->path);
    free(line);
    (void)fclose(f);
    return st;
}

/* ---- the store of samples ---- */

/* An empty store; NULL if memory is exhausted. */
static sample_store *store_new(const eval_plan *plan, const char *path) {
    sample_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->plan = plan;
    s->log = FS_LOG_CLOSED;
    s->cells = plan_cells(plan);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->path = strdup(path);
    s->slots = calloc(s->cells + 1, sizeof *s->slots);
    if (!s->path || !s->slots) {
        samples_close(s);
        return NULL;
    }
    for (size_t i = 0; i < s->cells; i++)
        s->slots[i].at = -1;
    return s;
}

snap_status samples_open(sample_store **out, const eval_plan *plan, const char *path,
                         snap_err *err) {
    snap_status st;
    *out = NULL;
    sample_store *s = store_new(plan, path);
    if (!s)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    TRY(fs_log_open(&s->log, path, err));
    TRY(scan(s, err));
    *out = s;
    s = NULL;
cleanup:
    samples_close(s);
    return st;
}

void samples_close(sample_store *s) {
    if (!s)
        return;
    fs_log_close(&s->log);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->foreign);
    free(s->slots);
    free(s->path);
    free(s);
}

bool samples_done(const sample_store *s, size_t cell) {
    return s->slots[cell].at >= 0 && !s->slots[cell].failed;
}

size_t samples_done_count(const sample_store *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->cells; i++)
        n += samples_done(s, i);
    return n;
}

static snap_status append_line(sample_store *s, size_t cell, const buf *line, bool failed,
                               snap_err *err) {
    (void)pthread_mutex_lock(&s->lock);
    snap_status st = fs_log_append(&s->log, buf_str(line), line->len, err);
    if (st == SNAP_OK) {
        enter(s, cell, (slot){.at = s->end, .len = line->len, .failed = failed});
        s->end += (int64_t)line->len;
        s->dirty = true;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return st;
}

snap_status samples_append(sample_store *s, const gen_request *req, const gen_result *res,
                           snap_err *err) {
    size_t cell = (size_t)req->id;
    js *row = js_new_object();
    buf line = {.limit = kRowLimit};
    const char *error = plan_public_message(s->plan, req, res->error);
    plan_cell c = plan_cell_at(s->plan, cell);
    const grader *g = s->plan->tasks[c.task].set.grader;
    snap_status st = check_recorded(req, g, res, err);
    bool ok = row && set_question(row, s->plan, c) && set_answer(row, res, error) &&
              set_recorded(row, g, res);
    if (st == SNAP_OK)
        st = row_line(row, ok, &line, err);
    else
        js_free(row);
    if (st == SNAP_OK)
        st = append_line(s, cell, &line, res->failed, err);
    buf_release(&line);
    return st;
}

snap_status samples_sync(sample_store *s, snap_err *err) {
    (void)pthread_mutex_lock(&s->lock);
    bool dirty = s->dirty;
    s->dirty = false;
    (void)pthread_mutex_unlock(&s->lock);
    return dirty ? fs_log_sync(&s->log, err) : SNAP_OK;
}

/* ---- grading ---- */

static snap_status read_line(const sample_store *s, slot row, buf *line, snap_err *err) {
    char chunk[1 << 16];
    buf_clear(line);
    while (line->len < row.len) {
        size_t want = row.len - line->len;
        ssize_t n = pread(s->log.fd, chunk, want < sizeof chunk ? want : sizeof chunk,
                          (off_t)row.at + (off_t)line->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set_errno(err, "cannot read '%s' at byte %lld", s->path, (long long)row.at);
        if (!buf_append(line, chunk, (size_t)n))
            return buf_check(line, s->path, err);
    }
    return SNAP_OK;
}

static double number_or_nan(const js *row, const char *key) {
    return js_get_num(row, key, NAN);
}

static sample_outcome outcome_of(const js *row, const task_problem *problem, span response,
                                 const grade_result *g) {
    sample_outcome o = {.present = true, .verdict = g->verdict, .undecided = g->undecided};
    o.asked = o.undecided && opinion_find(row, problem, g->extracted, NULL, &o.said);
    memcpy(o.also, g->also, sizeof o.also);
    o.failed = js_get_bool(row, "failed", false);
    o.repaired = js_get_bool(row, "repaired", false);
    o.truncated = js_get_bool(row, "truncated", false);
    o.empty = js_get_bool(row, "empty", false);
    o.prompt_tokens = js_get_int(row, "prompt_tokens", -1);
    o.completion_tokens = js_get_int(row, "completion_tokens", -1);
    o.reasoning_tokens = js_get_int(row, "reasoning_tokens", -1);
    o.reasoning_chars = js_get_int(row, "reasoning_chars", -1);
    o.answer_chars = js_get_int(row, "answer_chars", -1);
    o.ttft_ms = number_or_nan(row, "ttft_ms");
    o.total_ms = number_or_nan(row, "total_ms");
    o.itl_ms_p50 = number_or_nan(row, "itl_ms_p50");
    o.itl_ms_p99 = number_or_nan(row, "itl_ms_p99");
    o.answer_hash = g->rule ? rng_stream_of(g->extracted) : 0;
    o.text_hash = o.failed || o.empty ? 0 : rng_stream_of(response.s);
    return o;
}

/* Sets scores, such as {"cell": 0.25}, and weights, such as {"cell": 24}: the grader's further
 * metrics. */
static bool set_scores(js *row, const grader *g, const grade_result *r) {
    js *scores = js_new_object(), *weights = js_new_object();
    bool ok = scores && weights;
    for (int i = 1; i < grade_metrics(g) && ok; i++)
        ok = js_set_num(scores, g->metrics[i], r->also[i - 1].value) &&
             js_set_num(weights, g->metrics[i], r->also[i - 1].weight);
    ok = js_set_new(row, "scores", scores) && ok;
    return js_set_new(row, "weights", weights) && ok;
}

/* Sets the fields of the verdict. A failed request cannot be graded: its verdict is null, and it
 * has no scores. */
static bool set_verdict(js *row, const grader *by, const grade_result *g) {
    bool failed = js_get_bool(row, "failed", false);
    return js_set_str(row, "grader", by->id) &&
           (failed || grade_metrics(by) == 1 || set_scores(row, by, g)) &&
           js_set_str(row, "verdict", failed ? NULL : grade_verdict_name(g->verdict)) &&
           js_set_str(row, "extracted", g->rule ? g->extracted : NULL) &&
           js_set_str(row, "rule", g->rule) && js_set_str(row, "reason", g->reason);
}

static snap_status read_row(const sample_store *s, size_t cell, js **row, snap_err *err) {
    buf line = {.limit = kRowLimit};
    *row = NULL;
    if (s->slots[cell].at < 0)
        return SNAP_OK;
    snap_err why = {0};
    snap_status st = read_line(s, s->slots[cell], &line, err);
    if (st == SNAP_OK && !(*row = js_parse(buf_str(&line), line.len, s->path, &why)))
        st = err_set(err, why.code, "%s", why.text);
    buf_release(&line);
    return st;
}

snap_status samples_answer(const sample_store *s, size_t cell, buf *out, snap_err *err) {
    js *row;
    snap_status st = read_row(s, cell, &row, err);
    const char *text = js_get_str(row, "response");
    span visible = extract_visible((span){text, text ? strlen(text) : 0}, NULL);
    (void)buf_append(out, visible.s, visible.n);
    js_free(row);
    return st == SNAP_OK ? buf_check(out, "an answer", err) : st;
}

/* Marks an undecided answer. Removes an opinion about another answer or gold, or about an answer
 * that is decided. */
static bool set_undecided(js *row, const task_problem *problem, const grade_result *r) {
    opinion said;
    if (!r->undecided || !opinion_find(row, problem, r->extracted, NULL, &said))
        (void)js_delete(row, "opinion");
    if (r->undecided)
        return js_set_bool(row, "undecided", true);
    (void)js_delete(row, "undecided");
    return true;
}

/* Grades a row with a grader that has a grade() or grade_by(), and sets the verdict. */
static snap_status grade_answer(js *row, const task_set *set, const task_problem *problem,
                                grade_input in, grade_result *r, snap_err *err) {
    snap_err why = {0};
    *r = (grade_result){.verdict = GRADE_UNPARSED, .reason = "request failed"};
    if (!js_get_bool(row, "failed", false) &&
        grade_response(set->grader, problem->gold, in, r, &why) != SNAP_OK)
        return err_set(err, why.code, "cannot grade sample %lld of problem '%.80s': %s",
                       (long long)js_get_int(row, "sample", 0), problem->id, why.text);
    if (js_set_str(row, "gold", problem->gold) && set_verdict(row, set->grader, r) &&
        set_undecided(row, problem, r))
        return SNAP_OK;
    return err_set(err, SNAP_E_NOMEM, "out of memory for a verdict");
}

/* Reads the verdict that a row has from the judge of programs or from another program. */
static void recall_verdict(const js *row, grade_result *r) {
    const char *verdict = js_get_str(row, "verdict"), *text = js_get_str(row, "extracted");
    *r = (grade_result){.verdict = GRADE_UNPARSED, .rule = js_get_str(row, "rule")};
    if (text_equal(verdict, grade_verdict_name(GRADE_CORRECT)))
        r->verdict = GRADE_CORRECT;
    else if (text_equal(verdict, grade_verdict_name(GRADE_WRONG)))
        r->verdict = GRADE_WRONG;
    (void)snprintf(r->extracted, sizeof r->extracted, "%s", text ? text : "");
}

static bool has_recorded(const js *row, const grader *g) {
    return js_get_str(row, "verdict") && text_equal(js_get_str(row, "grader"), g->id);
}

/* Grades the row of a cell, or reads its verdict if a judge has set it. @line: gets the row with
 * its verdict, as text. The cell must have a row. */
static snap_status grade_cell(const sample_store *s, size_t cell, buf *line, sample_outcome *out,
                              snap_err *err) {
    js *row;
    snap_status st = read_row(s, cell, &row, err);
    if (st != SNAP_OK)
        return st;
    plan_cell c = plan_cell_at(s->plan, cell);
    const task_set *set = &s->plan->tasks[c.task].set;
    size_t n = 0;
    grade_result r;
    const char *text = js_get_strn(row, "response", &n);
    grade_input in = {.response = {text ? text : "", text ? n : 0},
                      .truncated = js_get_bool(row, "truncated", false)};
    bool judged = !set->grader->recorded || has_recorded(row, set->grader);
    if (set->grader->by_model)
        judged = arena_recall(row, &r);
    else if (grade_runs_programs(set->grader) || set->grader->recorded)
        recall_verdict(row, &r);
    else
        st = grade_answer(row, set, &set->problems[c.problem], in, &r, err);
    if (st != SNAP_OK) {
        js_free(row);
        return st;
    }
    *out = outcome_of(row, &set->problems[c.problem], in.response, &r);
    out->unjudged = !judged;
    buf_clear(line);
    return row_line(row, true, line, err);
}

/* ---- access for judges of programs and games ---- */

static snap_status read_program(void *ctx, size_t cell, js **row, snap_err *err) {
    return read_row(ctx, cell, row, err);
}

/* Appends the row again with its verdict. This newer row counts from now on. */
static snap_status write_program(void *ctx, size_t cell, const js *row, snap_err *err) {
    sample_store *s = ctx;
    buf line = {.limit = kRowLimit};
    js *copy = js_copy(row);
    snap_status st = row_line(copy, copy != NULL, &line, err);
    if (st == SNAP_OK)
        st = append_line(s, cell, &line, false, err);
    buf_release(&line);
    return st;
}

/* ---- a new version of the file, with the verdicts of graders ---- */

/* The new version and the places of its rows. It is going to replace the old file. */
typedef struct {
    char *path;
    fs_log log;
    slot *slots, *foreign;
    int64_t end;
} graded_copy;

static void copy_release(graded_copy *c) {
    fs_log_close(&c->log);
    free(c->path);
    free(c->slots);
    free(c->foreign);
}

static snap_status copy_open(const sample_store *s, graded_copy *c, snap_err *err) {
    buf path = {0};
    (void)buf_printf(&path, "%s.new", s->path);
    *c = (graded_copy){.path = path.failed ? NULL : buf_steal(&path), .log = FS_LOG_CLOSED};
    buf_release(&path);
    c->slots = calloc(s->cells + 1, sizeof *c->slots);
    c->foreign = calloc(s->n_foreign + 1, sizeof *c->foreign);
    if (!c->path || !c->slots || !c->foreign)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", s->path);
    if (unlink(c->path) != 0 && errno != ENOENT) /* a killed run may have left this file */
        return err_set_errno(err, "cannot remove '%s'", c->path);
    return fs_log_open(&c->log, c->path, err);
}

static snap_status copy_row(graded_copy *c, const buf *line, bool failed, slot *where,
                            snap_err *err) {
    *where = (slot){.at = c->end, .len = line->len, .failed = failed};
    c->end += (int64_t)line->len;
    return fs_log_append(&c->log, buf_str(line), line->len, err);
}

static snap_status copy_write(const sample_store *s, graded_copy *c, sample_outcome *outcomes,
                              snap_err *err) {
    snap_status st = SNAP_OK;
    buf line = {.limit = kRowLimit};
    for (size_t i = 0; i < s->cells; i++) {
        c->slots[i] = s->slots[i];
        outcomes[i] = (sample_outcome){0};
        if (s->slots[i].at < 0)
            continue;
        TRY(grade_cell(s, i, &line, &outcomes[i], err));
        TRY(copy_row(c, &line, outcomes[i].failed, &c->slots[i], err));
    }
    for (size_t i = 0; i < s->n_foreign; i++) {
        TRY(read_line(s, s->foreign[i], &line, err));
        TRY(copy_row(c, &line, false, &c->foreign[i], err));
    }
    TRY(fs_log_sync(&c->log, err));
cleanup:
    buf_release(&line);
    return st;
}

/* Renames the copy to the file's name and moves its slots into the store. @c gets the old slots. */
static snap_status copy_replace(sample_store *s, graded_copy *c, snap_err *err) {
    snap_status st = fs_replace(c->path, s->path, err);
    if (st != SNAP_OK)
        return st;
    fs_log log = s->log;
    slot *slots = s->slots, *foreign = s->foreign;
    s->log = (fs_log){c->log.fd, log.path}; /* the open file keeps working under its new name */
    s->slots = c->slots;
    s->foreign = c->foreign;
    s->foreign_room = s->n_foreign + 1;
    s->end = c->end;
    c->log.fd = log.fd;
    c->slots = slots;
    c->foreign = foreign;
    return SNAP_OK;
}

judged_rows samples_rows(sample_store *s) {
    return (judged_rows){s, read_program, write_program};
}

snap_status samples_grade(sample_store *s, sample_outcome *outcomes, snap_err *err) {
    snap_status st;
    graded_copy copy = {.log = FS_LOG_CLOSED};
    const judged_rows programs = samples_rows(s);
    TRY(samples_judge(s->plan, &programs, err));
    TRY(copy_open(s, &copy, err));
    TRY(copy_write(s, &copy, outcomes, err));
    TRY(copy_replace(s, &copy, err));
cleanup:
    if (st != SNAP_OK && copy.path)
        (void)unlink(copy.path); /* frees the space, as the disk may be full */
    copy_release(&copy);
    return st;
}
