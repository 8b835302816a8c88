/* verdicts.h - the rows that a gate writes to the section `verdicts` of a result file, and the
 * gate's exit code.
 *
 *   verdict        meaning                                                 exit code
 *   ok             not slower (or worse) by more than the threshold        0
 *   noise          slower, but with the same machine code: only reported   0
 *   inconclusive   neither was shown                                       4
 *   missing        an arm or the current run lacks the cell or the task    4
 *   regressed      slower: a row of kind speed                             1
 *                  worse: a row of kind quality or fidelity                5
 *   invalid        throttled, disturbed, or not comparable                 6
 *   wrong          the output failed its check                             7
 *
 * With several verdicts the exit code is the first of 7, 6, 5, 1, 4. Rows that decide nothing, such
 * as the geometric mean, have the verdict "ok". */
#ifndef SNAPMLA_HARNESS_GATE_VERDICTS_H
#define SNAPMLA_HARNESS_GATE_VERDICTS_H

#include "base/json.h"
#include "harness/gate/cells.h"
#include "harness/record/verdict.h"

/* A row with these values and parts (@reason: NULL = none). Every other value is missing. The
 * strings are borrowed. */
verdict_record verdict_start(const char *kind, const char *name, const char *verdict,
                             const char *reason, unsigned parts);

/* A row without parts as JSON, owned by the caller. NULL: out of memory. */
js *verdict_new(const char *kind, const char *name, const char *verdict, const char *reason);

/* The row of a timed cell. @c: its tests. @est: the estimated log-ratio. NULL: out of memory. */
js *verdict_of_cell(const gate_timed *t, const gate_cell *c, const rank_estimate *est,
                    const gate_side arms[2]);

/* The row of the geometric mean over @n cells. NULL: out of memory. */
js *verdict_of_mean(const rank_estimate *cells, size_t n);

/* Reads rows as structs. @mem owns the lists; the texts are borrowed from @rows. When out of memory
 * the list is empty and *failed is set. */
verdict_list verdict_read(const js *rows, arena *mem, bool *failed);

/* How many rows have the verdict @verdict and the kind @kind (NULL: any kind). */
size_t verdict_list_count(const verdict_list *all, const char *kind, const char *verdict);
size_t verdict_count(const js *rows, const char *kind, const char *verdict);

/* SNAP_OK if no row is bad. Otherwise the status whose exit code the table at the top of this file
 * gives for the bad verdict that comes first in the order stated there. The message has the number
 * of rows with that verdict (if regressed, also of that kind) and names the first one.
 * SNAP_E_NOMEM. */
snap_status verdict_status(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Whether the row blocks a merge: its verdict is neither "ok" nor "noise". */
bool verdict_is_bad(const verdict_record *v);

#endif
