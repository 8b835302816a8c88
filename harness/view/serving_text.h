/* serving_text.h - the rows of servers under load as tables for a terminal. */
#ifndef SNAPMLA_HARNESS_VIEW_SERVING_TEXT_H
#define SNAPMLA_HARNESS_VIEW_SERVING_TEXT_H

#include "harness/record/results.h"

/* Appends the tables of load points, parts, latencies, differences and knees, each with its title,
 * if they have rows. @color: heads in bold. SNAP_E_NOMEM. */
snap_status serving_view(results *r, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
