/* findings.h - what `verify-run` found, for a terminal and as JSON. */
#ifndef SNAPMLA_HARNESS_VIEW_FINDINGS_H
#define SNAPMLA_HARNESS_VIEW_FINDINGS_H

#include "harness/audit/audit.h"

/* Appends a table with one row per finding, and how many statements were checked. @color: heads in
 * bold. */
snap_status findings_text(const verify_findings *f, bool color, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Appends {"checks", "findings": [{"kind", "where", "what"}]}. */
snap_status findings_json(const verify_findings *f, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
