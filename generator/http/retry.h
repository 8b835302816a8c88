/* retry.h - which failures are worth another attempt, and how long to wait for it. */
#ifndef SNAPMLA_GENERATOR_HTTP_RETRY_H
#define SNAPMLA_GENERATOR_HTTP_RETRY_H

#include <stdbool.h>

typedef struct {
    double base_s;       /* wait after the first failure; doubles with each further one */
    double cap_s;        /* limit of this doubling */
    double server_cap_s; /* longest Retry-After that is kept in full */
} retry_policy;

#define RETRY_DEFAULT ((retry_policy){.base_s = 1, .cap_s = 30, .server_cap_s = 300})

/* Whether a request that got this status may succeed when it is repeated: true for 408, 409, 425,
 * 429 and 5xx. */
bool retry_status(int status);

/**
 * retry_delay_s - seconds to wait before the next attempt
 *
 * @failures:      attempts that failed so far, at least 1
 * @retry_after_s: the delay that the server requested; negative = none
 * @u:             uniform in [0, 1)
 *
 * Exponential backoff. The upper half of each delay is random, so that clients that failed together
 * don't return together. The delay is at least what the server requested (up to server_cap_s) plus
 * a random part of base_s.
 */
double retry_delay_s(const retry_policy *p, int failures, double retry_after_s, double u);

#endif
