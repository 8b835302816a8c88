#include "harness/serving/prompts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "generator/local/tokenizer/tokenizer.h"

enum {
    kPoolWords = 1 << 16,
    kMostWords = 512, /* most different words */
    kFewWords = 32,   /* common words are added if the vocabulary has fewer */
    kHeadWords = 8,   /* words that are drawn one by one at the start of a segment */
    kWordBytes = 24,
};
static const char kBegin[] = "Text";

/* Common English words. Most tokenizers have one token for each of them after a space. */
static const char kCommon[] =
    " time year people way day man thing woman life child world school state family student group"
    " country problem hand part place case week company system program question work government"
    " number night point home water room mother area money story fact month lot right study book"
    " eye job word business issue side kind head house service friend father power hour game line"
    " end member law car city community name president team minute idea body information back"
    " parent face others level office door health person art war history party result change"
    " morning reason research girl guy moment air teacher force education foot boy age policy"
    " music process sense nation plan college interest death experience effect use class control"
    " care field development role effort rate heart drug show leader light voice wife police mind"
    " price report decision son view relationship town road arm difference value building action"
    " season society tax director position player record paper space ground form event official"
    " matter center couple site project activity star table need court oil situation cost industry"
    " figure street image phone data picture practice piece land product doctor wall worker news"
    " test movie north love step support west baby south east summer winter river ocean mountain"
    " green blue red white black open close large small early late young old long short high low";

/* ---- the words of prompts ---- */

/* Adds a word, which begins with a space; false if memory is exhausted. */
static bool add_word(prompt_maker *m, buf *text, const char *word, size_t n) {
    m->word_at[m->n_words++] = (uint32_t)text->len;
    m->word_at[m->n_words] = (uint32_t)(text->len + n);
    return buf_append(text, word, n);
}

static void take_common(prompt_maker *m, buf *text) {
    for (const char *at = kCommon; *at && m->n_words < kMostWords;) {
        size_t n = 1 + strcspn(at + 1, " ");
        (void)add_word(m, text, at, n);
        at += n;
    }
}

/* Whether the text is a space and 2 to 23 small letters. */
static bool is_word(const char *s, size_t n) {
    if (n < 3 || n > kWordBytes || s[0] != ' ')
        return false;
    for (size_t i = 1; i < n; i++)
        if (s[i] < 'a' || s[i] > 'z')
            return false;
    return true;
}

/* Collects the words of the vocabulary that are encoded as one token when they follow "Text". */
static snap_status take_vocabulary(prompt_maker *m, const tokenizer *t, tok_encoder *e, buf *text,
                                   snap_err *err) {
    snap_status st = SNAP_OK;
    buf word = {0};
    tok_ids ids = {0};
    int32_t size = tokenizer_size(t);
    for (int32_t id = 0; id < size && m->n_words < kMostWords; id++) {
        buf_clear(&word);
        (void)buf_puts(&word, kBegin);
        TRY(tok_decode(t, &id, 1, true, &word, err));
        const char *s = buf_str(&word) + sizeof kBegin - 1;
        size_t n = word.len - (sizeof kBegin - 1);
        if (!is_word(s, n))
            continue;
        ids.n = 0;
        TRY(tok_encode(e, buf_str(&word), word.len, TOK_PLAIN, &ids, err));
        if (ids.n && ids.v[ids.n - 1] == id)
            (void)add_word(m, text, s, n);
    }
cleanup:
    tok_ids_release(&ids);
    buf_release(&word);
    return st;
}

static bool fill_pool(prompt_maker *m) {
    buf pool = {0};
    rng r = rng_make(0, rng_stream_of("pool"));
    for (uint32_t i = 0; i < kPoolWords; i++) {
        uint32_t k = rng_below(&r, m->n_words);
        m->at[i] = (uint32_t)pool.len;
        (void)buf_append(&pool, m->words + m->word_at[k], m->word_at[k + 1] - m->word_at[k]);
    }
    m->at[kPoolWords] = (uint32_t)pool.len;
    free(m->pool);
    m->pool = pool.failed ? NULL : buf_steal(&pool);
    buf_release(&pool);
    return m->pool != NULL;
}

/* Counts the tokens of "Text" and of the pool. */
static snap_status count_tokens(prompt_maker *m, tok_encoder *e, snap_err *err) {
    snap_status st;
    tok_ids ids = {0};
    buf all = {0};
    size_t begin;
    TRY(tok_encode(e, kBegin, sizeof kBegin - 1, TOK_SPECIALS, &ids, err));
    begin = ids.n;
    (void)buf_puts(&all, kBegin);
    (void)buf_puts(&all, m->pool);
    TRY(buf_check(&all, "the words", err));
    ids.n = 0;
    TRY(tok_encode(e, buf_str(&all), all.len, TOK_SPECIALS, &ids, err));
    m->around = (double)begin;
    m->one_token = ids.n == begin + kPoolWords;
    m->tokens_per_word = ((double)ids.n - (double)begin) / kPoolWords;
cleanup:
    tok_ids_release(&ids);
    buf_release(&all);
    return st;
}

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for the prompts");
}

snap_status prompts_open(prompt_maker *m, const char *tokenizer_dir, snap_err *err) {
    snap_status st = SNAP_OK;
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    buf text = {0};
    *m = (prompt_maker){.around = 1, .tokens_per_word = 1};
    m->at = calloc(kPoolWords + 1, sizeof *m->at);
    m->word_at = calloc(kMostWords + 1, sizeof *m->word_at);
    TRY(m->at && m->word_at ? SNAP_OK : no_memory(err));
    if (tokenizer_dir) {
        TRY(tokenizer_open(&t, tokenizer_dir, err));
        TRY(tok_encoder_create(&e, t, err));
        TRY(take_vocabulary(m, t, e, &text, err));
    }
    if (m->n_words < kFewWords)
        take_common(m, &text);
    m->words = buf_steal(&text);
    TRY(m->words && fill_pool(m) ? SNAP_OK : no_memory(err));
    if (e)
        TRY(count_tokens(m, e, err));
cleanup:
    tok_encoder_free(e);
    tokenizer_free(t);
    buf_release(&text);
    return st;
}

void prompts_release(prompt_maker *m) {
    free(m->pool);
    free(m->at);
    free(m->words);
    free(m->word_at);
    *m = (prompt_maker){0};
}

/* ---- prompts ---- */

void prompt_begin(buf *out) {
    (void)buf_puts(out, kBegin);
}

void prompt_segment(const prompt_maker *m, uint64_t seed, int64_t words, buf *out) {
    rng r = rng_make(seed, rng_stream_of("segment"));
    for (int i = 0; i < kHeadWords && words > 0; i++, words--) {
        uint32_t k = rng_below(&r, m->n_words);
        (void)buf_append(out, m->words + m->word_at[k], m->word_at[k + 1] - m->word_at[k]);
    }
    for (uint32_t from = rng_below(&r, kPoolWords); words > 0; from = 0) {
        int64_t left = kPoolWords - (int64_t)from, n = words < left ? words : left;
        (void)buf_append(out, m->pool + m->at[from], m->at[from + (uint32_t)n] - m->at[from]);
        words -= n;
    }
}

int64_t prompt_words(const prompt_maker *m, int64_t tokens) {
    int64_t n = llround(((double)tokens - m->around) / m->tokens_per_word);
    return n < 1 ? 1 : n;
}

int64_t prompt_part_words(const prompt_maker *m, int64_t tokens) {
    int64_t n = llround((double)tokens / m->tokens_per_word);
    return n < 1 ? 1 : n;
}

bool prompt_fit(prompt_maker *m, const int64_t words[2], const int64_t tokens[2]) {
    double slope = (double)(tokens[1] - tokens[0]) / (double)(words[1] - words[0]);
    if (!(slope > 0.2 && slope < 20) || tokens[0] < 1)
        return false;
    m->tokens_per_word = m->one_token ? 1 : slope;
    m->around = (double)tokens[0] - m->tokens_per_word * (double)words[0];
    return true;
}
