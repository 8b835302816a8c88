/* Converts text to token ids. The steps: added tokens, normaliser, second set of added tokens,
 * splitter, merges. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/tokenizer/mix.h"
#include "generator/local/tokenizer/tokenizer_parts.h"
#include "generator/local/tokenizer/utf8.h"

enum { kCacheEntries = 1 << 15, kCachedBytes = 30, kCachedIds = 8 };

/* A piece and its ids; fills one cache line. */
typedef struct {
    uint8_t n, n_ids; /* n = 0: empty entry, because no piece is empty */
    char s[kCachedBytes];
    int32_t ids[kCachedIds];
} cached;
_Static_assert(sizeof(cached) == 64, "an entry fills a cache line");

struct tok_encoder {
    const tokenizer *t;
    split_work split;
    bpe_work merges;
    cached *cache;
    buf repaired, normal, spare, spelled;
    int32_t *symbols;
    size_t cap_symbols;
    /* state of the current call */
    int flags;
    bool first; /* the next part is at the start of the text */
    tok_ids *ids;
};

/* ---- the initial symbols of a piece ---- */

static size_t byte_symbols(const tokenizer *t, const char *s, size_t n, int32_t *out) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = t->byte_id[(unsigned char)s[i]];
        id = id < 0 ? t->unk : id;
        bool fused = id >= 0 && id == t->unk && t->fuse_unk && k && out[k - 1] == id;
        if (id >= 0 && !fused)
            out[k++] = id;
    }
    return k;
}

/* Writes the tokens of a character's bytes and returns their number; 0 unless all of them exist. */
static size_t fallback_symbols(const tokenizer *t, const char *s, size_t len, int32_t *out) {
    for (size_t i = 0; i < len; i++) {
        out[i] = t->byte_id[(unsigned char)s[i]];
        if (out[i] < 0)
            return 0;
    }
    return len;
}

static size_t char_symbols(const tokenizer *t, const char *s, size_t n, int32_t *out) {
    size_t k = 0, len;
    bool unknown = false; /* the previous symbol was unknown; the next may be fused with it */
    for (size_t i = 0; i < n; i += len) {
        len = text_utf8_len(s + i, n - i);
        int32_t id = vocab_find(&t->vocab, s + i, len);
        size_t n_fallback =
            id < 0 && t->byte_fallback ? fallback_symbols(t, s + i, len, out + k) : 0;
        k += n_fallback;
        if (n_fallback)
            continue;
        bool fuses = id < 0 && unknown && t->fuse_unk;
        unknown = id < 0;
        id = id < 0 ? t->unk : id;
        if (id >= 0 && !fuses)
            out[k++] = id;
    }
    return k;
}

/* The token that is equal to the whole piece; -1 if there is none, and when out of memory. */
static int32_t whole(tok_encoder *e, const char *s, size_t n) {
    if (!e->t->byte_level)
        return vocab_find(&e->t->vocab, s, n);
    buf_clear(&e->spelled);
    for (size_t i = 0; i < n; i++)
        byte_alphabet_append(&e->spelled, (unsigned char)s[i]);
    return e->spelled.failed ? -1 : vocab_find(&e->t->vocab, buf_str(&e->spelled), e->spelled.len);
}

static snap_status reserve_symbols(tok_encoder *e, size_t n, snap_err *err) {
    if (n <= e->cap_symbols)
        return SNAP_OK;
    free(e->symbols);
    e->cap_symbols = 0;
    e->symbols = malloc(2 * n * sizeof *e->symbols);
    if (!e->symbols)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a piece of %zu bytes", n);
    e->cap_symbols = 2 * n;
    return SNAP_OK;
}

/* Encodes a piece; its ids are in e->symbols. */
static snap_status encode_piece(tok_encoder *e, const char *s, size_t n, size_t *k, snap_err *err) {
    const tokenizer *t = e->t;
    snap_status st = reserve_symbols(e, n, err);
    if (st != SNAP_OK)
        return st;
    int32_t id = t->whole_pieces ? whole(e, s, n) : -1;
    if (id >= 0) {
        e->symbols[0] = id;
        *k = 1;
        return SNAP_OK;
    }
    *k = t->byte_level ? byte_symbols(t, s, n, e->symbols) : char_symbols(t, s, n, e->symbols);
    return bpe_encode(&t->merges, &e->merges, e->symbols, k, err);
}

/* ---- from text to pieces ---- */

static snap_status take_piece(void *ctx, const char *s, size_t n, snap_err *err) {
    tok_encoder *e = ctx;
    cached *c = &e->cache[mix_bytes(s, n) % kCacheEntries];
    if (c->n == n && memcmp(c->s, s, n) == 0)
        return tok_ids_append(e->ids, c->ids, c->n_ids, err);
    size_t k;
    snap_status st = encode_piece(e, s, n, &k, err);
    if (st != SNAP_OK)
        return st;
    if (n <= kCachedBytes && k <= kCachedIds) {
        c->n = (uint8_t)n;
        c->n_ids = (uint8_t)k;
        memcpy(c->s, s, n);
        memcpy(c->ids, e->symbols, k * sizeof *c->ids);
    }
    return tok_ids_append(e->ids, e->symbols, k, err);
}

static snap_status cut_text(tok_encoder *e, const char *s, size_t n, snap_err *err) {
    return split_text(&e->t->split, &e->split, s, n, e->first, take_piece, e, err);
}

/* ---- added tokens ---- */

static size_t char_before(const char *s, size_t at) {
    at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80)
        at--;
    return at;
}

/* Whether @re matches the character at @at. */
static snap_status char_is(tok_encoder *e, const regex *re, const char *s, size_t n, size_t at,
                           bool *is, snap_err *err) {
    regex_match m;
    size_t len = text_utf8_len(s + at, n - at);
    return regex_find(re, e->split.re, s + at, len, 0, &m, is, err);
}

static snap_status stands_alone(tok_encoder *e, const char *s, size_t n, size_t start, size_t end,
                                bool *alone, snap_err *err) {
    const regex *word = e->t->word_char;
    bool left = false, right = false;
    snap_status st = SNAP_OK;
    if (start > 0)
        TRY(char_is(e, word, s, n, char_before(s, start), &left, err));
    if (end < n)
        TRY(char_is(e, word, s, n, end, &right, err));
    *alone = !left && !right;
cleanup:
    return st;
}

/* Extends [*start, *end) by the white space that the token includes, but not below @low. */
static snap_status widen(tok_encoder *e, const added_token *token, const char *s, size_t n,
                         size_t low, size_t *start, size_t *end, snap_err *err) {
    const regex *space = e->t->space_char;
    snap_status st = SNAP_OK;
    bool is = token->lstrip;
    while (is && *start > low) {
        size_t before = char_before(s, *start);
        TRY(char_is(e, space, s, n, before, &is, err));
        *start = is ? before : *start;
    }
    is = token->rstrip;
    while (is && *end < n) {
        size_t len = text_utf8_len(s + *end, n - *end);
        TRY(char_is(e, space, s, n, *end, &is, err));
        *end += is ? len : 0;
    }
cleanup:
    return st;
}

static bool counts_as_text(const tok_encoder *e, const added_token *token) {
    return token->special && (e->flags & TOK_PLAIN);
}

typedef snap_status (*between_fn)(tok_encoder *e, const char *s, size_t n, snap_err *err);

/* Appends the ids of a set's tokens in @s, and passes the text between them to @between. */
static snap_status each_added(tok_encoder *e, const added_set *set, const char *s, size_t n,
                              between_fn between, snap_err *err) {
    bool first = e->first;
    size_t done = 0, from = 0, start, end;
    const added_token *token;
    snap_status st = SNAP_OK;
    while ((token = added_find(set, s, n, from, &start, &end)) != NULL) {
        bool alone = true;
        from = end;
        if (token->single_word)
            TRY(stands_alone(e, s, n, start, end, &alone, err));
        if (!alone || counts_as_text(e, token))
            continue;
        if (token->lstrip || token->rstrip)
            TRY(widen(e, token, s, n, done, &start, &end, err));
        e->first = first && done == 0;
        if (start > done)
            TRY(between(e, s + done, start - done, err));
        TRY(tok_ids_append(e->ids, &token->id, 1, err));
        done = end;
    }
    e->first = first && done == 0;
    if (done < n)
        TRY(between(e, s + done, n - done, err));
cleanup:
    return st;
}

static snap_status normal_text(tok_encoder *e, const char *s, size_t n, snap_err *err) {
    if (e->t->normal.n) {
        snap_status st =
            normalize_text(&e->t->normal, e->split.re, s, n, &e->normal, &e->spare, err);
        if (st != SNAP_OK)
            return st;
        s = buf_str(&e->normal);
        n = e->normal.len;
    }
    return each_added(e, &e->t->added_normal, s, n, cut_text, err);
}

snap_status tok_encode(tok_encoder *e, const char *s, size_t n, int flags, tok_ids *ids,
                       snap_err *err) {
    const tokenizer *t = e->t;
    snap_status st = SNAP_OK;
    e->flags = flags;
    e->first = true;
    e->ids = ids;
    if (!text_is_utf8(s, n)) {
        buf_clear(&e->repaired);
        (void)utf8_append_repaired(&e->repaired, s, n, false);
        TRY(buf_check(&e->repaired, "a text", err));
        s = buf_str(&e->repaired);
        n = e->repaired.len;
    }
    if (flags & TOK_SPECIALS)
        TRY(tok_ids_append(ids, t->before, (size_t)t->n_before, err));
    if (n)
        TRY(each_added(e, &t->added_raw, s, n, normal_text, err));
    if (flags & TOK_SPECIALS)
        TRY(tok_ids_append(ids, t->after, (size_t)t->n_after, err));
cleanup:
    return st;
}

/* ---- creating an encoder ---- */

snap_status tok_encoder_create(tok_encoder **out, const tokenizer *t, snap_err *err) {
    tok_encoder *e = calloc(1, sizeof *e);
    *out = NULL;
    if (e) {
        e->t = t;
        e->split.re = regex_work_new();
        e->cache = aligned_alloc(64, kCacheEntries * sizeof *e->cache);
    }
    if (!e || !e->split.re || !e->cache) {
        tok_encoder_free(e);
        return err_set(err, SNAP_E_NOMEM, "out of memory for an encoder");
    }
    memset(e->cache, 0, kCacheEntries * sizeof *e->cache);
    *out = e;
    return SNAP_OK;
}

void tok_encoder_free(tok_encoder *e) {
    if (!e)
        return;
    regex_work_free(e->split.re);
    split_work_release(&e->split);
    bpe_work_release(&e->merges);
    buf_release(&e->repaired);
    buf_release(&e->normal);
    buf_release(&e->spare);
    buf_release(&e->spelled);
    free(e->symbols);
    free(e->cache);
    free(e);
}
