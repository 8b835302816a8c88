/* compare.h - the same cells on several machines, side by side.
 *
 * Rows are one cell if arm, scope and shape agree. A row is compared with the first file that has its cell
 * under the same conditions (input, state of the cache, mode); where only other conditions are there, the
 * row says which differ and has no ratio. Each percentage is of the device's own measured roofline. */
#ifndef SNAPMLA_HARNESS_VIEW_COMPARE_H
#define SNAPMLA_HARNESS_VIEW_COMPARE_H

#include "harness/view/model.h"

typedef struct compared {
    const report_cell *cell;
    const report_cell *first; /* what it is compared with; itself in the first file that has it */
    double ratio;        /* times as fast as the first; NAN for the first, and where @differs */
    double tok_usd;      /* tokens a dollar; NAN without a price */
    const char *differs; /* "input, mode"; "" = nothing */
} compared;

/* All rows whose cell is in two files or more, by cell, then by file; in the model's own arena. NULL: no
 * memory. */
const compared *compare_cells(report_model *m, size_t *n);

#endif
