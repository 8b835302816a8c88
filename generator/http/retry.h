/* retry.h - whether to try again, and when. */
#ifndef SNAPMLA_GENERATOR_HTTP_RETRY_H
#define SNAPMLA_GENERATOR_HTTP_RETRY_H

#include <stdbool.h>

typedef struct {
    double base_s;       /* wait after the first failure; doubles with each further one */
    double cap_s;        /* longest such wait */
    double server_cap_s; /* longest Retry-After that is honoured in full */
} retry_policy;

#define RETRY_DEFAULT ((retry_policy){.base_s = 1, .cap_s = 30, .server_cap_s = 300})

/* Whether an answer of this status may be another one next time: 408, 409, 425, 429 and 5xx. */
bool retry_status(int status);

/**
 * retry_delay_s - seconds to wait before the next attempt
 *
 * @failures:      attempts that failed so far, at least 1
 * @retry_after_s: what the server asked for; negative = nothing
 * @u:             uniform in [0, 1)
 *
 * Exponential backoff, its upper half jittered, so that clients that failed together don't come
 * back together. The server's wish is a lower bound, jittered upwards by base_s.
 */
double retry_delay_s(const retry_policy *p, int failures, double retry_after_s, double u);

#endif
