#include "harness/eval/foreign_log.h"

#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/text.h"
#include "harness/eval/foreign_parts.h"

/* ---- parts of rows ---- */

void foreign_set_task(foreign_log *log, const char *name, size_t n) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t at = 0;
    for (size_t i = 0; i < n && at + 1 < sizeof log->task; i++) {
        char c = name[i] && strchr(allowed, name[i]) ? name[i] : '_';
        if (at || !strchr("_.-", c)) /* a task's name begins with a letter or digit */
            log->task[at++] = c;
    }
    log->task[at] = '\0';
    if (!at)
        (void)snprintf(log->task, sizeof log->task, "task");
}

void foreign_take_task(foreign_log *log, const char *path, const char *prefix) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    name += text_starts(name, prefix) ? strlen(prefix) : 0;
    const char *end = strrchr(name, '_');
    if (!end || !strchr("0123456789", end[1]) || !strchr(end, 'T'))
        end = strrchr(name, '.');
    foreign_set_task(log, name, end ? (size_t)(end - name) : strlen(name));
}

snap_status foreign_text(const js *value, buf *out, snap_err *err) {
    if (!value || js_is_null(value))
        return SNAP_OK;
    if (!js_is_str(value))
        return js_write(value, JS_COMPACT, out, err);
    (void)buf_append(out, js_str(value), js_str_len(value));
    return buf_check(out, "a text of the log", err);
}

snap_status foreign_set_buf(js *row, const char *key, const buf *text, snap_err *err) {
    buf clean = {0};
    text_append_without_nul(&clean, buf_str(text), text->len);
    bool ok = !text->failed && !clean.failed &&
              js_set_new(row, key, js_new_strn(buf_str(&clean), clean.len));
    buf_release(&clean);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a log");
}

snap_status foreign_set(js *row, const char *key, const js *value, snap_err *err) {
    buf text = {0};
    snap_status st;
    if (!value || js_is_null(value))
        return SNAP_OK;
    TRY(foreign_text(value, &text, err));
    TRY(foreign_set_buf(row, key, &text, err));
cleanup:
    buf_release(&text);
    return st;
}

snap_status foreign_set_messages(js *row, const js *messages, size_t n, foreign_text_fn text_of,
                                 void *ctx, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n; i++) {
        const char *role = js_get_str(js_at(messages, i), "role");
        if (n > 1)
            (void)buf_printf(&text, "%s%s: ", i ? "\n\n" : "", role ? role : "message");
        TRY(text_of(ctx, js_get(js_at(messages, i), "content"), &text, err));
    }
    TRY(foreign_set_buf(row, "prompt", &text, err));
cleanup:
    buf_release(&text);
    return st;
}

/* ---- the formats ---- */

static bool begins(const char *bytes, size_t n, const char *magic) {
    return n >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

/* The first line of a log of lm-eval is a complete object. A log of Inspect is one object with the
 * key "eval", which may also stand on one line. */
static bool is_lm_eval(const char *text, size_t n) {
    const char *end = n ? memchr(text, '\n', n) : NULL;
    js *first = js_parse(text, end ? (size_t)(end - text) : n, "log", NULL);
    bool is = js_is_object(first) && !js_has(first, "eval");
    js_free(first);
    return is;
}

static snap_status parse(foreign_log *out, const char *bytes, size_t n, const char *name,
                         snap_err *err) {
    if (begins(bytes, n, "PAR1"))
        return lighteval_parse(out, bytes, n, name, err);
    if (begins(bytes, n, "PK"))
        return inspect_parse(out, bytes, n, true, name, err);
    if (is_lm_eval(bytes, n))
        return lm_eval_parse(out, bytes, n, name, err);
    return inspect_parse(out, bytes, n, false, name, err);
}

snap_status foreign_log_parse(foreign_log *out, const char *bytes, size_t n, const char *name,
                              snap_err *err) {
    fault_mark before = fault_begin();
    *out = (foreign_log){.rows = js_new_array()};
    snap_status st = out->rows ? parse(out, bytes, n, name, err)
                               : err_set(err, SNAP_E_NOMEM, "out of memory for a log");
    if (st == SNAP_OK && !js_len(out->rows))
        st = err_set(err, SNAP_E_INPUT, "%s: the log has no samples", name);
    return fault_result(before, st, err);
}

void foreign_log_release(foreign_log *log) {
    js_free(log->rows);
    *log = (foreign_log){0};
}

/* ---- files ---- */

/* Takes lm-eval's version from results_DATE.json, for a log samples_TASK_DATE.jsonl. */
static snap_status find_version(foreign_log *log, const char *path, snap_err *err) {
    const char *slash = strrchr(path, '/'), *date = strrchr(path, '_');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, end = strlen(path);
    buf other = {0};
    snap_status st = SNAP_OK;
    if (!date || date < path + folder || !text_ends(path, ".jsonl"))
        return SNAP_OK;
    (void)buf_append(&other, path, folder);
    (void)buf_puts(&other, "results");
    (void)buf_append(&other, date, end - strlen(".jsonl") - (size_t)(date - path));
    (void)buf_puts(&other, ".json");
    TRY(buf_check(&other, "a path", err));
    if (fs_exists(buf_str(&other))) {
        js *results = js_parse_file(buf_str(&other), FOREIGN_LOG_LIMIT, err);
        const char *version = js_get_str(results, "lm_eval_version");
        (void)snprintf(log->version, sizeof log->version, "%.30s", version ? version : "");
        st = results ? SNAP_OK : err ? err->code : SNAP_E_INPUT;
        js_free(results);
    }
cleanup:
    buf_release(&other);
    return st;
}

snap_status foreign_log_read(foreign_log *out, const char *path, snap_err *err) {
    buf bytes = {.limit = FOREIGN_LOG_LIMIT};
    snap_status st;
    *out = (foreign_log){0};
    TRY(fs_read_regular(path, &bytes, err));
    TRY(foreign_log_parse(out, buf_str(&bytes), bytes.len, path, err));
    if (text_equal(out->from, "lm-eval"))
        TRY(find_version(out, path, err));
cleanup:
    buf_release(&bytes);
    return st;
}
