#include "generator/http/endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/http.h"
#include "base/text.h"

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

static snap_status add(void *ctx, const char *base, snap_err *err) {
    endpoints *e = ctx;
    snap_status st = http_check_url(base, err);
    if (st != SNAP_OK)
        return st;
    if (strchr(base, '?'))
        return err_set(err, SNAP_E_USAGE, "'%s' must not have a '?' part", base);
    if (e->n == ENDPOINTS_MAX)
        return err_set(err, SNAP_E_USAGE, "more than %d endpoints", (int)ENDPOINTS_MAX);
    endpoint at = {.chat_url = join(base, "/chat/completions"),
                   .models_url = join(base, "/models")};
    if (!at.chat_url || !at.models_url)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a URL");
    else if (has(e, at.chat_url))
        st = err_set(err, SNAP_E_USAGE, "'%s' comes twice", base);
    if (st == SNAP_OK) {
        e->list[e->n++] = at;
        return SNAP_OK;
    }
    free(at.chat_url);
    free(at.models_url);
    return st;
}

snap_status endpoints_parse(endpoints *e, const char *spec, snap_err *err) {
    return text_split(spec, '|', "endpoint", add, e, err);
}

void endpoints_release(endpoints *e) {
    for (int i = 0; i < e->n; i++) {
        free(e->list[i].chat_url);
        free(e->list[i].models_url);
    }
    e->n = 0;
}

/* Of equally loaded ones the one that has had fewer: so that idle servers take turns. */
static bool is_better(const endpoint *a, const endpoint *b) {
    if (a->out != b->out)
        return b->out;
    return a->in_flight != b->in_flight ? a->in_flight < b->in_flight : a->started < b->started;
}

endpoint *endpoints_choose(endpoints *e) {
    endpoint *best = &e->list[0];
    for (int i = 1; i < e->n; i++)
        if (is_better(&e->list[i], best))
            best = &e->list[i];
    return best;
}

void endpoints_success(endpoint *at) {
    at->strikes = at->probes = 0;
    at->out = false;
}

bool endpoints_failure(endpoints *e, endpoint *at, bool gone) {
    at->strikes++;
    if (e->n == 1 || at->out || (!gone && at->strikes < ENDPOINT_STRIKES))
        return false;
    at->out = true;
    e->outages++;
    return true;
}
