/* Converts token ids to text. */
#include <string.h>

#include "base/text.h"
#include "generator/local/tokenizer/tokenizer_parts.h"
#include "generator/local/tokenizer/utf8.h"

/* ---- the text of each id ---- */

enum {
    kMostGrowth = 16,
    kRoom = 64
}; /* a token of n bytes may have a text of up to kMostGrowth * n + kRoom bytes */

static void append_replaced(buf *out, const char *s, size_t n, const tok_replacement *r) {
    size_t len = strlen(r->from);
    while (n) {
        const char *hit = memmem(s, n, r->from, len);
        size_t run = hit ? (size_t)(hit - s) : n;
        (void)buf_append(out, s, run);
        if (hit)
            (void)buf_puts(out, r->to);
        s += run + (hit ? len : 0);
        n -= run + (hit ? len : 0);
    }
}

/* Whether @s has the form "<0x0A>"; *byte is its value. */
static bool is_byte_token(const char *s, size_t n, char *byte) {
    int value = 0;
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return false;
    for (int i = 3; i < 5; i++) {
        const char *digits = "0123456789abcdef";
        const char *d = s[i] ? strchr(digits, s[i] >= 'A' && s[i] <= 'F' ? s[i] | 32 : s[i]) : NULL;
        if (!d)
            return false;
        value = value * 16 + (int)(d - digits);
    }
    *byte = (char)value;
    return true;
}

static void spell(const tokenizer *t, const vocab_token *v, const tok_replacement *replace, int n,
                  buf *out, buf *spare) {
    out->limit = spare->limit = (size_t)v->n * kMostGrowth + kRoom;
    (void)buf_append(out, v->s, v->n);
    for (int i = 0; i < n && !out->failed; i++) {
        buf swap = *spare;
        *spare = *out;
        *out = swap;
        buf_clear(out);
        append_replaced(out, buf_str(spare), spare->len, &replace[i]);
    }
    if (t->decode != DECODE_BYTES || out->failed)
        return;
    buf_clear(spare);
    if (!byte_alphabet_decode(spare, buf_str(out), out->len))
        return; /* some added tokens have other characters: their content is their text */
    buf swap = *spare;
    *spare = *out;
    *out = swap;
}

snap_status tokenizer_make_texts(tokenizer *t, const tok_replacement *replace, int n,
                                 snap_err *err) {
    buf text = {0}, spare = {0};
    snap_status st = SNAP_OK;
    t->texts = arena_alloc(&t->mem, (size_t)t->vocab.n + 1, sizeof *t->texts);
    for (int32_t id = 0; t->texts && id < t->vocab.n; id++) {
        const vocab_token *v = vocab_at(&t->vocab, id);
        if (!v)
            continue;
        char byte;
        buf_clear(&text);
        spell(t, v, replace, n, &text, &spare);
        bool is_byte = t->decode == DECODE_FALLBACK && text.len == 6 &&
                       is_byte_token(buf_str(&text), text.len, &byte);
        const char *s = is_byte ? &byte : buf_str(&text);
        size_t len = is_byte ? 1 : text.len;
        t->texts[id] = (tok_text){.s = arena_strndup(&t->mem, s, len),
                                  .n = (uint32_t)len,
                                  .special = v->special,
                                  .is_byte = is_byte};
        if (!t->texts[id].s || text.failed || spare.failed)
            st = SNAP_E_NOMEM;
        if (text.too_long)
            TRY(err_set(
                err, SNAP_E_INPUT,
                "the decoder turns the %u bytes of token %d into more than %zu: the file is "
                "damaged or hostile",
                v->n, id, text.limit));
    }
    if (!t->texts || st != SNAP_OK)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a vocabulary of %d", t->vocab.n);
cleanup:
    buf_release(&text);
    buf_release(&spare);
    return st;
}

const char *tokenizer_bytes(const tokenizer *t, int32_t id, size_t *n) {
    bool known = id >= 0 && id < t->vocab.n && t->texts[id].s;
    *n = known ? t->texts[id].n : 0;
    return known ? t->texts[id].s : NULL;
}

/* ---- the stream ---- */

tok_stream tok_stream_make(const tokenizer *t, bool skip_special) {
    return (tok_stream){.t = t, .skip_special = skip_special, .to_strip = t->strip};
}

/* Outputs a token's text. At the start of the whole text, up to s->to_strip spaces are left out. */
static void emit(tok_stream *s, const char *text, size_t n, buf *out) {
    while (s->to_strip && n && *text == ' ') {
        s->to_strip--;
        text++;
        n--;
    }
    if (n)
        s->to_strip = 0;
    (void)buf_append(out, text, n);
}

/* Ends a run of fallback bytes. Outputs them as text if they are valid UTF-8, else U+FFFD for each
 * byte. */
static void end_run(tok_stream *s, buf *out) {
    if (text_is_utf8(buf_str(&s->held), s->held.len))
        emit(s, buf_str(&s->held), s->held.len, out);
    else
        for (size_t i = 0; i < s->held.len; i++)
            emit(s, "\xEF\xBF\xBD", 3, out);
    buf_clear(&s->held);
}

/* Outputs the complete characters of the held bytes and moves the remaining bytes to the front. */
static void flush_bytes(tok_stream *s, bool more, buf *out) {
    size_t done = utf8_append_repaired(out, buf_str(&s->held), s->held.len, more);
    size_t rest = s->held.len - done;
    if (rest && s->held.data)
        memmove(s->held.data, s->held.data + done, rest);
    s->held.len = rest;
}

void tok_stream_push(tok_stream *s, int32_t id, buf *out) {
    if (id < 0 || id >= s->t->vocab.n || !s->t->texts[id].s)
        return;
    const tok_text *text = &s->t->texts[id];
    if (text->special && s->skip_special)
        return;
    if (s->t->decode == DECODE_BYTES) {
        emit(s, text->s, text->n, &s->held);
        flush_bytes(s, true, out);
    } else if (text->is_byte) {
        (void)buf_append(&s->held, text->s, 1);
    } else {
        end_run(s, out);
        emit(s, text->s, text->n, out);
    }
    out->failed |= s->held.failed;
}

void tok_stream_finish(tok_stream *s, buf *out) {
    if (s->t->decode == DECODE_BYTES)
        flush_bytes(s, false, out);
    else
        end_run(s, out);
    s->to_strip = s->t->strip;
}

void tok_stream_release(tok_stream *s) {
    buf_release(&s->held);
}

snap_status tok_decode(const tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                       buf *out, snap_err *err) {
    tok_stream s = tok_stream_make(t, skip_special);
    for (size_t i = 0; i < n; i++)
        tok_stream_push(&s, ids[i], out);
    tok_stream_finish(&s, out);
    tok_stream_release(&s);
    return buf_check(out, "a decoded text", err);
}
