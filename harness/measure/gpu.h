/* gpu.h - the state of an NVIDIA device around a measurement: clock, power, what holds the clock
 * down.
 *
 * Through the driver's management library (NVML), loaded when it is asked for: no toolkit is needed
 * to build, and without a driver there is nothing to tell. What a device does not tell is unknown,
 * never an error. */
#ifndef SNAPMLA_HARNESS_MEASURE_GPU_H
#define SNAPMLA_HARNESS_MEASURE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef struct gpu gpu;

/* The device at that address ("0000:1b:00.0"). NULL where there is no such device or no NVML. */
gpu *gpu_open(const char *pci);
void gpu_close(gpu *g); /* NULL is allowed */

typedef struct {
    double sm_mhz;    /* of the multiprocessors; NAN = unknown, as in all of these */
    double power_w;   /* average over some tens of milliseconds */
    double energy_j;  /* since the driver was loaded */
    uint64_t reasons; /* bits of NVML's clock event reasons */
} gpu_state;

gpu_state gpu_now(const gpu *g); /* of NULL: all unknown */

/* Does something hold the clock down: heat or the board (slowed), or the power limit (capped)? Read
 * while the device works or right after. */
bool gpu_is_slowed(uint64_t reasons);
bool gpu_is_capped(uint64_t reasons);

/* What a result keeps of the device: name, hash of its UUID, driver, highest clocks, power limit,
 * ECC. Caller owns it; null for NULL. */
js *gpu_json(const gpu *g);

#endif
