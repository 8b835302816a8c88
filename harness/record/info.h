/* info.h - what this build and this machine can do, as a JSON document. `snapmla info` prints
 * it as text, or as it is with --json. */
#ifndef SNAPMLA_HARNESS_RECORD_INFO_H
#define SNAPMLA_HARNESS_RECORD_INFO_H

#include "base/json.h"
#include "harness/measure/device.h"

/* {"program", "build", "host", "cpu", "libc", "threads", "backends": [{"name", "present", "reason",
 * ...}], "code_judge", "configs": [{"name", "path", "why"}]}. The caller owns *out, also after an
 * error. */
snap_status machine_info(js **out, snap_err *err) SNAP_CHECK_RESULT;

/* Properties of one backend, which is opened for that. Errors: those of device_open(). The caller
 * owns *out, also after an error. */
snap_status backend_info(const device_options *device, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
