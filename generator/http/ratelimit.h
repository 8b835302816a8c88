/* ratelimit.h - the rate limits that a server reports in its response headers.
 *
 * These headers are read, in any case of letters: retry-after-ms; x-ratelimit-remaining-requests,
 * -tokens and x-ratelimit-reset-requests, -tokens (of OpenAI and others: "1s", "6m0s", "120ms");
 * ratelimit-remaining and ratelimit-reset (seconds; draft-ietf-httpapi-ratelimit-headers-07). */
#ifndef SNAPMLA_GENERATOR_HTTP_RATELIMIT_H
#define SNAPMLA_GENERATOR_HTTP_RATELIMIT_H

#include "base/http.h"

/* Seconds of "1h2m3.5s", "250ms", "12"; -1 for anything else. */
double ratelimit_seconds(const char *text);

/* Seconds until the server takes another request, by these headers; 0 = no header asks for a
 * wait. */
double ratelimit_wait_s(const http_response *res);

#endif
