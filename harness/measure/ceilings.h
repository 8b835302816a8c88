/* ceilings.h - the measured ceilings of a device, as a result file stores them. Each probe is
 * repeated. At most 64 repetitions are kept, among them the best one, which is the ceiling. */
#ifndef SNAPMLA_HARNESS_MEASURE_CEILINGS_H
#define SNAPMLA_HARNESS_MEASURE_CEILINGS_H

#include "base/json.h"
#include "kernels/ceilings.h"

enum { CEILINGS_KINDS = 3, CEILINGS_MAX_ROUNDS = 64 };

typedef struct {
    mla_ceilings best;                                   /* zero rates before the first round */
    double samples[CEILINGS_KINDS][CEILINGS_MAX_ROUNDS]; /* read, bf16, fp8; B/s and FLOP/s */
    int rounds;
} ceilings;

/* Runs each probe @rounds times for @seconds and raises `best`. Of the rounds after the first
 * CEILINGS_MAX_ROUNDS, only a rate that raises `best` is kept as a sample: in the place of the last
 * one. Errors of mla_ceilings_measure(). */
snap_status ceilings_measure(ceilings *c, mla_backend *be, int rounds, double seconds,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Adds the best rates of short probe windows as one more repetition. Rates of 0 mean that there
 * were no such windows: nothing is added. */
void ceilings_add(ceilings *c, mla_probe_rates probed);

/* The `ceilings` rows of a result file, an array the caller owns; NULL when out of memory. */
js *ceilings_json(const ceilings *c);

/* Rows of the same form for the results of mla_limits_measure(); owned by the caller. NULL when out
 * of memory. */
js *ceilings_limits_json(const mla_limits *limits);

/* Reads such rows. SNAP_E_INPUT, naming @where, if one of the three probes is missing or not
 * positive. Other rows are ignored. */
snap_status ceilings_parse(ceilings *c, const js *rows, const char *where,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
