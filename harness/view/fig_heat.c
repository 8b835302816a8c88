/* fig_heat.c - draws heat maps of a task with two fields, such as length (horizontal) and depth
 * (vertical): one panel with the accuracy of each arm, and one with the paired difference of each
 * comparison. The numbers are also written in the cells if there is room. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/svg.h"

enum { kAxisMax = 64, kCellMost = 54, kCellLeast = 12, kCellH = 26, kLabelW = 56, kGap = 24 };
static const double kWidth = 940, kTextFrom = 34; /* width of a cell that has room for a number */

typedef struct {
    const char *at[kAxisMax];
    int n;
} axis;

typedef struct {
    const eval_record *e;
    const char *by[2];
    axis x, y;
    double cell; /* width */
} heat;

static int place(const axis *a, const char *value) {
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->at[i], value) == 0)
            return i;
    return -1;
}

static void add(axis *a, const char *value) {
    if (place(a, value) < 0 && a->n < kAxisMax)
        a->at[a->n++] = value;
}

/* The @index-th task with groups of two fields; false if there is none. */
static bool find(const report_model *m, size_t index, heat *h) {
    for (size_t i = 0; i < m->n_evals; i++) {
        const eval_record *e = m->evals[i].row;
        *h = (heat){.e = e};
        for (size_t k = 0; k < e->groups.n; k++) {
            const group_record *g = &e->groups.at[k];
            if (g->by.n != 2)
                continue;
            h->by[0] = g->by.at[0];
            h->by[1] = g->by.at[1];
            add(&h->x, g->at.at[0]);
            add(&h->y, g->at.at[1]);
        }
        if (h->x.n && index-- == 0)
            return true;
    }
    return false;
}

/* ---- colours: classes h0 .. h8 of figure.css ---- */

/* Accuracies from 0 to 100 %: from pale to dark blue. */
static int shade_accuracy(double pct) {
    int i = 2 + (int)(pct / 100 * 7);
    return i > 8 ? 8 : i;
}

/* Differences: brown if the arm is worse, pale within the margin, blue if it is better. */
static int shade_difference(double pp, double margin) {
    return pp < -3 * margin ? 0 : pp < -margin ? 1 : pp <= margin ? 2 : pp <= 3 * margin ? 4 : 6;
}

/* ---- panels ---- */

/* An arm, or a comparison if @pair is not negative. */
typedef struct {
    size_t arm;
    int pair;
    double x, y;
} panel;

static double panel_width(const heat *h) {
    return kLabelW + h->x.n * h->cell;
}

static double panel_height(const heat *h) {
    return 42 + h->y.n * kCellH;
}

static void draw_head(buf *out, const heat *h, const panel *p) {
    char text[200];
    const pair_record *pair = p->pair < 0 ? NULL : &h->e->pairs.at[p->pair];
    if (pair)
        (void)snprintf(text, sizeof text, "%.60s − %.60s, points", pair->arm, pair->baseline);
    else
        (void)snprintf(text, sizeof text, "%.60s, accuracy in %%", h->e->arms.at[p->arm].name);
    svg_text_cut(out, "b", p->x + kLabelW, p->y + 12, text, (size_t)(panel_width(h) / 7));
    double last = -HUGE_VAL;
    for (int c = 0; c < h->x.n; c++) {
        double x = p->x + kLabelW + (c + 0.5) * h->cell;
        if (x - last < kTextFrom && c)
            continue;
        last = x;
        svg_text(out, "m c s", x, p->y + 32, h->x.at[c]);
    }
    for (int r = 0; r < h->y.n; r++)
        svg_text_cut(out, "m e s", p->x + kLabelW - 6, p->y + 38 + (r + 0.5) * kCellH + 3,
                     h->y.at[r], 9);
}

static void draw_value(buf *out, const heat *h, const panel *p, const group_record *g) {
    int column = place(&h->x, g->at.at[0]), row = place(&h->y, g->at.at[1]), shade;
    char tip[400], text[FORMAT_MAX], cls[16];
    double value;
    if (column < 0 || row < 0)
        return;
    if (p->pair >= 0) {
        const pair_record *pair = &g->pairs.at[p->pair];
        value = pair->delta_pp;
        shade = shade_difference(value, pair->margin_pp);
        format_signed(value, 0, text);
    } else {
        value = g->arms.at[p->arm].accuracy_pct;
        shade = shade_accuracy(value);
        format_fixed(value, 0, text);
    }
    if (!isfinite(value))
        return;
    double x = p->x + kLabelW + column * h->cell, y = p->y + 38 + row * kCellH;
    (void)snprintf(tip, sizeof tip, "%.60s %.60s, %.60s %.60s: %s (%lld problems)", h->by[0],
                   g->at.at[0], h->by[1], g->at.at[1], text, (long long)g->problems);
    (void)snprintf(cls, sizeof cls, "h%d", shade);
    svg_rect(out, cls, x, y, h->cell - 2, kCellH - 2, tip);
    (void)snprintf(cls, sizeof cls, "c t%d", shade);
    if (h->cell >= kTextFrom)
        svg_text(out, cls, x + (h->cell - 2) / 2, y + kCellH / 2.0 + 3, text);
}

static bool has_panel(const group_record *g, const panel *p) {
    return g->by.n == 2 && (p->pair < 0 ? p->arm < g->arms.n : (size_t)p->pair < g->pairs.n);
}

static void draw_panel(buf *out, const heat *h, const panel *p) {
    draw_head(out, h, p);
    for (size_t i = 0; i < h->e->groups.n; i++)
        if (has_panel(&h->e->groups.at[i], p))
            draw_value(out, h, p, &h->e->groups.at[i]);
}

/* The next panel: first the arms, then the comparisons that were made. */
static bool next_panel(const heat *h, size_t *at, panel *p) {
    for (; *at < h->e->arms.n + h->e->pairs.n; ++*at) {
        bool arm = *at < h->e->arms.n;
        size_t i = arm ? *at : *at - h->e->arms.n;
        if (!arm && h->e->pairs.at[i].refused[0])
            continue;
        p->arm = arm ? i : 0;
        p->pair = arm ? -1 : (int)i;
        ++*at;
        return true;
    }
    return false;
}

/* Draws the panels side by side, in as many rows as needed; without @out, only measures them.
 * Returns the lower edge. */
static double draw_panels(buf *out, const heat *h) {
    panel p = {.x = 0, .y = 44};
    size_t at = 0;
    double bottom = p.y;
    while (next_panel(h, &at, &p)) {
        if (p.x > 0 && p.x + panel_width(h) > kWidth) {
            p.x = 0;
            p.y = bottom + kGap;
        }
        if (out)
            draw_panel(out, h, &p);
        bottom = p.y + panel_height(h);
        p.x += panel_width(h) + kGap;
    }
    return bottom;
}

bool figure_heat(const report_model *m, size_t index, bool alone, buf *out) {
    heat h;
    char id[32], name[300], axes[200];
    if (!find(m, index, &h))
        return false;
    h.cell = fmin(kCellMost, fmax((kWidth - kLabelW) / h.x.n, kCellLeast));
    (void)snprintf(id, sizeof id, "heat-%zu", index + 1);
    (void)snprintf(name, sizeof name, "%.100s by %.60s and %.60s", h.e->task, h.by[0], h.by[1]);
    (void)snprintf(axes, sizeof axes,
                   "columns: %.60s, rows: %.60s; brown: worse by more than the margin", h.by[0],
                   h.by[1]);
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description = "One panel shows the accuracy of each arm, and one "
                                             "the paired difference of each comparison. The table "
                                             "of groups has the values of each field by itself.",
                              .width = kWidth,
                              .height = draw_panels(NULL, &h) + 8,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    svg_text(out, "m s", 0, 32, axes);
    (void)draw_panels(out, &h);
    svg_close(out);
    return true;
}
