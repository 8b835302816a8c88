/* fig_speedup.c - draws the speed-up of FP8 over context (horizontal) and batch (vertical), with
 * one panel for each number of heads. The speed-up is also written in its cell, so the colours are
 * not needed to read the figure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/svg.h"

enum { kAxisMax = 16, kCellW = 54, kCellH = 28, kLabelW = 46, kGap = 22, kHead = 40, kFoot = 52 };
static const double kWidth = 940;

typedef struct {
    int64_t values[kAxisMax];
    int n;
} axis;

/* The shapes with one number of heads, and their batches and contexts. */
typedef struct {
    axis batch, context;
    double x, y; /* upper left corner */
} panel;

/* The shapes of one figure: [first, first + n) of the model's speeds. */
typedef struct {
    const report_speed *first;
    size_t n;
    axis heads;
    panel panels[kAxisMax]; /* [heads.n] */
    double bottom;          /* lower edge of the lowest panel */
    bool flagged;
} group;

static int place(const axis *a, int64_t value) {
    for (int i = 0; i < a->n; i++)
        if (a->values[i] == value)
            return i;
    return -1;
}

/* Inserts a value in ascending order. If the axis is full, the value is in the table only. */
static void add(axis *a, int64_t value) {
    if (place(a, value) >= 0 || a->n == kAxisMax)
        return;
    int i = a->n++;
    for (; i > 0 && a->values[i - 1] > value; i--)
        a->values[i] = a->values[i - 1];
    a->values[i] = value;
}

static bool is_sustained(const report_cell *c) {
    return strcmp(c->row->mode, "sustained") == 0;
}

static bool same_figure(const report_cell *a, const report_cell *b) {
    return a->file == b->file && strcmp(a->row->backend, b->row->backend) == 0 &&
           strcmp(a->row->scope, b->row->scope) == 0 &&
           strcmp(a->row->distribution, b->row->distribution) == 0 &&
           strcmp(a->row->cold, b->row->cold) == 0 && is_sustained(a) == is_sustained(b) &&
           a->shape->d_c == b->shape->d_c && a->shape->d_r == b->shape->d_r &&
           a->shape->s_q == b->shape->s_q;
}

static size_t length_of(const report_model *m, size_t from) {
    size_t n = 1;
    while (from + n < m->n_speeds && same_figure(m->speeds[from].any, m->speeds[from + n].any))
        n++;
    return n;
}

static bool has_speedup(const report_speed *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isnan(s[i].speedup))
            return true;
    return false;
}

static bool find(const report_model *m, size_t index, group *g) {
    for (size_t i = 0; i < m->n_speeds; i += g->n) {
        *g = (group){.first = &m->speeds[i], .n = length_of(m, i)};
        if (has_speedup(g->first, g->n) && index-- == 0)
            return true;
    }
    return false;
}

static double panel_width(const panel *p) {
    return kLabelW + p->context.n * kCellW;
}

static double panel_height(const panel *p) {
    return 40 + p->batch.n * kCellH;
}

/* Places the panels side by side, in as many rows as needed. */
static void lay_out(group *g) {
    double x = 0, y = 34;
    g->bottom = y;
    for (int i = 0; i < g->heads.n; i++) {
        panel *p = &g->panels[i];
        if (x > 0 && x + panel_width(p) > kWidth) {
            x = 0;
            y = g->bottom + kGap;
        }
        p->x = x;
        p->y = y;
        x += panel_width(p) + kGap;
        g->bottom = fmax(g->bottom, y + panel_height(p));
    }
}

static void measure(group *g) {
    for (size_t i = 0; i < g->n; i++) {
        add(&g->heads, g->first[i].any->shape->heads);
        g->flagged |= g->first[i].flags[0] != '\0';
    }
    for (size_t i = 0; i < g->n; i++) {
        const report_cell *c = g->first[i].any;
        int at = place(&g->heads, c->shape->heads);
        if (at < 0)
            continue;
        add(&g->panels[at].batch, c->shape->batch);
        add(&g->panels[at].context, c->shape->context);
    }
    lay_out(g);
}

/* ---- colours: classes h0 (slower), h2 (equal) .. h8 (near the ratio of the bytes) ---- */

static const double kEdges[] = {0.80, 0.95, 1.05, 1.20, 1.35, 1.50, 1.65, 1.80};
enum { EDGES = sizeof kEdges / sizeof *kEdges };

static int shade(double speedup) {
    int i = 0;
    while (i < EDGES && speedup >= kEdges[i])
        i++;
    return i;
}

static void legend(buf *out, double y, bool flagged) {
    double x = kLabelW;
    svg_text(out, "m", x, y - 8, "time of BF16 / time of FP8");
    for (int i = 0; i <= EDGES; i++, x += 46) {
        char cls[16], text[16];
        (void)snprintf(cls, sizeof cls, "h%d", i);
        svg_rect(out, cls, x, y, 46, 12, NULL);
        (void)snprintf(text, sizeof text, "%.2f", kEdges[i < EDGES ? i : 0]);
        if (i < EDGES)
            svg_text(out, "m c s", x + 46, y + 25, text);
    }
    if (flagged) {
        svg_rect(out, "none", x + 24, y, 12, 12, NULL);
        (void)buf_printf(out, "<path class=\"mark\" d=\"M%.1f %.1fh-8l8 8z\"/>\n", x + 36, y);
        svg_text(out, "m", x + 42, y + 10, "flagged: see the table");
    }
}

/* ---- panels ---- */

static void draw_axes(buf *out, const panel *p, int64_t heads) {
    char text[64];
    (void)snprintf(text, sizeof text, "%lld head%s", (long long)heads, heads == 1 ? "" : "s");
    svg_text(out, "b", p->x + kLabelW, p->y + 12, text);
    for (int c = 0; c < p->context.n; c++) {
        double x = p->x + kLabelW + c * kCellW;
        format_context(p->context.values[c], text);
        svg_text(out, "m c s", x + 0.5 * kCellW, p->y + 32, text);
        for (int r = 0; r < p->batch.n; r++)
            svg_rect(out, "none", x, p->y + 38 + r * kCellH, kCellW - 2, kCellH - 2, NULL);
    }
    for (int r = 0; r < p->batch.n; r++) {
        (void)snprintf(text, sizeof text, "b %lld", (long long)p->batch.values[r]);
        svg_text(out, "m e s", p->x + kLabelW - 6, p->y + 38 + (r + 0.5) * kCellH + 3, text);
    }
}

static void describe(const report_speed *s, char *out, size_t size) {
    const report_cell *c = s->any;
    char context[FORMAT_MAX];
    format_context(c->shape->context, context);
    if (isnan(s->speedup))
        (void)snprintf(out, size, "%lld heads, batch %lld, context %s: no comparison",
                       (long long)c->shape->heads, (long long)c->shape->batch, context);
    else
        (void)snprintf(out, size,
                       "%lld heads, batch %lld, context %s: %.2f× (BF16 %.1f µs, FP8 %.1f µs)%s%s",
                       (long long)c->shape->heads, (long long)c->shape->batch, context, s->speedup,
                       s->bf16->perf->median_ns * 1e-3, s->fp8->perf->median_ns * 1e-3,
                       s->flags[0] ? "; " : "", s->flags);
}

static bool failed(const report_cell *c) {
    return c && strcmp(c->row->status, "failed") == 0;
}

static void draw_cell(buf *out, const group *g, const report_speed *s) {
    int at = place(&g->heads, s->any->shape->heads);
    const panel *p = &g->panels[at < 0 ? 0 : at];
    int row = place(&p->batch, s->any->shape->batch),
        column = place(&p->context, s->any->shape->context);
    if (at < 0 || row < 0 || column < 0)
        return;
    char tip[400], text[32], cls[16];
    double x = p->x + kLabelW + column * kCellW, y = p->y + 38 + row * kCellH;
    describe(s, tip, sizeof tip);
    (void)snprintf(cls, sizeof cls, isnan(s->speedup) ? "none" : "h%d", shade(s->speedup));
    svg_rect(out, cls, x, y, kCellW - 2, kCellH - 2, tip);
    if (isnan(s->speedup))
        (void)snprintf(text, sizeof text, "%s",
                       failed(s->bf16) || failed(s->fp8) ? "wrong" : FORMAT_NONE);
    else
        (void)snprintf(text, sizeof text, "%.2f", s->speedup);
    (void)snprintf(cls, sizeof cls, isnan(s->speedup) ? "c s m" : "c t%d", shade(s->speedup));
    svg_text(out, cls, x + (kCellW - 2) / 2.0, y + kCellH / 2.0 + 3, text);
    if (s->flags[0])
        (void)buf_printf(out, "<path class=\"mark\" d=\"M%.1f %.1fh-8l8 8z\"/>\n", x + kCellW - 2,
                         y);
}

static void title(const report_model *m, const group *g, char *out, size_t size) {
    const report_cell *c = g->first->any;
    (void)snprintf(out, size,
                   "Speed-up of FP8 over BF16, scope %s, s_q %lld, input %.60s%s%s%.200s",
                   c->row->scope, (long long)c->shape->s_q, c->row->distribution,
                   is_sustained(c) ? ", sustained" : "", m->n_files > 1 ? ", " : "",
                   m->n_files > 1 ? report_name_of(m, c->file) : "");
}

bool figure_speedup(const report_model *m, size_t index, bool alone, buf *out) {
    group g;
    if (!find(m, index, &g))
        return false;
    measure(&g);
    double height = g.bottom + kHead - 34 + kFoot;
    char id[32], name[400];
    (void)snprintf(id, sizeof id, "speedup-%zu", index + 1);
    title(m, &g, name, sizeof name);
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description = "Columns are contexts, rows are batches (b). Each "
                                             "cell shows the speed-up. The speed table has the "
                                             "same numbers.",
                              .width = kWidth,
                              .height = height,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    for (int p = 0; p < g.heads.n; p++)
        draw_axes(out, &g.panels[p], g.heads.values[p]);
    for (size_t i = 0; i < g.n; i++)
        draw_cell(out, &g, &g.first[i]);
    legend(out, height - 30, g.flagged);
    svg_close(out);
    return true;
}
