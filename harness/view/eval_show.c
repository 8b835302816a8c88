#include "harness/view/eval_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/nearest.h"
#include "base/text.h"
#include "evals/sample_index.h"
#include "harness/eval/columns.h"
#include "harness/view/writers.h"

enum { kKinds = 8, kFixed = 5 }; /* kFixed: columns of the table before the arms' */

typedef struct {
    const show_options *opt;
    sample_index index;
    const char *kinds[kKinds];
    int n_kinds;
    bool tasks[SAMPLE_NAMES];
    int arm; /* -1: all */
    /* names without control characters */
    const char *clean_tasks[SAMPLE_NAMES], *clean_arms[SAMPLE_NAMES];
    arena mem;
    show_sink sink;
    void *ctx;
} show;

/* ---- texts from files ---- */

enum { kName = 48, kGold = 32, kShortBytes = 64 };

/* Appends as much of @s as fits in a cell, without control characters for the terminal. */
static void put_short(buf *out, const char *s, int width) {
    buf line = {0};
    columns_write(&s, 1, width, &line);
    size_t n = strcspn(buf_str(&line), "\n"), whole = n;
    for (n = n < kShortBytes ? n : kShortBytes;
         n && n < whole && ((unsigned char)buf_str(&line)[n] & 0xC0) == 0x80;)
        n--;
    (void)buf_append(out, buf_str(&line), n);
    (void)buf_puts(out, n + 1 < line.len ? "..." : "");
    out->failed |= line.failed;
    buf_release(&line);
}

static snap_status clean_names(arena *mem, const char *const *from, int n, const char **to,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < n && st == SNAP_OK; i++) {
        buf name = {0};
        put_short(&name, from[i], kName);
        to[i] = name.failed ? NULL : arena_strdup(mem, buf_str(&name));
        st = to[i] ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for names");
        buf_release(&name);
    }
    return st;
}

/* ---- selection of questions ---- */

static snap_status add_kind(void *ctx, const char *name, snap_err *err) {
    show *s = ctx;
    for (int i = 0; sample_kinds[i]; i++)
        if (strcmp(sample_kinds[i], name) == 0 && s->n_kinds < kKinds) {
            s->kinds[s->n_kinds++] = sample_kinds[i];
            return SNAP_OK;
        }
    return err_set(
        err, SNAP_E_USAGE,
        "--only '%s' is unknown: use differs, wrong, unparsed, truncated, empty, failed or correct",
        name);
}

static int find_name(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static snap_status unknown(const char *what, const char *name, const char *const *names, int n,
                           snap_err *err) {
    buf list = {0};
    for (int i = 0; i < n; i++)
        (void)buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    snap_status st =
        err_set(err, SNAP_E_USAGE, "no %s '%s' in this run: it has %s", what, name, buf_str(&list));
    buf_release(&list);
    return st;
}

static snap_status add_task(void *ctx, const char *name, snap_err *err) {
    show *s = ctx;
    int i = find_name(s->index.tasks, s->index.n_tasks, name);
    if (i < 0)
        return unknown("task", name, s->index.tasks, s->index.n_tasks, err);
    s->tasks[i] = true;
    return SNAP_OK;
}

/* Refuses a problem that the file does not have. */
static snap_status check_problem(const show *s, snap_err *err) {
    char hint[NEAREST_HINT];
    const char **known = calloc(s->index.n_questions + 1, sizeof *known);
    snap_status st = known ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for names");
    bool found = false;
    for (size_t i = 0; known && i < s->index.n_questions; i++) {
        known[i] = s->index.questions[i].rows->problem;
        found |= strcmp(known[i], s->opt->problem) == 0;
    }
    if (known && !found)
        st = err_set(err, SNAP_E_USAGE,
                     "no problem '%.100s' in this run%s: 'snapmla eval show %s --rows 0' lists all",
                     s->opt->problem, nearest_hint(s->opt->problem, known, "", hint), s->opt->run);
    free(known);
    return st;
}

static snap_status choose(show *s, snap_err *err) {
    const show_options *o = s->opt;
    snap_status st = SNAP_OK;
    memset(s->tasks, o->tasks ? 0 : 1, sizeof s->tasks);
    if (o->tasks)
        TRY(text_split(o->tasks, ',', "--suite", add_task, s, err));
    if (o->only)
        TRY(text_split(o->only, ',', "--only", add_kind, s, err));
    s->arm = o->arm ? find_name(s->index.arms, s->index.n_arms, o->arm) : -1;
    if (o->arm && s->arm < 0)
        TRY(unknown("arm", o->arm, s->index.arms, s->index.n_arms, err));
    if (o->problem)
        TRY(check_problem(s, err));
cleanup:
    return st;
}

/* The rows of a question that are shown: all, or only the row of --arm. */
static sample_question part_of(const show *s, const sample_question *q) {
    sample_question part = *q;
    for (size_t i = 0; s->arm >= 0 && i < q->n; i++)
        if (q->rows[i].arm == s->arm)
            return (sample_question){.rows = &q->rows[i], .n = 1, .differs = q->differs};
    part.n = s->arm >= 0 ? 0 : part.n;
    return part;
}

static bool is_chosen(const show *s, const sample_question *q) {
    const show_options *o = s->opt;
    if (!q->n || !s->tasks[q->rows->task] || (o->sample >= 0 && q->rows->sample != o->sample) ||
        (o->problem && strcmp(q->rows->problem, o->problem) != 0))
        return false;
    for (int i = 0; i < s->n_kinds; i++)
        if (sample_question_is(q, s->kinds[i]))
            return true;
    return s->n_kinds == 0;
}

typedef snap_status (*question_fn)(show *s, const sample_question *q, void *ctx, snap_err *err);

/* Calls @fn for the selected questions, at most --rows of them. *n: the number of all selected
 * questions. */
static snap_status each(show *s, question_fn fn, void *ctx, size_t *n, snap_err *err) {
    snap_status st = SNAP_OK;
    *n = 0;
    for (size_t i = 0; i < s->index.n_questions && st == SNAP_OK; i++) {
        sample_question q = part_of(s, &s->index.questions[i]);
        if (is_chosen(s, &q) && (++*n <= (size_t)s->opt->rows || !s->opt->rows))
            st = fn(s, &q, ctx, err);
    }
    return st;
}

/* ---- one line per question ---- */

static const char *outcome(const sample_row *r) {
    return r->failed ? "failed" : r->verdict ? r->verdict : "not judged";
}

static void answer_cell(table *t, const sample_row *r) {
    buf text = {0};
    (void)buf_puts(&text, outcome(r));
    (void)buf_puts(&text, r->extracted && r->extracted[0] ? " " : "");
    put_short(&text, r->extracted ? r->extracted : "", kName);
    (void)buf_printf(&text, "%s%s", r->truncated ? " (truncated)" : "",
                     r->empty && !r->failed ? " (empty)" : "");
    table_cell(t, "%s", buf_str(&text));
    buf_release(&text);
}

static const sample_row *row_of(const sample_question *q, int arm) {
    for (size_t i = 0; i < q->n; i++)
        if (q->rows[i].arm == arm)
            return &q->rows[i];
    return NULL;
}

static snap_status add_line(show *s, const sample_question *q, void *ctx, snap_err *err) {
    table *t = ctx;
    buf gold = {0}, problem = {0};
    (void)err;
    put_short(&problem, q->rows->problem, kName);
    put_short(&gold, q->rows->gold ? q->rows->gold : "-", kGold);
    table_cell(t, "%s", s->clean_tasks[q->rows->task]);
    table_cell(t, "%s", buf_str(&problem));
    table_cell(t, "%d", q->rows->sample);
    table_cell(t, "%s", q->differs ? "differs" : "");
    table_cell(t, "%s", buf_str(&gold));
    for (int a = 0; a < s->index.n_arms && t->n_cells % (size_t)t->n_columns; a++) {
        const sample_row *r = row_of(q, a);
        if (r)
            answer_cell(t, r);
        else if (s->arm < 0 || s->arm == a)
            table_cell(t, "-");
    }
    buf_release(&gold);
    buf_release(&problem);
    return SNAP_OK;
}

static snap_status show_table(show *s, snap_err *err) {
    const char *heads[kFixed + SAMPLE_NAMES] = {"task", "problem", "sample", "", "gold"};
    int columns = kFixed;
    for (int a = 0; a < s->index.n_arms; a++)
        if (s->arm < 0 || s->arm == a)
            heads[columns++] = s->clean_arms[a];
    table t = table_new(heads, columns);
    buf out = {0};
    size_t n;
    snap_status st;
    TRY(each(s, add_line, &t, &n, err));
    if (n)
        TRY(write_text(&t, s->opt->color, &out, err));
    size_t shown = s->opt->rows && n > (size_t)s->opt->rows ? (size_t)s->opt->rows : n;
    (void)buf_printf(&out, "%s%zu of %zu questions", n ? "\n" : "", shown, s->index.n_questions);
    if (shown < n)
        (void)buf_printf(&out, "; %zu more match, --rows 0 shows all", n - shown);
    (void)buf_puts(&out, "\n");
    st = s->sink(s->ctx, &out, err);
cleanup:
    buf_release(&out);
    table_release(&t);
    return st;
}

/* ---- answers in full ---- */

static void put_field(buf *out, const char *name, const char *value) {
    if (value && *value)
        (void)buf_printf(out, "%s: %s\n", name, value);
}

/* Writes the column of one arm: the outcome, the grading, tokens, time, the reasoning and the
 * answer. */
static void describe(const show *s, const sample_row *r, const js *row, buf *out) {
    (void)buf_printf(out, "%s: %s%s%s\n", s->clean_arms[r->arm], outcome(r),
                     r->truncated ? ", truncated" : "", r->empty && !r->failed ? ", empty" : "");
    put_field(out, "extracted", js_get_str(row, "extracted"));
    put_field(out, "rule", js_get_str(row, "rule"));
    put_field(out, "reason", js_get_str(row, "reason"));
    put_field(out, "second opinion", js_get_str(js_get_object(row, "opinion"), "verdict"));
    put_field(out, "finish reason", js_get_str(row, "finish_reason"));
    put_field(out, "error", js_get_str(row, "error"));
    if (r->tokens >= 0)
        (void)buf_printf(out, "tokens: %lld\n", (long long)r->tokens);
    int64_t reasoning_tokens = js_get_int(row, "reasoning_tokens", -1);
    if (reasoning_tokens >= 0)
        (void)buf_printf(out, "of them reasoning: %lld\n", (long long)reasoning_tokens);
    (void)buf_printf(out, "time: %.1f s\n", js_get_num(row, "total_ms", 0) / 1000);
    const char *reasoning = js_get_str(row, "reasoning"), *text = js_get_str(row, "response");
    if (reasoning)
        (void)buf_printf(out, "\n[reasoning]\n%s\n[answer]\n", reasoning);
    (void)buf_printf(out, "\n%s\n", text ? text : "");
}

static snap_status show_question(show *s, const sample_question *q, void *ctx, snap_err *err) {
    buf columns[SAMPLE_NAMES] = {{0}}, out = {0};
    const char *texts[SAMPLE_NAMES];
    bool *again = ctx;
    snap_status st = SNAP_OK;
    const char *bold = s->opt->color ? "\033[1m" : "", *plain = s->opt->color ? "\033[0m" : "";
    (void)buf_printf(&out, "%s%s%s ", *again ? "\n" : "", bold, s->clean_tasks[q->rows->task]);
    put_short(&out, q->rows->problem, kName);
    (void)buf_printf(&out, ", sample %d%s%s, gold: ", q->rows->sample, plain,
                     q->differs ? ", differs" : "");
    put_short(&out, q->rows->gold ? q->rows->gold : "-", kGold);
    (void)buf_puts(&out, "\n\n");
    *again = true;
    for (size_t i = 0; i < q->n; i++) {
        js *row = sample_index_read(&s->index, &q->rows[i], err);
        TRY(row ? SNAP_OK : SNAP_E_IO);
        const char *prompt = js_get_str(row, "prompt");
        if (i == 0 && prompt)
            columns_write(&prompt, 1, s->opt->width, &out);
        describe(s, &q->rows[i], row, &columns[i]);
        texts[i] = buf_str(&columns[i]);
        js_free(row);
    }
    columns_write(texts, q->n, s->opt->width, &out);
    TRY(buf_check(&out, "a sample", err));
    TRY(s->sink(s->ctx, &out, err));
cleanup:
    for (size_t i = 0; i < q->n; i++)
        buf_release(&columns[i]);
    buf_release(&out);
    return st;
}

static snap_status show_rows(show *s, const sample_question *q, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    (void)ctx;
    for (size_t i = 0; i < q->n && st == SNAP_OK; i++) {
        buf line = {0};
        js *row = sample_index_read(&s->index, &q->rows[i], err);
        st = row ? js_write_shown(row, JS_COMPACT, &line, err) : SNAP_E_IO;
        (void)buf_puts(&line, "\n");
        if (st == SNAP_OK)
            st = s->sink(s->ctx, &line, err);
        js_free(row);
        buf_release(&line);
    }
    return st;
}

/* ---- the interface ---- */

static snap_status show_answers(show *s, question_fn fn, snap_err *err) {
    bool again = false;
    size_t n;
    snap_status st = each(s, fn, &again, &n, err);
    if (st == SNAP_OK && !n)
        st = err_set(err, SNAP_E_USAGE, "no question of '%s' matches the options", s->opt->run);
    return st;
}

snap_status eval_show(const show_options *o, show_sink sink, void *ctx, snap_err *err) {
    show s = {.opt = o, .index = {.fd = -1}, .sink = sink, .ctx = ctx};
    char *path = fs_is_dir(o->run) ? fs_join(o->run, "samples.jsonl") : strdup(o->run);
    snap_status st = path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", o->run);
    if (st == SNAP_OK)
        st = sample_index_open(&s.index, path, err);
    if (st == SNAP_OK)
        st = clean_names(&s.mem, s.index.tasks, s.index.n_tasks, s.clean_tasks, err);
    if (st == SNAP_OK)
        st = clean_names(&s.mem, s.index.arms, s.index.n_arms, s.clean_arms, err);
    if (st == SNAP_OK)
        st = choose(&s, err);
    bool full = o->full || (o->problem && o->sample >= 0);
    if (st == SNAP_OK)
        st = o->json ? show_answers(&s, show_rows, err)
             : full  ? show_answers(&s, show_question, err)
                     : show_table(&s, err);
    sample_index_close(&s.index);
    arena_release(&s.mem);
    free(path);
    return st;
}
