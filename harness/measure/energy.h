/* energy.h - measures the energy that a device uses within a period.
 *
 * The sources, in this order:
 *   NVIDIA device     NVML's energy counter (gpu.h)
 *   other PCI device  the energy counter of its hwmon directory in sysfs (Intel's drivers i915 and
 *                     xe), else its power sensor (amdgpu), which is integrated over time
 *   the processors    RAPL: all packages and their memory, as powercap in sysfs; else the sockets
 *                     of a hwmon directory (amd_energy)
 * RAPL and hwmon count everything that the processors do, other programs included.
 *
 * A value is measured or missing, and never estimated. If one sensor of several cannot be read, the
 * energy is missing, because the others are only a part of it. energy_missing() says why. */
#ifndef SNAPMLA_HARNESS_MEASURE_ENERGY_H
#define SNAPMLA_HARNESS_MEASURE_ENERGY_H

#include <stdint.h>

#include "base/err.h"
#include "harness/measure/gpu.h"
#include "kernels/mla.h"

typedef struct energy_meter energy_meter;

/**
 * energy_open - find the sensors of a backend's device
 *
 * @sysfs:   where sysfs is mounted: "/sys"
 * @backend: gives the PCI address, and whether the backend runs on the processors; used only in
 *           this call
 * @device:  NVML's device; NULL = none. It must outlive the meter.
 *
 * A device without sensors is no error. SNAP_E_NOMEM.
 */
snap_status energy_open(energy_meter **out, const char *sysfs, const mla_backend_info *backend,
                        const gpu *device, snap_err *err) SNAP_CHECK_RESULT;
void energy_close(energy_meter *m); /* NULL is allowed */

/* Begins to count at the time @now_ns (clock_now_ns()). energy_read() returns the joules used
 * since, or NAN if the energy is missing. It is missing, too, if no counter has moved. Once it is
 * missing, it stays so until energy_start().
 *
 * Call energy_keep() at least once a second in between: power sensors are integrated between the
 * readings, and a counter must not wrap around twice. It reads sysfs four times a second at most,
 * and never calls NVML, so that the device does not wait. */
void energy_start(energy_meter *m, int64_t now_ns);
void energy_keep(energy_meter *m, int64_t now_ns);
double energy_read(energy_meter *m, int64_t now_ns);

/* The reasons for a reduced clock that NVML gave in energy_start() and energy_read(), since the
 * last call (gpu_state.reasons). 0 without NVML. */
uint64_t energy_take_reasons(energy_meter *m);

/* The sensors, such as "RAPL package-0, dram"; NULL if there are none. The meter owns the text. */
const char *energy_source(const energy_meter *m);

/* Why the last missing value is missing: for example no sensor, a sensor that this user may not
 * read, or a counter that ran backwards. NULL if there is a sensor and no value was missing. The
 * meter owns the text. */
const char *energy_missing(const energy_meter *m);

#endif
