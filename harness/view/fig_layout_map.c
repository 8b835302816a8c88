/* fig_layout_map.c - draws maps of predicted layouts. Each model and cache format has a figure. A
 * figure has a panel for each number of GPUs. A panel has a square for each context (columns) and
 * number of sequences (rows), with the fastest layout. Its shade is the number of GPUs that share a
 * replica. */
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/layout_text.h"
#include "harness/view/map_panel.h"
#include "harness/view/svg.h"

enum { kPanels = 6, kShades = 4, kNameColumns = 11 };
/* A square has one line or two. In the row of the largest batch, its size follows. */
static const double kLargestH = MAP_ROW_H + MAP_LINE_H;

/* ---- one square ---- */

/* Classes of figure.css, an ordered scale: the number of GPUs that share a replica. */
static const char *const kShade[kShades] = {"h2", "h4", "h6", "h8"};
static const char *const kTp[kShades] = {"TP1", "TP2", "TP4", "TP8"};

/* A number between two powers of two has the shade of the smaller one. */
static int shade_of(int tp) {
    return tp < 2 ? 0 : tp < 4 ? 1 : tp < 8 ? 2 : 3;
}

/* Splits the short name of a layout, "DP4/TP2/EP8", into "DP4/TP2" and "EP8". */
static void split_name(const char *layout, char replicas[LAYOUT_SHORT_MAX],
                       char experts[LAYOUT_SHORT_MAX]) {
    char name[LAYOUT_SHORT_MAX];
    (void)snprintf(replicas, LAYOUT_SHORT_MAX, "%s", layout_short(layout, name));
    char *slash = strstr(replicas, "/EP");
    experts[0] = '\0';
    if (!slash)
        return;
    *slash = '\0';
    (void)snprintf(experts, LAYOUT_SHORT_MAX, "%s", slash + 1);
}

static void tip_of(const prediction_record *r, char *out, size_t size) {
    char context[FORMAT_MAX], second[160] = "no other layout fits";
    format_context(r->context, context);
    if (r->runner_up[0])
        (void)snprintf(second, sizeof second, "%s %.60s, %.2f×",
                       layout_map_is_tied(r) ? "tie, second:" : "second:", r->runner_up,
                       r->runner_up_tokens_s / r->tokens_s);
    (void)snprintf(out, size, "%.60s, %lld × %s: %.0f tokens/s (%.0f–%.0f); %s", r->layout,
                   (long long)r->batch, context, r->tokens_s, r->tokens_s_interval[0],
                   r->tokens_s_interval[1], second);
}

static void draw_square(buf *out, const map_square *s, const map_cell *cell) {
    const prediction_record *r = cell->best;
    char replicas[LAYOUT_SHORT_MAX], experts[LAYOUT_SHORT_MAX], tip[480], cls[24], batch[24];
    if (!r) {
        map_panel_empty(out, s, cell);
        return;
    }
    const char *shade = kShade[shade_of(layout_read(r->layout).tp)];
    const double middle = s->x + s->w / 2, foot = s->y + s->h - 5;
    const bool tied = layout_map_is_tied(r);
    split_name(r->layout, replicas, experts);
    tip_of(r, tip, sizeof tip);
    svg_rect(out, shade, s->x, s->y, s->w, s->h, tip);
    (void)snprintf(cls, sizeof cls, "c s t%c%s", shade[1], tied ? "" : " b");
    svg_text_cut(out, cls, middle, s->y + MAP_LINE, replicas, kNameColumns);
    if (experts[0])
        svg_text_cut(out, cls, middle, s->y + MAP_LINE + MAP_LINE_H, experts, kNameColumns);
    (void)snprintf(cls, sizeof cls, "c s t%c", shade[1]);
    (void)snprintf(batch, sizeof batch, "%lld", (long long)r->batch);
    if (r->largest)
        svg_text(out, cls, middle, foot, batch);
    if (tied)
        svg_text(out, cls, s->x + s->w - 8, foot, "=");
}

/* ---- one panel ---- */

static double squares_height(const layout_map *map) {
    return map->batches.n * MAP_ROW_H + (map->has_largest ? kLargestH : 0);
}

static void draw_row(buf *out, const map_panel *p, double y, double height, const map_cell *cells) {
    for (int c = 0; c < p->contexts->n; c++) {
        const map_square s = map_panel_square(p, c, y, height);
        draw_square(out, &s, &cells[c]);
    }
}

/* Panel @i of a figure, which shows number @g of the numbers of GPUs. */
static void draw_panel(buf *out, const map_grid *grid, int i, const layout_map *map, int g) {
    char text[48];
    (void)snprintf(text, sizeof text, "%lld %s", (long long)map->gpus.at[g],
                   map->gpus.at[g] == 1 ? "GPU" : "GPUs");
    const map_panel p = map_panel_draw(out, grid, i, &map->contexts, text, "sequences");
    double y = p.squares_y;
    for (int b = 0; b < map->batches.n; b++, y += MAP_ROW_H) {
        (void)snprintf(text, sizeof text, "%lld", (long long)map->batches.at[b]);
        map_panel_label(out, &p, y, MAP_ROW_H, text);
        draw_row(out, &p, y, MAP_ROW_H, map->at[g][b]);
    }
    if (!map->has_largest)
        return;
    map_panel_label(out, &p, y, kLargestH, "largest");
    draw_row(out, &p, y, kLargestH, map->largest[g]);
}

/* ---- the figure ---- */

static void legend(buf *out, const layout_map *map) {
    double x = 0;
    for (int i = 0; i < kShades; i++)
        x = map_panel_swatch(out, kShade[i], x, 36, kTp[i]);
    svg_text(out, "m s", x, 36,
             "TP: GPUs that share a replica. Columns: tokens of context. "
             "Row 'largest': the largest batch, with its size");
    svg_text(out, "m s", 0, 54,
             "=  tie: the interval of another layout overlaps; bold: no tie. ×  does not fit into "
             "the memory. –  fewer sequences than replicas, or not predicted");
    map_panel_cut(out, map->gpus.cut || map->batches.cut || map->contexts.cut);
}

/* Draws up to kPanels numbers of GPUs, from number @first on. */
static void draw(const report_model *m, const layout_map *map, int first, size_t index, bool alone,
                 buf *out) {
    const int n = map->gpus.n - first < kPanels ? map->gpus.n - first : kPanels;
    const map_grid grid = map_grid_of(n, map->contexts.n, squares_height(map));
    char id[32];
    buf name = {0};
    (void)snprintf(id, sizeof id, "layout-map-%zu", index + 1);
    (void)buf_printf(&name, "Predicted fastest layout with a cache in %s: ", map->key.row->arm);
    layout_map_text(m, &map->key, &name);
    svg_open(out, &(svg_head){.id = id,
                              .title = buf_str(&name),
                              .description =
                                  "One panel for each number of GPUs, with a column for each "
                                  "context and a row for each number of sequences. A square has "
                                  "the name of the fastest layout, and its shade shows how many "
                                  "GPUs share a replica. The table of predicted steps has the same "
                                  "layouts, and the second fastest ones.",
                              .width = grid.width,
                              .height = grid.height,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, buf_str(&name), 120);
    legend(out, map);
    for (int i = 0; i < n; i++)
        draw_panel(out, &grid, i, map, first + i);
    svg_close(out);
    out->failed |= name.failed;
    buf_release(&name);
}

bool figure_layout_map(const report_model *m, size_t index, bool alone, buf *out) {
    map_key keys[FIGURES_MAX];
    const size_t n = layout_map_keys(m, keys, FIGURES_MAX);
    size_t left = index;
    for (size_t i = 0; i < n; i++) {
        layout_map map;
        layout_map_fill(m, &keys[i], &map);
        for (int first = 0; first < map.gpus.n; first += kPanels)
            if (left-- == 0) {
                draw(m, &map, first, index, alone, out);
                return true;
            }
    }
    return false;
}
