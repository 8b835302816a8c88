#include "generator/http/ratelimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { kLongest = 32 }; /* most characters of a duration */

/* Seconds in the unit at @s; 0 if there is no unit. *n = the unit's length in characters. */
static double unit_at(const char *s, size_t *n) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1},
                 {"m", 60},    {"h", 3600},  {"d", 86400}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (text_starts(s, units[i].name)) {
            *n = strlen(units[i].name);
            return units[i].seconds;
        }
    return 0;
}

/* The number at @s; -1 if there is none. *n = its length in characters. */
static double number_at(const char *s, size_t *n) {
    char digits[kLongest + 1];
    double value;
    *n = strspn(s, "0123456789.");
    (void)snprintf(digits, sizeof digits, "%.*s", (int)*n, s);
    return *n && text_to_double(digits, &value) ? value : -1;
}

double ratelimit_seconds(const char *text) {
    double sum = 0;
    size_t n;
    if (!*text || strlen(text) > kLongest)
        return -1;
    for (const char *s = text; *s;) {
        double value = number_at(s, &n);
        s += n;
        if (value < 0)
            return -1;
        double unit = *s ? unit_at(s, &n) : 1;
        if (unit <= 0 || (!*s && sum > 0)) /* "1m30" is not a duration */
            return -1;
        s += *s ? n : 0;
        sum += value * unit;
    }
    return sum;
}

/* Seconds until one limit is reset, if nothing is left of it; 0 while something is left, or if one
 * of the headers is missing. */
static double empty_for_s(const http_response *res, const char *remaining, const char *reset) {
    double left = ratelimit_seconds(http_response_header(res, remaining));
    double wait = ratelimit_seconds(http_response_header(res, reset));
    return left >= 0 && left < 1 && wait > 0 ? wait : 0;
}

double ratelimit_wait_s(const http_response *res) {
    static const char *const counted[][2] = {
        {"x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
        {"x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"},
        {"ratelimit-remaining", "ratelimit-reset"}};
    double ms = ratelimit_seconds(http_response_header(res, "retry-after-ms"));
    double wait = ms > 0 ? ms / 1000 : 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        double s = empty_for_s(res, counted[i][0], counted[i][1]);
        wait = s > wait ? s : wait;
    }
    return wait;
}
