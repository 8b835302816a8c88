/* verdicts.h - the rows of a result file's `verdicts` section that a gate writes, and what they
 * come to.
 *
 *   verdict        of a row                                           exit code of the gate
 *   ok             not slower (worse) than the threshold              0
 *   noise          slower, but the same machine code: reported only   0
 *   inconclusive   neither shown                                      4
 *   missing        the baseline has it, the current one does not      4
 *   regressed      kind speed                                         1
 *                  kinds quality and fidelity                         5
 *   invalid        throttled, or not comparable                       6
 *   wrong          the output failed its check                        7
 *
 * If several hold: 7, 6, 5, 1, 4 in that order. */
#ifndef SNAPMLA_HARNESS_GATE_VERDICTS_H
#define SNAPMLA_HARNESS_GATE_VERDICTS_H

#include "base/json.h"
#include "harness/gate/cells.h"
#include "harness/record/verdict.h"

/* A row with its kind, name, verdict, reason (NULL = none) and parts; all else does not exist.
 * Strings are borrowed. */
verdict_record verdict_start(const char *kind, const char *name, const char *verdict,
                             const char *reason, unsigned parts);

/* The JSON of a row without parts; the caller owns it. NULL: out of memory. */
js *verdict_new(const char *kind, const char *name, const char *verdict, const char *reason);

/* The row of a timed cell: @c its tests, @est its estimate. */
js *verdict_of_cell(const gate_timed *t, const gate_cell *c, const rank_estimate *est,
                    const gate_side arms[2]);

/* The row of the geometric mean over @n cells; NULL when out of memory. */
js *verdict_of_mean(const rank_estimate *cells, size_t n);

/* The rows as structs; none, and *failed is set, when out of memory. The lists lie in @mem, strings
 * are borrowed from @rows. */
verdict_list verdict_read(const js *rows, arena *mem, bool *failed);

/* How many rows have that verdict (and, unless NULL, that kind). */
size_t verdict_list_count(const verdict_list *all, const char *kind, const char *verdict);
size_t verdict_count(const js *rows, const char *kind, const char *verdict);

/* SNAP_OK, or the status of the table above with a message that counts and quotes the first. */
snap_status verdict_status(const js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Does a row stop a merge? */
bool verdict_is_bad(const verdict_record *v);

#endif
