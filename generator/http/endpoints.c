#include "generator/http/endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/http.h"
#include "base/text.h"

static const double kLeastWeight = 0.001, kMostWeight = 1000;

static char *join(const char *base, const char *path) {
    size_t n = strlen(base);
    while (n && base[n - 1] == '/')
        n--;
    buf b = {0};
    (void)buf_append(&b, base, n);
    (void)buf_puts(&b, path);
    char *joined = b.failed ? NULL : buf_steal(&b);
    buf_release(&b);
    return joined;
}

static bool has(const endpoints *e, const char *chat_url) {
    for (int i = 0; i < e->n; i++)
        if (strcmp(e->list[i].chat_url, chat_url) == 0)
            return true;
    return false;
}

/* Cuts the weight, such as "*3", off a URL and returns it: 1 if there is none, 0 if it is
 * malformed, such as "*1.2.3". */
static double cut_weight(char *url) {
    double weight = 0;
    char *star = strrchr(url, '*');
    if (!star || !star[1] || star[1 + strspn(star + 1, "0123456789.")])
        return 1;
    *star = '\0';
    return text_to_double(star + 1, &weight) ? weight : 0;
}

static snap_status add_url(endpoints *e, const char *base, double weight, snap_err *err) {
    snap_status st = http_check_url(base, err);
    if (st != SNAP_OK)
        return st;
    if (weight < kLeastWeight || weight > kMostWeight)
        return err_set(err, SNAP_E_USAGE, "the weight of '%s' must be %g to %g", base, kLeastWeight,
                       kMostWeight);
    if (strchr(base, '?'))
        return err_set(err, SNAP_E_USAGE, "URL '%.*s' must not have a query ('?')",
                       (int)strcspn(base, "?"), base); /* the query may hold a key */
    if (e->n == ENDPOINTS_MAX)
        return err_set(err, SNAP_E_USAGE, "more than %d endpoints", (int)ENDPOINTS_MAX);
    endpoint at = {.chat_url = join(base, "/chat/completions"),
                   .text_url = join(base, "/completions"),
                   .models_url = join(base, "/models"),
                   .weight = weight};
    if (!at.chat_url || !at.text_url || !at.models_url)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a URL");
    else if (has(e, at.chat_url))
        st = err_set(err, SNAP_E_USAGE, "endpoint '%s' is listed twice", base);
    if (st == SNAP_OK) {
        e->list[e->n++] = at;
        return SNAP_OK;
    }
    free(at.chat_url);
    free(at.text_url);
    free(at.models_url);
    return st;
}

static snap_status add(void *ctx, const char *part, snap_err *err) {
    char *url = strdup(part);
    if (!url)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a URL");
    double weight = cut_weight(url);
    snap_status st = add_url(ctx, url, weight, err);
    free(url);
    return st;
}

snap_status endpoints_parse(endpoints *e, const char *spec, snap_err *err) {
    return text_split(spec, '|', "endpoint", add, e, err);
}

void endpoints_release(endpoints *e) {
    for (int i = 0; i < e->n; i++) {
        free(e->list[i].chat_url);
        free(e->list[i].text_url);
        free(e->list[i].models_url);
    }
    e->n = 0;
}

/* Whether @a is to be preferred to @b: a server in service to one that is out, then the less loaded
 * one. Among equally loaded servers it is the one that has had fewer requests for its weight, so
 * that idle servers take turns. */
static bool is_better(const endpoint *a, const endpoint *b) {
    if (a->out != b->out)
        return b->out;
    double x = (a->in_flight + 1) / a->weight, y = (b->in_flight + 1) / b->weight;
    if (x < y || y < x)
        return x < y;
    return (double)a->started / a->weight < (double)b->started / b->weight;
}

static bool takes_requests(const endpoint *at, int64_t now_ns) {
    return at->held_ns <= now_ns && (at->window <= 0 || at->in_flight < (int)at->window);
}

static bool all_out(const endpoints *e) {
    for (int i = 0; i < e->n; i++)
        if (!e->list[i].out)
            return false;
    return true;
}

endpoint *endpoints_choose(endpoints *e, int64_t now_ns) {
    endpoint *best = NULL;
    bool any = all_out(e);
    for (int i = 0; i < e->n; i++) {
        endpoint *at = &e->list[i];
        if ((any || !at->out) && takes_requests(at, now_ns) && (!best || is_better(at, best)))
            best = at;
    }
    return best;
}

int64_t endpoints_next_ns(const endpoints *e, int64_t now_ns) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < e->n; i++)
        if (e->list[i].held_ns > now_ns && e->list[i].held_ns < next)
            next = e->list[i].held_ns;
    return next;
}

void endpoints_hold(endpoint *at, int64_t now_ns, int64_t until_ns, bool refused) {
    if (refused && at->held_ns <= now_ns) /* halves only once for requests that are refused
                                             together */
        at->window = at->in_flight > 3 ? at->in_flight / 2 : 1;
    at->held_ns = until_ns > at->held_ns ? until_ns : at->held_ns;
}

void endpoints_refusal(endpoint *at) {
    at->strikes = at->probes = 0;
    at->out = false;
}

void endpoints_success(endpoint *at) {
    endpoints_refusal(at);
    at->window += at->window > 0 ? 1 / at->window : 0;
}

bool endpoints_failure(endpoints *e, endpoint *at, bool gone) {
    at->strikes++;
    if (e->n == 1 || at->out || (!gone && at->strikes < ENDPOINT_STRIKES))
        return false;
    at->out = true;
    e->outages++;
    return true;
}
