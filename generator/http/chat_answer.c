#include "generator/http/chat_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "generator/http/server_error.h"

static const int64_t kMostTokens = INT64_C(1) << 40; /* sums of counts below it do not overflow */

chat_answer chat_answer_make(void) {
    return (chat_answer){.text.limit = CHAT_TEXT_LIMIT,
                         .reasoning.limit = CHAT_TEXT_LIMIT,
                         .prompt_tokens = -1,
                         .completion_tokens = -1,
                         .reasoning_tokens = -1};
}

void chat_answer_clear(chat_answer *a) {
    buf_clear(&a->text);
    buf_clear(&a->reasoning);
    a->finish_reason[0] = '\0';
    a->prompt_tokens = a->completion_tokens = a->reasoning_tokens = -1;
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

int64_t chat_answer_reasoning_tokens(const chat_answer *a) {
    bool reasons = a->reasoning.len || strstr(buf_str(&a->text), "<think>") ||
                   strstr(buf_str(&a->text), "</think>");
    bool contradicted = a->reasoning_tokens == 0 && reasons;
    return contradicted ? -1 : a->reasoning_tokens;
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

/* Appends the text of one part of a list: a string, or an object with "text". */
static snap_status take_part(const js *part, buf *out, snap_err *err) {
    const char *s = js_str(part);
    if (!s)
        return take_text(part, "text", out, err);
    text_append_without_nul(out, s, js_str_len(part));
    return buf_check(out, "the answer's text", err);
}

/* Appends a part of type "thinking", whose text is a string or a list of parts. */
static snap_status take_thinking(const js *part, buf *out, snap_err *err) {
    const js *list = js_get_array(part, "thinking");
    snap_status st = list ? SNAP_OK : take_text(part, "thinking", out, err);
    for (size_t i = 0; i < js_len(list) && st == SNAP_OK; i++)
        st = take_part(js_at(list, i), out, err);
    return st;
}

/* Appends the content: a string or a list of parts. Parts without text, such as images, are
 * ignored. */
static snap_status take_content(chat_answer *a, const js *message, snap_err *err) {
    const js *list = js_get_array(message, "content");
    snap_status st = list ? SNAP_OK : take_text(message, "content", &a->text, err);
    for (size_t i = 0; i < js_len(list) && st == SNAP_OK; i++) {
        const js *part = js_at(list, i);
        st = text_equal(js_get_str(part, "type"), "thinking")
                 ? take_thinking(part, &a->reasoning, err)
                 : take_part(part, &a->text, err);
    }
    return st;
}

/* Appends the texts of the list "reasoning_details" (OpenRouter). Encrypted details have none. */
static snap_status take_details(const js *message, buf *out, snap_err *err) {
    const js *list = js_get_array(message, "reasoning_details");
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(list) && st == SNAP_OK; i++) {
        const js *part = js_at(list, i);
        st = take_text(part, js_get(part, "text") ? "text" : "summary", out, err);
    }
    return st;
}

/* Appends the reasoning. Some servers send it under several names, so only the first one that has a
 * text is read. */
static snap_status take_reasoning(chat_answer *a, const js *message, snap_err *err) {
    static const char *const names[] = {"reasoning_content", "reasoning"};
    size_t before = a->reasoning.len;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < 2 && st == SNAP_OK && a->reasoning.len == before; i++)
        st = take_text(message, names[i], &a->reasoning, err);
    return st == SNAP_OK && a->reasoning.len == before ? take_details(message, &a->reasoning, err)
                                                       : st;
}

static snap_status take_message(chat_answer *a, const js *message, snap_err *err) {
    snap_status st = take_reasoning(a, message, err);
    return st == SNAP_OK ? take_content(a, message, err) : st;
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

/* Reads the token counts. SGLang reports reasoning tokens beside the other counts, and other
 * servers in completion_tokens_details. If the total shows that completion_tokens leaves them out
 * (xAI), they are added. */
static void take_usage(chat_answer *a, const js *usage) {
    const js *details = js_get_object(usage, "completion_tokens_details");
    a->prompt_tokens = tokens(usage, "prompt_tokens", a->prompt_tokens);
    a->completion_tokens = tokens(usage, "completion_tokens", a->completion_tokens);
    a->reasoning_tokens = tokens(usage, "reasoning_tokens", a->reasoning_tokens);
    a->reasoning_tokens = tokens(details, "reasoning_tokens", a->reasoning_tokens);
    int64_t total = tokens(usage, "total_tokens", -1), prompt = tokens(usage, "prompt_tokens", -1),
            completion = tokens(usage, "completion_tokens", -1), reasoning = a->reasoning_tokens;
    bool small = total < kMostTokens && prompt < kMostTokens && completion < kMostTokens &&
                 reasoning < kMostTokens;
    if (prompt >= 0 && completion >= 0 && reasoning > 0 && small &&
        total == prompt + completion + reasoning)
        a->completion_tokens = completion + reasoning;
}

static js *first_choice(js *choices) {
    for (size_t i = 0; i < js_len(choices); i++)
        if (js_get_int(js_at(choices, i), "index", 0) == 0)
            return js_at(choices, i);
    return NULL;
}

/* Reads the text of a choice. It is in "delta" in a chunk, in "message" in a whole answer, and in
 * "text" in a text completion. Some servers send a stream with a "message". */
static snap_status take_choice(chat_answer *a, const js *choice, bool chunk, snap_err *err) {
    const js *message = chunk ? js_get_object(choice, "delta") : NULL;
    message = message ? message : js_get_object(choice, "message");
    if (message)
        return take_message(a, message, err);
    if (!chunk && !js_get(choice, "text"))
        return err_set(err, SNAP_E_INPUT, "the answer's choice has no 'message'");
    return take_text(choice, "text", &a->text, err);
}

/* Reads what a whole answer and a stream chunk have in common. A chunk may have no text, or no
 * choice, like the one that reports usage, or be another event, such as {"type": "ping"}. */
static snap_status take_object(chat_answer *a, js *object, bool chunk, snap_err *err) {
    buf words = {0};
    bool refused = server_error_message(object, &words);
    if (refused)
        (void)err_set(err, SNAP_E_NET, "the server reports: %s", buf_str(&words));
    buf_release(&words);
    if (refused)
        return SNAP_E_NET;
    take_usage(a, js_get_object(object, "usage"));
    js *choices = js_get_array(object, "choices");
    if (!choices && !chunk)
        return err_set(err, SNAP_E_INPUT, "the answer has no 'choices'");
    const js *choice = first_choice(choices);
    if (!choice)
        return chunk ? SNAP_OK : err_set(err, SNAP_E_INPUT, "the answer's 'choices' are empty");
    snap_status st = take_choice(a, choice, chunk, err);
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
