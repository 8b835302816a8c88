#include "generator/http/chat_request.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "generator/settings.h"

/* The seed to send. Servers accept between 31 and 64 bits, so the upper bits are folded into 31.
 * Seeds below 2^31 are unchanged. */
static int64_t folded_seed(uint64_t seed) {
    return (int64_t)((seed ^ seed >> 31 ^ seed >> 62) & 0x7FFFFFFF);
}

static const gen_settings kNoSettings = {0};

static const gen_settings *settings_of(const gen_request *req) {
    return req->settings ? req->settings : &kNoSettings;
}

static js *content_of(const char *text, bool parts) {
    if (!parts)
        return js_new_str(text);
    js *list = js_new_array(), *part = js_new_object();
    bool ok = list && part && js_set_str(part, "type", "text") && js_set_str(part, "text", text);
    ok = js_push_new(list, part) && ok;
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

static js *messages_of(const gen_request *req) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; ok && i < gen_message_count(req); i++) {
        gen_message message = gen_message_at(req, i);
        js *m = js_new_object();
        ok = m && js_set_str(m, "role", message.role) &&
             js_set_new(m, "content", content_of(message.content, settings_of(req)->parts));
        ok = js_push_new(list, m) && ok;
    }
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

/* Appends a template's text with the message in place of each {content}. */
static void put_message(buf *out, const char *template, const char *content) {
    static const char kContent[] = "{content}";
    for (const char *at; (at = strstr(template, kContent)); template = at + sizeof kContent - 1) {
        (void)buf_append(out, template, (size_t)(at - template));
        (void)buf_puts(out, content);
    }
    (void)buf_puts(out, template);
}

static void put_prompt(const gen_request *req, const js *templates, buf *out) {
    for (int i = 0; i < gen_message_count(req); i++) {
        gen_message m = gen_message_at(req, i);
        const char *t = js_get_str(templates, m.role);
        if (!templates && i)
            (void)buf_puts(out, "\n\n");
        put_message(out, t ? t : "{content}", m.content);
    }
    const char *end = js_get_str(templates, "end");
    (void)buf_puts(out, end ? end : "");
}

/* The prompt of a text completion as one text; NULL on failure. */
static js *prompt_of(const gen_request *req) {
    const char *text = settings_of(req)->prompt;
    js *templates = text ? js_parse(text, strlen(text), "template", NULL) : NULL;
    buf prompt = {0};
    put_prompt(req, templates, &prompt);
    js *v = prompt.failed || (text && !templates) ? NULL : js_new_str(buf_str(&prompt));
    buf_release(&prompt);
    js_free(templates);
    return v;
}

static bool set_sampling(js *body, const gen_request *req) {
    gen_sampling_value values[GEN_SAMPLING_VALUES];
    gen_sampling_values(&req->sampling, values);
    bool ok = true, llama = text_equal(settings_of(req)->server, "llamacpp");
    for (int i = 0; i < GEN_SAMPLING_VALUES && ok; i++) {
        const gen_sampling_value *v = &values[i];
        bool limit = strcmp(v->name, "max_tokens") == 0,
             whole = limit || text_equal(v->name, "top_k");
        const char *name =
            limit && settings_of(req)->completion_limit ? "max_completion_tokens" : v->name;
        if (llama && strcmp(name, "repetition_penalty") == 0)
            name = "repeat_penalty"; /* llama.cpp ignores the usual name */
        if (gen_sampling_is_on(v))
            ok = whole ? js_set_int(body, name, (int64_t)v->value)
                       : js_set_num(body, name, v->value);
    }
    return ok && js_set_int(body, "seed", folded_seed(req->sampling.seed));
}

/* With include_usage the last chunk reports the token counts, which a whole answer contains
 * anyway. */
static bool set_stream(js *body) {
    js *options = js_new_object();
    bool ok = options && js_set_bool(options, "include_usage", true);
    return js_set_new(body, "stream_options", options) && ok && js_set_bool(body, "stream", true);
}

snap_status chat_request_write(const gen_request *req, const char *model, bool stream, buf *out,
                               snap_err *err) {
    js *body = js_new_object();
    snap_status st = SNAP_OK;
    if (body && (!model || js_set_str(body, "model", model)) &&
        (settings_of(req)->completions ? js_set_new(body, "prompt", prompt_of(req))
                                       : js_set_new(body, "messages", messages_of(req))) &&
        set_sampling(body, req) && (!stream || set_stream(body)) &&
        gen_settings_apply(settings_of(req), body))
        st = js_write(body, JS_COMPACT, out, err);
    else
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a request");
    js_free(body);
    return st;
}
