/* lines.h - what figures of lines have in common: the frame, a logarithmic axis of errors, names at
 * the lines' ends, moved apart. BF16 and SnapMLA stand out; the formats they are compared with
 * recede. */
#ifndef SNAPMLA_HARNESS_VIEW_LINES_H
#define SNAPMLA_HARNESS_VIEW_LINES_H

#include <stddef.h>

#include "harness/view/svg.h"

/* Pixels: of the picture, and of the plot within. */
enum {
    LINES_WIDTH = 940,
    LINES_HEIGHT = 400,
    LINES_LEFT = 66,
    LINES_RIGHT = 720,
    LINES_TOP = 44,
    LINES_BOTTOM = 340,
    LINES_MAX = 24
};

typedef struct {
    const char *config, *source; /* source "": there is but one */
    double last;                 /* error at the line's end */
    double label;                /* y of the name */
} lines_series;

/* "bf", "f8" or "other". */
const char *lines_class(const char *config);

/* Sets the names' places; sorts the series by them. */
void lines_place(lines_series *s, size_t n, const svg_scale *y);

/* Opens the picture and draws title, the axis of errors and the axes' names. */
void lines_open(buf *out, const svg_head *head, const svg_scale *y, const char *across);

/* The name of a line that ends at @x, with its last error. */
void lines_name(buf *out, const lines_series *s, double x, const svg_scale *y);

#endif
