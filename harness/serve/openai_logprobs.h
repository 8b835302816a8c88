/* openai_logprobs.h - the log-probabilities of the tokens of one choice, in the two forms of
 * OpenAI's interface. */
#ifndef SNAPMLA_HARNESS_SERVE_OPENAI_LOGPROBS_H
#define SNAPMLA_HARNESS_SERVE_OPENAI_LOGPROBS_H

#include "generator/local/model/reading.h"
#include "generator/local/tokenizer/tokenizer.h"

/* The log-probabilities of a choice. Each buffer holds the elements of a JSON array, without the
 * brackets. */
typedef struct {
    bool chat;   /* the form of chat. The caller sets it; the rest starts as 0 */
    buf content; /* chat */
    buf tokens, logprobs, tops, offsets; /* completions */
    int64_t n, characters; /* tokens since the last clear; characters of all tokens so far */
    bool failed;           /* memory is exhausted */
} openai_logprobs;

/* Adds a token, with the likeliest tokens at its position. A logprob of NaN is written as null: the
 * first token of a prompt has none. */
void openai_logprobs_add(openai_logprobs *l, const tokenizer *t, int32_t token, float logprob,
                         const token_logit *top, int n_top);

/* Appends ',"logprobs":' and the object. */
void openai_logprobs_write(const openai_logprobs *l, buf *out);

void openai_logprobs_clear(openai_logprobs *l); /* keeps `characters` */
void openai_logprobs_release(openai_logprobs *l);

#endif
