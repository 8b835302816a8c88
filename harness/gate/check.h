/* check.h - `gate check`: two result files, compared in speed, numerical error and quality. */
#ifndef SNAPMLA_HARNESS_GATE_CHECK_H
#define SNAPMLA_HARNESS_GATE_CHECK_H

#include "harness/gate/decide.h"
#include "harness/record/results.h"

typedef struct {
    const char *baseline, *current; /* result files or runs' folders; quality needs folders */
    const char *history; /* a file of past times, to which the current run is added; NULL = none */
    gate_limits limits;
    double error_growth;            /* of a numerical error, as a share, that counts as none */
    bool allow_shared, any_machine; /* as in files.h */
    uint64_t seed;
} gate_check_options;

/* Appends rows for `verdicts`. SNAP_E_USAGE where a file is not named, or where the two have
 * nothing to compare; what reading files gives. */
snap_status gate_check(const gate_check_options *o, js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
