/* compare.h - compares the rows of one cell that were measured on several machines.
 *
 * Rows belong to the same cell if arm, scope, shape and the lengths of the sequences agree. A row
 * is compared with the first file that has the cell under the same conditions (input, state of the
 * cache, mode). If no earlier file has the cell under the row's conditions, the row is compared
 * with the cell's first row: it names the conditions that differ, and has no ratio. Percentages are
 * relative to each device's own measured roofline. */
#ifndef SNAPMLA_HARNESS_VIEW_COMPARE_H
#define SNAPMLA_HARNESS_VIEW_COMPARE_H

#include "harness/view/model.h"

typedef struct compared {
    const report_cell *cell;
    const report_cell *first; /* the row it is compared with; the cell's first row if no earlier
                                 file has the same conditions */
    double ratio;   /* speed relative to @first; NAN if @first is in the same file or @differs is
                       set */
    double tok_usd; /* tokens per dollar; NAN without a price */
    const char *differs; /* conditions that differ from @first: "input, mode"; "" = none */
} compared;

/* Whether a row was measured and passed. */
bool compare_usable(const report_cell *c);

/* Whether a row has a flag that puts its time in doubt. `weak_baseline` does not: it says how the
 * two arms of one device relate to each other. */
bool compare_doubtful(const report_cell *c);

/* Whether two rows belong to the same cell. */
bool compare_same_cell(const report_cell *a, const report_cell *b);

/* Whether one command measures both rows on a device. In loops the state of the cache follows from
 * the shape and from the device, so it is no condition that a command sets. */
bool compare_same_command(const report_cell *a, const report_cell *b);

#endif
