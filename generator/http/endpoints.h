/* endpoints.h - the servers behind one http generator: which one gets the next request.
 *
 * A request goes to the server with the fewest requests in flight. One that can't be reached, or
 * that breaks off or answers 5xx ENDPOINT_STRIKES times in a row, is taken out until GET
 * {base}/models is answered again, which is tried after growing waits. A lone server is never taken
 * out: its requests wait for it as retry.h says. */
#ifndef SNAPMLA_GENERATOR_HTTP_ENDPOINTS_H
#define SNAPMLA_GENERATOR_HTTP_ENDPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { ENDPOINTS_MAX = 64, ENDPOINT_STRIKES = 3 };

typedef struct {
    char *chat_url, *models_url; /* owned */
    int in_flight;
    int64_t started; /* requests sent there */
    int strikes;     /* failures in a row */
    bool out, probing;
    int probes;     /* sent since it was taken out */
    int64_t due_ns; /* out: when to probe next */
} endpoint;

typedef struct {
    endpoint list[ENDPOINTS_MAX];
    int n;
    int64_t outages; /* times that one was taken out */
} endpoints;

/* "URL|URL|...": SNAP_E_USAGE for one that http_check_url() refuses, with a '?', or twice; release
 * in every case. All zero is empty. */
snap_status endpoints_parse(endpoints *e, const char *spec, snap_err *err) SNAP_CHECK_RESULT;
void endpoints_release(endpoints *e);

/* The least loaded of those that are in; of all, when none is. Never NULL. */
endpoint *endpoints_choose(endpoints *e);

/* What came of a request or a probe there. @gone: there is no server at all; true is returned when
 * it is taken out for it, to be probed from due_ns on, which the caller sets. */
void endpoints_success(endpoint *at);
bool endpoints_failure(endpoints *e, endpoint *at, bool gone);

#endif
