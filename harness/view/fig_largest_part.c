/* fig_largest_part.c - draws which part of a predicted step is the largest. Each model has a
 * figure. A figure has a panel for each cache format. A panel has a square for each context
 * (columns) and number of GPUs (rows), for the fastest layout with its largest batch. */
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/map_panel.h"
#include "harness/view/svg.h"

static const struct {
    const char *name, *fill, *text; /* classes of figure.css; attention stands out */
} kParts[] = {{"attention", "h7", "c s t7"},
              {"exchange", "h1", "c s"},
              {"experts", "band", "c s"},
              {"rest", "h2", "c s"}};
enum { kNParts = sizeof kParts / sizeof *kParts };

/* The percentage of attention in the sum of all parts. */
static double attention_share(const prediction_record *r) {
    return 100 * r->attention_ns / (r->attention_ns + r->exchange_ns + r->experts_ns + r->rest_ns);
}

static void draw_square(buf *out, const map_square *s, const map_cell *cell) {
    const prediction_record *r = cell->best;
    char share[FORMAT_MAX + 3], number[FORMAT_MAX], tip[320];
    size_t i = 0;
    if (!r) {
        map_panel_empty(out, s, cell);
        return;
    }
    while (i + 1 < kNParts && strcmp(kParts[i].name, r->limit) != 0)
        i++;
    (void)snprintf(tip, sizeof tip,
                   "%.60s, %lld sequences: attention %.2f ms, exchange %.2f ms, experts %.2f ms, "
                   "rest %.2f ms",
                   r->layout, (long long)r->batch, r->attention_ns / 1e6, r->exchange_ns / 1e6,
                   r->experts_ns / 1e6, r->rest_ns / 1e6);
    format_fixed(attention_share(r), 0, number);
    (void)snprintf(share, sizeof share, "%s %%", number);
    svg_rect(out, kParts[i].fill, s->x, s->y, s->w, s->h, tip);
    svg_text(out, kParts[i].text, s->x + s->w / 2, s->y + MAP_LINE, kParts[i].name);
    svg_text(out, kParts[i].text, s->x + s->w / 2, s->y + MAP_LINE + MAP_LINE_H, share);
}

static void draw_panel(buf *out, const map_grid *grid, int i, const layout_map *map) {
    char text[80];
    (void)snprintf(text, sizeof text, "cache in %.60s", map->key.row->arm);
    const map_panel p = map_panel_draw(out, grid, i, &map->contexts, text, "GPUs");
    for (int g = 0; g < map->gpus.n; g++) {
        const double y = p.squares_y + g * MAP_ROW_H;
        (void)snprintf(text, sizeof text, "%lld", (long long)map->gpus.at[g]);
        map_panel_label(out, &p, y, MAP_ROW_H, text);
        for (int c = 0; c < map->contexts.n; c++) {
            const map_square s = map_panel_square(&p, c, y, MAP_ROW_H);
            draw_square(out, &s, &map->largest[g][c]);
        }
    }
}

static void legend(buf *out) {
    double x = 0;
    for (size_t i = 0; i < kNParts; i++)
        x = map_panel_swatch(out, kParts[i].fill, x, 36, kParts[i].name);
    svg_text(out, "m s", x, 36, "the largest part of a step of the fastest layout");
    svg_text(out, "m s", 0, 54,
             "%  attention in the sum of all parts. Columns: tokens of context. ×  does not fit "
             "into the memory. –  not predicted");
}

/* The maps of one model: those that differ in the cache format only. */
typedef struct {
    const map_key *at[FIGURES_MAX];
    int n;
} group;

/* Finds the maps of the @index-th model, counted from 0, of which at least one has the largest
 * batches. @shown is set to the numbers of contexts and GPUs that a panel needs. */
static bool find(const report_model *m, const map_key *keys, size_t n, size_t index, group *out,
                 layout_map *shown) {
    bool used[FIGURES_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        int contexts = 0, gpus = 0;
        out->n = 0;
        for (size_t k = i; k < n; k++) {
            if (used[k] || !layout_map_same_but_arm(&keys[i], &keys[k]))
                continue;
            used[k] = true;
            layout_map_fill(m, &keys[k], shown);
            if (!shown->has_largest)
                continue;
            out->at[out->n++] = &keys[k];
            contexts = shown->contexts.n > contexts ? shown->contexts.n : contexts;
            gpus = shown->gpus.n > gpus ? shown->gpus.n : gpus;
        }
        shown->contexts.n = contexts;
        shown->gpus.n = gpus;
        if (out->n && index-- == 0)
            return true;
    }
    return false;
}

bool figure_largest_part(const report_model *m, size_t index, bool alone, buf *out) {
    map_key keys[FIGURES_MAX];
    group maps;
    layout_map map;
    if (!find(m, keys, layout_map_keys(m, keys, FIGURES_MAX), index, &maps, &map))
        return false;
    const map_grid grid = map_grid_of(maps.n, map.contexts.n, map.gpus.n * MAP_ROW_H);
    char id[32];
    buf name = {0};
    (void)snprintf(id, sizeof id, "largest-part-%zu", index + 1);
    (void)buf_puts(&name, "Largest part of a predicted step with the largest batch: ");
    layout_map_text(m, maps.at[0], &name);
    svg_open(out, &(svg_head){.id = id,
                              .title = buf_str(&name),
                              .description =
                                  "One panel for each cache format, with a column for each context "
                                  "and a row for each number of GPUs. A square has the name of the "
                                  "largest part and the share of attention, and its colour shows "
                                  "the part. The table of predicted steps has the times of all "
                                  "parts.",
                              .width = grid.width,
                              .height = grid.height,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, buf_str(&name), 120);
    legend(out);
    bool cut = false;
    for (int i = 0; i < maps.n; i++) {
        layout_map_fill(m, maps.at[i], &map);
        draw_panel(out, &grid, i, &map);
        cut |= map.gpus.cut || map.contexts.cut;
    }
    map_panel_cut(out, cut);
    svg_close(out);
    out->failed |= name.failed;
    buf_release(&name);
    return true;
}
