/* paper_pen.h - cells that several tables of the paper have in common. */
#ifndef SNAPMLA_HARNESS_VIEW_PAPER_PEN_H
#define SNAPMLA_HARNESS_VIEW_PAPER_PEN_H

#include "harness/view/paper.h"
#include "harness/view/pen.h"

#define PAPER_MEASURED  "measured"
#define PAPER_REPORTED  "reported"
#define PAPER_PREDICTED "predicted"

/* The end of a table's note. */
#define PAPER_REPORTED_NOTE                                                                        \
    " Rows marked 'reported' are figures that the source states for its own machines and models. " \
    "They are shown for comparison and are not ranked with measured rows."

/* The number of reported figures about @about. */
size_t paper_count_quotes(const report_model *m, const char *about);

/* Writes @n empty cells. */
void paper_blank(pen *p, int n);

/* The name of a file without its folders and without ".json", in the arena. NULL when out of
 * memory. */
char *paper_name(arena *mem, const char *path);
/* Writes that name. */
void paper_put_name(pen *p, const char *path);

/* Writes tokens/s, with the interval of a prediction in parentheses. @lo, @hi: NAN without one. */
void paper_put_speed(pen *p, double tokens_s, double lo, double hi);

/* Writes a ratio of tokens/s, with the interval of a prediction in parentheses. */
void paper_put_ratio(pen *p, double ratio, double lo, double hi);

/* Writes the name of the file of a row, or "this run" if there is only one file. */
void paper_put_run(pen *p, const report_model *m, int file);

#endif
