/* svg.h - the few shapes that our figures need, appended as text; scales and their ticks.
 *
 * Colours and fonts are classes (figure.css), so that one figure serves light, dark and print.
 * Coordinates are pixels of the view box. Text is escaped here. */
#ifndef SNAPMLA_HARNESS_VIEW_SVG_H
#define SNAPMLA_HARNESS_VIEW_SVG_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct {
    const char *id;          /* unique in its page */
    const char *title;       /* what it shows: its name for a screen reader */
    const char *description; /* what can be read off it, in words */
    double width, height;
    bool alone; /* a file of its own: brings style and background along */
} svg_head;

void svg_open(buf *b, const svg_head *h);
void svg_close(buf *b);

/* @cls: classes of figure.css. @tip: shown on hover, NULL = none. */
void svg_line(buf *b, const char *cls, double x1, double y1, double x2, double y2);
void svg_rect(buf *b, const char *cls, double x, double y, double w, double h, const char *tip);
void svg_circle(buf *b, const char *cls, double x, double y, double r, const char *tip);
void svg_diamond(buf *b, const char *cls, double x, double y, double r, const char *tip);
void svg_text(buf *b, const char *cls, double x, double y, const char *text);
/* At most @columns characters of it, "…" and the whole as a tip when that cuts. */
void svg_text_cut(buf *b, const char *cls, double x, double y, const char *text, size_t columns);
void svg_text_up(buf *b, const char *cls, double x, double y, const char *text); /* turned left */

/* From a domain to pixels; linear or logarithmic (domain > 0). */
typedef struct {
    double lo, hi; /* domain, lo < hi */
    double from, to;
    bool log;
} svg_scale;

/* Scales over a domain cut to what can be drawn: |x| up to 1e200, a logarithm from 1e-200 on. */
svg_scale svg_linear(double lo, double hi, double from, double to);
svg_scale svg_log(double lo, double hi, double from, double to);

/* Always finite, whatever a file's numbers are. */
double svg_at(const svg_scale *s, double x);

/* Where to draw lines, ascending, within the domain; returns how many. Linear: multiples of 1, 2 or
 * 5 times a power of ten, about @n. Logarithmic: powers of ten, with 2 and 5 times them where there
 * is room; @n is not used. */
enum { SVG_TICKS_MAX = 32 };
size_t svg_ticks(const svg_scale *s, int n, double out[SVG_TICKS_MAX]);

#endif
