/* serve_routes.c - chooses the function that answers a request, by path and method. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/serve/serve_parts.h"

static void finish(exchange *x, int status, const char *type) {
    x->status = status;
    x->type = type;
    x->complete = true;
}

void serve_fail(exchange *x, const openai_error *e) {
    openai_write_error(e, x->streaming, &x->out);
    if (!x->streaming)
        finish(x, e->status, "application/json");
    x->complete = true;
}

/* ---- GET ---- */

static void health(exchange *x) {
    const server *s = x->s;
    if (s->load.all.broken)
        (void)buf_puts(&x->out, "{\"status\":\"failed\"}\n");
    else if (s->draining)
        (void)buf_puts(&x->out, "{\"status\":\"draining\"}\n");
    else
        (void)buf_puts(&x->out, "{\"status\":\"ok\"}\n");
    x->retry_after = s->draining ? SERVE_RETRY_S : 0;
    finish(x, s->load.all.broken || s->draining ? 503 : 200, "application/json");
}

static void metrics(exchange *x) {
    const server *s = x->s;
    serve_metrics_write(&s->metrics, &s->load, s->connections, serve_worker_pending(s->worker),
                        s->o->model, &x->out);
    finish(x, 200, "text/plain; version=0.0.4; charset=utf-8");
}

static void version(exchange *x) {
    (void)buf_puts(&x->out, "{\"version\":");
    openai_quote(&x->out, x->s->o->version, strlen(x->s->o->version));
    (void)buf_puts(&x->out, "}\n");
    finish(x, 200, "application/json");
}

static void write_model(exchange *x) {
    const server *s = x->s;
    (void)buf_puts(&x->out, "{\"id\":");
    openai_quote(&x->out, s->o->model, strlen(s->o->model));
    (void)buf_printf(&x->out,
                     ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"snapmla\","
                     "\"max_model_len\":%lld}",
                     (long long)s->started, (long long)s->context);
}

static void models(exchange *x) {
    (void)buf_puts(&x->out, "{\"object\":\"list\",\"data\":[");
    write_model(x);
    (void)buf_puts(&x->out, "]}\n");
    finish(x, 200, "application/json");
}

static void one_model(exchange *x) {
    openai_error e;
    if (strcmp(x->url + strlen("/v1/models/"), x->s->o->model) != 0) {
        (void)openai_fail(&e, 404, "model", "model_not_found", "there is no such model");
        serve_fail(x, &e);
        return;
    }
    write_model(x);
    finish(x, 200, "application/json");
}

static void write_text(buf *out, const char *key, const char *text) {
    (void)buf_printf(out, "\"%s\":", key);
    if (text)
        openai_quote(out, text, strlen(text));
    else
        (void)buf_puts(out, "null");
}

/* What a client needs to make prompts as the server does. There is no token for padding. */
static void tokenizer_info(exchange *x) {
    const server *s = x->s;
    (void)buf_puts(&x->out, "{");
    write_text(&x->out, "bos_token", s->m->style.bos);
    (void)buf_puts(&x->out, ",");
    write_text(&x->out, "eos_token", s->m->style.eos);
    (void)buf_puts(&x->out, ",\"pad_token\":null,");
    write_text(&x->out, "chat_template", s->o->chat_template);
    (void)buf_printf(&x->out, ",\"model_max_length\":%lld}\n", (long long)s->context);
    finish(x, 200, "application/json");
}

/* ---- POST ---- */

static void chat(exchange *x) {
    serve_submit(x, OPENAI_CHAT);
}

static void completions(exchange *x) {
    serve_submit(x, OPENAI_COMPLETION);
}

static void tokenize(exchange *x) {
    serve_submit(x, OPENAI_TOKENIZE);
}

static void detokenize(exchange *x) {
    serve_submit(x, OPENAI_DETOKENIZE);
}

/* ---- the table of routes ---- */

typedef struct {
    const char *path, *method;
    void (*answer)(exchange *x);
    bool key;    /* needs the API key */
    bool prefix; /* `path` is only the beginning of the request's path */
} route;

static const route routes[] = {
    {"/health", "GET", health, false, false},
    {"/metrics", "GET", metrics, false, false},
    {"/version", "GET", version, false, false},
    {"/v1/models", "GET", models, true, false},
    {"/v1/models/", "GET", one_model, true, true},
    {"/v1/chat/completions", "POST", chat, true, false},
    {"/v1/completions", "POST", completions, true, false},
    {"/tokenize", "POST", tokenize, true, false},
    {"/detokenize", "POST", detokenize, true, false},
    {"/tokenizer_info", "GET", tokenizer_info, true, false},
};

static const route *find(const char *url) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (routes[i].prefix ? text_starts(url, routes[i].path) : !strcmp(url, routes[i].path))
            return &routes[i];
    return NULL;
}

static bool has_method(const exchange *x, const route *r) {
    return strcmp(x->method, r->method) == 0 ||
           (strcmp(x->method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

static bool is_refused(exchange *x, const route *r, openai_error *e) {
    const server *s = x->s;
    if (x->too_much)
        return !openai_fail(e, 413, NULL, "body_too_large",
                            "the body of the request is larger than %lld bytes",
                            (long long)s->o->max_body);
    if (!has_method(x, r)) {
        x->allow = r->method;
        return !openai_fail(e, 405, NULL, "method_not_allowed", "%s needs the method %s", r->path,
                            r->method);
    }
    if (r->key && !x->authorized)
        return !openai_fail(e, 401, NULL, "invalid_api_key",
                            "the API key is missing or wrong: send it as a bearer token");
    if (strcmp(r->method, "POST") == 0 && s->draining) {
        x->retry_after = SERVE_RETRY_S;
        return !openai_fail(e, 503, NULL, "draining", "the server is shutting down");
    }
    return false;
}

void serve_handle(exchange *x) {
    const route *r = find(x->url);
    openai_error e;
    if (!r) {
        (void)openai_fail(&e, 404, NULL, "not_found", "there is nothing at %s", x->url);
        serve_fail(x, &e);
    } else if (is_refused(x, r, &e)) {
        x->s->metrics.refused += e.status == 503;
        serve_fail(x, &e);
    } else {
        r->answer(x);
    }
}
