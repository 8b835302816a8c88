/* client.h - the http generator with a configurable retry policy, for tests. Private to
 * generator/.
 *
 * Each request is a POST to {base URL}/chat/completions, or to {base URL}/completions for a text
 * completion, of the least loaded server (endpoints.h). One thread handles up to in_flight requests
 * at once. A failure that may be temporary is retried after a delay (retry.h), during which other
 * requests continue. When the next attempt starts, what the failed one had received is dropped. At
 * most in_flight answers are in memory. */
#ifndef SNAPMLA_GENERATOR_HTTP_CLIENT_H
#define SNAPMLA_GENERATOR_HTTP_CLIENT_H

#include "generator/generator.h"
#include "generator/http/retry.h"

enum { CLIENT_IN_FLIGHT = 32, CLIENT_IN_FLIGHT_MAX = 4096, CLIENT_RETRIES = 5 };

/* Like gen_http_open(), with another retry policy. @policy is copied. */
snap_status client_open(generator **out, const char *urls, const generator_options *opt,
                        const retry_policy *policy, snap_err *err) SNAP_CHECK_RESULT;

#endif
