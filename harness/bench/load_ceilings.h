/* load_ceilings.h - reads the ceilings of a device from an earlier result file. */
#ifndef SNAPMLA_HARNESS_BENCH_LOAD_CEILINGS_H
#define SNAPMLA_HARNESS_BENCH_LOAD_CEILINGS_H

#include "harness/measure/ceilings.h"

/* @from: a result file or a run's folder. SNAP_E_ENV: the name of its device is not that of @be.
 * Also the errors of reading the file and of ceilings_parse(). */
snap_status load_ceilings(ceilings *c, const mla_backend *be, const char *from,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
