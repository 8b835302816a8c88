/* verdicts.h - the rows that a gate writes to the section `verdicts` of a result file, and the
 * gate's exit code.
 *
 *   verdict        meaning                                                 exit code
 *   ok             not slower (or worse) by more than the threshold        0
 *   noise          slower, but with the same machine code: only reported   0
 *   inconclusive   neither was shown                                       4
 *   missing        an arm or the current run lacks the cell, task or value 4
 *   regressed      slower: a row of kind speed or serving                  1
 *                  worse: a row of kind quality, forecast or fidelity      5
 *   invalid        throttled, disturbed or not comparable; a self-test     6
 *                  with too many false alarms
 *   wrong          the output failed its check                             7
 *
 * With several verdicts the exit code is the first of 7, 5, 1, 6, 4, because a cell that cannot be
 * judged does not excuse one that regressed. An invalid row of kind environment concerns all cells
 * and comes before 5. Rows that decide nothing have no verdict: the geometric mean, the p99 of too
 * few steps, the single cases of a self-test, and the changes in a history. In rows of the mean and
 * p99 of a cell, "ok" means that no slow-down was shown. The column `visible` (`visible_pp` for
 * p99) has the smallest slow-down that would have been shown. */
#ifndef SNAPMLA_HARNESS_GATE_VERDICTS_H
#define SNAPMLA_HARNESS_GATE_VERDICTS_H

#include "base/json.h"
#include "harness/gate/cells.h"
#include "harness/record/verdict.h"

/* A row with these values and parts (@verdict, @reason: NULL = none). Every other value is missing.
 * The strings are borrowed. */
verdict_record verdict_start(const char *kind, const char *name, const char *verdict,
                             const char *reason, unsigned parts);

/* A row without parts as JSON, owned by the caller. NULL: out of memory. */
js *verdict_new(const char *kind, const char *name, const char *verdict, const char *reason);

/* Appends the rows of a timed cell: one for each statistic, or one without times if the cell has
 * none. @c: its tests. Returns false when out of memory. */
bool verdicts_of_cell(const gate_timed *t, const gate_cell *c,
                      const gate_estimate est[GATE_STATISTICS], const gate_side arms[2], js *rows);

/* The row of the geometric mean over @n cells. It has no verdict, because a mean can hide a cell
 * that regressed. NULL: out of memory. */
js *verdict_of_mean(const rank_estimate *cells, size_t n);

/* Reads rows as structs. @mem owns the lists; the texts are borrowed from @rows. When out of memory
 * the list is empty and *failed is set. */
verdict_list verdict_read(const js *rows, arena *mem, bool *failed);

/* How many rows have the verdict @verdict ("": none) and the kind @kind (NULL: any kind). */
size_t verdict_list_count(const verdict_list *all, const char *kind, const char *verdict);
size_t verdict_count(const js *rows, const char *kind, const char *verdict);

/* SNAP_OK if no row is bad. Otherwise the status whose exit code the table at the top of this file
 * gives for the bad verdict that comes first in the order stated there. The message has the number
 * of rows with that verdict (of one kind, if the order depends on the kind) and names the first.
 * SNAP_E_NOMEM. */
snap_status verdict_status(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Whether the row blocks a merge: it has a verdict other than "ok" and "noise". */
bool verdict_is_bad(const verdict_record *v);

#endif
