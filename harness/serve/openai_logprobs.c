#include "harness/serve/openai_logprobs.h"

#include <math.h>
#include <string.h>

#include "harness/serve/openai_answer.h"

/* The logprob of a token that has none; only within this file. */
static const float kNone = NAN;

/* JSON has no minus infinity. */
static void write_number(buf *out, float x) {
    if (isnan(x))
        (void)buf_puts(out, "null");
    else
        (void)buf_printf(out, "%.9g", isfinite(x) ? (double)x : -9999.0);
}

static bool is_logprob(float x) {
    return isfinite(x) || (isinf(x) && x < 0);
}

/* Writes an object of the chat form without its closing brace. @text: the token decoded alone. An
 * incomplete character is U+FFFD there; the member `bytes` has the bytes of the token unchanged. */
static void write_chat_token(buf *out, const tokenizer *t, int32_t token, const buf *text,
                             float logprob) {
    size_t n;
    const char *bytes = tokenizer_bytes(t, token, &n);
    (void)buf_puts(out, "{\"token\":");
    openai_quote(out, buf_str(text), text->len);
    (void)buf_puts(out, ",\"logprob\":");
    write_number(out, logprob);
    (void)buf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(out, "%s%d", i ? "," : "", (unsigned char)bytes[i]);
    (void)buf_puts(out, "]");
}

static int64_t characters_of(const buf *text) {
    int64_t n = 0;
    for (size_t i = 0; i < text->len; i++)
        n += ((unsigned char)text->data[i] & 0xC0) != 0x80;
    return n;
}

static void decode(openai_logprobs *l, const tokenizer *t, int32_t token, buf *text) {
    buf_clear(text);
    if (tok_decode(t, &token, 1, false, text, NULL) != SNAP_OK)
        l->failed = true;
}

/* Writes the likeliest tokens as the members of an object. Of tokens with the same text only the
 * first is written. The token itself is added if its text is not in the list. */
static void write_tops(openai_logprobs *l, const tokenizer *t, const buf *own, float logprob,
                       const token_logit *top, int n_top) {
    buf text = {0}, members = {0};
    buf key = {0}, keys = {0}; /* keys: the quoted names so far, between line ends, which no quoted
                                  name contains */
    (void)buf_puts(&l->tops, "{");
    for (int i = 0; i <= n_top; i++) {
        if (i < n_top)
            decode(l, t, top[i].id, &text);
        const buf *name = i < n_top ? &text : own;
        buf_clear(&key);
        (void)buf_puts(&key, "\n");
        openai_quote(&key, buf_str(name), name->len);
        (void)buf_puts(&key, "\n");
        if (strstr(buf_str(&keys), buf_str(&key)))
            continue;
        (void)buf_append(&keys, buf_str(&key), key.len);
        (void)buf_puts(&members, members.len ? "," : "");
        openai_quote(&members, buf_str(name), name->len);
        (void)buf_puts(&members, ":");
        write_number(&members, i < n_top ? top[i].logit : logprob);
    }
    (void)buf_append(&l->tops, buf_str(&members), members.len);
    (void)buf_puts(&l->tops, "}");
    l->failed |= members.failed || key.failed || keys.failed;
    buf_release(&text);
    buf_release(&members);
    buf_release(&key);
    buf_release(&keys);
}

static void add_completion(openai_logprobs *l, const tokenizer *t, const buf *own, float logprob,
                           const token_logit *top, int n_top) {
    const char *comma = l->n ? "," : "";
    (void)buf_puts(&l->tokens, comma);
    openai_quote(&l->tokens, buf_str(own), own->len);
    (void)buf_puts(&l->logprobs, comma);
    write_number(&l->logprobs, logprob);
    (void)buf_printf(&l->offsets, "%s%lld", comma, (long long)l->characters);
    (void)buf_puts(&l->tops, comma);
    if (isnan(logprob))
        (void)buf_puts(&l->tops, "null");
    else
        write_tops(l, t, own, logprob, top, n_top);
}

static void add_chat(openai_logprobs *l, const tokenizer *t, int32_t token, const buf *own,
                     float logprob, const token_logit *top, int n_top) {
    buf text = {0};
    (void)buf_puts(&l->content, l->n ? "," : "");
    write_chat_token(&l->content, t, token, own, logprob);
    (void)buf_puts(&l->content, ",\"top_logprobs\":[");
    for (int i = 0; i < n_top; i++) {
        decode(l, t, top[i].id, &text);
        (void)buf_puts(&l->content, i ? "," : "");
        write_chat_token(&l->content, t, top[i].id, &text, top[i].logit);
        (void)buf_puts(&l->content, "}");
    }
    (void)buf_puts(&l->content, "]}");
    buf_release(&text);
}

static void add(openai_logprobs *l, const tokenizer *t, int32_t token, float logprob,
                const token_logit *top, int n_top) {
    buf own = {0};
    decode(l, t, token, &own);
    if (l->chat)
        add_chat(l, t, token, &own, logprob, top, n_top);
    else
        add_completion(l, t, &own, logprob, top, n_top);
    l->n++;
    l->characters += characters_of(&own);
    l->failed |= l->content.failed || l->tokens.failed || l->logprobs.failed || l->tops.failed ||
                 l->offsets.failed;
    buf_release(&own);
}

void openai_logprobs_add_first(openai_logprobs *l, const tokenizer *t, int32_t token) {
    add(l, t, token, kNone, NULL, 0);
}

void openai_logprobs_add(openai_logprobs *l, const tokenizer *t, int32_t token, float logprob,
                         const token_logit *top, int n_top) {
    l->not_finite |= !is_logprob(logprob);
    for (int i = 0; i < n_top; i++)
        l->not_finite |= !is_logprob(top[i].logit);
    add(l, t, token, logprob, top, n_top);
}

void openai_logprobs_write(const openai_logprobs *l, buf *out) {
    if (l->chat)
        (void)buf_printf(out, ",\"logprobs\":{\"content\":[%s]}", buf_str(&l->content));
    else
        (void)buf_printf(out,
                         ",\"logprobs\":{\"tokens\":[%s],\"token_logprobs\":[%s],"
                         "\"top_logprobs\":[%s],\"text_offset\":[%s]}",
                         buf_str(&l->tokens), buf_str(&l->logprobs), buf_str(&l->tops),
                         buf_str(&l->offsets));
}

void openai_logprobs_clear(openai_logprobs *l) {
    buf_clear(&l->content);
    buf_clear(&l->tokens);
    buf_clear(&l->logprobs);
    buf_clear(&l->tops);
    buf_clear(&l->offsets);
    l->n = 0;
}

void openai_logprobs_release(openai_logprobs *l) {
    buf_release(&l->content);
    buf_release(&l->tokens);
    buf_release(&l->logprobs);
    buf_release(&l->tops);
    buf_release(&l->offsets);
    *l = (openai_logprobs){0};
}
