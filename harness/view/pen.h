/* pen.h - fills a table from left to right and from top to bottom. */
#ifndef SNAPMLA_HARNESS_VIEW_PEN_H
#define SNAPMLA_HARNESS_VIEW_PEN_H

#include "harness/view/format.h"
#include "harness/view/tables.h"

typedef struct {
    table *t;
    arena *mem;
    bool failed; /* out of memory */
} pen;

/* The columns that pen_shape() fills. */
#define PEN_SHAPE_COLUMNS                                                                          \
    {"heads", "", TABLE_NUMBER, true}, {"s_q", "", TABLE_NUMBER, true},                            \
        {"batch", "", TABLE_NUMBER, true}, {                                                       \
        "context", "", TABLE_NUMBER, true                                                          \
    }

/* Removes the last column, for instance the one that names the file, unless it is @needed. Call it
 * before pen_start(). */
void pen_drop_last_unless(table *t, bool needed);

/* Removes the first column with this head, unless it is @needed. Call it before pen_start(). */
void pen_drop_unless(table *t, const char *head, bool needed);

/* Adds to the table's note the unit in which the kernels sm90_fp8 and page_units_fp8 round the
 * probabilities, for each of them that a measured row has. Returns false when out of memory. */
bool pen_note_units(table *t, const report_model *m, arena *mem);

/* Counts the columns and allocates @rows rows of cells. Cells are copied into the arena. Returns
 * false when out of memory. */
bool pen_start(table *t, arena *mem, size_t rows);

void pen_put(pen *p, const char *text);
void pen_text(pen *p, const char *text); /* "" becomes FORMAT_NONE */
void pen_printf(pen *p, const char *fmt, ...) SNAP_PRINTF(2, 3);
void pen_fixed(pen *p, double x, int decimals);
void pen_digits(pen *p, double x); /* three digits or more: "153000", "0.0012"; "–" for NAN */
void pen_signed(pen *p, double x, int decimals);
void pen_range(pen *p, const double x[2], int decimals);
void pen_interval(pen *p, const double x[2], int decimals);
void pen_science(pen *p, double x);
void pen_context(pen *p, int64_t tokens);
void pen_times(pen *p, double ratio); /* "1.25×", "0.0012×" */
void pen_shape(pen *p, const report_cell *c);
void pen_p(pen *p, double probability);

/* Writes the name of a file, as the user gave it. In a comparison, it writes the name of the file's
 * device instead, and changes the head of the column from "file" to "device". */
void pen_file(pen *p, const report_model *m, int file);

/* Writes the task and the mark of its data, if it has one: "ifeval (data UNVERIFIED)". */
void pen_task(pen *p, const eval_record *e);

#endif
