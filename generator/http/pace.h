/* pace.h - when the next request may start, to keep a provider's limits per minute.
 *
 * Requests are spread evenly, not sent in bursts. (After a delay of the event loop, up to 0.1 s is
 * made up for.) Tokens are counted as a debt, which shrinks at the permitted rate. A request
 * starts only when the debt is zero, and adds the tokens that it is expected to use; when it ends,
 * the actual number replaces the expected one. The answer is expected to be as long as its limit
 * until a first answer has come, and then as long as the mean answer so far. So the tokens stay
 * within their limit in the long run.
 *
 * Times are CLOCK_MONOTONIC and come from the caller. */
#ifndef SNAPMLA_GENERATOR_HTTP_PACE_H
#define SNAPMLA_GENERATOR_HTTP_PACE_H

#include <stdint.h>

typedef struct {
    double requests, tokens; /* per minute; 0 = no limit */
    int64_t next_ns;         /* no request before this time */
    double debt;             /* tokens, as of debt_ns */
    int64_t debt_ns;
    double answer_tokens; /* tokens of all answers so far */
    int64_t answers;
} pace;

pace pace_make(double requests, double tokens, int64_t now_ns);

/* When the next request may start; a time not after @now_ns means now. */
int64_t pace_when(const pace *p, int64_t now_ns);

/* Counts a request that starts; returns the tokens that it is expected to use. */
double pace_start(pace *p, int64_t now_ns, double prompt_tokens, double most_answer_tokens);

/* Counts a request that ended: @tokens in all, @answer_tokens of them in the answer. -1 = unknown;
 * what is unknown is not corrected. */
void pace_settle(pace *p, double expected, int64_t tokens, int64_t answer_tokens);

#endif
