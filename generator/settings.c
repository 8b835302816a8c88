#include "generator/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- sampling ---- */

void gen_sampling_values(const gen_sampling *s, gen_sampling_value out[GEN_SAMPLING_VALUES]) {
    double repetition = s->repetition_penalty > 0 ? s->repetition_penalty : 1;
    const gen_sampling_value values[GEN_SAMPLING_VALUES] = {
        {"temperature", s->temperature, NAN},
        {"top_p", s->top_p, NAN},
        {"max_tokens", s->max_tokens, NAN},
        {"top_k", s->top_k, 0},
        {"min_p", s->min_p, 0},
        {"presence_penalty", s->presence_penalty, 0},
        {"frequency_penalty", s->frequency_penalty, 0},
        {"repetition_penalty", repetition, 1},
    };
    memcpy(out, values, sizeof values);
}

bool gen_sampling_is_on(const gen_sampling_value *v) {
    return isnan(v->off) || v->value < v->off || v->value > v->off;
}

/* ---- messages ---- */

static bool begins_with_system(const gen_request *req) {
    return req->n_messages && strcmp(req->messages[0].role, "system") == 0;
}

int gen_message_count(const gen_request *req) {
    bool more = req->settings && req->settings->system && !begins_with_system(req);
    return req->n_messages + more;
}

gen_message gen_message_at(const gen_request *req, int i) {
    const char *system = req->settings ? req->settings->system : NULL;
    if (!system)
        return req->messages[i];
    return i ? req->messages[i - 1 + begins_with_system(req)] : (gen_message){"system", system};
}

/* ---- the budget of reasoning ---- */

/* The field that limits the reasoning. In the text, # stands for the number of tokens. Sources, as
 * of 2026: documentation of vLLM (reasoning outputs), SGLang (thinking budget), llama.cpp (server),
 * Alibaba Model Studio, OpenRouter, NVIDIA NIM and the chat template of Qwen3; Anthropic's notes on
 * its endpoint that is compatible with OpenAI. */
static const struct {
    const char *server, *field;
} kBudgets[] = {
    {"vllm", "{\"thinking_token_budget\":#}"},
    {"sglang", "{\"custom_params\":{\"thinking_budget\":#}}"},
    {"llamacpp", "{\"thinking_budget_tokens\":#,\"reasoning_budget_tokens\":#}"},
    {"template", "{\"chat_template_kwargs\":{\"thinking_budget\":#}}"},
    {"dashscope", "{\"enable_thinking\":true,\"thinking_budget\":#}"},
    {"openrouter", "{\"reasoning\":{\"max_tokens\":#}}"},
    {"anthropic", "{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":#}}"},
    {"nim", "{\"nvext\":{\"max_thinking_tokens\":#}}"},
};

const char *gen_server_names(void) {
    return "vllm, sglang, llamacpp, template, dashscope, openrouter, anthropic, nim";
}

static const char *budget_field(const char *server) {
    for (size_t i = 0; server && i < sizeof kBudgets / sizeof *kBudgets; i++)
        if (strcmp(kBudgets[i].server, server) == 0)
            return kBudgets[i].field;
    return NULL;
}

/* The field of the budget as JSON, for a known server; NULL if memory is exhausted. */
static js *budget_json(const gen_settings *s) {
    const char *at = budget_field(s->server);
    buf text = {0};
    for (; at && *at; at++)
        if (*at == '#')
            (void)buf_printf(&text, "%lld", (long long)s->thinking_budget);
        else
            (void)buf_append(&text, at, 1);
    js *v = js_parse(buf_str(&text), text.len, "thinking budget", NULL);
    buf_release(&text);
    return v;
}

/* ---- as JSON ---- */

static bool set_parsed(js *o, const char *key, const char *json) {
    return !json || js_set_new(o, key, js_parse(json, strlen(json), key, NULL));
}

js *gen_settings_json(const gen_settings *s) {
    js *o = js_new_object();
    bool ok = o && (!s->system || js_set_str(o, "system", s->system)) &&
              set_parsed(o, "body", s->body) && set_parsed(o, "template", s->prompt) &&
              (!s->completions || js_set_str(o, "api", "completions")) &&
              (!s->opened || js_set_str(o, "reasoning", "opened")) &&
              (!s->thinking_budget || js_set_int(o, "thinking_budget", s->thinking_budget));
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

bool gen_merge(js *to, js *from, bool removes) {
    bool ok = true;
    for (void *it = js_first(from); it && ok; it = js_next(from, it)) {
        const char *key = js_key(it);
        js *value = js_value(it), *was = js_get_object(to, key);
        if (was && js_is_object(value))
            ok = gen_merge(was, value, removes);
        else if (js_is_null(value) && removes)
            (void)js_delete(to, key);
        else
            ok = js_set_new(to, key, js_copy(value));
    }
    return ok;
}

bool gen_settings_apply(const gen_settings *s, js *request) {
    js *body = s->body ? js_parse(s->body, strlen(s->body), "body", NULL) : NULL;
    js *budget = s->thinking_budget ? budget_json(s) : NULL;
    bool ok = (!s->body || body) && (!s->thinking_budget || budget) &&
              (!body || gen_merge(request, body, true)) &&
              (!budget || gen_merge(request, budget, false));
    js_free(body);
    js_free(budget);
    return ok;
}

/* ---- checks of the settings ---- */

/* The members that a body must not set, and what to use instead. */
static const struct {
    const char *member, *instead;
    bool removable; /* null removes it, for servers that refuse it */
} kReserved[] = {
    {"model", "the key model", false},
    {"messages", "the task, and the key system", false},
    {"prompt", "the task, and the key template", false},
    {"n", "--samples", false},
    {"best_of", "--samples", false},
    {"stream", "the key stream", false},
    {"stream_options", "the key stream", true},
    {"seed", "--seed, or the key seed", true},
    {"temperature", "the key temperature", true},
    {"top_p", "the key top_p", true},
    {"max_tokens", "the key max_tokens", false},
    {"max_completion_tokens", "the key max_completion_tokens", false},
    {"top_k", "the key top_k", false},
    {"min_p", "the key min_p", false},
    {"presence_penalty", "the key presence_penalty", false},
    {"frequency_penalty", "the key frequency_penalty", false},
    {"repetition_penalty", "the key repetition_penalty", false},
    {"repeat_penalty", "the keys repetition_penalty and server=llamacpp", false},
    {"echo", "nothing: an answer must not repeat its prompt", false},
};

static snap_status check_member(const char *key, const js *value, snap_err *err) {
    for (size_t i = 0; i < sizeof kReserved / sizeof *kReserved; i++) {
        if (strcmp(key, kReserved[i].member) != 0)
            continue;
        if (js_is_null(value) && kReserved[i].removable)
            return SNAP_OK;
        return err_set(err, SNAP_E_USAGE, "'%s' is set by snapmla: use %s%s", key,
                       kReserved[i].instead,
                       kReserved[i].removable ? ", or null to leave it out" : "");
    }
    return SNAP_OK;
}

/* True if a member's name looks like that of a secret. A body is stored with the run. */
static bool is_secret(const char *key) {
    static const char *const words[] = {"api_key", "apikey",   "api-key",      "authorization",
                                        "secret",  "password", "access_token", "bearer"};
    char lower[64];
    size_t n = 0;
    for (; key[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)(key[n] >= 'A' && key[n] <= 'Z' ? key[n] + ('a' - 'A') : key[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

enum { kDeepest = 32 };

static snap_status check_secrets(js *v, int depth, snap_err *err) {
    snap_status st = SNAP_OK;
    if (depth > kDeepest)
        return err_set(err, SNAP_E_USAGE, "it is nested more than %d deep", kDeepest);
    for (size_t i = 0; i < js_len(v) && st == SNAP_OK; i++)
        st = check_secrets(js_at(v, i), depth + 1, err);
    for (void *it = js_is_object(v) ? js_first(v) : NULL; it && st == SNAP_OK; it = js_next(v, it))
        st = is_secret(js_key(it))
                 ? err_set(err, SNAP_E_USAGE,
                           "member '%.40s' looks like a secret, and a body is stored with the run: "
                           "use key_env or header",
                           js_key(it))
                 : check_secrets(js_value(it), depth + 1, err);
    return st;
}

static js *parse_object(const char *text, const char *name, snap_err *err) {
    snap_err why = {0};
    js *v = js_parse(text, strlen(text), name, &why);
    if (js_is_object(v))
        return v;
    if (v || why.code != SNAP_E_NOMEM)
        (void)err_set(err, SNAP_E_USAGE, "%s must be a JSON object%s%s", name, v ? "" : ": ",
                      v ? "" : why.text);
    else
        (void)err_set(err, why.code, "%s", why.text);
    js_free(v);
    return NULL;
}

static snap_status check_body(const char *body, snap_err *err) {
    js *v = parse_object(body, "body", err);
    snap_status st = v ? check_secrets(v, 0, err) : err->code;
    for (void *it = v ? js_first(v) : NULL; it && st == SNAP_OK; it = js_next(v, it))
        st = check_member(js_key(it), js_value(it), err);
    if (v && st != SNAP_OK)
        err_prefix(err, "body");
    js_free(v);
    return st;
}

/* Checks the template of a prompt; gen_settings describes its form. */
static snap_status check_prompt(const char *prompt, snap_err *err) {
    static const char *const roles[] = {"system", "user", "assistant", "end"};
    js *v = parse_object(prompt, "template", err);
    snap_status st = v ? SNAP_OK : err->code;
    for (void *it = v ? js_first(v) : NULL; it && st == SNAP_OK; it = js_next(v, it)) {
        size_t i = 0;
        while (i < 4 && strcmp(roles[i], js_key(it)) != 0)
            i++;
        const char *text = js_str(js_value(it));
        if (i == 4 || !text)
            st = err_set(err, SNAP_E_USAGE,
                         "template: the members are texts of system, user, assistant and end");
        else if (i < 3 && !strstr(text, "{content}"))
            st = err_set(err, SNAP_E_USAGE, "template: '%s' does not contain {content}", roles[i]);
    }
    js_free(v);
    return st;
}

snap_status gen_settings_check(const gen_settings *s, snap_err *err) {
    snap_err unused = {0};
    err = err ? err : &unused;
    snap_status st = s->body ? check_body(s->body, err) : SNAP_OK;
    if (st == SNAP_OK && s->prompt)
        st = check_prompt(s->prompt, err);
    if (st != SNAP_OK)
        return st;
    if (s->prompt && !s->completions)
        return err_set(err, SNAP_E_USAGE, "a server's template needs api=completions");
    if (s->parts && s->completions)
        return err_set(err, SNAP_E_USAGE, "content=parts needs api=chat");
    if (s->server && !budget_field(s->server))
        return err_set(err, SNAP_E_USAGE, "server '%.40s' must be one of %s", s->server,
                       gen_server_names());
    if (s->thinking_budget && !s->server)
        return err_set(err, SNAP_E_USAGE,
                       "a thinking budget needs server=FAMILY, because servers differ in its "
                       "field: %s",
                       gen_server_names());
    return SNAP_OK;
}
