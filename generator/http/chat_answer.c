#include "generator/http/chat_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "generator/http/server_error.h"

chat_answer chat_answer_make(void) {
    return (chat_answer){.text.limit = CHAT_TEXT_LIMIT,
                         .reasoning.limit = CHAT_TEXT_LIMIT,
                         .prompt_tokens = -1,
                         .completion_tokens = -1};
}

void chat_answer_clear(chat_answer *a) {
    buf_clear(&a->text);
    buf_clear(&a->reasoning);
    a->finish_reason[0] = '\0';
    a->prompt_tokens = a->completion_tokens = -1;
    a->done = a->repaired = false;
}

void chat_answer_release(chat_answer *a) {
    buf_release(&a->text);
    buf_release(&a->reasoning);
    chat_answer_clear(a);
}

bool chat_answer_complete(const chat_answer *a) {
    return a->finish_reason[0] != '\0';
}

bool chat_answer_aborted(const chat_answer *a) {
    return strcmp(a->finish_reason, "abort") == 0 || strcmp(a->finish_reason, "error") == 0;
}

/* Appends a string member; absent and null are empty. */
static snap_status take_text(const js *message, const char *key, buf *out, snap_err *err) {
    const js *v = js_get(message, key);
    if (!v)
        return SNAP_OK;
    size_t n;
    const char *s = js_get_strn(message, key, &n);
    if (!s)
        return err_set(err, SNAP_E_INPUT, "the answer's '%s' must be a string, got %s", key,
                       js_type_name(v));
    text_append_without_nul(out, s, n);
    return buf_check(out, "the answer's text", err);
}

static snap_status take_message(chat_answer *a, const js *message, snap_err *err) {
    snap_status st = take_text(message, "content", &a->text, err);
    if (st == SNAP_OK)
        /* some servers send both names with the same content */
        st = take_text(message,
                       js_get(message, "reasoning_content") ? "reasoning_content" : "reasoning",
                       &a->reasoning, err);
    return st;
}

static snap_status take_finish(chat_answer *a, const js *choice, snap_err *err) {
    const js *v = js_get(choice, "finish_reason");
    if (!v)
        return SNAP_OK;
    const char *reason = js_str(v);
    size_t n = reason ? strlen(reason) : 0;
    if (!n || n >= sizeof a->finish_reason)
        return err_set(err, SNAP_E_INPUT,
                       "the answer's 'finish_reason' must be a string of 1 to 31 bytes");
    memcpy(a->finish_reason, reason, n + 1);
    return SNAP_OK;
}

static int64_t tokens(const js *usage, const char *key, int64_t before) {
    int64_t n = js_get_int(usage, key, -1);
    return n >= 0 ? n : before;
}

static js *first_choice(js *choices) {
    for (size_t i = 0; i < js_len(choices); i++)
        if (js_get_int(js_at(choices, i), "index", 0) == 0)
            return js_at(choices, i);
    return NULL;
}

/* Reads what a whole answer and a stream chunk have in common. They differ in two points. The text
 * is in "message" or "delta". A chunk may have no delta, or no choice (the one that reports usage
 * has none). */
static snap_status take_object(chat_answer *a, js *object, bool chunk, snap_err *err) {
    buf words = {0};
    bool refused = server_error_message(object, &words);
    if (refused)
        (void)err_set(err, SNAP_E_NET, "the server reports: %s", buf_str(&words));
    buf_release(&words);
    if (refused)
        return SNAP_E_NET;
    const js *usage = js_get_object(object, "usage");
    a->prompt_tokens = tokens(usage, "prompt_tokens", a->prompt_tokens);
    a->completion_tokens = tokens(usage, "completion_tokens", a->completion_tokens);
    js *choices = js_get_array(object, "choices");
    if (!choices && !(chunk && usage))
        return err_set(err, SNAP_E_INPUT, "the answer has no 'choices'");
    const js *choice = first_choice(choices);
    if (!choice)
        return chunk ? SNAP_OK : err_set(err, SNAP_E_INPUT, "the answer's 'choices' are empty");
    const js *message = js_get_object(choice, chunk ? "delta" : "message");
    if (!message && !chunk)
        return err_set(err, SNAP_E_INPUT, "the answer's choice has no 'message'");
    snap_status st = message ? take_message(a, message, err) : SNAP_OK;
    return st == SNAP_OK ? take_finish(a, choice, err) : st;
}

/* The code unit of an escape (a backslash, u and four hex digits) at the start of a text; -1 if
 * there is none. */
static int escaped_unit(const char *s, size_t n) {
    int unit = 0;
    if (n < 6 || s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, s[i] | 0x20);
        if (s[i] < '0' || !at)
            return -1;
        unit = unit << 4 | (int)(at - digits);
    }
    return unit;
}

static bool is_surrogate(int unit, int first) {
    return unit >= first && unit < first + 0x400;
}

/* Copies an escape sequence, which starts with a backslash. Half of a surrogate pair becomes
 * U+FFFD. Returns the length of what was read. */
static size_t put_escape(buf *out, const char *s, size_t n, bool *repaired) {
    int unit = escaped_unit(s, n);
    size_t len = unit >= 0 ? 6 : n < 2 ? n : 2;
    if (is_surrogate(unit, 0xd800) && is_surrogate(escaped_unit(s + 6, n - 6), 0xdc00))
        len = 12;
    bool half = len == 6 && unit >= 0xd800 && unit <= 0xdfff;
    if (half)
        (void)buf_puts(out, "\\ufffd");
    else
        text_append_utf8_lossy(out, s, len);
    *repaired = *repaired || half || !text_is_utf8(s, len);
    return len;
}

/* Copies JSON and replaces what is not Unicode. True if there was something to replace. */
static bool repair(const char *json, size_t n, buf *out) {
    bool repaired = !text_is_utf8(json, n);
    for (size_t i = 0; i < n;) {
        const char *escape = memchr(json + i, '\\', n - i);
        size_t end = escape ? (size_t)(escape - json) : n;
        text_append_utf8_lossy(out, json + i, end - i);
        i = end;
        if (escape)
            i += put_escape(out, escape, n - end, &repaired);
    }
    return repaired;
}

/* Parses what the server sent. If that fails because of text that is not Unicode, parses a repaired
 * copy. */
static js *parse(chat_answer *a, const char *json, size_t n, const char *name, snap_err *err) {
    snap_err why = {0};
    buf copy = {0};
    js *v = js_parse(json, n, name, &why);
    if (!v && why.code == SNAP_E_INPUT && repair(json, n, &copy)) {
        why = (snap_err){0};
        if (buf_check(&copy, "the answer", &why) == SNAP_OK)
            v = js_parse(buf_str(&copy), copy.len, name, &why);
        a->repaired = a->repaired || v;
    }
    buf_release(&copy);
    if (!v)
        (void)err_set(err, why.code, "%s", why.text);
    return v;
}

static snap_status take_json(chat_answer *a, const char *json, size_t n, bool chunk,
                             snap_err *err) {
    snap_err why = {0};
    js *v = parse(a, json, n, chunk ? "stream chunk" : "answer", &why);
    if (!v)
        return err_set(err, why.code, "%s", why.text);
    snap_status st;
    if (js_is_object(v))
        st = take_object(a, v, chunk, err);
    else
        st = err_set(err, SNAP_E_INPUT, "the answer must be an object, got %s", js_type_name(v));
    js_free(v);
    return st;
}

snap_status chat_answer_read(chat_answer *a, const char *json, size_t n, snap_err *err) {
    snap_status st = take_json(a, json, n, false, err);
    if (st == SNAP_OK && !chat_answer_complete(a))
        st = err_set(err, SNAP_E_INPUT, "the answer has no 'finish_reason'");
    return st;
}

snap_status chat_answer_read_chunk(chat_answer *a, const char *data, size_t n, snap_err *err) {
    if (a->done || text_is_blank(data, n))
        return SNAP_OK;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        a->done = true;
        return SNAP_OK;
    }
    return take_json(a, data, n, true, err);
}
