#include "harness/serve/openai_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/serve/openai_logprobs.h"

/* One choice of the answer. */
struct openai_choice {
    buf text;                 /* the text of a whole answer; empty in a stream */
    openai_logprobs logprobs; /* for a stream: log-probabilities since the last event; for a whole
                                 answer: all of them */
    int64_t tokens;
    bool begun;     /* an event was written; of a whole answer: a piece was taken */
    piece_kind end; /* how the choice ended; PIECE_TOKEN while it grows */
};

/* ---- JSON ---- */

void openai_quote(buf *out, const char *s, size_t n) {
    size_t from = 0;
    (void)buf_append(out, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        (void)buf_append(out, s + from, i - from);
        from = i + 1;
        if (c == '\n')
            (void)buf_append(out, "\\n", 2);
        else if (c == '"' || c == '\\')
            (void)buf_printf(out, "\\%c", c);
        else
            (void)buf_printf(out, "\\u%04x", c);
    }
    (void)buf_append(out, s + from, n - from);
    (void)buf_append(out, "\"", 1);
}

static void quote_or_null(buf *out, const char *s) {
    if (s)
        openai_quote(out, s, strlen(s));
    else
        (void)buf_puts(out, "null");
}

void openai_write_error(const openai_error *e, bool event, buf *out) {
    (void)buf_puts(out, event ? "data: {\"error\":{\"message\":" : "{\"error\":{\"message\":");
    openai_quote(out, e->message, strlen(e->message));
    (void)buf_puts(out, ",\"type\":");
    quote_or_null(out, e->type);
    (void)buf_puts(out, ",\"param\":");
    quote_or_null(out, e->param);
    (void)buf_puts(out, ",\"code\":");
    quote_or_null(out, e->code);
    (void)buf_puts(out, event ? "}}\n\n" : "}}\n");
}

static bool is_chat(const openai_answer *a) {
    return a->req->kind == OPENAI_CHAT;
}

static const char *finish_word(piece_kind end) {
    return end == PIECE_STOP     ? "\"stop\""
           : end == PIECE_LENGTH ? "\"length\""
           : end == PIECE_FAILED ? "\"error\""
                                 : "null";
}

static void write_usage(const openai_answer *a, buf *out) {
    long long prompt = a->prompt_tokens, completion = a->completion_tokens;
    (void)buf_printf(out,
                     "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
                     "\"prompt_tokens_details\":{\"cached_tokens\":%lld}}",
                     prompt, completion, prompt + completion, (long long)a->cached_tokens);
}

/* Writes the end of an event: with the usage of the choice so far if the client asks for it. */
static void write_tail(const openai_answer *a, int i, buf *out) {
    if (!a->req->continuous_usage) {
        (void)buf_append(out, buf_str(&a->tail), a->tail.len);
        return;
    }
    long long prompt = (long long)a->job->prompts[i / a->job->n].n, made = a->choice[i].tokens;
    (void)buf_printf(out,
                     "],\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
                     "\"total_tokens\":%lld}}\n\n",
                     prompt, made, prompt + made);
}

/* ---- creating and releasing an answer ---- */

snap_status openai_answer_begin(openai_answer *a, const openai_request *req, const serve_job *job,
                                const tokenizer *tokens, uint64_t number, const char *model,
                                snap_err *err) {
    *a = (openai_answer){.req = req, .job = job, .tokens = tokens};
    a->n_choices = job->n_prompts * job->n;
    a->choice = calloc((size_t)a->n_choices, sizeof *a->choice);
    for (int i = 0; a->choice && i < a->n_choices; i++)
        a->choice[i].logprobs.chat = is_chat(a);
    for (int i = 0; i < job->n_prompts; i++)
        a->prompt_tokens += (int64_t)job->prompts[i].n;
    (void)buf_printf(&a->head,
                     "%s{\"id\":\"%s-%016llx\",\"object\":\"%s%s\",\"created\":%lld,\"model\":",
                     req->stream ? "data: " : "", is_chat(a) ? "chatcmpl" : "cmpl",
                     (unsigned long long)number, is_chat(a) ? "chat.completion" : "text_completion",
                     is_chat(a) && req->stream ? ".chunk" : "", (long long)time(NULL));
    openai_quote(&a->head, model, strlen(model));
    (void)buf_puts(&a->head, ",\"choices\":[");
    (void)buf_puts(&a->tail, req->include_usage ? "],\"usage\":null}\n\n" : "]}\n\n");
    return a->choice && !a->head.failed && !a->tail.failed
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for an answer");
}

void openai_answer_release(openai_answer *a) {
    for (int i = 0; a->choice && i < a->n_choices; i++) {
        buf_release(&a->choice[i].text);
        openai_logprobs_release(&a->choice[i].logprobs);
    }
    free(a->choice);
    buf_release(&a->head);
    buf_release(&a->tail);
    *a = (openai_answer){0};
}

/* ---- events ---- */

/* Writes the member "logprobs" of a choice. */
static void write_logprobs(const openai_answer *a, openai_choice *c, buf *out) {
    if (!a->req->logprobs || !c->logprobs.n)
        (void)buf_puts(out, ",\"logprobs\":null");
    else
        openai_logprobs_write(&c->logprobs, out);
}

static void write_event(openai_answer *a, int i, const char *text, size_t n, buf *out) {
    openai_choice *c = &a->choice[i];
    bool plain = c->end == PIECE_TOKEN || n || !c->begun;
    (void)buf_append(out, buf_str(&a->head), a->head.len);
    (void)buf_printf(out, "{\"index\":%d,", i);
    if (is_chat(a)) {
        (void)buf_puts(out, !c->begun ? "\"delta\":{\"role\":\"assistant\",\"content\":"
                            : plain   ? "\"delta\":{\"content\":"
                                      : "\"delta\":{");
        if (plain)
            openai_quote(out, text, n);
        (void)buf_puts(out, "}");
    } else {
        (void)buf_puts(out, "\"text\":");
        openai_quote(out, text, n);
    }
    write_logprobs(a, c, out);
    (void)buf_printf(out, ",\"finish_reason\":%s}", finish_word(c->end));
    write_tail(a, i, out);
    c->begun = true;
    openai_logprobs_clear(&c->logprobs);
}

/* ---- prompts in answers (echo) ---- */

/* The text of a prompt: as it was given, or decoded from its ids. */
static void append_prompt(openai_answer *a, int prompt, buf *out) {
    const openai_prompt *p = &a->req->prompts[prompt];
    if (p->text)
        (void)buf_append(out, p->text, p->n);
    else if (tok_decode(a->tokens, p->ids, p->n, false, out, NULL) != SNAP_OK)
        a->failed = true;
}

/* Appends the prompt of choice @i to @text, and its scores to the logprobs of the choice. */
static void echo(openai_answer *a, int i, buf *text) {
    const serve_job *j = a->job;
    const tok_ids *ids = &j->prompts[i / j->n];
    const serve_scores *s = j->scores ? &j->scores[i] : NULL;
    size_t k = (size_t)j->how.top_logprobs;
    append_prompt(a, i / j->n, text);
    if (s && ids->n)
        openai_logprobs_add_first(&a->choice[i].logprobs, a->tokens, ids->v[0]);
    for (size_t t = 1; s && t < ids->n; t++)
        openai_logprobs_add(&a->choice[i].logprobs, a->tokens, ids->v[t], s->logprob[t],
                            s->top ? s->top + t * k : NULL, s->n_top[t]);
}

/* ---- taking new tokens ---- */

static void take_piece(openai_answer *a, const serve_piece *p, const char *text,
                       const token_logit *top, buf *out) {
    openai_choice *c = &a->choice[p->choice];
    buf first = {0};
    bool stream = a->req->stream;
    if (a->req->echo && !c->begun)
        echo(a, p->choice, stream ? &first : &c->text);
    c->end = p->kind;
    if (p->choice % a->job->n == 0) /* once for each prompt, as in prompt_tokens */
        a->cached_tokens += p->cached;
    if (p->kind == PIECE_TOKEN) {
        a->completion_tokens++;
        c->tokens++;
        if (a->req->logprobs)
            openai_logprobs_add(&c->logprobs, a->tokens, p->token, p->logprob, top, p->n_top);
    }
    a->not_finite |= c->logprobs.not_finite;
    a->failed |= first.failed || c->logprobs.failed || a->not_finite;
    if (!stream) {
        (void)buf_append(&c->text, text, p->text_n);
        c->begun = true;
    } else if (a->failed) {
        /* A part of the event may be missing, so no event is written. */
    } else if (first.len) {
        (void)buf_append(&first, text, p->text_n);
        write_event(a, p->choice, buf_str(&first), first.len, out);
    } else if (p->text_n || p->kind != PIECE_TOKEN || c->logprobs.n) {
        write_event(a, p->choice, text, p->text_n, out);
    }
    a->failed |= c->text.failed || first.failed;
    buf_release(&first);
}

void openai_answer_take(openai_answer *a, const serve_news *news, buf *out) {
    const char *text = buf_str(&news->text);
    const token_logit *top = news->top;
    a->failed |= news->failed; /* pieces are missing, perhaps between others */
    for (size_t i = 0; i < news->n && !a->failed; i++) {
        const serve_piece *p = &news->v[i];
        take_piece(a, p, text, top, out);
        text += p->text_n;
        top += p->n_top;
    }
    a->failed |= out->failed;
}

static void write_whole(openai_answer *a, buf *out) {
    (void)buf_append(out, buf_str(&a->head), a->head.len);
    for (int i = 0; i < a->n_choices; i++) {
        openai_choice *c = &a->choice[i];
        (void)buf_printf(out, "%s{\"index\":%d,", i ? "," : "", i);
        (void)buf_puts(out, is_chat(a) ? "\"message\":{\"role\":\"assistant\",\"content\":"
                                       : "\"text\":");
        openai_quote(out, buf_str(&c->text), c->text.len);
        (void)buf_puts(out, is_chat(a) ? "}" : "");
        write_logprobs(a, c, out);
        (void)buf_printf(out, ",\"finish_reason\":%s}", finish_word(c->end));
    }
    (void)buf_puts(out, "],\"usage\":");
    write_usage(a, out);
    (void)buf_puts(out, "}\n");
}

void openai_answer_end(openai_answer *a, buf *out) {
    if (!a->req->stream) {
        write_whole(a, out);
    } else {
        if (a->req->include_usage) {
            (void)buf_append(out, buf_str(&a->head), a->head.len);
            (void)buf_puts(out, "],\"usage\":");
            write_usage(a, out);
            (void)buf_puts(out, "}\n\n");
        }
        (void)buf_puts(out, "data: [DONE]\n\n");
    }
    a->failed |= out->failed;
}
