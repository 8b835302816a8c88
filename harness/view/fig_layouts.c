/* fig_layouts.c - draws tokens/s over the context for models that are divided over several GPUs.
 * Each model and machine has a figure. A figure has a panel for each layout. A panel has two bars
 * for each context: BF16 on the left, FP8 on the right. Bars of predictions are hollow. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/layout_series.h"
#include "harness/view/svg.h"

enum { kPanels = 3 };
static const double kWidth = 940, kPanelW = 252, kPanelH = 210, kStep = 316, kLeft = 50, kTop = 80;
static const double kBarMost = 26;    /* widest bar in pixels */
static const double kRatioLeast = 36; /* narrowest pair of bars that has its ratio above it */

/* Up to kPanels layouts of one model and machine. */
typedef struct {
    const layout_series *at[kPanels];
    int n;
} group;

static bool same_figure(const layout_series *x, const layout_series *y) {
    const decode_speed *a = x->first, *b = y->first;
    return a->predicted == b->predicted && strcmp(a->model, b->model) == 0 &&
           strcmp(a->conditions, b->conditions) == 0 &&
           (!a->predicted || strcmp(a->source, b->source) == 0);
}

static bool has_earlier(const layout_series_list *all, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (same_figure(&all->at[k], &all->at[i]))
            return true;
    return false;
}

/* Finds the series of the @index-th figure, counted from 0. */
static bool find(const layout_series_list *all, size_t index, group *g) {
    for (size_t i = 0; i < all->n; i++) {
        if (has_earlier(all, i))
            continue;
        g->n = 0;
        for (size_t k = i; k < all->n; k++) {
            if (!same_figure(&all->at[i], &all->at[k]))
                continue;
            if (g->n == kPanels) {
                if (index-- == 0)
                    return true;
                g->n = 0;
            }
            g->at[g->n++] = &all->at[k];
        }
        if (index-- == 0)
            return true;
    }
    return false;
}

static double highest(const group *g) {
    double high = 0;
    for (int i = 0; i < g->n; i++)
        for (size_t k = 0; k < g->at[i]->n; k++)
            for (int arm = 0; arm < SPEED_ARMS; arm++) {
                const layout_point *p = &g->at[i]->points[k];
                high = fmax(high, fmax(p->tokens_s[arm], p->hi[arm]));
            }
    return high;
}

static void grid(buf *out, const svg_scale *y, double left) {
    double ticks[SVG_TICKS_MAX];
    char text[FORMAT_MAX];
    size_t n = svg_ticks(y, 6, ticks);
    for (size_t i = 0; i < n; i++) {
        double at = svg_at(y, ticks[i]);
        (void)snprintf(text, sizeof text, "%.6g", ticks[i]);
        svg_line(out, "gr", left, at, left + kPanelW, at);
        svg_text(out, "m e s", left - 5, at + 4, text);
    }
}

/* One bar, and the interval of a prediction as a line. */
static void draw_bar(buf *out, const layout_series *s, const layout_point *p, int arm, double x,
                     double width, const svg_scale *y) {
    static const char *const names[] = {"BF16", "FP8"};
    static const char *const filled[] = {"bf", "f8"}, *const hollow[] = {"bfl", "f8l"};
    double top = svg_at(y, p->tokens_s[arm]), foot = svg_at(y, 0);
    char context[FORMAT_MAX], batch[FORMAT_MAX], tip[200];
    format_context(p->context, context);
    format_fixed(record_count(p->batch[arm]), 0, batch);
    (void)snprintf(tip, sizeof tip, "%s, context %s, batch %s: %.0f tokens/s", names[arm], context,
                   batch, p->tokens_s[arm]);
    svg_rect(out, s->first->predicted ? hollow[arm] : filled[arm], x, top, width,
             fmax(foot - top, 0), tip);
    if (isfinite(p->lo[arm]) && isfinite(p->hi[arm]))
        svg_line(out, "ax", x + width / 2, svg_at(y, p->lo[arm]), x + width / 2,
                 svg_at(y, p->hi[arm]));
}

static void draw_panel(buf *out, const layout_series *s, double left, const svg_scale *y) {
    double slot = kPanelW / (double)s->n, width = fmin(kBarMost, 0.4 * slot);
    char text[FORMAT_MAX], layout[LAYOUT_SHORT_MAX];
    svg_text(out, "b", left, kTop - 18, layout_short(s->first->layout, layout));
    grid(out, y, left);
    for (size_t i = 0; i < s->n; i++) {
        const layout_point *p = &s->points[i];
        double middle = left + slot * ((double)i + 0.5), high = 0;
        for (int arm = 0; arm < SPEED_ARMS; arm++) {
            draw_bar(out, s, p, arm, middle - (arm == SPEED_BF16 ? width : 0), width, y);
            high = fmax(high, fmax(p->tokens_s[arm], p->hi[arm]));
        }
        (void)snprintf(text, sizeof text, "%.2f×", p->speedup);
        if (slot >= kRatioLeast)
            svg_text(out, "c s", middle, svg_at(y, high) - 5, text);
        format_context(p->context, text);
        svg_text(out, "m c s", middle, kTop + kPanelH + 17, text);
    }
    svg_text(out, "m c", left + kPanelW / 2, kTop + kPanelH + 37, "context");
}

static void legend(buf *out, bool predicted) {
    svg_rect(out, predicted ? "bfl" : "bf", 0, 26, 9, 9, NULL);
    svg_text(out, "b s", 14, 34, "BF16, left");
    svg_rect(out, predicted ? "f8l" : "f8", 84, 26, 9, 9, NULL);
    svg_text(out, "b s", 98, 34, "FP8, right");
    svg_text(out, "m s", 166, 34,
             predicted ? "tokens/s of all GPUs, not measured; line: predicted interval; above the "
                         "bars: FP8 over BF16"
                       : "tokens/s of all GPUs; above the bars: FP8 over BF16");
}

static void draw(buf *out, const group *g, size_t index, bool alone) {
    const decode_speed *of = g->at[0]->first;
    const svg_scale y = svg_linear(0, 1.12 * highest(g), kTop + kPanelH, kTop);
    char id[32], name[400];
    (void)snprintf(id, sizeof id, "layouts-%zu", index + 1);
    (void)snprintf(name, sizeof name, "%s of %.120s, %.160s",
                   of->predicted ? "Predicted throughput" : "Throughput", of->model,
                   of->conditions);
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description =
                                  "One panel for each layout and two bars for each context: BF16 "
                                  "on the left, FP8 on the right, and their ratio above them. Bars "
                                  "of predictions are hollow. The table of layouts has the same "
                                  "numbers.",
                              .width = kWidth,
                              .height = kTop + kPanelH + 46,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    legend(out, of->predicted);
    for (int i = 0; i < g->n; i++)
        draw_panel(out, g->at[i], kLeft + i * kStep, &y);
    svg_close(out);
}

bool figure_layouts(const report_model *m, size_t index, bool alone, buf *out) {
    arena mem = {0};
    layout_series_list all;
    group g = {.n = 0};
    bool ok = layout_series_find(m, &mem, &all), any = ok && find(&all, index, &g);
    out->failed |= !ok;
    if (any)
        draw(out, &g, index, alone);
    arena_release(&mem);
    return any;
}
