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
    bool not_finite;       /* a logprob was NaN or +inf, so the answer must not be sent */
} openai_logprobs;

/* Adds the first token of a prompt, which has no logprob: null is written. */
void openai_logprobs_add_first(openai_logprobs *l, const tokenizer *t, int32_t token);

/* Adds a token, with the likeliest tokens at its position. A logprob of -inf is written as -9999,
 * because JSON has no infinity. Sets l->not_finite if one is NaN or +inf. */
void openai_logprobs_add(openai_logprobs *l, const tokenizer *t, int32_t token, float logprob,
                         const token_logit *top, int n_top);

/* Appends ',"logprobs":' and the object. */
void openai_logprobs_write(const openai_logprobs *l, buf *out);

void openai_logprobs_clear(openai_logprobs *l); /* keeps `characters` */
void openai_logprobs_release(openai_logprobs *l);

#endif
