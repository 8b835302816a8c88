/* info.h - what this build and this machine can do, or what one backend can do, as a JSON document.
 * `snapmla info` prints the document as text, or with --json as JSON. */
#ifndef SNAPMLA_HARNESS_RECORD_INFO_H
#define SNAPMLA_HARNESS_RECORD_INFO_H

#include "base/json.h"
#include "harness/measure/device.h"

/* Makes {"program", "build", "host", "cpu", "libc", "threads", "backends": [{"name", "present",
 * "reason", ...}], "code_judge", "configs": [{"name", "path", "why"}]}. *out must be NULL before
 * the call. Afterwards the caller owns it, even after an error. SNAP_E_NOMEM. */
snap_status machine_info(js **out, snap_err *err) SNAP_CHECK_RESULT;

/* The shipped configurations in the order of their names: [{"name", "path", "why"}]. The caller
 * owns the array. If memory is exhausted, entries are missing and a fault is noted (fault.h). NULL:
 * there is no memory for the array. */
js *shipped_configs(void);

/* Opens a backend, lists its properties and closes it. Errors: those of device_open(); SNAP_E_IO if
 * the file of a plugin cannot be hashed; SNAP_E_NOMEM. *out must be NULL before the call.
 * Afterwards the caller owns it, even after an error. */
snap_status backend_info(const device_options *device, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
