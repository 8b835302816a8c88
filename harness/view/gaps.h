/* gaps.h - the cells that one file of a comparison lacks and another one has. */
#ifndef SNAPMLA_HARNESS_VIEW_GAPS_H
#define SNAPMLA_HARNESS_VIEW_GAPS_H

#include "base/buf.h"
#include "harness/view/model.h"

/* Cells that one command measures: they share the scope, the widths, how they are timed, and the
 * arms or the file that names them. */
typedef struct {
    int file;                 /* the file that lacks them */
    const report_cell *first; /* one of them */
    size_t cells;
} gap;

/* Whether only a plugin or Python file has the arm of a cell, or only a CUDA device. */
bool gap_needs_file(const report_cell *c);
bool gap_needs_cuda(const report_cell *c);

bool gap_has(const report_model *m, const gap *g, const report_cell *c);

/* Appends the command that measures the cells on the device of the file that lacks them, or
 * "none: " and the reason. */
void gap_command(const report_model *m, const gap *g, buf *out);

#endif
