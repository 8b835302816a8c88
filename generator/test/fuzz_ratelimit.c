/* Reads arbitrary bytes as a server's rate-limit headers. The wait that follows must be finite and
 * not negative, and so must be the delay before the next attempt. Lines are the values of the
 * headers below, in their order; the last two lines are the number of failures and Retry-After. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "generator/http/ratelimit.h"
#include "generator/http/retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS = 7, LINES = HEADERS + 2 };
static const char *const names[HEADERS] = {"retry-after-ms",
                                           "x-ratelimit-remaining-requests",
                                           "x-ratelimit-reset-requests",
                                           "x-ratelimit-remaining-tokens",
                                           "x-ratelimit-reset-tokens",
                                           "ratelimit-remaining",
                                           "ratelimit-reset"};

/* Stands for the function of base/http.c, which needs a transfer. */
const char *http_response_header(const http_response *res, const char *name) {
    const char *const *lines = res->source;
    for (int i = 0; i < HEADERS; i++)
        if (strcasecmp(name, names[i]) == 0)
            return lines[i];
    return "";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = strndup((const char *)data, size), *at = text;
    const char *lines[LINES];
    if (!text)
        return 0;
    for (int i = 0; i < LINES; i++) {
        lines[i] = at ? at : "";
        at = at ? strchr(at, '\n') : NULL;
        if (at)
            *at++ = '\0';
    }
    for (int i = 0; i < HEADERS; i++) {
        double s = ratelimit_seconds(lines[i]);
        if (!isfinite(s) || (s < 0 && s != -1))
            abort();
    }
    const http_response res = {.retry_after_s = strtod(lines[LINES - 1], NULL), .source = lines};
    const retry_policy policy = RETRY_DEFAULT;
    double wait = ratelimit_wait_s(&res), u = size ? data[0] / 256.0 : 0;
    double wish = res.retry_after_s > wait ? res.retry_after_s : wait;
    double delay = retry_delay_s(&policy, abs(atoi(lines[HEADERS]) % 1000) + 1, wish, u);
    if (!isfinite(wait) || wait < 0 || !(delay >= 0) || delay > policy.server_cap_s + policy.base_s)
        abort();
    free(text);
    return 0;
}
