/* gate_selftest.h - the result of a gate's self-test as text for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_GATE_SELFTEST_H
#define SNAPMLA_HARNESS_VIEW_GATE_SELFTEST_H

#include "base/buf.h"
#include "harness/gate/selftest.h"

/* Appends a table with one row for each case, then a summary. @color: heads in bold. */
snap_status selftest_text(const selftest *s, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
