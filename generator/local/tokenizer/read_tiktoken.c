/* Reads tiktoken.model. Each line has the bytes of a token in base64 and its rank, which is also
 * its id. Kimi-K2 and Moonlight use this format. Their regex is defined in Python code of the
 * checkpoint; here it is built in. The names of special tokens are read from
 * tokenizer_config.json. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/tokenizer/tokenizer_parts.h"

enum { kSpecials = 256 }; /* special tokens, named or reserved; their ids follow the ranks */

/* From tokenization_kimi.py, with its class intersections (&&[^\p{Han}]) written as look-aheads. */
#define NOT_HAN(class) "(?:(?!\\p{Han})[" class "])"
#define UPPER          NOT_HAN("\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}")
#define LOWER          NOT_HAN("\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}")
#define ENDING         "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char kKimiRegex[] = "\\p{Han}+"
                                 "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ENDING
                                 "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ENDING "|\\p{N}{1,3}"
                                 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                                 "|\\s*[\\r\\n]+"
                                 "|\\s+(?!\\S)"
                                 "|\\s+";

static int base64_value(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *d = c ? strchr(digits, c) : NULL;
    return d ? (int)(d - digits) : -1;
}

/* Decodes base64 and appends the bytes in the byte-level alphabet. */
static bool spell_base64(const char *s, size_t n, buf *out) {
    unsigned bits = 0;
    int held = 0;
    size_t padding = 0;
    if (n == 0 || n % 4)
        return false;
    while (padding < 2 && s[n - 1] == '=') {
        padding++;
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        int v = base64_value(s[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (unsigned)v;
        held += 6;
        if (held >= 8) {
            held -= 8;
            byte_alphabet_append(out, (unsigned char)(bits >> held));
        }
    }
    return true;
}

static snap_status read_line(tokenizer *t, const char *line, size_t n, buf *word, snap_err *err) {
    const char *space = memchr(line, ' ', n);
    char number[16];
    int64_t rank;
    size_t digits = space ? (size_t)(line + n - space) - 1 : 0;
    buf_clear(word);
    if (!space || digits >= sizeof number || !spell_base64(line, (size_t)(space - line), word))
        return err_set(err, SNAP_E_INPUT, "a line must be base64, a space, a rank");
    memcpy(number, space + 1, digits);
    number[digits] = '\0';
    if (!text_to_int(number, &rank))
        return err_set(err, SNAP_E_INPUT, "'%s' is not a rank", number);
    return vocab_add(&t->vocab, rank, buf_str(word), word->len, false, err);
}

static snap_status read_ranks(tokenizer *t, const char *text, size_t n, const char *name,
                              snap_err *err) {
    buf word = {0};
    snap_status st = SNAP_OK;
    const char *end = text + n;
    for (long line = 1; text < end && st == SNAP_OK; line++) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((nl ? nl : end) - text);
        if (!text_is_blank(text, len))
            st = read_line(t, text, len, &word, err);
        if (st != SNAP_OK)
            err_prefix(err, "%s:%ld", name, line);
        text = nl ? nl + 1 : end;
    }
    buf_release(&word);
    return st;
}

/* tiktoken merges any two neighbours whose bytes together are a token, the token with the lowest
 * rank first. So every way to split a token into two tokens is a merge of its rank. Returns the
 * number of these merges; with @add, adds them to the table. */
static size_t merges_of(tokenizer *t, int32_t made, bool add) {
    const vocab_token *v = vocab_at(&t->vocab, made);
    size_t count = 0;
    for (size_t i = 1; v && i < v->n; i++) {
        if (((unsigned char)v->s[i] & 0xC0) == 0x80)
            continue; /* inside a character of the alphabet */
        int32_t left = vocab_find(&t->vocab, v->s, i);
        int32_t right = left < 0 ? -1 : vocab_find(&t->vocab, v->s + i, v->n - i);
        if (right < 0)
            continue;
        count++;
        if (add)
            bpe_add(&t->merges, left, right, (uint32_t)made, made);
    }
    return count;
}

static snap_status make_merges(tokenizer *t, snap_err *err) {
    size_t count = 0;
    for (int32_t id = 0; id < t->vocab.n; id++)
        count += merges_of(t, id, false);
    snap_status st = bpe_reserve(&t->merges, count, err);
    for (int32_t id = 0; st == SNAP_OK && id < t->vocab.n; id++)
        (void)merges_of(t, id, true);
    return st;
}

static snap_status add_special(tokenizer *t, const js *names, int32_t id, snap_err *err) {
    buf text = {0};
    (void)buf_printf(&text, "%d", id);
    const js *named = js_get_object(names, buf_str(&text));
    const char *content = js_get_str(named, "content");
    if (!content) {
        buf_clear(&text);
        (void)buf_printf(&text, "<|reserved_token_%d|>", id);
        content = buf_str(&text);
    }
    snap_status st = buf_check(&text, "a special token", err);
    if (st == SNAP_OK)
        st = vocab_add(&t->vocab, id, content, strlen(content), true, err);
    if (st == SNAP_OK)
        st = added_insert(&t->added_raw, content, strlen(content),
                          (added_token){.id = id, .special = true}, err);
    buf_release(&text);
    return st;
}

static snap_status check_bytes(const tokenizer *t, snap_err *err) {
    for (int b = 0; b < 256; b++)
        if (t->byte_id[b] < 0)
            return err_set(err, SNAP_E_INPUT, "no token for the byte 0x%02X", (unsigned)b);
    return SNAP_OK;
}

snap_status tokenizer_read_tiktoken(tokenizer *t, const char *text, size_t n, const char *name,
                                    const js *config, snap_err *err) {
    snap_status st = SNAP_OK;
    split_step *cut = &t->split.steps[t->split.n++];
    t->byte_level = true;
    t->whole_pieces = true;
    TRY(regex_compile(&cut->re, kKimiRegex, sizeof kKimiRegex - 1, err));
    TRY(read_ranks(t, text, n, name, err));
    TRY(make_merges(t, err));
    tokenizer_find_bytes(t);
    TRY(check_bytes(t, err));
    for (int32_t id = t->vocab.n, end = id + kSpecials; id < end; id++)
        TRY(add_special(t, js_get_object(config, "added_tokens_decoder"), id, err));
    t->decode = DECODE_BYTES;
    TRY(tokenizer_make_texts(t, NULL, 0, err));
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "%s", name);
    return st;
}
