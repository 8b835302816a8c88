/* cpu_probes.h - the ceilings of this machine (ceilings.h), measured over all threads of a pool. */
#ifndef SNAPMLA_KERNELS_CPU_CPU_PROBES_H
#define SNAPMLA_KERNELS_CPU_CPU_PROBES_H

#include "base/parallel.h"
#include "kernels/ceilings.h"

typedef struct cpu_probe cpu_probe;

/* Allocates the memory that is read and sets the windows' length. SNAP_E_NOMEM. */
snap_status cpu_probe_create(cpu_probe **out, parallel *pool, snap_err *err) SNAP_CHECK_RESULT;
void cpu_probe_free(cpu_probe *p); /* NULL is allowed */

/* All loops in turn for @seconds a probe; the winners are what paired_probes use. */
void cpu_probe_measure(cpu_probe *p, mla_ceilings *out, parallel *pool, double seconds);

/* One window of each winner. */
void cpu_probe_probe_once(cpu_probe *p, mla_probe_rates *out, parallel *pool);

#endif
