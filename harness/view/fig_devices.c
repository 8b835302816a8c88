/* fig_devices.c - draws the speed of each device of a comparison: one row for each shape, one panel
 * for each arm, one point for each device, over tokens per second on a logarithmic scale. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/svg.h"

enum { kRows = 32, kPanels = 2, kColours = 8, kRowH = 24, kLine = 18, kLabels = 176, kGap = 24 };
static const double kWidth = 940;
static const char *const kArms[kPanels] = {"bf16", "fp8"}, *const kNames[kPanels] = {"BF16", "FP8"};

typedef struct {
    const report_model *m;
    const char *scope;
    bool loops;
    const report_cell *rows[kRows]; /* one cell of each shape */
    size_t n;
    svg_scale x[kPanels];
    double top; /* of the panels */
} figure_of_devices;

static bool is_shown(const figure_of_devices *f, const report_cell *c) {
    return report_is_loop(c) == f->loops && strcmp(c->row->scope, f->scope) == 0 &&
           !c->row->name[0] && c->perf->tok_s > 0 &&
           (strcmp(c->row->arm, kArms[0]) == 0 || strcmp(c->row->arm, kArms[1]) == 0);
}

static void add_row(figure_of_devices *f, const report_cell *c) {
    for (size_t i = 0; i < f->n; i++)
        if (compare_same_step(f->rows[i], c))
            return;
    if (f->n < kRows)
        f->rows[f->n++] = c;
}

/* Finds the shapes, and the range of the speeds. False if there are none. */
static bool find(figure_of_devices *f) {
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < f->m->n_compared; i++) {
        const report_cell *c = f->m->compared[i].cell;
        if (!is_shown(f, c))
            continue;
        add_row(f, c);
        lo = fmin(lo, c->perf->tok_s);
        hi = fmax(hi, c->perf->tok_s);
    }
    const double width = (kWidth - kLabels - kPanels * kGap) / kPanels;
    for (int k = 0; k < kPanels && f->n; k++) {
        double left = kLabels + k * (width + kGap);
        f->x[k] = svg_log(lo / 1.5, hi * 1.5, left, left + width);
    }
    return f->n > 0;
}

static void class_of(int device, char out[8]) {
    (void)snprintf(out, 8, "a%d", device % kColours);
}

static void legend(const figure_of_devices *f, buf *out) {
    char cls[8];
    for (int d = 0; d < f->m->n_devices; d++) {
        double y = 38 + (double)d * kLine;
        class_of(d, cls);
        svg_circle(out, cls, 6, y - 4, 5, NULL);
        svg_text_cut(out, "s", 18, y, f->m->labels[d], 120);
    }
}

/* "1", "10", "1k", "100k", "1M" */
static void tick_text(double x, char out[FORMAT_MAX]) {
    const char *unit = x >= 1e6 ? "M" : x >= 1e3 ? "k" : "";
    (void)snprintf(out, FORMAT_MAX, "%g%s", x >= 1e6 ? x / 1e6 : x >= 1e3 ? x / 1e3 : x, unit);
}

static void axis(const figure_of_devices *f, int panel, buf *out) {
    const svg_scale *x = &f->x[panel];
    const double bottom = f->top + (double)f->n * kRowH;
    double ticks[SVG_TICKS_MAX];
    size_t n = svg_ticks(x, 6, ticks);
    svg_text(out, "b s", x->from, f->top - 8, kNames[panel]);
    for (size_t i = 0; i < n; i++) {
        char text[FORMAT_MAX];
        double at = svg_at(x, ticks[i]);
        svg_line(out, "gr", at, f->top, at, bottom);
        tick_text(ticks[i], text);
        if (fabs(log10(ticks[i]) - round(log10(ticks[i]))) < 1e-9) /* powers of ten only */
            svg_text(out, "m c s", at, bottom + 16, text);
    }
    svg_line(out, "ax", x->from, bottom, x->to, bottom);
}

static void row_label(const figure_of_devices *f, size_t row, buf *out) {
    const cell_shape *s = f->rows[row]->shape;
    char text[96], context[FORMAT_MAX];
    format_context(s->context, context);
    (void)snprintf(text, sizeof text, "heads %lld, s_q %lld, %lld × %s", (long long)s->heads,
                   (long long)s->s_q, (long long)s->batch, context);
    svg_text(out, "m e s", kLabels - 10, f->top + ((double)row + 0.5) * kRowH + 4, text);
}

static void points(const figure_of_devices *f, size_t row, buf *out) {
    const double y = f->top + ((double)row + 0.5) * kRowH;
    for (size_t i = 0; i < f->m->n_compared; i++) {
        const report_cell *c = f->m->compared[i].cell;
        if (!is_shown(f, c) || !compare_same_step(c, f->rows[row]))
            continue;
        int device = f->m->device_of[c->file], panel = strcmp(c->row->arm, kArms[1]) == 0;
        char cls[8], tip[300];
        class_of(device, cls);
        (void)snprintf(tip, sizeof tip, "%.200s, %s: %.4g tokens/s%s%.60s", f->m->labels[device],
                       kNames[panel], c->perf->tok_s, c->flags[0] ? "; " : "", c->flags);
        svg_circle(out, cls, svg_at(&f->x[panel], c->perf->tok_s), y, 5, tip);
    }
}

bool figure_devices(const report_model *m, size_t index, bool alone, buf *out) {
    figure_of_devices f = {.m = m, .scope = "kernel", .loops = !compare_has(m, false)};
    if (index || !m->n_compared || !m->labels)
        return false;
    if (!find(&f)) {
        f.scope = "served";
        if (!find(&f))
            return false;
    }
    f.top = 38 + (double)m->n_devices * kLine + 24;
    char name[160];
    (void)snprintf(name, sizeof name, "Tokens per second of each device, scope %s, %s", f.scope,
                   f.loops ? "loops" : "single steps");
    svg_open(out, &(svg_head){.id = "devices-1",
                              .title = name,
                              .description = "One row for each shape: heads, query tokens, "
                                             "sequences × tokens of each. One point for each "
                                             "device. The scale is logarithmic. The tables have "
                                             "the same numbers.",
                              .width = kWidth,
                              .height = f.top + (double)f.n * kRowH + 26,
                              .alone = alone});
    svg_text(out, "b", 0, 14, name);
    legend(&f, out);
    for (int k = 0; k < kPanels; k++)
        axis(&f, k, out);
    for (size_t i = 0; i < f.n; i++) {
        row_label(&f, i, out);
        points(&f, i, out);
    }
    svg_close(out);
    return true;
}
