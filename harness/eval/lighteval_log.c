/* lighteval_log.c - details_TASK_DATE.parquet of lighteval: one row for each document.
 *
 * Since version 0.11 a row has the structs "doc", "model_response" and "metric". Before, it has
 * "full_prompt", "predictions", "gold", "choices", "gold_index" and "metrics". */
#include <stdio.h>
#include <string.h>

#include "base/parquet.h"
#include "base/text.h"
#include "harness/eval/foreign_parts.h"

enum { kMostValues = 1 << 27 }; /* for example 64 answers of 64,000 tokens to 30 questions */

typedef struct {
    foreign_log *log;
    const char *name;
} reader;

/* The parts of a row, in either layout. NULL: the row does not have it. */
typedef struct {
    const js *id;
    const js *prompt;      /* a text, or a list of messages */
    const js *instruction; /* a text before the prompt, unless the prompt has it */
    const js *choices, *gold_index, *golds;
    const js *texts;      /* the answers; none if the choices were compared by likelihood */
    const js *logprobs;   /* of the choices */
    const js *reasonings; /* of each answer */
    const js *input_tokens, *output_tokens;
    const js *scores;
    char where[300];
} document;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a log");
}

/* ---- the two layouts ---- */

static void new_layout(const js *row, document *d) {
    const js *doc = js_get_object(row, "doc"), *response = js_get_object(row, "model_response");
    d->id = js_get(doc, "id");
    d->prompt = js_get(response, "input");
    if (!d->prompt) {
        d->prompt = js_get(doc, "query");
        d->instruction = js_get(doc, "instruction");
    }
    d->choices = js_get_array(doc, "choices");
    d->gold_index = js_get(doc, "gold_index");
    d->texts = js_get_array(response, "text");
    d->logprobs = js_get_array(response, "logprobs");
    d->reasonings = js_get_array(response, "reasonings");
    d->input_tokens = js_get_array(response, "input_tokens");
    d->output_tokens = js_get_array(response, "output_tokens");
    d->scores = js_get_object(row, "metric");
}

static void old_layout(const js *row, document *d) {
    const js *predictions = js_get_array(row, "predictions");
    bool texts = js_is_str(js_at(predictions, 0));
    d->prompt = js_get(row, "full_prompt");
    d->choices = js_get_array(row, "choices");
    d->gold_index = js_get(row, "gold_index");
    d->golds = js_get_array(row, "gold");
    d->texts = texts ? predictions : NULL;
    d->logprobs = texts ? NULL : predictions;
    d->input_tokens = js_at(js_get_array(row, "input_tokens"), 0);
    d->output_tokens = js_get_array(row, "cont_tokens");
    d->scores = js_get_object(row, "metrics");
}

/* ---- parts of a row ---- */

static snap_status message_text(void *ctx, const js *content, buf *out, snap_err *err) {
    (void)ctx;
    return foreign_text(content, out, err);
}

/* If the choices were compared by likelihood, they follow a prompt that is a text. A prompt that is
 * a list of messages stays without them. */
static snap_status set_prompt(js *row, const document *d, bool choices, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (js_is_array(d->prompt))
        return foreign_set_messages(row, d->prompt, js_len(d->prompt), message_text, NULL, err);
    TRY(foreign_text(d->instruction, &text, err));
    if (text.len)
        (void)buf_puts(&text, "\n\n");
    TRY(foreign_text(d->prompt, &text, err));
    for (size_t i = 0; choices && i < js_len(d->choices); i++) {
        (void)buf_printf(&text, "\n(%zu) ", i);
        TRY(foreign_text(js_at(d->choices, i), &text, err));
    }
    TRY(foreign_set_buf(row, "prompt", &text, err));
cleanup:
    buf_release(&text);
    return st;
}

/* Appends a text, or each text of a list, one on each line. */
static snap_status append_golds(const js *value, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(value) && st == SNAP_OK; i++)
        st = append_golds(js_at(value, i), out, err);
    if (js_is_array(value) || !value || js_is_null(value) || st != SNAP_OK)
        return st;
    if (out->len)
        (void)buf_puts(out, "\n");
    return foreign_text(value, out, err);
}

/* The right answers: those of the log, or the choices that "gold_index" names. */
static snap_status set_gold(js *row, const document *d, snap_err *err) {
    buf text = {0};
    snap_status st;
    TRY(append_golds(d->golds, &text, err));
    if (!js_len(d->golds)) {
        bool list = js_is_array(d->gold_index);
        for (size_t i = 0; i < (list ? js_len(d->gold_index) : 1); i++) {
            const js *index = list ? js_at(d->gold_index, i) : d->gold_index;
            if (js_is_int(index) && js_int(index) >= 0)
                TRY(append_golds(js_at(d->choices, (size_t)js_int(index)), &text, err));
        }
    }
    TRY(foreign_set_buf(row, "gold", &text, err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status set_scores(js *row, const document *d, snap_err *err) {
    js *scores = js_new_object();
    bool ok = scores != NULL;
    for (void *it = js_first(d->scores); ok && it; it = js_next(d->scores, it))
        if (!js_is_null(js_value(it)))
            ok = js_set_new(scores, js_key(it), js_copy(js_value(it)));
    return js_set_new(row, "scores", scores) && ok ? SNAP_OK : no_memory(err);
}

/* The log-likelihood of a choice: a number, or the first member of a pair. */
static double likelihood(const document *d, size_t i) {
    const js *v = js_at(d->logprobs, i);
    v = js_is_array(v) ? js_at(v, 0) : v;
    return js_is_num(v) ? js_num(v) : -1e300;
}

static snap_status set_likeliest(js *row, const document *d, snap_err *err) {
    size_t best = 0;
    snap_status st;
    for (size_t i = 1; i < js_len(d->logprobs); i++)
        best = likelihood(d, i) > likelihood(d, best) ? i : best;
    TRY(foreign_set(row, "response", js_at(d->choices, best), err));
    TRY(foreign_set(row, "extracted", js_at(d->choices, best), err));
cleanup:
    return st;
}

static bool set_count(js *row, const char *key, const js *tokens) {
    return !js_len(tokens) || js_set_int(row, key, (int64_t)js_len(tokens));
}

static snap_status set_answer(js *row, const document *d, size_t repeat, snap_err *err) {
    snap_status st;
    TRY(foreign_set(row, "response", js_at(d->texts, repeat), err));
    TRY(foreign_set(row, "reasoning", js_at(d->reasonings, repeat), err));
    if (!js_set_str(row, "finish_reason", "unknown") ||
        !set_count(row, "prompt_tokens", d->input_tokens) ||
        !set_count(row, "completion_tokens", js_at(d->output_tokens, repeat)))
        st = no_memory(err);
cleanup:
    return st;
}

/* ---- rows ---- */

/* A document without an id has the number of its row, from 0, as its id. */
static snap_status set_key(js *row, const document *d, size_t repeat, long number, snap_err *err) {
    const char *id = js_str(d->id);
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%ld", number - 1);
    snap_status st = SNAP_OK;
    if (id && *id)
        st = foreign_set(row, "problem", d->id, err);
    else if (!js_set_str(row, "problem", digits))
        st = no_memory(err);
    if (st == SNAP_OK &&
        (!js_set_int(row, "sample", (int64_t)repeat) || !js_set_str(row, "where", d->where)))
        st = no_memory(err);
    return st;
}

static snap_status add_row(reader *rd, const document *d, size_t repeat, long number,
                           snap_err *err) {
    bool choices = !js_len(d->texts);
    js *row = js_new_object();
    snap_status st;
    if (!row)
        return no_memory(err);
    TRY(set_key(row, d, repeat, number, err));
    TRY(set_prompt(row, d, choices, err));
    TRY(set_gold(row, d, err));
    TRY(set_scores(row, d, err));
    TRY(choices ? set_likeliest(row, d, err) : set_answer(row, d, repeat, err));
    if (!js_get_str(row, "response"))
        TRY(err_set(err, SNAP_E_INPUT, "%s: the document has no answer", d->where));
    if (!js_push_new(rd->log->rows, row))
        st = no_memory(err);
    row = NULL;
cleanup:
    js_free(row);
    return st;
}

static snap_status read_row(void *ctx, js *row, long number, snap_err *err) {
    reader *rd = ctx;
    document d = {0};
    snap_status st = SNAP_OK;
    (void)snprintf(d.where, sizeof d.where, "%.240s: row %ld", rd->name, number);
    if (js_get_object(row, "doc"))
        new_layout(row, &d);
    else
        old_layout(row, &d);
    if (js_is_str(js_get(row, "predictions")))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s: this version of lighteval wrote lists as texts, which cannot be read",
                       d.where);
    if (!d.prompt || (!js_len(d.texts) && !js_len(d.logprobs)))
        return err_set(err, SNAP_E_INPUT,
                       "%s: not lighteval's details: needs 'doc' and 'model_response', or "
                       "'full_prompt' and 'predictions'",
                       d.where);
    size_t repeats = js_len(d.texts) ? js_len(d.texts) : 1;
    for (size_t i = 0; i < repeats && st == SNAP_OK; i++)
        st = add_row(rd, &d, i, number, err);
    return st;
}

snap_status lighteval_parse(foreign_log *out, const char *bytes, size_t n, const char *name,
                            snap_err *err) {
    const parquet_limits limits = {.values = kMostValues, .bytes = FOREIGN_LOG_LIMIT};
    reader rd = {out, name};
    out->from = "lighteval";
    out->one_verdict = true;
    foreign_take_task(out, name, "details_");
    return parquet_each_row(bytes, n, name, limits, read_row, &rd, err);
}
