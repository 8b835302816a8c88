/* gpu.h - the state of an NVIDIA device around a measurement: clock, power and the reasons why the
 * clock is reduced.
 *
 * The values come from the driver's management library (NVML), which is loaded at run time. So the
 * build needs no CUDA toolkit. Without a driver, or where the device does not provide a value, the
 * value is unknown. This is never an error. */
#ifndef SNAPMLA_HARNESS_MEASURE_GPU_H
#define SNAPMLA_HARNESS_MEASURE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef struct gpu gpu;

/* Opens the device at a PCI address ("0000:1b:00.0"). NULL if there is no such device or no NVML,
 * or when out of memory. */
gpu *gpu_open(const char *pci);
void gpu_close(gpu *g); /* NULL is allowed */

typedef struct {
    double sm_mhz;    /* clock of the multiprocessors; NAN = unknown, as in the next two */
    double power_w;   /* watts; NVML's average over a time that depends on the device */
    double energy_j;  /* energy used since the driver was loaded */
    uint64_t reasons; /* bits of NVML's clock event reasons; 0 = none or unknown */
} gpu_state;

gpu_state gpu_now(const gpu *g); /* For NULL, all values are unknown, and reasons is 0. */

/* Whether something reduces the clock. gpu_is_slowed(): heat, a hardware slowdown or a power brake.
 * gpu_is_capped(): the power limit. @reasons must be read while the device works or right
 * afterwards. */
bool gpu_is_slowed(uint64_t reasons);
bool gpu_is_capped(uint64_t reasons);

/* The description of the device in a result: name, hash of its UUID, driver, maximum clocks, clock
 * now, power limit, ECC. The caller owns it. It is JSON null if @g is NULL. NULL: out of memory. */
js *gpu_json(const gpu *g);

#endif
