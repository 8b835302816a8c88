/* figures.h - the figures of a report. Each function appends one SVG and returns true, or appends
 * nothing and returns false if there is nothing to show. */
#ifndef SNAPMLA_HARNESS_VIEW_FIGURES_H
#define SNAPMLA_HARNESS_VIEW_FIGURES_H

#include "harness/view/model.h"

/* Draws figure @index of a kind, counted from 0; false if there is none. @alone as in svg_head. */
enum { FIGURES_MAX = 48 }; /* limit for each kind */
typedef bool (*figure_fn)(const report_model *m, size_t index, bool alone, buf *out);

/* Speed-up over context x batch; one panel for each number of heads, one figure for each group of
 * cells that agree in file, backend, scope, input, cache, s_q and widths. */
bool figure_speedup(const report_model *m, size_t index, bool alone, buf *out);
/* TFLOPS (or GFLOPS) over heads, batch, context and s_q, with the others fixed; one figure for each
 * file that has such a series. */
bool figure_axes(const report_model *m, size_t index, bool alone, buf *out);
/* Rate over arithmetic intensity under the measured ceilings; one figure for each file that has
 * ceilings and cells. */
bool figure_roofline(const report_model *m, size_t index, bool alone, buf *out);
/* Paired differences of accuracy with their intervals and the margin; one figure. */
bool figure_parity(const report_model *m, size_t index, bool alone, buf *out);
/* Error over context, one line for each configuration and source; one figure for each file, kind
 * and input distribution. */
bool figure_fidelity(const report_model *m, size_t index, bool alone, buf *out);
/* Error over layer, one line for each configuration; one figure for each file and model, at its
 * longest context. */
bool figure_layers(const report_model *m, size_t index, bool alone, buf *out);

typedef struct {
    const char *name; /* "speedup": part of the file's name and of the SVG's id */
    figure_fn draw;
} figure;

extern const figure report_figures[]; /* ends with a NULL name */

#endif
