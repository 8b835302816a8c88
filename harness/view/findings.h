/* findings.h - the output of `snapmla verify-run`, as text and as JSON. */
#ifndef SNAPMLA_HARNESS_VIEW_FINDINGS_H
#define SNAPMLA_HARNESS_VIEW_FINDINGS_H

#include "harness/audit/audit.h"

/* Appends a table with one row for each finding that @f keeps, if there are any, and the number of
 * checked statements. @color: heads in bold. */
snap_status findings_text(const verify_findings *f, bool color, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Appends {"checks", "findings": [{"kind", "where", "what"}]}. */
snap_status findings_json(const verify_findings *f, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
