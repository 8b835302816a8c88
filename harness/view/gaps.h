/* gaps.h - the cells that one file of a comparison lacks and another one has. */
#ifndef SNAPMLA_HARNESS_VIEW_GAPS_H
#define SNAPMLA_HARNESS_VIEW_GAPS_H

#include "base/buf.h"
#include "harness/view/model.h"

/* Cells that one command measures: they share the scope, the widths, how they are timed, and the
 * arms or the file that names them. */
typedef struct {
    int file;                  /* the file that lacks them */
    const report_cell **cells; /* [n_cells] all different; each is a cell of some other file */
    size_t n_cells;
    const char *config; /* the shipped configuration that has all their shapes, which the command
                           names; NULL = the command lists the shapes */
} gap;

/**
 * gaps_find - the gaps of all files, one for each command
 *
 * @mem: owns the gaps
 *
 * A file without rows of `bench` has no gaps. Cells that no command can measure are in gaps of
 * their own. If a file lacks all shapes of a shipped configuration, or more than 32 of them, one
 * gap has these shapes and names the configuration. Its command measures the whole configuration,
 * so it may repeat shapes that the file has. The command of any other gap lists the shapes. Such a
 * list has at most GRID_LIST shapes, so longer lists are divided into several gaps. Returns NULL if
 * memory runs out.
 */
gap *gaps_find(const report_model *m, arena *mem, size_t *n);

/* Whether only a plugin or Python file has the arm of a cell, or only a CUDA device. */
bool gap_needs_file(const report_cell *c);
bool gap_needs_cuda(const report_cell *c);

/* Whether two cells have the same heads, query tokens, batch and context. */
bool gap_same_shape(const report_cell *a, const report_cell *b);

/* Whether the cells of a gap have more than 8 shapes, and these are all combinations of some heads,
 * query tokens, batches and contexts. The command then has four lists. */
bool gap_is_grid(const gap *g);

/* Why no command measures the cells of a gap; NULL if one does. */
const char *gap_obstacle(const report_model *m, const gap *g);

/* Appends the command that measures the cells on the device of the file that lacks them, or
 * "none: " and the reason. */
void gap_command(const report_model *m, const gap *g, buf *out);

#endif
