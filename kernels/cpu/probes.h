/* probes.h - the ceilings of this machine (ceilings.h), measured over all threads of a pool. */
#ifndef SNAPMLA_KERNELS_CPU_PROBES_H
#define SNAPMLA_KERNELS_CPU_PROBES_H

#include "base/parallel.h"
#include "kernels/ceilings.h"

snap_status cpu_probe(mla_ceilings *out, parallel *pool, double seconds,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
