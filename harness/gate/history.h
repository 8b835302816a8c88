/* history.h - the times of past runs, a line a run, and what they tell: when a cell changed, and
 * how much it wavers from run to run.
 *
 *   {"started","commit","machine","cells":{"fp8 kernel H16 s1 b8 c8192, normal, rotate":median_ns,...}}
 *
 * Append-only JSON lines. Only runs of one machine are a series. */
#ifndef SNAPMLA_HARNESS_GATE_HISTORY_H
#define SNAPMLA_HARNESS_GATE_HISTORY_H

#include "harness/record/run.h"

typedef struct gate_history gate_history;

/* Which machine: the hash of the host's name and the device; a name of its own for each pair. */
void history_machine(const results *r, char out[200]);
void history_machine_of(const origin_record *o, char out[200]);

/* What a bench row is called in a history; names differ where rows can't be compared. */
void history_cell_name(const cell_record *c, char out[160]);

/* Adds a run's passed rows. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status history_append(const char *path, const results *r, snap_err *err) SNAP_CHECK_RESULT;

/* Reads the runs of @machine (NULL: of the last line's machine). SNAP_E_INPUT with file and line.
 * Caller owns *out. A file that is not there is an empty history if @may_lack. */
snap_status history_load(gate_history **out, const char *path, const char *machine, bool may_lack,
                         snap_err *err) SNAP_CHECK_RESULT;
void history_free(gate_history *h); /* NULL is allowed */
size_t history_runs(const gate_history *h);

/* Standard deviation of the logarithm of a cell's times since its last change; NAN below 5 runs. */
double history_spread(const gate_history *h, const char *cell);

/* Rows of kind "change" for `verdicts`, a change point each: name, at (run, from 1), started,
 * commit, ratio, baseline_ns, current_ns, p. Caller owns the array; SNAP_E_NOMEM. */
snap_status history_changes(const gate_history *h, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
