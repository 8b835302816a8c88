/* check.h - `gate check`: compares two result files in speed, numerical error, quality and
 * serving, or judges the quality of one. */
#ifndef SNAPMLA_HARNESS_GATE_CHECK_H
#define SNAPMLA_HARNESS_GATE_CHECK_H

#include "harness/gate/decide.h"
#include "harness/record/results.h"

typedef struct {
    const char *baseline, *current; /* result files or runs' folders; the scores of two runs are
                                       compared only if both are folders. baseline NULL: only the
                                       comparisons and predictions of the current run are judged */
    const char *history; /* file with the times of past runs, to which the current run is appended;
                            NULL = none */
    gate_limits limits;
    double error_growth; /* relative growth of a numerical error that is still
                                       accepted */
    double margin; /* largest predicted loss of accuracy that is accepted, in percentage points */
    bool allow_shared, any_machine; /* see files.h */
    uint64_t seed;
} gate_check_options;

/* Appends rows for the section `verdicts`. SNAP_E_USAGE: `current` is not named, or there is
 * nothing to compare. Also SNAP_E_NOMEM and the errors of reading files and of writing the
 * history. */
snap_status gate_check(const gate_check_options *o, js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
