/* conformance_text.h - the output of `snapmla conformance`. */
#ifndef SNAPMLA_HARNESS_VIEW_CONFORMANCE_TEXT_H
#define SNAPMLA_HARNESS_VIEW_CONFORMANCE_TEXT_H

#include "base/json.h"
#include "harness/bench/conformance_run.h"

/* Appends a table with one row for each check and arm, and one column for each backend, then
 * explanations of single cells. @color: heads in bold. */
snap_status conformance_text(const conformance_result *r, bool color, buf *out,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Appends {"program", "commit", "backends": [{"name", ..., "checks": [...]}]}. */
snap_status conformance_json(const conformance_result *r, buf *out,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
