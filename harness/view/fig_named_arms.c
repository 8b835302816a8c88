/* fig_named_arms.c - draws how much faster each named arm is than each other one: one row for each
 * cell, one column for each pair of arms. The ratio and its interval are also written in the cell,
 * so the colours are not needed to read the figure. A cell whose interval contains 1 has the colour
 * of "equal". */
#include <math.h>
#include <stdio.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/named_arms.h"
#include "harness/view/svg.h"

enum { kRows = 32, kColumns = 8, kCellW = 90, kCellH = 34, kLeft = 210, kTop = 62, kFoot = 60 };
static const double kWidth = 940;

/* The part of a grid that one figure shows. The pairs are numbered: first those with the baseline,
 * then those of the second arm with later ones, and so on. */
typedef struct {
    const named_arms *g;
    size_t first, rows;
    int first_pair, columns;
} part;

static int pairs_of(const named_arms *g) {
    return g->n_arms * (g->n_arms - 1) / 2;
}

static bool find(const report_model *m, size_t index, part *p) {
    for (size_t k = 0; k < m->n_named; k++) {
        const named_arms *g = &m->named[k];
        for (int pair = 0; pair < pairs_of(g); pair += kColumns)
            for (size_t row = 0; row < g->n_cells; row += kRows)
                if (index-- == 0) {
                    size_t rows = g->n_cells - row;
                    int columns = pairs_of(g) - pair;
                    *p = (part){g, row, rows < kRows ? rows : kRows, pair,
                                columns < kColumns ? columns : kColumns};
                    return true;
                }
    }
    return false;
}

/* The two arms of a numbered pair. */
static void arms_of(const named_arms *g, int pair, int *base, int *arm) {
    *base = 0;
    for (int n = g->n_arms - 1; pair >= n; n--) {
        pair -= n;
        (*base)++;
    }
    *arm = *base + 1 + pair;
}

/* Colours: classes h0 (less than half as fast) .. h2 (equal) .. h8 (four times as fast or more). */
static const double kEdges[] = {0.5, 0.95, 1.05, 1.25, 1.5, 2, 3, 4};
enum { EDGES = sizeof kEdges / sizeof *kEdges, kEqual = 2 };

static int shade(const named_pair *p) {
    int i = 0;
    if (named_pair_outcome(p) == NAMED_TIE)
        return kEqual;
    while (i < EDGES && p->gain.ratio >= kEdges[i])
        i++;
    return i;
}

static void legend(buf *out, double y) {
    svg_text(out, "m", kLeft, y - 8, "time of the lower arm / time of the upper one");
    for (int i = 0; i <= EDGES; i++) {
        char cls[16], text[16];
        double x = kLeft + 46.0 * i;
        (void)snprintf(cls, sizeof cls, "h%d", i);
        svg_rect(out, cls, x, y, 46, 12, NULL);
        (void)snprintf(text, sizeof text, "%.2f", kEdges[i < EDGES ? i : 0]);
        if (i < EDGES)
            svg_text(out, "m c s", x + 46, y + 25, text);
    }
}

static void row_label(buf *out, const report_cell *c, double y) {
    char text[96], context[FORMAT_MAX];
    const cell_shape *s = c->shape;
    format_context(s->context, context);
    (void)snprintf(text, sizeof text, "%s H %lld, s_q %lld, b %lld, %s", c->row->scope,
                   (long long)s->heads, (long long)s->s_q, (long long)s->batch, context);
    svg_text(out, "m e s", kLeft - 8, y + kCellH / 2.0 + 3, text);
}

/* Why an arm has no time in a cell; NULL: it has one. */
static const char *missing(const report_cell *c) {
    return !c ? "no row" : c->perf->exists ? NULL : c->row->status;
}

/* One cell of the figure. */
typedef struct {
    const named_arms *g;
    size_t cell;
    int base, arm;
    const named_pair *pair; /* NULL: one of the arms has no time */
} square;

static void describe(const square *q, char *out, size_t size) {
    const char *base = q->g->arm[q->base], *arm = q->g->arm[q->arm];
    const report_cell *x = named_arms_at(q->g, q->cell, q->base);
    const report_cell *y = named_arms_at(q->g, q->cell, q->arm);
    const report_cell *without = missing(y) ? y : x;
    if (!q->pair)
        (void)snprintf(out, size, "%s: %s %.200s", missing(y) ? arm : base,
                       missing(without) ? missing(without) : "",
                       without ? without->row->reason : "");
    else
        (void)snprintf(out, size,
                       "%s against %s: %.3f× (95 %%: %.3f to %.3f), %.1f µs against %.1f "
                       "µs%s%s",
                       arm, base, q->pair->gain.ratio, q->pair->gain.lo, q->pair->gain.hi,
                       y->perf->median_ns * 1e-3, x->perf->median_ns * 1e-3,
                       y->flags[0] ? "; " : "", y->flags);
}

static void draw_square(buf *out, const square *q, double x, double y) {
    const named_pair *p = q->pair;
    bool known = named_pair_outcome(p) != NAMED_NONE;
    double middle = x + (kCellW - 2) / 2.0;
    char tip[400], text[32], cls[16];
    describe(q, tip, sizeof tip);
    (void)snprintf(cls, sizeof cls, known ? "h%d" : "none", known ? shade(p) : 0);
    svg_rect(out, cls, x, y, kCellW - 2, kCellH - 2, tip);
    if (!known) {
        const char *why = missing(named_arms_at(q->g, q->cell, q->arm));
        why = why ? why : missing(named_arms_at(q->g, q->cell, q->base));
        svg_text(out, "c s m", middle, y + kCellH / 2.0 + 3, why ? why : FORMAT_NONE);
        return;
    }
    bool interval = named_pair_outcome(p) != NAMED_UNKNOWN;
    (void)snprintf(cls, sizeof cls, "c t%d", shade(p));
    (void)snprintf(text, sizeof text, "%.2f", p->gain.ratio);
    svg_text(out, cls, middle, y + (interval ? 14 : kCellH / 2.0 + 3), text);
    if (!interval)
        return;
    (void)snprintf(cls, sizeof cls, "c s t%d", shade(p));
    int decimals = p->gain.hi < 10 ? 3 : 1;
    (void)snprintf(text, sizeof text, "%.*f..%.*f", decimals, p->gain.lo, decimals, p->gain.hi);
    svg_text(out, cls, middle, y + 27, text);
}

static void draw_column(buf *out, const part *p, int column) {
    square q = {.g = p->g};
    double x = kLeft + (double)column * kCellW;
    arms_of(p->g, p->first_pair + column, &q.base, &q.arm);
    svg_text_cut(out, "c s b", x + kCellW / 2.0 - 1, kTop - 22, p->g->arm[q.arm], 14);
    svg_text_cut(out, "m c s", x + kCellW / 2.0 - 1, kTop - 8, p->g->arm[q.base], 14);
    for (size_t r = 0; r < p->rows; r++) {
        q.cell = p->first + r;
        q.pair = named_arms_pair(p->g, q.cell, q.base, q.arm);
        draw_square(out, &q, x, kTop + (double)r * kCellH);
    }
}

bool figure_named_arms(const report_model *m, size_t index, bool alone, buf *out) {
    part p;
    if (!find(m, index, &p))
        return false;
    const named_arms *g = p.g;
    double height = kTop + (double)p.rows * kCellH + kFoot;
    char id[32], name[300];
    (void)snprintf(id, sizeof id, "named-arms-%zu", index + 1);
    (void)snprintf(name, sizeof name, "Speed-up of one arm over another%s%.200s",
                   m->n_files > 1 ? ", " : "", m->n_files > 1 ? report_name_of(m, g->file) : "");
    svg_open(out,
             &(svg_head){.id = id,
                         .title = name,
                         .description = "Rows are cells, columns are pairs of arms. Each square "
                                        "shows the speed-up of the upper arm over the lower one "
                                        "and its 95 % interval. The tables of the cells have the "
                                        "same numbers.",
                         .width = kWidth,
                         .height = height,
                         .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    for (size_t r = 0; r < p.rows; r++)
        row_label(out, named_arms_any(g, p.first + r), kTop + (double)r * kCellH);
    for (int i = 0; i < p.columns; i++)
        draw_column(out, &p, i);
    legend(out, height - 30);
    svg_close(out);
    return true;
}
