/* lines.h - the common parts of line figures: the frame, a logarithmic error axis, and names at the
 * ends of the lines, placed so that they do not overlap. BF16 and SnapMLA have strong colours; the
 * other formats are grey. */
#ifndef SNAPMLA_HARNESS_VIEW_LINES_H
#define SNAPMLA_HARNESS_VIEW_LINES_H

#include <stddef.h>

#include "harness/view/svg.h"

/* Size of the picture and edges of the plot in it, in pixels; most lines of one figure. */
enum {
    LINES_WIDTH = 940,
    LINES_HEIGHT = 400,
    LINES_LEFT = 66,
    LINES_RIGHT = 720,
    LINES_TOP = 44,
    LINES_BOTTOM = 340,
    LINES_MAX = 24 /* lines, not pixels */
};

typedef struct {
    /* The name of the configuration, and "reference" or the backend that computed it. The source is
     * "" in the figure of layers. */
    const char *config, *source;
    double last;  /* error at the line's end */
    double label; /* y coordinate of the name */
} lines_series;

/* The CSS class of a configuration: "bf", "f8" or "other". */
const char *lines_class(const char *config);

/* Computes the places of the names and sorts the series by them. */
void lines_place(lines_series *s, size_t n, const svg_scale *y);

/* Opens the picture. Draws the title, the error axis and the names of the axes. */
void lines_open(buf *out, const svg_head *head, const svg_scale *y, const char *across);

/* Draws the name of a line that ends at @x, with the last error. */
void lines_name(buf *out, const lines_series *s, double x, const svg_scale *y);

#endif
