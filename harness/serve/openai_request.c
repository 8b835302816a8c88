#include "harness/serve/openai_request.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

bool openai_fail(openai_error *e, int status, const char *param, const char *code, const char *fmt,
                 ...) {
    char text[sizeof e->message];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    *e = (openai_error){.status = status, .param = param, .code = code};
    e->type = status == 429   ? "rate_limit_error"
              : status >= 500 ? "server_error"
                              : "invalid_request_error";
    (void)text_show(e->message, sizeof e->message, text);
    return false;
}

static bool no_memory(openai_error *e) {
    return openai_fail(e, 503, NULL, NULL, "the server is out of memory");
}

static bool bad_type(openai_error *e, const char *key, const char *wanted) {
    return openai_fail(e, 400, key, NULL, "'%s' must be %s", key, wanted);
}

/* ---- single members ---- */

/* Reads a number within [min, max]; *out stays unchanged if the member is absent. */
static bool read_num(const js *o, const char *key, double min, double max, double *out,
                     openai_error *e) {
    const js *v = js_get(o, key);
    if (!v)
        return true;
    if (!js_is_num(v))
        return bad_type(e, key, "a number");
    double x = js_num(v);
    if (!(x >= min && x <= max))
        return openai_fail(e, 400, key, NULL, "'%s' is %g: it must be from %g to %g", key, x, min,
                           max);
    *out = x;
    return true;
}

static bool read_int(const js *o, const char *key, int64_t min, int64_t max, int64_t *out,
                     openai_error *e) {
    const js *v = js_get(o, key);
    if (!v)
        return true;
    if (!js_is_int(v))
        return bad_type(e, key, "an integer");
    int64_t x = js_int(v);
    if (x < min || x > max)
        return openai_fail(e, 400, key, NULL, "'%s' is %lld: it must be from %lld to %lld", key,
                           (long long)x, (long long)min, (long long)max);
    *out = x;
    return true;
}

static bool read_small(const js *o, const char *key, int min, int max, int *out, openai_error *e) {
    int64_t x = *out;
    bool ok = read_int(o, key, min, max, &x, e);
    *out = (int)x;
    return ok;
}

static bool read_bool(const js *o, const char *key, bool *out, openai_error *e) {
    const js *v = js_get(o, key);
    if (!v)
        return true;
    if (!js_is_bool(v))
        return bad_type(e, key, "true or false");
    *out = js_true(v);
    return true;
}

/* Reads a string. One that contains U+0000 is refused. */
static bool read_text(const js *v, const char *key, const char **out, openai_error *e) {
    *out = js_str(v);
    if (!*out)
        return bad_type(e, key, "a string");
    return strlen(*out) == js_str_len(v) ||
           openai_fail(e, 400, key, NULL, "'%s' contains the character U+0000", key);
}

/* ---- members that would change the answer, but cannot be obeyed ---- */

static bool is_empty(const js *v) {
    return !v || (js_is_array(v) && js_len(v) == 0) || (js_is_object(v) && !js_first(v)) ||
           (js_is_bool(v) && !js_true(v)) || (js_is_num(v) && !(fabs(js_num(v)) > 0)) ||
           (js_is_str(v) && js_str_len(v) == 0);
}

/* An answer is always text. */
static bool check_format(const openai_request *r, openai_error *e) {
    const js *format = js_get(r->body, "response_format"), *type = js_get(format, "type");
    if (format && (!js_is_object(format) || (type && !js_is_str(type))))
        return bad_type(e, "response_format", "an object whose 'type' is a string");
    return !type || text_equal(js_str(type), "text") ||
           openai_fail(e, 400, "response_format", "unsupported_parameter",
                       "this server does not support 'response_format' other than text");
}

static bool check_unsupported(const openai_request *r, openai_error *e) {
    static const char *const names[] = {
        "tools",           "functions",     "logit_bias",         "suffix",
        "use_beam_search", "audio",         "structured_outputs", "guided_json",
        "guided_regex",    "guided_choice", "guided_grammar"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!is_empty(js_get(r->body, names[i])))
            return openai_fail(e, 400, names[i], "unsupported_parameter",
                               "this server does not support '%s': leave it out", names[i]);
    int64_t best = r->n;
    if (!check_format(r, e) || !read_int(r->body, "best_of", 1, INT_MAX, &best, e))
        return false;
    return best == r->n || openai_fail(e, 400, "best_of", "unsupported_parameter",
                                       "'best_of' must be equal to 'n'");
}

/* ---- messages ---- */

/* Concatenates the texts of a list of parts. A part has the type "text", or no type. */
static bool read_parts(openai_request *r, const js *parts, const char **out, openai_error *e) {
    buf text = {0};
    bool ok = true;
    for (size_t i = 0; i < js_len(parts) && ok; i++) {
        const js *part = js_at(parts, i);
        const char *type = js_get_str(part, "type"), *s = NULL;
        if (!js_is_object(part) || (type && strcmp(type, "text") != 0))
            ok = openai_fail(e, 400, "messages", NULL,
                             "a part of a message must be an object of type 'text'");
        else if ((ok = read_text(js_get(part, "text"), "messages", &s, e)))
            (void)buf_puts(&text, s);
    }
    *out = ok ? arena_strndup(&r->mem, buf_str(&text), text.len) : NULL;
    if (ok && (!*out || text.failed))
        ok = no_memory(e);
    buf_release(&text);
    return ok;
}

static bool read_message(openai_request *r, const js *m, gen_message *out, openai_error *e) {
    const char *role = js_get_str(m, "role");
    const js *content = js_get(m, "content");
    if (!role)
        return openai_fail(e, 400, "messages", NULL, "a message must have a 'role'");
    if (strcmp(role, "developer") == 0)
        role = "system";
    if (strcmp(role, "system") != 0 && strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0)
        return openai_fail(
            e, 400, "messages", NULL,
            "the role '%.60s' is not supported: use system, developer, user or assistant", role);
    out->role = role;
    if (!content && strcmp(role, "assistant") == 0) {
        out->content = "";
        return true;
    }
    return js_is_array(content) ? read_parts(r, content, &out->content, e)
                                : read_text(content, "messages", &out->content, e);
}

static bool read_messages(openai_request *r, openai_error *e) {
    const js *list = js_get_array(r->body, "messages");
    size_t n = js_len(list);
    if (n < 1 || n > INT_MAX)
        return bad_type(e, "messages", "a list with at least one message");
    r->messages = arena_alloc(&r->mem, n, sizeof *r->messages);
    if (!r->messages)
        return no_memory(e);
    for (size_t i = 0; i < n; i++)
        if (!read_message(r, js_at(list, i), &r->messages[i], e))
            return false;
    r->n_messages = (int)n;
    r->n_prompts = 1;
    const js *how = js_get(r->body, "chat_template_kwargs");
    if (how && !js_is_object(how))
        return bad_type(e, "chat_template_kwargs", "an object");
    static const char *const names[] = {"thinking", "enable_thinking"};
    for (int i = 0; i < 2; i++) {
        bool on = r->thinking == 1;
        if (!read_bool(how, names[i], &on, e))
            return false;
        if (js_get(how, names[i]))
            r->thinking = on;
    }
    return true;
}

/* ---- prompts ---- */

static bool bad_prompt(openai_request *r, openai_error *e) {
    return r->kind == OPENAI_DETOKENIZE
               ? bad_type(e, "tokens", "a list of token ids")
               : bad_type(e, "prompt", "a string, a list of strings, or lists of token ids");
}

static bool read_ids(openai_request *r, const js *list, openai_prompt *out, openai_error *e) {
    size_t n = js_len(list);
    out->ids = arena_alloc(&r->mem, n + 1, sizeof *out->ids);
    if (!out->ids)
        return no_memory(e);
    for (size_t i = 0; i < n; i++) {
        const js *v = js_at(list, i);
        if (!js_is_int(v) || js_int(v) < 0 || js_int(v) > INT32_MAX)
            return bad_prompt(r, e);
        out->ids[i] = (int32_t)js_int(v);
    }
    out->n = n;
    return true;
}

static bool read_prompt(openai_request *r, const js *v, openai_prompt *out, openai_error *e) {
    if (js_is_array(v))
        return read_ids(r, v, out, e);
    if (!js_is_str(v))
        return bad_prompt(r, e);
    out->n = js_str_len(v);
    return read_text(v, "prompt", &out->text, e);
}

static bool read_prompts(openai_request *r, openai_error *e) {
    const js *v = js_get(r->body, "prompt");
    const js *first = js_at(v, 0);
    bool many = js_is_array(v) && (js_is_str(first) || js_is_array(first));
    size_t n = many ? js_len(v) : 1;
    if (n > OPENAI_CHOICES)
        return openai_fail(e, 400, "prompt", NULL, "at most %d prompts are possible",
                           OPENAI_CHOICES);
    r->prompts = arena_alloc(&r->mem, n, sizeof *r->prompts);
    if (!r->prompts)
        return no_memory(e);
    memset(r->prompts, 0, n * sizeof *r->prompts);
    for (size_t i = 0; i < n; i++)
        if (!read_prompt(r, many ? js_at(v, i) : v, &r->prompts[i], e))
            return false;
    r->n_prompts = (int)n;
    return true;
}

/* The ids of /detokenize become the only prompt. */
static bool read_tokens(openai_request *r, openai_error *e) {
    const js *v = js_get_array(r->body, "tokens");
    if (!v)
        return bad_prompt(r, e);
    r->prompts = arena_alloc(&r->mem, 1, sizeof *r->prompts);
    if (!r->prompts)
        return no_memory(e);
    memset(r->prompts, 0, sizeof *r->prompts);
    r->n_prompts = 1;
    return read_ids(r, v, &r->prompts[0], e);
}

/* ---- parameters ---- */

static bool read_stops(openai_request *r, openai_error *e) {
    const js *v = js_get(r->body, "stop");
    size_t n = js_is_array(v) ? js_len(v) : v ? 1 : 0;
    if (n > OPENAI_STOPS)
        return openai_fail(e, 400, "stop", NULL, "at most %d stop strings are possible",
                           OPENAI_STOPS);
    for (size_t i = 0; i < n; i++)
        if (!read_text(js_is_array(v) ? js_at(v, i) : v, "stop", &r->stops[i], e))
            return false;
    r->stop = (stop_strings){.text = r->stops, .n = (int)n};
    return true;
}

static bool read_sampling(openai_request *r, openai_error *e) {
    sampling *s = &r->sampling;
    int64_t seed = 0;
    *s = (sampling){.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    bool ok = read_num(r->body, "temperature", 0, 100, &s->temperature, e) &&
              read_num(r->body, "top_p", 1e-9, 1, &s->top_p, e) &&
              read_num(r->body, "min_p", 0, 1, &s->min_p, e) &&
              read_num(r->body, "repetition_penalty", 1e-3, 100, &s->repetition_penalty, e) &&
              read_num(r->body, "presence_penalty", -2, 2, &s->presence_penalty, e) &&
              read_num(r->body, "frequency_penalty", -2, 2, &s->frequency_penalty, e) &&
              read_small(r->body, "top_k", -1, INT_MAX, &s->top_k, e) &&
              read_int(r->body, "seed", INT64_MIN, INT64_MAX, &seed, e);
    s->top_k = s->top_k < 0 ? 0 : s->top_k;
    r->has_seed = js_get(r->body, "seed") != NULL;
    r->seed = (uint64_t)seed;
    return ok;
}

static bool read_logprobs(openai_request *r, openai_error *e) {
    if (r->kind == OPENAI_COMPLETION) {
        r->logprobs = js_get(r->body, "logprobs") != NULL;
        return read_small(r->body, "logprobs", 0, OPENAI_TOP, &r->top_logprobs, e);
    }
    if (!read_bool(r->body, "logprobs", &r->logprobs, e) ||
        !read_small(r->body, "top_logprobs", 0, OPENAI_TOP, &r->top_logprobs, e))
        return false;
    return r->logprobs || !r->top_logprobs ||
           openai_fail(e, 400, "top_logprobs", NULL, "'top_logprobs' needs 'logprobs': true");
}

static bool read_limits(openai_request *r, openai_error *e) {
    bool chat = r->kind == OPENAI_CHAT;
    r->max_tokens = chat ? -1 : 16;
    r->n = 1;
    bool ok = read_int(r->body, "max_tokens", 0, INT_MAX, &r->max_tokens, e) &&
              read_int(r->body, "max_completion_tokens", 0, INT_MAX, &r->max_tokens, e) &&
              read_int(r->body, "min_tokens", 0, INT_MAX, &r->min_tokens, e) &&
              read_bool(r->body, "ignore_eos", &r->ignore_eos, e) &&
              read_small(r->body, "n", 1, OPENAI_CHOICES, &r->n, e);
    if (!ok)
        return false;
    if (r->max_tokens == 0 && (chat || !r->echo))
        return openai_fail(e, 400, "max_tokens", NULL,
                           "'max_tokens' is 0: it must be at least 1, except with 'echo'");
    if (r->max_tokens >= 0 && r->min_tokens > r->max_tokens)
        return openai_fail(e, 400, "min_tokens", NULL, "'min_tokens' is above 'max_tokens'");
    return (int64_t)r->n * r->n_prompts <= OPENAI_CHOICES ||
           openai_fail(e, 400, "n", NULL, "at most %d choices are possible", OPENAI_CHOICES);
}

static bool read_stream(openai_request *r, openai_error *e) {
    const js *options = js_get(r->body, "stream_options");
    if (!read_bool(r->body, "stream", &r->stream, e))
        return false;
    if (options && !js_is_object(options))
        return bad_type(e, "stream_options", "an object");
    if (!read_bool(options, "include_usage", &r->include_usage, e) ||
        !read_bool(options, "continuous_usage_stats", &r->continuous_usage, e))
        return false;
    r->continuous_usage &= r->include_usage; /* as in vLLM, the one option needs the other */
    return true;
}

static bool read_all(openai_request *r, openai_error *e) {
    const js *model = js_get(r->body, "model");
    if (model && !read_text(model, "model", &r->model, e))
        return false;
    if (r->kind == OPENAI_DETOKENIZE)
        return read_tokens(r, e);
    bool texts =
        r->kind == OPENAI_COMPLETION || (r->kind == OPENAI_TOKENIZE && js_get(r->body, "prompt"));
    if (!(texts ? read_prompts(r, e) : read_messages(r, e)))
        return false;
    bool specials = true;
    if (texts && !read_bool(r->body, "add_special_tokens", &specials, e))
        return false;
    r->no_specials = !specials;
    if (r->kind == OPENAI_TOKENIZE)
        return r->n_prompts == 1 || bad_type(e, "prompt", "one string");
    if (r->kind == OPENAI_COMPLETION && !read_bool(r->body, "echo", &r->echo, e))
        return false;
    return read_stream(r, e) && read_limits(r, e) && read_sampling(r, e) && read_logprobs(r, e) &&
           read_stops(r, e) && check_unsupported(r, e);
}

bool openai_request_read(openai_request *r, openai_kind kind, const char *text, size_t n,
                         openai_error *e) {
    snap_err why = {0};
    *r = (openai_request){.kind = kind, .thinking = -1};
    r->body = js_parse(text, n, "the request", &why);
    if (!r->body)
        return why.code == SNAP_E_NOMEM ? no_memory(e)
                                        : openai_fail(e, 400, NULL, "invalid_json", "%s", why.text);
    if (!js_is_object(r->body))
        return openai_fail(e, 400, NULL, "invalid_json", "the request must be a JSON object");
    return read_all(r, e);
}

void openai_request_shrink(openai_request *r) {
    bool texts = false;
    for (int i = 0; r->prompts && i < r->n_prompts; i++)
        texts |= r->prompts[i].text != NULL; /* `echo` repeats the text of a prompt, which lies in
                                                r->body */
    r->messages = NULL;
    r->n_messages = 0;
    (void)js_delete(r->body, "messages");
    if (texts)
        return;
    (void)js_delete(r->body, "prompt");
    (void)js_delete(r->body, "tokens");
}

void openai_request_release(openai_request *r) {
    js_free(r->body);
    arena_release(&r->mem);
    *r = (openai_request){0};
}
