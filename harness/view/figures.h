/* figures.h - the pictures of a report. Each appends one SVG, or nothing where there is nothing to
 * show, and returns whether it did. */
#ifndef SNAPMLA_HARNESS_VIEW_FIGURES_H
#define SNAPMLA_HARNESS_VIEW_FIGURES_H

#include "harness/view/model.h"

/* The @index-th figure of a kind, from 0; false when there are no more. @alone as in svg_head. */
enum { FIGURES_MAX = 48 }; /* of a kind: beyond that the tables have to do */
typedef bool (*figure_fn)(const report_model *m, size_t index, bool alone, buf *out);

/* Speed-up over context x batch, a panel a number of heads; a figure a scope and input. */
bool figure_speedup(const report_model *m, size_t index, bool alone, buf *out);
/* TFLOPS over heads, batch, context and s_q, each with the others held; a figure a file. */
bool figure_axes(const report_model *m, size_t index, bool alone, buf *out);
/* Arithmetic intensity against rate under the measured ceilings; a figure a file. */
bool figure_roofline(const report_model *m, size_t index, bool alone, buf *out);
/* Paired differences of accuracy with their intervals and the margin; one figure. */
bool figure_parity(const report_model *m, size_t index, bool alone, buf *out);
/* Error against context, a line a configuration; a figure an input distribution. */
bool figure_fidelity(const report_model *m, size_t index, bool alone, buf *out);
/* Error against layer, a line a configuration; a figure a model, at its longest context. */
bool figure_layers(const report_model *m, size_t index, bool alone, buf *out);

typedef struct {
    const char *name; /* "speedup": of the file, and of the id */
    figure_fn draw;
} figure;

extern const figure report_figures[]; /* closed by a NULL name */

#endif
