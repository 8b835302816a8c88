/* files.h - `gate check`: what became slower or worse between two result files.
 *
 * Speed: the samples of a cell in both files, as medians of up to 25 stretches each, so that neighbours that
 * look alike count once; Wilcoxon's rank sum and the rules of decide.h, one look. Two runs were not taken
 * in turns: what a machine does differently from day to day is in their difference. With a history, each
 * cell's threshold is at least what two runs differ by once in twenty times without a cause.
 *
 * Rows are not comparable where the machine, the input, the cache's state or the mode differ. */
#ifndef SNAPMLA_HARNESS_GATE_FILES_H
#define SNAPMLA_HARNESS_GATE_FILES_H

#include "harness/gate/decide.h"
#include "harness/gate/history.h"

typedef struct {
    gate_limits limits;
    double error_growth; /* of a numerical error, as a share, that counts as none */
    bool allow_shared;   /* judge cells whose processors others used */
    bool any_machine;
    const gate_history *history; /* NULL = none; borrowed */
} gate_file_options;

/* Rows of kind speed, appended, and one of kind environment where the machines differ. SNAP_E_NOMEM. */
snap_status gate_check_speed(const results *baseline, const results *current,
                             const gate_file_options *opt, js *rows,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Rows of kind fidelity: errors that grew, for the rows that both files have. SNAP_E_NOMEM. */
snap_status gate_check_fidelity(const results *baseline, const results *current,
                                const gate_file_options *opt, js *rows,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
