/* serving_panel.h - what the figures of servers under load share: the arms of a file, the search
 * for rows, a panel with axes, lines. */
#ifndef SNAPMLA_HARNESS_VIEW_SERVING_PANEL_H
#define SNAPMLA_HARNESS_VIEW_SERVING_PANEL_H

#include "harness/view/model.h"
#include "harness/view/svg.h"

enum { PANEL_ARMS = 4 };

/* The names of the first PANEL_ARMS arms of one file and one kind of loop, in the order of the
 * file's rows of kind "load". Further arms are left out; the tables have them. */
typedef struct {
    const char *name[PANEL_ARMS];
    int n;
} panel_arms;

/* @loop: "open" or "closed" */
panel_arms panel_arms_of(const report_model *m, int file, const char *loop);

/* The class of an arm's marks; with @line that of its line. */
const char *panel_class(const panel_arms *a, int arm, bool line);

/* Draws a mark and the name of each arm from (x, y) to the right. */
void panel_legend(buf *out, const panel_arms *a, double x, double y);

typedef struct {
    svg_scale x, y; /* y.from is the pixel of the bottom edge */
    const char *title, *x_label;
} panel;

/* Draws grid lines, the numbers at them, the title above and the label below. */
void panel_grid(buf *out, const panel *p);

/* Draws a line through @n points. Points that are not finite are left out. */
void panel_line(buf *out, const panel *p, const char *cls, const double *x, const double *y,
                size_t n);

/* The @index-th file and kind of loop that has a row of kind @kind for which @value (may be NULL)
 * is true. Returns false if there is none. */
typedef bool (*panel_value)(const serving_record *r);
bool panel_find(const report_model *m, size_t index, const char *kind, panel_value value, int *file,
                const char **loop);

/* Whether the row has this kind and belongs to the arm of the file and loop. */
bool panel_has(const report_serving *s, const char *kind, int file, const char *loop,
               const char *arm);

#endif
