/* figures.h - the figures of a report. Each function appends one SVG and returns true, or appends
 * nothing and returns false if there is nothing to show. */
#ifndef SNAPMLA_HARNESS_VIEW_FIGURES_H
#define SNAPMLA_HARNESS_VIEW_FIGURES_H

#include "harness/view/model.h"

enum { FIGURES_MAX = 48 }; /* most figures of each kind */
/* Draws figure @index of a kind, counted from 0; false if there is none. @alone as in svg_head. */
typedef bool (*figure_fn)(const report_model *m, size_t index, bool alone, buf *out);

/* For a comparison: tokens/s of each device in each shape that at least two devices have, one panel
 * for each arm. There is one figure, of one scope: single steps, or loops if there are no single
 * steps. */
bool figure_devices(const report_model *m, size_t index, bool alone, buf *out);
/* Speed-up over context x batch; one panel for each number of heads, one figure for each group of
 * cells that agree in file, backend, scope, input, cache, mode, s_q and widths. A group without a
 * speed-up has no figure. */
bool figure_speedup(const report_model *m, size_t index, bool alone, buf *out);
/* Speed-up of each named arm over each earlier one with its interval, one row for each cell and one
 * column for each pair of arms; one figure for each 32 cells and 8 pairs of a file. */
bool figure_named_arms(const report_model *m, size_t index, bool alone, buf *out);
/* Tokens/s of both arms over the context on several GPUs, one panel for each layout. A figure has
 * up to three layouts of one model and machine. Predicted steps have figures of their own. Rows of
 * maps are left out. */
bool figure_layouts(const report_model *m, size_t index, bool alone, buf *out);
/* Maps of predicted steps: the fastest layout over context x sequences, one panel for each number
 * of GPUs. A figure has up to six numbers of GPUs of one model and cache format. */
bool figure_layout_map(const report_model *m, size_t index, bool alone, buf *out);
/* The largest part of the fastest predicted step with its largest batch, over context x GPUs, one
 * panel for each cache format; one figure for each model of a file. */
bool figure_largest_part(const report_model *m, size_t index, bool alone, buf *out);
/* TFLOPS (or GFLOPS) over heads, batch, context and s_q, with the others fixed; one figure for each
 * file that has such a series. */
bool figure_axes(const report_model *m, size_t index, bool alone, buf *out);
/* Rate over arithmetic intensity under the measured ceilings; one figure for each file that has
 * cells and the ceilings of memory reads, BF16 and FP8 products. With named arms, the highest
 * ceilings of all arms are drawn. */
bool figure_roofline(const report_model *m, size_t index, bool alone, buf *out);
/* Paired differences of accuracy with their intervals and the margin; one figure. */
bool figure_parity(const report_model *m, size_t index, bool alone, buf *out);
/* Accuracy over the mean length of answers, one point for each arm and task; one figure. */
bool figure_length(const report_model *m, size_t index, bool alone, buf *out);
/* Accuracy of each arm and difference of each comparison over two fields of a task, such as length
 * and depth; one figure for each task with such groups. */
bool figure_heat(const report_model *m, size_t index, bool alone, buf *out);
/* Error over context, one line for each configuration and source; one figure for each file, kind
 * and input distribution. */
bool figure_fidelity(const report_model *m, size_t index, bool alone, buf *out);
/* Error over layer, one line for each configuration; one figure for each file and model, at its
 * longest context. */
bool figure_layers(const report_model *m, size_t index, bool alone, buf *out);

/* Output tokens per second of a server (or of one of its GPUs) over the tokens per second of one
 * user, one line for each arm; one figure for each file and kind of loop with load points. */
bool figure_serving_pareto(const report_model *m, size_t index, bool alone, buf *out);
/* Goodput over the offered load, with intervals and the knees; one figure for each file and kind of
 * loop that has targets. */
bool figure_serving_goodput(const report_model *m, size_t index, bool alone, buf *out);
/* Distributions of latencies, one panel for each latency and one line for each arm; one figure for
 * each load point. */
bool figure_serving_cdf(const report_model *m, size_t index, bool alone, buf *out);
/* Requests in flight and output tokens per second over time in block 0 of each arm, with the steady
 * window; one figure for each load point. */
bool figure_serving_course(const report_model *m, size_t index, bool alone, buf *out);

typedef struct {
    const char *name; /* "speedup": part of the file's name and of the SVG's id */
    figure_fn draw;
} figure;

extern const figure report_figures[]; /* ends with a NULL name */

#endif
