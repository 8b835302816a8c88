#include "harness/view/map_panel.h"

#include <string.h>

#include "harness/view/format.h"
#include "harness/view/svg.h"

static const double kWidth = 940, kTop = 76, kLabelW = 70, kHeadH = 42, kCellW = 76, kGap = 24,
                    kSpace = 2; /* between squares */

map_grid map_grid_of(int n, int columns, double squares_h) {
    map_grid g = {.panel_w = kLabelW + columns * kCellW, .panel_h = kHeadH + squares_h};
    g.across = (int)((kWidth + kGap) / (g.panel_w + kGap));
    const int down = (n + g.across - 1) / g.across;
    g.width = kWidth;
    g.height = kTop + down * (g.panel_h + kGap) - kGap + 6;
    return g;
}

map_panel map_panel_draw(buf *out, const map_grid *g, int i, const map_axis *contexts,
                         const char *title, const char *rows) {
    const int across = i % g->across, down = i / g->across;
    map_panel p = {.x = across * (g->panel_w + kGap),
                   .y = kTop + down * (g->panel_h + kGap),
                   .contexts = contexts};
    char text[FORMAT_MAX];
    p.squares_y = p.y + kHeadH;
    svg_text_cut(out, "b", p.x + kLabelW, p.y + 12, title, (size_t)(g->panel_w / 10));
    svg_text(out, "m e s", p.x + kLabelW - 8, p.y + 34, rows);
    for (int c = 0; c < contexts->n; c++) {
        format_context(contexts->at[c], text);
        svg_text(out, "m c s", p.x + kLabelW + (c + 0.5) * kCellW, p.y + 34, text);
    }
    return p;
}

void map_panel_label(buf *out, const map_panel *p, double y, double height, const char *text) {
    svg_text(out, "m e s", p->x + kLabelW - 8, y + (height - kSpace) / 2 + 4, text);
}

map_square map_panel_square(const map_panel *p, int column, double y, double height) {
    return (map_square){p->x + kLabelW + column * kCellW, y, kCellW - kSpace, height - kSpace};
}

void map_panel_empty(buf *out, const map_square *s, const map_cell *cell) {
    svg_rect(out, "gr", s->x + 0.5, s->y + 0.5, s->w - 1, s->h - 1,
             cell->too_large ? "does not fit into the memory"
                             : "fewer sequences than replicas in every layout, or not predicted");
    const char *sign = cell->too_large ? "×" : FORMAT_NONE;
    svg_text(out, "m c", s->x + s->w / 2, s->y + s->h / 2 + 4, sign);
}

void map_panel_cut(buf *out, bool cut) {
    if (cut)
        svg_text(out, "m s", 0, 70, "The smallest numbers are left out; the table has them");
}

double map_panel_swatch(buf *out, const char *cls, double x, double y, const char *text) {
    svg_rect(out, cls, x, y - 9, 10, 10, NULL);
    svg_text(out, "s", x + 15, y, text);
    return x + 30 + 7 * (double)strlen(text);
}
