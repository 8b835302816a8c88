/* serve_read.c - reads requests: JSON, parameters and the tokens of prompts. Nothing here changes
 * the server, so the worker's thread may do it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/serve/serve_parts.h"

bool serve_no_memory(openai_error *e) {
    return openai_fail(e, 503, NULL, NULL, "the server is out of memory");
}

bool serve_fail_as(openai_error *e, const snap_err *err, const char *param) {
    return openai_fail(e,
                       err->code == SNAP_E_INPUT || err->code == SNAP_E_SHAPE ? 400
                       : err->code == SNAP_E_NOMEM                            ? 503
                                                                              : 500,
                       param, NULL, "%s", err->text);
}

static bool encode_chat(const server *s, tok_encoder *encoder, const openai_request *req,
                        tok_ids *ids, openai_error *e) {
    chat_style style = s->m->style;
    snap_err err = {0};
    buf text = {0};
    if (req->thinking >= 0)
        style.thinking = req->thinking ? THINKING_ON : THINKING_OFF;
    bool ok = chat_render(&style, req->messages, req->n_messages, &text, &err) == SNAP_OK &&
              tok_encode(encoder, buf_str(&text), text.len,
                         style.template == CHAT_NONE ? TOK_SPECIALS : 0, ids, &err) == SNAP_OK;
    buf_release(&text);
    return ok || serve_fail_as(e, &err, "messages");
}

static bool encode_prompt(const server *s, tok_encoder *encoder, const openai_request *req, int i,
                          tok_ids *ids, openai_error *e) {
    const openai_prompt *p = &req->prompts[i];
    const char *param = req->kind == OPENAI_DETOKENIZE ? "tokens" : "prompt";
    snap_err err = {0};
    int flags = req->no_specials ? 0 : TOK_SPECIALS;
    if (p->text)
        return tok_encode(encoder, p->text, p->n, flags, ids, &err) == SNAP_OK ||
               serve_fail_as(e, &err, param);
    for (size_t k = 0; k < p->n; k++)
        if (p->ids[k] >= s->m->shape.vocab_size)
            return openai_fail(e, 400, param, NULL,
                               "token %d is not in the model's vocabulary of %d", p->ids[k],
                               s->m->shape.vocab_size);
    ids->v = malloc((p->n + 1) * sizeof *ids->v);
    if (!ids->v)
        return serve_no_memory(e);
    memcpy(ids->v, p->ids, p->n * sizeof *ids->v);
    ids->n = ids->cap = p->n;
    return true;
}

static bool encode(const server *s, tok_encoder *encoder, const openai_request *req, int i,
                   tok_ids *ids, openai_error *e) {
    const char *param = req->prompts ? "prompt" : "messages";
    int64_t most = req->max_tokens < 0 ? 1 : req->max_tokens;
    if (!(req->prompts ? encode_prompt(s, encoder, req, i, ids, e)
                       : encode_chat(s, encoder, req, ids, e)))
        return false;
    if (req->kind == OPENAI_TOKENIZE || req->kind == OPENAI_DETOKENIZE)
        return true;
    if (ids->n < 1)
        return openai_fail(e, 400, param, NULL, "the prompt has no tokens");
    if ((int64_t)ids->n >= s->context || (int64_t)ids->n + most > s->context)
        return openai_fail(e, 400, param, "context_length_exceeded",
                           "the prompt has %zu tokens and the answer at most %lld: the context of "
                           "the model is %lld tokens",
                           ids->n, (long long)most, (long long)s->context);
    return true;
}

static bool check_model(const server *s, const openai_request *r, openai_error *e) {
    return !r->model || strcmp(r->model, s->o->model) == 0 ||
           openai_fail(e, 404, "model", "model_not_found",
                       "the model '%.100s' does not exist: this server has '%.100s'", r->model,
                       s->o->model);
}

bool serve_read_parse(const server *s, serve_work *w, openai_error *e) {
    bool ok = openai_request_read(&w->req, w->kind, buf_str(&w->body), w->body.len, e);
    buf_release(&w->body);
    return ok && check_model(s, &w->req, e);
}

/* Writes the answer of /detokenize. */
static bool write_text(const server *s, serve_work *w, openai_error *e) {
    snap_err err = {0};
    buf text = {0};
    const tok_ids *ids = &w->prompts[0];
    snap_status st = tok_decode(s->m->tokenizer, ids->v, ids->n, false, &text, &err);
    if (st == SNAP_OK) {
        (void)buf_puts(&w->reply, "{\"prompt\":");
        openai_quote(&w->reply, buf_str(&text), text.len);
        (void)buf_puts(&w->reply, "}\n");
    }
    buf_release(&text);
    if (st != SNAP_OK)
        return serve_fail_as(e, &err, "tokens");
    return !w->reply.failed || serve_no_memory(e);
}

/* Appends an id, after a comma if @more. There may be a million of them, and buf_printf() would
 * take as long as the tokenizer. */
static void append_id(buf *out, int32_t id, bool more) {
    char text[12];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + id % 10);
        id /= 10;
    } while (id > 0);
    if (more)
        text[--at] = ',';
    (void)buf_append(out, text + at, sizeof text - at);
}

/* Writes the answer of /tokenize. */
static bool write_tokens(const server *s, serve_work *w, openai_error *e) {
    const tok_ids *ids = &w->prompts[0];
    (void)buf_printf(&w->reply, "{\"count\":%zu,\"max_model_len\":%lld,\"tokens\":[", ids->n,
                     (long long)s->context);
    for (size_t i = 0; i < ids->n; i++)
        append_id(&w->reply, ids->v[i], i > 0);
    (void)buf_puts(&w->reply, "]}\n");
    return !w->reply.failed || serve_no_memory(e);
}

bool serve_read_prompts(const server *s, tok_encoder *encoder, serve_work *w, openai_error *e) {
    w->prompts = calloc((size_t)w->req.n_prompts, sizeof *w->prompts);
    if (!w->prompts)
        return serve_no_memory(e);
    for (int i = 0; i < w->req.n_prompts; i++)
        if (!encode(s, encoder, &w->req, i, &w->prompts[i], e))
            return false;
    openai_request_shrink(&w->req);
    return w->kind == OPENAI_TOKENIZE     ? write_tokens(s, w, e)
           : w->kind == OPENAI_DETOKENIZE ? write_text(s, w, e)
                                          : true;
}

void serve_read_release(serve_work *w) {
    for (int i = 0; w->prompts && i < w->req.n_prompts; i++)
        tok_ids_release(&w->prompts[i]);
    free(w->prompts);
    w->prompts = NULL;
    buf_release(&w->body);
    buf_release(&w->reply);
    openai_request_release(&w->req);
}
