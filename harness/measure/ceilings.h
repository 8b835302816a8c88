/* ceilings.h - the measured ceilings of a device, as a result file stores them. Each probe is
 * repeated. The first 64 repetitions are kept, and the best repetition is the ceiling. */
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

/* Runs each probe @rounds times for @seconds and raises `best`. Rounds after the first
 * CEILINGS_MAX_ROUNDS can raise `best`, but they are not kept as samples. Errors of
 * mla_ceilings_measure(). */
snap_status ceilings_measure(ceilings *c, mla_backend *be, int rounds, double seconds,
                             snap_err *err) SNAP_CHECK_RESULT;

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
