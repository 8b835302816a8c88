/* svg.h - appends the few SVG shapes that the figures need as text; scales and their ticks.
 *
 * Colours and fonts are CSS classes (figure.css), so that one figure works in light mode, in dark
 * mode and in print. Coordinates are pixels of the view box. All text is escaped. */
#ifndef SNAPMLA_HARNESS_VIEW_SVG_H
#define SNAPMLA_HARNESS_VIEW_SVG_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct {
    const char *id;          /* unique in the page */
    const char *title;       /* what the figure shows; its name for a screen reader */
    const char *description; /* what a reader can see in it, in words */
    double width, height;
    bool alone; /* a separate file: includes style and background */
} svg_head;

void svg_open(buf *b, const svg_head *h);
void svg_close(buf *b);

/* @cls: classes of figure.css. @tip: shown on hover, NULL = none. */
void svg_line(buf *b, const char *cls, double x1, double y1, double x2, double y2);
void svg_rect(buf *b, const char *cls, double x, double y, double w, double h, const char *tip);
void svg_circle(buf *b, const char *cls, double x, double y, double r, const char *tip);
void svg_diamond(buf *b, const char *cls, double x, double y, double r, const char *tip);
void svg_text(buf *b, const char *cls, double x, double y, const char *text);
/* Writes at most @columns characters. A longer text ends with "…" and has the full text as a
 * tip. */
void svg_text_cut(buf *b, const char *cls, double x, double y, const char *text, size_t columns);
void svg_text_up(buf *b, const char *cls, double x, double y, const char *text); /* rotated by 90
                                                                                    degrees to the
                                                                                    left */

/* A map from a domain to pixels; linear or logarithmic (domain > 0). */
typedef struct {
    double lo, hi; /* domain, lo < hi */
    double from, to;
    bool log;
} svg_scale;

/* Make a scale. The domain is limited to what can be drawn: |x| up to 1e200, and for a logarithm
 * from 1e-200 on. */
svg_scale svg_linear(double lo, double hi, double from, double to);
svg_scale svg_log(double lo, double hi, double from, double to);

/* The pixel of @x. It is always finite, whatever the numbers of a file are. */
double svg_at(const svg_scale *s, double x);

/* Positions of grid lines, ascending, within the domain; returns their number. On a linear scale
 * they are about @n multiples of 1, 2 or 5 times a power of ten. On a logarithmic scale they are
 * powers of ten, not all of them if there are many, and 2 and 5 times them if there is room; @n is
 * not used. */
enum { SVG_TICKS_MAX = 32 };
size_t svg_ticks(const svg_scale *s, int n, double out[SVG_TICKS_MAX]);

/* The smallest number of decimals, 0 to 4, with which each of the numbers is written exactly. */
int svg_decimals(const double *ticks, size_t n);

#endif
