/* info_text.h - the output of `snapmla info`. */
#ifndef SNAPMLA_HARNESS_VIEW_INFO_TEXT_H
#define SNAPMLA_HARNESS_VIEW_INFO_TEXT_H

#include "base/json.h"

/* Appends the document of machine_info(). @color: headings in bold. SNAP_E_NOMEM. */
snap_status machine_info_text(const js *doc, bool color, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Appends the document of backend_info(). SNAP_E_NOMEM. */
snap_status backend_info_text(const js *doc, buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
