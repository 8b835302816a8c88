/* gaps.h - the cells that one device of a comparison lacks and another one has. */
#ifndef SNAPMLA_HARNESS_VIEW_GAPS_H
#define SNAPMLA_HARNESS_VIEW_GAPS_H

#include "base/buf.h"
#include "harness/view/model.h"

/* Cells that one command measures: they share the scope, the widths, how they are timed, and the
 * arms or the file that names them. */
typedef struct {
    int device;                /* the one that lacks them */
    const report_cell **cells; /* [n_cells] all different; each is a cell of some other device */
    size_t n_cells;
    const char *config; /* the shipped configuration that has all their shapes, which the command
                           names; NULL = the command lists the shapes */
} gap;

/**
 * gaps_find - the gaps of all devices, one for each command
 *
 * @mem: owns the gaps
 *
 * A device without rows of `bench` has no gaps. Shapes that `bench --scaled` chose for another
 * device are no gaps. A row that a time limit left out is one. Cells that no command can measure
 * are in gaps of their own. If a device lacks all shapes of a shipped configuration, or more than
 * 32 of them, one gap has these shapes and names the configuration. Its command measures the whole
 * configuration, so it may repeat shapes that the device has. The command of any other gap lists
 * the shapes. Such a list has at most GRID_LIST shapes, so longer lists are divided into several
 * gaps. Returns NULL if memory runs out.
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

/* Appends the command that measures the cells on the device that lacks them, or "none: " and the
 * reason. @number: of the command, for the name of its output file. */
void gap_command(const report_model *m, const gap *g, size_t number, buf *out);

/* Appends the command that measures numerical errors on a device. The contexts are those of the
 * first file with such errors. @number: as in gap_command(). */
void gap_fidelity_command(const report_model *m, int device, size_t number, buf *out);

/* Appends the command that measures accuracies on a device. */
void gap_accuracy_command(const report_model *m, int device, buf *out);

#endif
