/* lm_eval_log.c - reads samples_TASK_DATE.jsonl of lm-evaluation-harness. It has one line for each
 * problem and filter, lm-eval's name for a rule that extracts the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/eval/foreign_parts.h"

/* ---- the prompt ---- */

/* An argument of a request of a document. The requests are an object {"gen_args_0": {"arg_0": ..,
 * "arg_1": ..}, ..}, or in old versions a list of lists. NULL if there is no such request or
 * argument. */
static const js *argument(const js *arguments, size_t request, size_t index) {
    char key[32];
    if (js_is_array(arguments))
        return js_at(js_at(arguments, request), index);
    (void)snprintf(key, sizeof key, "gen_args_%zu", request);
    const js *args = js_get_object(arguments, key);
    (void)snprintf(key, sizeof key, "arg_%zu", index);
    const js *value = js_get(args, key);
    return js_is_array(value) && js_len(value) == 1 ? js_at(value, 0) : value;
}

static snap_status message_text(void *ctx, const js *content, buf *out, snap_err *err) {
    (void)ctx;
    return foreign_text(content, out, err);
}

/* True if every element is an object with a role. */
static bool are_messages(const js *v) {
    for (size_t i = 0; i < js_len(v); i++)
        if (!js_get_str(js_at(v, i), "role"))
            return false;
    return js_len(v) > 0;
}

/* The prompt of a request whose answer is a text. For a chat model it is a JSON list of messages,
 * written as a text. */
static snap_status set_prompt(js *row, const js *arguments, snap_err *err) {
    const js *text = argument(arguments, 0, 0);
    js *messages = NULL;
    snap_err ignored = {0};
    if (text_starts(js_str(text) ? js_str(text) : "", "[{"))
        messages = js_parse(js_str(text), js_str_len(text), "prompt", &ignored);
    if (ignored.code == SNAP_E_NOMEM)
        return err_set(err, SNAP_E_NOMEM, "%s", ignored.text);
    snap_status st = are_messages(messages) ? foreign_set_messages(row, messages, js_len(messages),
                                                                   message_text, NULL, err)
                                            : foreign_set(row, "prompt", text, err);
    js_free(messages);
    return st;
}

/* The prompt of a question whose choices were compared by likelihood: the context, then each
 * choice. */
static snap_status set_choices(js *row, const js *arguments, size_t n, snap_err *err) {
    buf text = {0};
    snap_status st;
    const js *context = argument(arguments, 0, 0);
    TRY(foreign_text(context, &text, err));
    for (size_t i = 0; i < n; i++) {
        const js *own = argument(arguments, i, 0);
        (void)buf_printf(&text, "\n(%zu) ", i);
        if (own && context && !js_equal(own, context))
            TRY(foreign_text(own, &text, err));
        TRY(foreign_text(argument(arguments, i, 1), &text, err));
    }
    TRY(foreign_set_buf(row, "prompt", &text, err));
cleanup:
    buf_release(&text);
    return st;
}

/* ---- the answer ---- */

/* The log-likelihood of a choice: [["-3.5", "False"]] in the list of answers. */
static const js *likelihood(const js *resps, size_t i) {
    const js *pair = js_at(js_at(resps, i), 0);
    return js_is_array(pair) && js_len(pair) == 2 ? js_at(pair, 0) : NULL;
}

static double number_of(const js *v) {
    double x = 0;
    if (js_is_num(v))
        return js_num(v);
    return js_str(v) && text_to_double(js_str(v), &x) ? x : -1e300;
}

/* The answer to a question with choices is the likeliest choice. */
static snap_status set_likeliest(js *row, const js *arguments, const js *resps, snap_err *err) {
    size_t best = 0;
    for (size_t i = 1; i < js_len(resps); i++)
        if (number_of(likelihood(resps, i)) > number_of(likelihood(resps, best)))
            best = i;
    snap_status st = foreign_set(row, "response", argument(arguments, best, 1), err);
    return st == SNAP_OK ? foreign_set(row, "extracted", argument(arguments, best, 1), err) : st;
}

static snap_status set_scores(js *row, const js *sample, snap_err *err) {
    static const char *const no_scores[] = {"doc_id", "prompt_tokens"};
    js *scores = js_new_object();
    bool ok = scores != NULL;
    for (void *it = js_first(sample); ok && it; it = js_next(sample, it)) {
        const js *v = js_value(it);
        bool score = js_is_num(v) || js_is_bool(v);
        for (size_t i = 0; i < sizeof no_scores / sizeof *no_scores; i++)
            score = score && strcmp(js_key(it), no_scores[i]) != 0;
        ok = !score || js_set_new(scores, js_key(it), js_copy(v));
    }
    if (!ok) {
        js_free(scores);
        scores = NULL;
    }
    return js_set_new(row, "scores", scores)
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for a log");
}

/* ---- rows ---- */

typedef struct {
    foreign_log *log;
    const char *name;
} reader;

/* What all samples of a document share. */
static snap_status set_document(js *row, const js *sample, const char *where, snap_err *err) {
    const js *id = js_get(sample, "doc_id");
    const char *filter = js_get_str(sample, "filter");
    snap_status st;
    if (!js_is_int(id) && !js_is_str(id))
        return err_set(err, SNAP_E_INPUT, "%s: not a sample of lm-eval: needs a 'doc_id'", where);
    TRY(foreign_set(row, "problem", id, err));
    TRY(foreign_set(row, "gold", js_get(sample, "target"), err));
    TRY(set_scores(row, sample, err));
    if (!js_set_str(row, "where", where) || !js_set_str(row, "filter", filter ? filter : "none"))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a log"));
cleanup:
    return st;
}

/* Adds a row for one of the repeated answers to a document, or for the likeliest choice. */
static snap_status add_row(reader *rd, const js *sample, size_t repeat, bool choices,
                           const char *where, snap_err *err) {
    const js *arguments = js_get(sample, "arguments"), *resps = js_get_array(sample, "resps");
    const js *filtered = js_at(js_get(sample, "filtered_resps"), repeat);
    js *row = js_new_object();
    snap_status st;
    if (!row || !js_set_int(row, "sample", (int64_t)repeat))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a log"));
    TRY(set_document(row, sample, where, err));
    if (choices) {
        TRY(set_choices(row, arguments, js_len(resps), err));
        TRY(set_likeliest(row, arguments, resps, err));
    } else {
        TRY(set_prompt(row, arguments, err));
        TRY(foreign_set(row, "response", js_at(js_at(resps, 0), repeat), err));
        TRY(foreign_set(row, "extracted", filtered, err));
    }
    if (text_equal(js_get_str(row, "prompt"), ""))
        TRY(foreign_set(row, "prompt_hash", js_get(sample, "prompt_hash"), err));
    if (!js_get_str(row, "prompt") || !js_get_str(row, "response"))
        TRY(err_set(err, SNAP_E_INPUT, "%s: the sample has no prompt or no answer", where));
    if (!js_push_new(rd->log->rows, row))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a log");
    row = NULL;
cleanup:
    js_free(row);
    return st;
}

static snap_status read_line(void *ctx, js *sample, long line, snap_err *err) {
    reader *rd = ctx;
    char where[300];
    const js *resps = js_get_array(sample, "resps");
    bool choices = likelihood(resps, 0) != NULL;
    size_t repeats = choices ? 1 : js_len(js_at(resps, 0));
    snap_status st = SNAP_OK;
    (void)snprintf(where, sizeof where, "%.240s:%ld", rd->name, line);
    if (!repeats)
        return err_set(err, SNAP_E_INPUT, "%s: not a sample of lm-eval: needs 'resps'", where);
    for (size_t i = 0; i < repeats && st == SNAP_OK; i++)
        st = add_row(rd, sample, i, choices, where, err);
    return st;
}

snap_status lm_eval_parse(foreign_log *out, const char *text, size_t n, const char *name,
                          snap_err *err) {
    reader rd = {out, name};
    out->from = "lm-eval";
    out->one_verdict = true;
    foreign_take_task(out, name, "samples_");
    return js_each_line(text, n, name, read_line, &rd, err);
}
