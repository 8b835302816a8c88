/* endpoints.h - the servers behind one http generator: which one gets the next request.
 *
 * A request goes to the server with the fewest requests in flight for its weight: "URL*3" gets three
 * times what "URL" gets. One that answers 429, or says that nothing is left of its limits, gets no
 * request until the time it names, and after a 429 at first half of what it had in flight, then one
 * more for every answer to all of those. One that can't be reached, or
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
    double weight;               /* 1 unless stated */
    int in_flight;
    int64_t started; /* requests sent there */
    double window;   /* requests in flight at most; 0 = any number */
    int64_t held_ns; /* no request before */
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

/* "URL|URL*WEIGHT|...": SNAP_E_USAGE for one that http_check_url() refuses, with a '?', or twice; release
 * in every case. All zero is empty. */
snap_status endpoints_parse(endpoints *e, const char *spec, snap_err *err) SNAP_CHECK_RESULT;
void endpoints_release(endpoints *e);

/* The least loaded of those that are in and take requests now; of all, when none is in. NULL when none
 * takes any. */
endpoint *endpoints_choose(endpoints *e, int64_t now_ns);

/* When a server that is held back takes requests again; INT64_MAX where none is. */
int64_t endpoints_next_ns(const endpoints *e, int64_t now_ns);

/* It said that it takes nothing for so long. @refused: by refusing a request (429). */
void endpoints_hold(endpoint *at, int64_t now_ns, int64_t until_ns, bool refused);

/* What came of a request or a probe there. @gone: there is no server at all; true is returned when
 * it is taken out for it, to be probed from due_ns on, which the caller sets. */
void endpoints_success(endpoint *at);
bool endpoints_failure(endpoints *e, endpoint *at, bool gone);

#endif
