/* cpu_probes.h - measures the ceilings and the momentary rates of this machine (ceilings.h) over
 * all threads of a pool. */
#ifndef SNAPMLA_KERNELS_CPU_CPU_PROBES_H
#define SNAPMLA_KERNELS_CPU_CPU_PROBES_H

#include "base/parallel.h"
#include "kernels/ceilings.h"

typedef struct cpu_probe cpu_probe;

/* Allocates the memory to be read, and finds how much work each multiply loop needs for a window.
 * SNAP_E_NOMEM. */
snap_status cpu_probe_create(cpu_probe **out, parallel *pool, snap_err *err) SNAP_CHECK_RESULT;
void cpu_probe_free(cpu_probe *p); /* NULL is allowed */

/* Runs all loops in turn, for @seconds per probe. cpu_probe_probe_once() then uses the fastest
 * ones. */
void cpu_probe_measure(cpu_probe *p, mla_ceilings *out, parallel *pool, double seconds);

/* Runs one window of the fastest read loop and of the fastest multiply loop. */
void cpu_probe_probe_once(cpu_probe *p, mla_probe_rates *out, parallel *pool);

#endif
