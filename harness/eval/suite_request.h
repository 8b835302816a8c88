/* suite_request.h - the object "request" of a suite file: settings of all requests.
 *
 * Keys: body and template (objects), system, api, content, reasoning and server (texts),
 * thinking_budget (an integer). They mean the same as the keys of an arm (arm_request.h), but no
 * value is the name of a file. */
#ifndef SNAPMLA_HARNESS_EVAL_SUITE_REQUEST_H
#define SNAPMLA_HARNESS_EVAL_SUITE_REQUEST_H

#include "base/arena.h"
#include "base/json.h"
#include "generator/generator.h"

/* Reads the object, if the suite has one. @mem owns the texts. SNAP_E_INPUT with @where;
 * SNAP_E_NOMEM. */
snap_status suite_request_read(const js *suite, arena *mem, gen_settings *out, const char *where,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
