/* map_panel.h - panels of the figures of predicted layouts: grids of squares whose columns are
 * contexts. */
#ifndef SNAPMLA_HARNESS_VIEW_MAP_PANEL_H
#define SNAPMLA_HARNESS_VIEW_MAP_PANEL_H

#include "harness/view/layout_map.h"

/* In pixels of the figure: a row of squares, the base line of the first line of text in a square,
 * and the distance of the lines. */
enum { MAP_ROW_H = 34, MAP_LINE = 14, MAP_LINE_H = 13 };

/* Where the panels of a figure are: side by side, in as many rows as needed. All lengths are in
 * pixels of the figure. */
typedef struct {
    double panel_w, panel_h;
    double width, height; /* of the figure */
    int across;           /* panels side by side */
} map_grid;

/* @n panels of @columns contexts. The squares of a panel are @squares_h high in all. */
map_grid map_grid_of(int n, int columns, double squares_h);

typedef struct {
    double x, y;      /* upper left corner */
    double squares_y; /* upper edge of the squares */
    const map_axis *contexts;
} map_panel;

typedef struct {
    double x, y, w, h;
} map_square;

/* Draws the heads of panel @i: @title, the contexts, and @rows over the labels of the rows. */
map_panel map_panel_draw(buf *out, const map_grid *g, int i, const map_axis *contexts,
                         const char *title, const char *rows);

/* Draws the label of a row of squares. @y: upper edge of the row. */
void map_panel_label(buf *out, const map_panel *p, double y, double height, const char *text);

map_square map_panel_square(const map_panel *p, int column, double y, double height);

/* Draws a cell without a layout: a frame with a sign. */
void map_panel_empty(buf *out, const map_square *s, const map_cell *cell);

/* If @cut, notes in the head of the figure that an axis has more numbers. */
void map_panel_cut(buf *out, bool cut);

/* Draws a square with its text, which is an entry of the legend. @x, @y: start of its base line.
 * Returns where the next entry begins. */
double map_panel_swatch(buf *out, const char *cls, double x, double y, const char *text);

#endif
