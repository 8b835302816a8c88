/* endpoints.h - the servers of one http generator, and which of them gets the next request.
 *
 * A request goes to the server with the fewest requests in flight relative to its weight: "URL*3"
 * gets three times as many as "URL".
 *
 * A server that reports that a rate limit is used up gets no request until the time that it names,
 * for at most server_cap_s (retry.h). After a 429 whose request is retried, it gets none until that
 * retry is due. If no earlier response kept requests from it, the number of its requests in flight
 * is then also limited: first to about half of what it had, then to one more each time as many
 * requests as the limit have ended and the server neither failed nor refused them (additive
 * increase, multiplicative decrease, as in TCP).
 *
 * A server is taken out of service when it can't be reached, or when it fails ENDPOINT_STRIKES
 * times in a row (connection lost, silence, or a 5xx status). GET {base}/models then probes it,
 * with growing delays; an answer with a status below 500, to a probe or to a request, puts it back
 * into service. If there is only one server, it is never taken out: its requests are retried as
 * retry.h says. */
#ifndef SNAPMLA_GENERATOR_HTTP_ENDPOINTS_H
#define SNAPMLA_GENERATOR_HTTP_ENDPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { ENDPOINTS_MAX = 64, ENDPOINT_STRIKES = 3 };

typedef struct {
    char *chat_url, *text_url, *models_url; /* {base}/chat/completions, ...; owned */
    double weight;                          /* 1 unless the spec states one */
    int in_flight;
    int64_t started; /* requests sent there */
    double window;   /* most requests in flight; 0 = no limit */
    int64_t held_ns; /* no request before this time */
    int strikes;     /* failures in a row */
    bool out, probing;
    int probes;     /* probes sent since it was taken out of service */
    int64_t due_ns; /* time of the next probe, if it is out of service */
} endpoint;

typedef struct {
    endpoint list[ENDPOINTS_MAX];
    int n;
    int64_t outages; /* how often a server was taken out of service */
} endpoints;

/* Parses "URL|URL*WEIGHT|...". SNAP_E_USAGE for a URL that http_check_url() refuses, that has a
 * query, or that is listed twice, for a weight out of range, and for more than ENDPOINTS_MAX
 * servers; SNAP_E_NOMEM. Call endpoints_release() in every case. All zero is empty. */
snap_status endpoints_parse(endpoints *e, const char *spec, snap_err *err) SNAP_CHECK_RESULT;
void endpoints_release(endpoints *e);

/* The least loaded of the servers that are in service and take requests now. If none is in service,
 * servers out of service count, too. NULL when no server takes requests now. */
endpoint *endpoints_choose(endpoints *e, int64_t now_ns);

/* The first time at which a held server takes requests again; INT64_MAX if none is held. */
int64_t endpoints_next_ns(const endpoints *e, int64_t now_ns);

/* Holds a server: no requests until @until_ns. @refused: it refused a request (429), so the number
 * of its requests in flight is limited, too, unless the server was held already. */
void endpoints_hold(endpoint *at, int64_t now_ns, int64_t until_ns, bool refused);

/* The outcome of a request; a successful probe counts as a success, too. A refusal (429) shows that
 * the server works, but does not raise the limit of requests in flight. @gone: no server can be
 * reached at that address. endpoints_failure() returns true if it takes the server out of service;
 * the caller then sets due_ns. */
void endpoints_success(endpoint *at);
void endpoints_refusal(endpoint *at);
bool endpoints_failure(endpoints *e, endpoint *at, bool gone);

#endif
