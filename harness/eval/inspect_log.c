/* inspect_log.c - logs of Inspect: one JSON file, or an .eval file, which is a zip with header.json
 * and samples/ID_epoch_N.json. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/zip.h"
#include "harness/eval/foreign_parts.h"

enum { kMostMembers = 1000000 };

typedef struct {
    foreign_log *log;
    const char *name;
    bool header;   /* the header was found */
    bool unpacked; /* a member was unpacked */
} reader;

/* ---- texts ---- */

/* The text itself, or the attachment to which it refers: a long text may be stored once, under
 * "attachments" of the sample. */
static const js *attached(const js *sample, const js *text) {
    static const char scheme[] = "attachment://";
    const char *s = js_str(text);
    if (!s || !text_starts(s, scheme))
        return text;
    const js *found = js_get(js_get_object(sample, "attachments"), s + strlen(scheme));
    return found ? found : text;
}

/* Appends the texts of those parts of a message's content that have the type @type. A part's member
 * with the text has the same name as its type. */
static snap_status append_parts(const js *sample, const js *content, const char *type, buf *out,
                                snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(content) && st == SNAP_OK; i++) {
        const js *part = js_at(content, i);
        if (text_equal(js_get_str(part, "type"), type))
            st = foreign_text(attached(sample, js_get(part, type)), out, err);
    }
    return st;
}

static snap_status content_text(void *ctx, const js *content, buf *out, snap_err *err) {
    const js *sample = ctx;
    if (js_is_array(content))
        return append_parts(sample, content, "text", out, err);
    return foreign_text(attached(sample, content), out, err);
}

/* ---- members of a row ---- */

/* The number of messages before the model's first answer. */
static size_t prompt_length(const js *messages) {
    for (size_t i = 0; i < js_len(messages); i++) {
        const js *m = js_at(messages, i);
        if (text_equal(js_get_str(m, "role"), "assistant") &&
            !text_equal(js_get_str(m, "source"), "input"))
            return i;
    }
    return js_len(messages);
}

static snap_status set_prompt(js *row, js *sample, snap_err *err) {
    const js *messages = js_get_array(sample, "messages"), *input = js_get(sample, "input");
    size_t n = prompt_length(messages);
    if (n)
        return foreign_set_messages(row, messages, n, content_text, sample, err);
    if (js_is_array(input))
        return foreign_set_messages(row, input, js_len(input), content_text, sample, err);
    return foreign_set(row, "prompt", attached(sample, input), err);
}

/* The target is the right answer, or a list of right answers. A list is written with one answer on
 * each line. */
static snap_status set_gold(js *row, const js *target, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (!js_is_array(target))
        return foreign_set(row, "gold", target, err);
    for (size_t i = 0; i < js_len(target); i++) {
        (void)buf_puts(&text, i ? "\n" : "");
        TRY(foreign_text(js_at(target, i), &text, err));
    }
    TRY(foreign_set_buf(row, "gold", &text, err));
cleanup:
    buf_release(&text);
    return st;
}

/* The scores, and the answers that were compared. */
static snap_status set_scores(js *row, const js *sample, snap_err *err) {
    const js *given = js_get_object(sample, "scores");
    js *scores = js_new_object(), *answers = js_new_object();
    bool ok = scores && answers;
    for (void *it = js_first(given); ok && it; it = js_next(given, it)) {
        const js *value = js_get(js_value(it), "value"), *answer = js_get(js_value(it), "answer");
        ok = (!value || js_set_new(scores, js_key(it), js_copy(value))) &&
             (!js_str(answer) || js_set_new(answers, js_key(it), js_copy(answer)));
    }
    bool set = js_set_new(row, "scores", scores);
    set = js_set_new(row, "answers", answers) && set;
    return ok && set ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a log");
}

static bool set_count(js *row, const char *key, const js *usage, const char *name) {
    int64_t n = js_get_int(usage, name, -1);
    return n < 0 || js_set_int(row, key, n);
}

/* Sets "error" if the sample failed. *failed: whether it did. */
static snap_status set_error(js *row, const js *sample, bool *failed, snap_err *err) {
    const js *error = js_get(sample, "error"), *message = js_get(error, "message");
    *failed = error != NULL;
    return error ? foreign_set(row, "error", message ? message : error, err) : SNAP_OK;
}

static snap_status set_answer(js *row, js *sample, snap_err *err) {
    const js *output = js_get_object(sample, "output");
    const js *choice = js_at(js_get(output, "choices"), 0), *usage = js_get(output, "usage");
    const js *content = js_get(js_get_object(choice, "message"), "content");
    const char *stop = js_get_str(choice, "stop_reason");
    bool cut = text_equal(stop, "max_tokens") || text_equal(stop, "model_length");
    double seconds = js_get_num(output, "time", -1);
    buf text = {0}, reasoning = {0};
    snap_status st;
    TRY(content_text(sample, content, &text, err));
    TRY(foreign_set_buf(row, "response", &text, err));
    if (js_is_array(content))
        TRY(append_parts(sample, content, "reasoning", &reasoning, err));
    if (reasoning.len)
        TRY(foreign_set_buf(row, "reasoning", &reasoning, err));
    if (!js_set_str(row, "finish_reason",
                    cut    ? "length"
                    : stop ? stop
                           : "unknown") ||
        !set_count(row, "prompt_tokens", usage, "input_tokens") ||
        !set_count(row, "completion_tokens", usage, "output_tokens") ||
        !set_count(row, "reasoning_tokens", usage, "reasoning_tokens") ||
        (seconds >= 0 && !js_set_num(row, "total_ms", seconds * 1e3)))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a log"));
cleanup:
    buf_release(&text);
    buf_release(&reasoning);
    return st;
}

/* ---- samples ---- */

static snap_status set_key(js *row, const js *sample, const char *name, snap_err *err) {
    const js *id = js_get(sample, "id");
    int64_t epoch = js_get_int(sample, "epoch", 1);
    buf where = {0};
    snap_status st;
    if ((!js_is_int(id) && !js_is_str(id)) || epoch < 1 || epoch > INT_MAX)
        return err_set(err, SNAP_E_INPUT,
                       "%s: not a sample of Inspect: needs an 'id', and an 'epoch' from 1", name);
    TRY(foreign_set(row, "problem", id, err));
    (void)buf_printf(&where, "%s: sample '%.80s', epoch %lld", name, js_get_str(row, "problem"),
                     (long long)epoch);
    TRY(foreign_set_buf(row, "where", &where, err));
    if (!js_set_int(row, "sample", epoch - 1))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a log"));
cleanup:
    buf_release(&where);
    return st;
}

static snap_status add_sample(reader *rd, js *sample, snap_err *err) {
    js *row = js_new_object();
    bool failed = false;
    snap_status st;
    if (!row)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a log"));
    TRY(set_key(row, sample, rd->name, err));
    TRY(set_prompt(row, sample, err));
    TRY(set_gold(row, js_get(sample, "target"), err));
    TRY(set_error(row, sample, &failed, err));
    TRY(set_scores(row, sample, err));
    if (!failed)
        TRY(set_answer(row, sample, err));
    if (!js_get_str(row, "prompt"))
        TRY(err_set(err, SNAP_E_INPUT, "%s has no prompt", js_get_str(row, "where")));
    if (!js_push_new(rd->log->rows, row))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a log");
    row = NULL;
cleanup:
    js_free(row);
    return st;
}

/* ---- files ---- */

static snap_status read_header(reader *rd, const js *header, snap_err *err) {
    const js *eval = js_get_object(header, "eval");
    const char *task = js_get_str(eval, "task");
    const char *version = js_get_str(js_get_object(eval, "packages"), "inspect_ai");
    if (!task)
        return err_set(err, SNAP_E_INPUT,
                       "%s: neither a log of lm-eval (samples_TASK_DATE.jsonl) nor one of Inspect",
                       rd->name);
    foreign_set_task(rd->log, task, strlen(task));
    (void)snprintf(rd->log->version, sizeof rd->log->version, "%.30s", version ? version : "");
    rd->header = true;
    return SNAP_OK;
}

static snap_status read_json(reader *rd, const char *text, size_t n, snap_err *err) {
    js *log = js_parse(text, n, rd->name, err);
    const js *samples = js_get_array(log, "samples");
    if (!log)
        return err ? err->code : SNAP_E_INPUT;
    snap_status st = read_header(rd, log, err);
    for (size_t i = 0; i < js_len(samples) && st == SNAP_OK; i++)
        st = add_sample(rd, js_at(samples, i), err);
    js_free(log);
    return st;
}

static snap_status read_member(void *ctx, const char *member, const buf *content, snap_err *err) {
    reader *rd = ctx;
    char name[400];
    rd->unpacked = true;
    bool header = strcmp(member, "header.json") == 0;
    bool sample = text_starts(member, "samples/") && text_ends(member, ".json");
    if (!header && !sample)
        return SNAP_OK;
    (void)snprintf(name, sizeof name, "%.200s: %.160s", rd->name, member);
    js *value = js_parse(buf_str(content), content->len, name, err);
    if (!value)
        return err ? err->code : SNAP_E_INPUT;
    snap_status st = header ? read_header(rd, value, err) : add_sample(rd, value, err);
    js_free(value);
    return st;
}

snap_status inspect_parse(foreign_log *out, const char *bytes, size_t n, bool packed,
                          const char *name, snap_err *err) {
    const zip_limits limits = {.members = kMostMembers, .bytes = FOREIGN_LOG_LIMIT};
    reader rd = {.log = out, .name = name};
    snap_err why = {0};
    out->from = "Inspect";
    if (!packed)
        return read_json(&rd, bytes, n, err);
    snap_status st = zip_each_member(bytes, n, name, limits, read_member, &rd, &why);
    if (st != SNAP_OK)
        return err_set(err, st, "%s%s", why.text,
                       rd.unpacked ? "" : " (can 'inspect log convert --to json' convert it?)");
    return rd.header
               ? SNAP_OK
               : err_set(err, SNAP_E_INPUT, "%s: no header.json: the run has not ended", name);
}
