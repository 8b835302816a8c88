/* prompts.h - prompts of stated length, made of random words.
 *
 * A prompt is "Text" and then words, each with a space before it. It consists of segments. Each
 * segment follows from a seed alone, and a longer segment of the same seed begins with the shorter
 * one, so prompts that begin with segments of the same seed share a prefix. Segments of different
 * seeds almost always differ within their first 8 words.
 *
 * With a tokenizer, the words are taken from its vocabulary, and each is one token if the
 * vocabulary has enough of them. Without one they are common English words. The number of tokens of
 * a prompt is
 *
 *   around + tokens_per_word * words
 *
 * where `around` includes what the server's chat template adds. Both numbers can be found by
 * sending two prompts (prompt_fit()). */
#ifndef SNAPMLA_HARNESS_SERVING_PROMPTS_H
#define SNAPMLA_HARNESS_SERVING_PROMPTS_H

#include <stdint.h>

#include "base/buf.h"

typedef struct {
    char *pool;   /* owned: kPoolWords words, each with a space before it */
    uint32_t *at; /* owned: where word i of the pool begins; one more entry for the end */
    char *words;  /* owned: the different words */
    uint32_t *word_at;
    uint32_t n_words;
    bool one_token; /* each word is one token of the tokenizer */
    double around, tokens_per_word;
} prompt_maker;

/* @tokenizer_dir: the folder of a checkpoint. `around` and tokens_per_word are counted with its
 * tokenizer; NULL: both are 1. Errors of tokenizer_open(), tok_decode() and tok_encode();
 * SNAP_E_NOMEM. Release with prompts_release(), also after a failure. */
snap_status prompts_open(prompt_maker *m, const char *tokenizer_dir,
                         snap_err *err) SNAP_CHECK_RESULT;
void prompts_release(prompt_maker *m);

/* Appends the start of every prompt. */
void prompt_begin(buf *out);

/* Appends the first @words words of the segment with this seed. */
void prompt_segment(const prompt_maker *m, uint64_t seed, int64_t words, buf *out);

/* The number of words for a prompt of @tokens tokens in all, and for a part of one; at least 1. */
int64_t prompt_words(const prompt_maker *m, int64_t tokens);
int64_t prompt_part_words(const prompt_maker *m, int64_t tokens);

/* Sets `around` and `tokens_per_word` from what a server counted for two prompts of different
 * length. With one_token, tokens_per_word stays 1. False if the counts are implausible. */
bool prompt_fit(prompt_maker *m, const int64_t words[2], const int64_t tokens[2]);

#endif
