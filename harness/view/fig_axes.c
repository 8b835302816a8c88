/* fig_axes.c - draws the rates of both arms over one number of the shape while the others are
 * fixed. There is one figure for each file that has such a series, and in it one panel for each
 * number that varies. The values on the x axis are spaced evenly, because they usually are powers
 * of two. */
#include <math.h>
#include <stdio.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/paper.h"
#include "harness/view/svg.h"

static const double kWidth = 940, kPanelW = 205, kPanelH = 210, kStep = 240, kLeft = 46, kTop = 66;
static const double kLabelStep = 30; /* least pixels between two labels of the x axis */

typedef struct {
    const report_axis *row;
    int axis;
    double left;
    svg_scale x, y;
    double unit; /* TFLOPS in one unit of the axis */
} panel;

static size_t find_rows(const report_model *m, int file, report_axis rows[AXES]) {
    size_t n = 0;
    for (int axis = 0; axis < AXES; axis++)
        if (report_axis_find(m, file, axis, &rows[axis]))
            n++;
        else
            rows[axis].n = 0;
    return n;
}

/* Finds the @index-th file, counted from 0, that has a series. Returns -1 if there is none. */
static int find_file(const report_model *m, size_t index, report_axis rows[AXES]) {
    for (int file = 0; file < m->n_files; file++)
        if (find_rows(m, file, rows) && index-- == 0)
            return file;
    return -1;
}

static double highest(const report_axis *row) {
    double high = 0;
    for (size_t i = 0; i < row->n; i++)
        high = fmax(high, fmax(row->at[i]->bf16->perf->tflops, row->at[i]->fp8->perf->tflops));
    return high;
}

static void value_text(const report_cell *c, int axis, char out[FORMAT_MAX]) {
    if (axis == AXIS_CONTEXT)
        format_context(c->shape->context, out);
    else
        (void)snprintf(out, FORMAT_MAX, "%lld", (long long)report_axis_value(c, axis));
}

/* "16 heads, batch 8, s_q 1": the numbers that are fixed in this series. */
static void fixed_text(const panel *p, char out[160]) {
    const report_cell *c = p->row->at[0]->any;
    char context[FORMAT_MAX];
    format_context(c->shape->context, context);
    const long long h = c->shape->heads, b = c->shape->batch, s = c->shape->s_q;
    if (p->axis == AXIS_HEADS)
        (void)snprintf(out, 160, "batch %lld, context %s, s_q %lld", b, context, s);
    else if (p->axis == AXIS_BATCH)
        (void)snprintf(out, 160, "%lld heads, context %s, s_q %lld", h, context, s);
    else if (p->axis == AXIS_CONTEXT)
        (void)snprintf(out, 160, "%lld heads, batch %lld, s_q %lld", h, b, s);
    else
        (void)snprintf(out, 160, "%lld heads, batch %lld, context %s", h, b, context);
}

static void grid(buf *out, const panel *p) {
    double ticks[SVG_TICKS_MAX];
    char text[FORMAT_MAX];
    size_t n = svg_ticks(&p->y, 6, ticks);
    double last = -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        double y = svg_at(&p->y, ticks[i]);
        (void)snprintf(text, sizeof text, "%.4g", ticks[i]);
        svg_line(out, "gr", p->left, y, p->left + kPanelW - kLeft, y);
        svg_text(out, "m e s", p->left - 5, y + 4, text);
    }
    for (size_t i = 0; i < p->row->n; i++) {
        double x = svg_at(&p->x, (double)i);
        if (x - last < kLabelStep)
            continue;
        last = x;
        value_text(p->row->at[i]->any, p->axis, text);
        svg_text(out, "m c s", x, kTop + kPanelH + 17, text);
    }
    svg_text(out, "m c", p->left + (kPanelW - kLeft) / 2, kTop + kPanelH + 37,
             report_axis_names[p->axis]);
}

static const report_cell *arm_of(const report_speed *s, bool fp8) {
    return fp8 ? s->fp8 : s->bf16;
}

static void draw_arm(buf *out, const panel *p, bool fp8) {
    const char *cls = fp8 ? "f8" : "bf";
    char value[FORMAT_MAX], tip[160];
    (void)buf_printf(out, "<path class=\"%sl\" d=\"", cls);
    for (size_t i = 0; i < p->row->n; i++)
        (void)buf_printf(out, "%s%.1f %.1f", i ? "L" : "M", svg_at(&p->x, (double)i),
                         svg_at(&p->y, arm_of(p->row->at[i], fp8)->perf->tflops / p->unit));
    (void)buf_puts(out, "\"/>\n");
    for (size_t i = 0; i < p->row->n; i++) {
        const report_cell *c = arm_of(p->row->at[i], fp8);
        value_text(c, p->axis, value);
        (void)snprintf(tip, sizeof tip, "%s, %s %s: %.4g TFLOPS", fp8 ? "FP8" : "BF16",
                       report_axis_names[p->axis], value, c->perf->tflops);
        svg_circle(out, cls, svg_at(&p->x, (double)i), svg_at(&p->y, c->perf->tflops / p->unit),
                   3.2, tip);
    }
}

static void draw_panel(buf *out, const report_axis *row, int axis, int place, double unit) {
    double left = kLeft + place * kStep, right = left + kPanelW - kLeft;
    panel p = {.row = row, .axis = axis, .left = left, .unit = unit};
    char fixed[160];
    p.x = svg_linear(-0.3, (double)row->n - 0.7, left, right);
    p.y = svg_linear(0, 1.08 * highest(row) / unit, kTop + kPanelH, kTop);
    fixed_text(&p, fixed);
    svg_text(out, "s m", left - 42, kTop - 14, fixed);
    grid(out, &p);
    draw_arm(out, &p, false);
    draw_arm(out, &p, true);
}

static void legend(buf *out, const char *unit) {
    svg_circle(out, "bf", 6, 30, 4, NULL);
    svg_text(out, "b s", 14, 34, "BF16");
    svg_circle(out, "f8", 62, 30, 4, NULL);
    svg_text(out, "b s", 70, 34, "FP8");
    svg_text(out, "m s", 104, 34, unit);
}

bool figure_axes(const report_model *m, size_t index, bool alone, buf *out) {
    report_axis rows[AXES];
    int file = find_file(m, index, rows), place = 0;
    if (file < 0)
        return false;
    double high = 0;
    for (int axis = 0; axis < AXES; axis++)
        high = fmax(high, rows[axis].n ? highest(&rows[axis]) : 0);
    char id[32], name[400];
    (void)snprintf(id, sizeof id, "axes-%zu", index + 1);
    (void)snprintf(name, sizeof name,
                   "Rate of the kernel over heads, batch, context and s_q%s%.200s",
                   m->n_files > 1 ? ", " : "", m->n_files > 1 ? report_name_of(m, file) : "");
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description = "One panel for each number of the shape that varies "
                                             "while the others are fixed; one line for each arm. "
                                             "The speed table has the same numbers.",
                              .width = kWidth,
                              .height = kTop + kPanelH + 46,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    legend(out, high < 10 ? "GFLOPS, scope kernel" : "TFLOPS, scope kernel");
    for (int axis = 0; axis < AXES; axis++)
        if (rows[axis].n)
            draw_panel(out, &rows[axis], axis, place++, high < 10 ? 1e-3 : 1);
    svg_close(out);
    return true;
}
