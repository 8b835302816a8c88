#include "generator/http/chat_piece.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

/* Limits beyond which the chunk is left to the full parser. */
enum { kKeys = 24, kDepth = 16, kDigits = 18 };

enum { kFrame = 2048 }; /* most bytes of a frame */

typedef struct {
    const char *at, *end;
    int depth; /* nesting of objects and arrays */
} cursor;

/* Called after the key of a member. Parses the value; false: leave the chunk to the full parser. */
typedef bool (*member_fn)(cursor *c, chat_text key, void *ctx);

static bool skip_value(cursor *c);

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

static inline bool take(cursor *c, char wanted) {
    if (c->at < c->end && *c->at <= ' ')
        skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool is_one_of(const char *set, char c) {
    return c && strchr(set, c);
}

/* Skips ASCII characters other than control characters, quotes and backslashes, eight at a time.
 * The top bit of a byte of `found` is set if the byte of the text is below 0x20, '"', '\\' or
 * above 0x7f. */
static void skip_plain(cursor *c) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    for (; c->end - c->at >= 8; c->at += 8) {
        uint64_t bytes;
        memcpy(&bytes, c->at, 8);
        uint64_t quote = bytes ^ ones * '"', backslash = bytes ^ ones * '\\';
        uint64_t found = bytes | (bytes - ones * ' ') | (quote - ones) | (backslash - ones);
        if (found & tops)
            return;
    }
}

static bool take_string(cursor *c, chat_text *out) {
    bool ascii = true;
    if (!take(c, '"'))
        return false;
    const char *start = c->at;
    skip_plain(c);
    while (c->at < c->end && *c->at != '"') {
        unsigned char byte = (unsigned char)*c->at++;
        ascii &= byte < 0x80;
        if (byte < ' ')
            return false;
        if (byte == '\\' && (c->at == c->end || !is_one_of("\"\\/bfnrt", *c->at++)))
            return false;
    }
    if (c->at == c->end)
        return false;
    *out = (chat_text){start, (size_t)(c->at++ - start)};
    return ascii || text_is_utf8(out->s, out->n);
}

static bool take_digits(cursor *c) {
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > start && c->at - start <= kDigits;
}

static bool take_number(cursor *c) {
    if (*c->at == '-')
        c->at++;
    const char *start = c->at;
    if (!take_digits(c) || (*start == '0' && c->at - start > 1))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!take_digits(c))
            return false;
    }
    return c->at < c->end && *c->at != 'e' && *c->at != 'E';
}

/* False if the object had this key before, which the full parser refuses. */
static bool is_new(const chat_text *keys, int n, chat_text key) {
    for (int i = 0; i < n; i++)
        if (keys[i].n == key.n && memcmp(keys[i].s, key.s, key.n) == 0)
            return false;
    return true;
}

static bool take_members(cursor *c, member_fn fn, void *ctx) {
    chat_text keys[kKeys];
    for (int n = 0; n < kKeys; n++) {
        if (!take_string(c, &keys[n]) || memchr(keys[n].s, '\\', keys[n].n) ||
            !is_new(keys, n, keys[n]) || !take(c, ':') || !fn(c, keys[n], ctx))
            return false;
        if (take(c, '}'))
            return true;
        if (!take(c, ','))
            return false;
    }
    return false;
}

static bool take_object(cursor *c, member_fn fn, void *ctx) {
    if (!take(c, '{') || ++c->depth > kDepth)
        return false;
    bool ok = take(c, '}') || take_members(c, fn, ctx);
    c->depth--;
    return ok;
}

static bool skip_array(cursor *c) {
    if (!take(c, '[') || ++c->depth > kDepth)
        return false;
    bool ok = take(c, ']');
    while (!ok) {
        if (!skip_value(c))
            return false;
        ok = take(c, ']');
        if (!ok && !take(c, ','))
            return false;
    }
    c->depth--;
    return true;
}

static bool skip_member(cursor *c, chat_text key, void *ctx) {
    (void)key, (void)ctx;
    return skip_value(c);
}

static bool skip_value(cursor *c) {
    chat_text unused;
    skip_space(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '{':
        return take_object(c, skip_member, NULL);
    case '[':
        return skip_array(c);
    case '"':
        return take_string(c, &unused);
    case 't':
        return take_word(c, "true");
    case 'f':
        return take_word(c, "false");
    case 'n':
        return take_word(c, "null");
    default:
        return take_number(c);
    }
}

static bool is(chat_text key, const char *name) {
    return key.n == strlen(name) && memcmp(key.s, name, key.n) == 0;
}

/* Parses a string, or null, which is the empty text. */
static bool take_text(cursor *c, chat_text *out) {
    *out = (chat_text){"", 0};
    return take_word(c, "null") || take_string(c, out);
}

/* ---- finding the text in a chunk ---- */

typedef struct {
    chat_text content, reasoning_content, reasoning, text;
    bool has_choices, has_delta;
} chunk;

static bool delta_member(cursor *c, chat_text key, void *ctx) {
    chunk *k = ctx;
    if (is(key, "content"))
        return take_text(c, &k->content);
    if (is(key, "reasoning_content"))
        return take_text(c, &k->reasoning_content);
    if (is(key, "reasoning"))
        return take_text(c, &k->reasoning);
    if (is(key, "reasoning_details"))
        return take_word(c, "null");
    return skip_value(c);
}

static bool choice_member(cursor *c, chat_text key, void *ctx) {
    chunk *k = ctx;
    if (is(key, "delta")) {
        k->has_delta = true;
        return take_object(c, delta_member, k);
    }
    if (is(key, "text"))
        return take_text(c, &k->text);
    if (is(key, "index"))
        return take_word(c, "0") && c->at < c->end && is_one_of(",} \n\r\t", *c->at);
    if (is(key, "message") || is(key, "finish_reason"))
        return take_word(c, "null");
    return skip_value(c);
}

static bool chunk_member(cursor *c, chat_text key, void *ctx) {
    chunk *k = ctx;
    if (is(key, "choices")) {
        k->has_choices = true;
        return take(c, '[') && (take(c, ']') || (take_object(c, choice_member, k) && take(c, ']')));
    }
    if (is(key, "error") || is(key, "message") || is(key, "detail") || is(key, "usage"))
        return take_word(c, "null");
    return skip_value(c);
}

bool chat_piece_find(const char *data, size_t n, chat_piece *out) {
    cursor c = {data, data + n, 0};
    chunk k = {0};
    if (!take_object(&c, chunk_member, &k) || !k.has_choices)
        return false;
    skip_space(&c);
    out->content = k.has_delta ? k.content : k.text;
    out->reasoning = k.reasoning_content.n ? k.reasoning_content : k.reasoning;
    return c.at == c.end;
}

/* ---- frames: the bytes around a chunk's text ---- */

void chat_frame_clear(chat_frame *f) {
    buf_clear(&f->bytes);
    f->before = 0;
}

void chat_frame_release(chat_frame *f) {
    buf_release(&f->bytes);
    f->before = 0;
}

/* Finds the text of a chunk that has the bytes of the frame around it. The parser would be in the
 * same state before the text as it was in the first chunk, and so in the same state after it. An
 * empty text is left to it, because another member may have the text then. */
static bool take_framed(const chat_frame *f, const char *data, size_t n, chat_text *out) {
    size_t after = f->bytes.len - f->before;
    if (!f->before || n < f->bytes.len || memcmp(data, f->bytes.data, f->before) != 0 ||
        memcmp(data + n - after, f->bytes.data + f->before, after) != 0)
        return false;
    cursor c = {data + f->before - 1, data + n - after + 1, 0}; /* with both quotes */
    return take_string(&c, out) && out->n && c.at == c.end;
}

/* Keeps the bytes around the text of a chunk with one text. If memory is exhausted, the frame is
 * empty. */
static void keep_frame(chat_frame *f, const char *data, size_t n, const chat_piece *p) {
    bool is_reasoning = p->reasoning.n > 0;
    chat_text text = is_reasoning ? p->reasoning : p->content;
    if (!text.n || (p->content.n && p->reasoning.n) || n - text.n > kFrame)
        return;
    chat_frame_clear(f);
    f->is_reasoning = is_reasoning;
    size_t before = (size_t)(text.s - data), end = before + text.n;
    if (buf_append(&f->bytes, data, before) && buf_append(&f->bytes, data + end, n - end))
        f->before = before;
}

bool chat_frame_find(chat_frame *f, const char *data, size_t n, chat_piece *out) {
    chat_text text, none = {"", 0};
    if (take_framed(f, data, n, &text)) {
        *out = f->is_reasoning ? (chat_piece){none, text} : (chat_piece){text, none};
        return true;
    }
    if (!chat_piece_find(data, n, out))
        return false;
    keep_frame(f, data, n, out);
    return true;
}

void chat_piece_append(buf *out, chat_text text) {
    static const char kNames[] = "bfnrt", kBytes[] = "\b\f\n\r\t";
    if (!text.n)
        return;
    const char *at = text.s, *end = text.s + text.n;
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        (void)buf_append(out, at, (size_t)((escape ? escape : end) - at));
        if (!escape)
            return;
        const char *name = strchr(kNames, escape[1]);
        (void)buf_append(out, name ? &kBytes[name - kNames] : escape + 1, 1);
        at = escape + 2;
    }
}
