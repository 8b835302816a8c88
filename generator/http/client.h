/* client.h - the http generator with its waiting times open, for tests. Private to generator/.
 *
 * POSTs every request to {base URL}/chat/completions of the least loaded server (endpoints.h), up to
 * in_flight at once on one thread. What
 * may pass is tried again after a wait (retry.h) that holds up no other request; what was
 * received of a failed attempt is dropped. Memory: in_flight answers at most. */
#ifndef SNAPMLA_GENERATOR_HTTP_CLIENT_H
#define SNAPMLA_GENERATOR_HTTP_CLIENT_H

#include "generator/generator.h"
#include "generator/http/retry.h"

enum { CLIENT_IN_FLIGHT = 32, CLIENT_IN_FLIGHT_MAX = 4096, CLIENT_RETRIES = 5 };

/* gen_http_open() with another retry policy; @policy is copied. */
snap_status client_open(generator **out, const char *urls, const generator_options *opt,
                        const retry_policy *policy, snap_err *err) SNAP_CHECK_RESULT;

#endif
