/* files.h - `gate check`: finds what became slower or less accurate between two result files.
 *
 * Speed. The samples of a cell are split into up to 25 consecutive stretches, and each stretch is
 * reduced to its median: neighbouring samples resemble each other and would count several times.
 * The medians of both files are compared with Wilcoxon's rank-sum test and the rules of decide.h,
 * once. The two runs were not timed alternately, so their difference includes how the machine
 * changes from day to day. With a history of the cell, its threshold is at least the difference
 * that two runs of the same code exceed once in twenty times.
 *
 * If other work used the processors in one of the runs (flag "shared"), the lower quartiles of the
 * stretches are compared, and the threshold is at least the disturbance: the largest range of the
 * stretches of one disturbed cell in one run. A cell that is shown to be slower by more is
 * "regressed", or "noise" if both runs have the same code. A cell whose change is shown to lie
 * below the threshold is "ok", if the threshold is at most 28 %. Every other disturbed cell is
 * "invalid".
 *
 * Two rows of a cell are not comparable if the input or the state of the cache differ. Rows of
 * different modes belong to different cells. */
#ifndef SNAPMLA_HARNESS_GATE_FILES_H
#define SNAPMLA_HARNESS_GATE_FILES_H

#include "harness/gate/decide.h"
#include "harness/gate/history.h"

typedef struct {
    gate_limits limits;
    double error_growth; /* relative growth of a numerical error that is still accepted */
    bool allow_shared;   /* judge cells as if no other work had used the processors */
    bool any_machine;
    const gate_history *history; /* NULL = none; borrowed */
} gate_file_options;

/* Appends rows of kind speed, one of kind geomean if times were compared, and one of kind
 * environment if the machines differ and @opt->any_machine is false. SNAP_E_NOMEM. */
snap_status gate_check_speed(const results *baseline, const results *current,
                             const gate_file_options *opt, js *rows,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Appends a row of kind fidelity for each case that both files have. SNAP_E_NOMEM. */
snap_status gate_check_fidelity(const results *baseline, const results *current,
                                const gate_file_options *opt, js *rows,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
