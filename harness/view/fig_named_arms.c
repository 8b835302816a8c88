/* fig_named_arms.c - draws the speed-up of each named arm over the baseline: one row for each cell,
 * one column for each arm. The speed-up is also written in its cell, so the colours are not needed
 * to read the figure. A cell whose interval contains 1 has the colour of "equal". */
#include <math.h>
#include <stdio.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/named_arms.h"
#include "harness/view/svg.h"

enum { kRows = 32, kColumns = 10, kCellW = 72, kCellH = 24, kLeft = 210, kTop = 66, kFoot = 60 };
static const double kWidth = 940;

/* The part of a grid that one figure shows. */
typedef struct {
    const named_arms *g;
    size_t first, rows;
    int first_arm, columns; /* the baseline has no column */
} part;

static bool find(const report_model *m, size_t index, part *p) {
    for (size_t k = 0; k < m->n_named; k++) {
        const named_arms *g = &m->named[k];
        for (int arm = 1; arm < g->n_arms; arm += kColumns)
            for (size_t row = 0; row < g->n_cells; row += kRows)
                if (index-- == 0) {
                    size_t rows = g->n_cells - row;
                    int columns = g->n_arms - arm;
                    *p = (part){g, row, rows < kRows ? rows : kRows, arm,
                                columns < kColumns ? columns : kColumns};
                    return true;
                }
    }
    return false;
}

/* Colours: classes h0 (less than half as fast) .. h2 (equal) .. h8 (four times as fast or more). */
static const double kEdges[] = {0.5, 0.95, 1.05, 1.25, 1.5, 2, 3, 4};
enum { EDGES = sizeof kEdges / sizeof *kEdges, kEqual = 2 };

static int shade(const report_cell *c) {
    int i = 0;
    if (named_arms_outcome(c) == NAMED_TIE)
        return kEqual;
    while (i < EDGES && c->row->against.ratio >= kEdges[i])
        i++;
    return i;
}

static void legend(buf *out, double y) {
    svg_text(out, "m", kLeft, y - 8, "time of the baseline / time of the arm");
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

static void describe(const report_cell *c, const char *arm, char *out, size_t size) {
    const cell_against *a = c ? &c->row->against : NULL;
    if (!c)
        (void)snprintf(out, size, "%s: no row", arm);
    else if (named_arms_outcome(c) == NAMED_NONE)
        (void)snprintf(out, size, "%s: %s %.200s", arm, c->row->status, c->row->reason);
    else
        (void)snprintf(out, size, "%s: %.3f× (95 %%: %.3f to %.3f), %.1f µs%s%s", arm, a->ratio,
                       a->interval[0], a->interval[1], c->perf->median_ns * 1e-3,
                       c->flags[0] ? "; " : "", c->flags);
}

static void draw_cell(buf *out, const report_cell *c, const char *arm, double x, double y) {
    bool known = named_arms_outcome(c) != NAMED_NONE;
    char tip[400], text[32], cls[16];
    describe(c, arm, tip, sizeof tip);
    (void)snprintf(cls, sizeof cls, known ? "h%d" : "none", known ? shade(c) : 0);
    svg_rect(out, cls, x, y, kCellW - 2, kCellH - 2, tip);
    if (known)
        (void)snprintf(text, sizeof text, "%.2f", c->row->against.ratio);
    else
        (void)snprintf(text, sizeof text, "%s", c ? c->row->status : FORMAT_NONE);
    (void)snprintf(cls, sizeof cls, known ? "c t%d" : "c s m", known ? shade(c) : 0);
    svg_text(out, cls, x + (kCellW - 2) / 2.0, y + kCellH / 2.0 + 3, text);
}

bool figure_named_arms(const report_model *m, size_t index, bool alone, buf *out) {
    part p;
    if (!find(m, index, &p))
        return false;
    const named_arms *g = p.g;
    double height = kTop + (double)p.rows * kCellH + kFoot;
    char id[32], name[400];
    (void)snprintf(id, sizeof id, "named-arms-%zu", index + 1);
    (void)snprintf(name, sizeof name, "Speed-up over the baseline %s%s%.200s", g->arm[0],
                   m->n_files > 1 ? ", " : "", m->n_files > 1 ? m->files[g->file] : "");
    svg_open(out,
             &(svg_head){.id = id,
                         .title = name,
                         .description = "Rows are cells, columns are arms. Each cell shows the "
                                        "speed-up. The table of the cells has the same "
                                        "numbers and their intervals.",
                         .width = kWidth,
                         .height = height,
                         .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    for (int i = 0; i < p.columns; i++)
        svg_text_cut(out, "m c s", kLeft + (i + 0.5) * kCellW - 1, i % 2 ? kTop - 8 : kTop - 24,
                     g->arm[p.first_arm + i], 20);
    for (size_t r = 0; r < p.rows; r++) {
        double y = kTop + (double)r * kCellH;
        row_label(out, named_arms_any(g, p.first + r), y);
        for (int i = 0; i < p.columns; i++)
            draw_cell(out, named_arms_at(g, p.first + r, p.first_arm + i), g->arm[p.first_arm + i],
                      kLeft + i * kCellW, y);
    }
    legend(out, height - 30);
    svg_close(out);
    return true;
}
