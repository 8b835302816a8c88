/* fig_roofline.c - draws the rate over the arithmetic intensity, both logarithmic, with the
 * rooflines from this device's measured ceilings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/named_arms.h"
#include "harness/view/svg.h"
#include "kernels/ceilings.h"

static const double kWidth = 940, kHeight = 430, kLeft = 66, kRight = 782, kTop = 40, kBottom = 370;
enum {
    kTipsMax = 500,  /* with more points there are no tooltips, to keep the page small */
    kArmColours = 8, /* classes a0 .. a7 */
    kLegendMax = 12, /* most arms that the legend names */
};

typedef struct {
    const report_model *m;
    int file;
    mla_ceilings c;
    double bf16, fp8; /* peaks in FLOP/s of each arm's mix of products */
    double unit;      /* FLOP/s per unit of the y axis */
    const char *unit_name;
    svg_scale x, y; /* x: FLOP/B; y: the unit of the axis */
    size_t points;
} plot;

static bool drawn(const plot *p, const report_cell *c) {
    return c->file == p->file && c->perf->tflops > 0 && c->perf->gb_s > 0 && c->perf->median_ns > 0;
}

static double intensity(const report_cell *c) {
    return c->perf->tflops * 1e3 / c->perf->gb_s;
}

/* The ceiling with this name; with named arms the highest of all arms. */
static double highest_ceiling(const report_model *m, int file, const char *name) {
    double best = report_ceiling_of(m, file, name);
    for (size_t i = 0; i < m->n_ceilings; i++) {
        const report_ceiling *c = &m->ceilings[i];
        if (c->file == file && c->row->arm[0] && strcmp(c->row->name, name) == 0)
            best = fmax(best, c->row->value);
    }
    return best;
}

static bool set_up(plot *p, const report_model *m, int file) {
    *p = (plot){.m = m, .file = file};
    p->c.read.rate = highest_ceiling(m, file, "read_bandwidth");
    p->c.bf16.rate = highest_ceiling(m, file, "bf16_mma");
    p->c.fp8.rate = highest_ceiling(m, file, "fp8_mma");
    if (!(p->c.read.rate > 0) || !(p->c.bf16.rate > 0) || !(p->c.fp8.rate > 0))
        return false;
    const report_cell *any = NULL;
    for (size_t i = 0; i < m->n_measured; i++)
        if (drawn(p, &m->cells[i])) {
            any = &m->cells[i];
            p->points++;
        }
    if (!any)
        return false;
    p->bf16 = mla_peak_flop_s(&p->c, MLA_BF16, (int)any->shape->d_c, (int)any->shape->d_r);
    p->fp8 = mla_peak_flop_s(&p->c, MLA_FP8, (int)any->shape->d_c, (int)any->shape->d_r);
    bool small = fmax(p->bf16, p->fp8) < 1e13;
    p->unit = small ? 1e9 : 1e12;
    p->unit_name = small ? "GFLOPS" : "TFLOPS";
    return true;
}

/* The scales include every drawn point and both peaks, with a factor of at least 1.6 around
 * them. */
static void scale(plot *p) {
    double ridge = fmax(p->bf16, p->fp8) / p->c.read.rate;
    double x0 = fmin(1, ridge / 4), x1 = ridge * 4;
    double y0 = fmin(p->bf16, p->fp8) / 4, y1 = fmax(p->bf16, p->fp8) * 1.6;
    for (size_t i = 0; i < p->m->n_measured; i++) {
        const report_cell *c = &p->m->cells[i];
        if (!drawn(p, c))
            continue;
        x0 = fmin(x0, intensity(c) / 2);
        x1 = fmax(x1, intensity(c) * 2);
        y0 = fmin(y0, c->perf->tflops * 1e12 / 2);
        y1 = fmax(y1, c->perf->tflops * 1e12 * 2);
    }
    p->x = svg_log(x0, x1, kLeft, kRight);
    p->y = svg_log(y0 / p->unit, y1 / p->unit, kBottom, kTop);
}

static bool find(plot *p, const report_model *m, size_t index) {
    for (int file = 0; file < m->n_files; file++)
        if (set_up(p, m, file) && index-- == 0) {
            scale(p);
            return true;
        }
    return false;
}

/* ---- drawing the figure ---- */

static void grid(buf *out, const plot *p, bool vertical) {
    const svg_scale *s = vertical ? &p->x : &p->y;
    double ticks[SVG_TICKS_MAX];
    size_t n = svg_ticks(s, 0, ticks);
    for (size_t i = 0; i < n; i++) {
        char text[32];
        double at = svg_at(s, ticks[i]);
        (void)snprintf(text, sizeof text, "%g", ticks[i]);
        if (vertical) {
            svg_line(out, "gr", at, kTop, at, kBottom);
            svg_text(out, "m c s", at, kBottom + 18, text);
        } else {
            svg_line(out, "gr", kLeft, at, kRight, at);
            svg_text(out, "m e s", kLeft - 8, at + 4, text);
        }
    }
}

/* Draws one roofline: up to the ridge, intensity times bandwidth; from there on it is level at
 * @peak. */
static void roof(buf *out, const plot *p, const char *cls, double peak) {
    double x0 = p->x.lo, y0 = x0 * p->c.read.rate / p->unit;
    if (y0 < p->y.lo) { /* start at the lower edge of the plot */
        x0 = p->y.lo * p->unit / p->c.read.rate;
        y0 = p->y.lo;
    }
    double ridge = peak / p->c.read.rate, top = svg_at(&p->y, peak / p->unit);
    (void)buf_printf(out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fH%.1f\"/>\n", cls,
                     svg_at(&p->x, x0), svg_at(&p->y, y0), svg_at(&p->x, ridge), top, kRight);
}

static void label(buf *out, const plot *p, const char *cls, const char *name, double peak,
                  double dy) {
    char text[96];
    (void)snprintf(text, sizeof text, "%s %.*f %s", name, peak / p->unit < 10 ? 1 : 0,
                   peak / p->unit, p->unit_name);
    svg_text(out, cls, kRight + 8, svg_at(&p->y, peak / p->unit) + dy, text);
}

static void roofs(buf *out, const plot *p) {
    bool same = fabs(log(p->fp8 / p->bf16)) < 0.03;
    if (!same)
        roof(out, p, "roof f8l", p->fp8);
    roof(out, p, same ? "roof" : "roof bfl", p->bf16);
    label(out, p, "s", same ? "peak, both:" : "BF16 peak", p->bf16, 4);
    if (!same) {
        double apart = fabs(svg_at(&p->y, p->fp8 / p->unit) - svg_at(&p->y, p->bf16 / p->unit));
        label(out, p, "s", "FP8 mix", p->fp8, apart < 14 ? -10 : 4);
    }
    char text[64];
    (void)snprintf(text, sizeof text, "memory reads %.*f GB/s", p->c.read.rate < 1e11 ? 1 : 0,
                   p->c.read.rate * 1e-9);
    double ridge = fmin(p->bf16, p->fp8) / p->c.read.rate,
           y = ridge / 2.6 * p->c.read.rate / p->unit;
    bool fits = y > p->y.lo && ridge / 2.6 > p->x.lo;
    if (fits)
        svg_text(out, "m e s", svg_at(&p->x, ridge / 2.6) - 8, svg_at(&p->y, y) - 4, text);
}

/* Named arms have one colour each. After kArmColours arms the colours are used again, with a
 * diamond in the place of the circle. */
static void arm_mark(buf *out, int arm, bool hollow, double x, double y, const char *tip) {
    char cls[16];
    (void)snprintf(cls, sizeof cls, "a%d%s p", arm % kArmColours, hollow ? "l" : "");
    if (arm / kArmColours % 2)
        svg_diamond(out, cls, x, y, 5.5, tip);
    else
        svg_circle(out, cls, x, y, 4.5, tip);
}

static void point(buf *out, const plot *p, const report_cell *c) {
    char tip[400] = "", name[96];
    report_cell_name(c, name);
    if (p->points <= kTipsMax)
        (void)snprintf(tip, sizeof tip,
                       "%s: %.3g TFLOPS at %.3g FLOP/B, %.1f %% of the roofline%s%s", name,
                       c->perf->tflops, intensity(c), c->perf->roofline_pct,
                       c->flags[0] ? "; " : "", c->flags);
    double x = svg_at(&p->x, intensity(c)), y = svg_at(&p->y, c->perf->tflops * 1e12 / p->unit);
    bool hollow = c->flags[0] != '\0';
    int arm = named_arms_index(p->m, c);
    if (arm >= 0)
        arm_mark(out, arm, hollow, x, y, tip[0] ? tip : NULL);
    else if (strcmp(c->row->arm, "bf16") == 0)
        svg_circle(out, hollow ? "bfl p" : "bf p", x, y, 4.5, tip[0] ? tip : NULL);
    else
        svg_diamond(out, hollow ? "f8l p" : "f8 p", x, y, 5.5, tip[0] ? tip : NULL);
}

/* The names of the first arms of the file, or of BF16 and FP8, at the lower right. */
static void legend(buf *out, const plot *p) {
    const named_arms *g = NULL;
    for (size_t k = 0; k < p->m->n_named; k++)
        if (p->m->named[k].file == p->file)
            g = &p->m->named[k];
    int n = g && g->n_arms > kLegendMax ? kLegendMax : g ? g->n_arms : 0;
    for (int i = 0; i < n; i++) {
        double y = kBottom - 32 - 18.0 * (n - 1 - i);
        arm_mark(out, i, false, kRight + 16, y, NULL);
        svg_text_cut(out, "s", kRight + 28, y + 4, g->arm[i], 20);
    }
    if (!g) {
        svg_circle(out, "bf p", kRight + 16, kBottom - 54, 4.5, NULL);
        svg_text(out, "", kRight + 28, kBottom - 50, "BF16");
        svg_diamond(out, "f8 p", kRight + 16, kBottom - 32, 5.5, NULL);
        svg_text(out, "", kRight + 28, kBottom - 28, "FP8");
    }
    svg_text(out, "m s", kRight + 8, kBottom - 6, "hollow: flagged");
}

bool figure_roofline(const report_model *m, size_t index, bool alone, buf *out) {
    plot p;
    if (!find(&p, m, index))
        return false;
    char id[32], name[400], axis[64];
    (void)snprintf(id, sizeof id, "roofline-%zu", index + 1);
    (void)snprintf(name, sizeof name,
                   "Roofline: every cell under this device's measured ceilings%s%.200s",
                   m->n_files > 1 ? ", " : "", m->n_files > 1 ? report_name_of(m, p.file) : "");
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description = "Each point is a cell. Horizontal axis: arithmetic "
                                             "intensity; vertical axis: rate. Memory limits the "
                                             "cells below the slope, arithmetic those below the "
                                             "level part.",
                              .width = kWidth,
                              .height = kHeight,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    grid(out, &p, true);
    grid(out, &p, false);
    roofs(out, &p);
    for (size_t i = 0; i < m->n_measured; i++)
        if (drawn(&p, &m->cells[i]))
            point(out, &p, &m->cells[i]);
    legend(out, &p);
    svg_text(out, "m c", (kLeft + kRight) / 2, kBottom + 42, "arithmetic intensity, FLOP per byte");
    (void)snprintf(axis, sizeof axis, "rate, %s", p.unit_name);
    svg_text_up(out, "m c", 16, (kTop + kBottom) / 2, axis);
    svg_close(out);
    return true;
}
