/* pace.h - how fast requests may start where a provider counts them: requests and tokens a minute.
 *
 * Requests are spread evenly, not sent in bursts. Tokens are a debt: a request starts when there is
 * none, and adds what it is expected to take; what it took in the end takes that place. Before the first
 * answer the expectation is the limit of the answer, then the mean of the answers. So over any minute
 * the starts stay within the limit and one request more, and over many minutes the tokens do.
 *
 * Times are CLOCK_MONOTONIC, and the caller's. */
#ifndef SNAPMLA_GENERATOR_HTTP_PACE_H
#define SNAPMLA_GENERATOR_HTTP_PACE_H

#include <stdint.h>

typedef struct {
    double requests, tokens; /* a minute; 0 = no limit */
    int64_t next_ns;         /* no request before */
    double debt;             /* tokens, as of debt_ns */
    int64_t debt_ns;
    double answer_tokens; /* of all answers so far */
    int64_t answers;
} pace;

pace pace_make(double requests, double tokens, int64_t now_ns);

/* When the next request may start: @now_ns or earlier is now. */
int64_t pace_when(const pace *p, int64_t now_ns);

/* A request starts; returns the tokens that it is expected to take. */
double pace_start(pace *p, int64_t now_ns, double prompt_tokens, double most_answer_tokens);

/* It ended: it took so many, and answered with so many of them; -1 = unknown, nothing is corrected. */
void pace_settle(pace *p, double expected, int64_t tokens, int64_t answer_tokens);

#endif
