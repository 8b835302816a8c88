/* fig_layers.c - draws the relative L2 error of each configuration by layer, at the longest context
 * of a model. The error axis is logarithmic. There is one line for each configuration, with its
 * name at its end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/lines.h"

typedef struct {
    const report_model *m;
    const report_model_row *key; /* file, model and context of this figure */
    lines_series lines[LINES_MAX];
    size_t n;
    int64_t layers; /* the number of the last layer */
    svg_scale x, y;
} plot;

static bool is_layer(const report_model_row *r) {
    return strcmp(r->row->kind, "layer") == 0 && r->row->rel_l2 > 0;
}

static bool same_model(const report_model_row *a, const report_model_row *b) {
    return a->file == b->file && strcmp(a->row->model, b->row->model) == 0;
}

/* Finds a row of the @index-th figure. Each model of a file has one figure; the row returned is one
 * with that model's longest context. */
static const report_model_row *find(const report_model *m, size_t index) {
    const report_model_row *found = NULL;
    for (size_t i = 0; i < m->n_model_rows && !found; i++) {
        const report_model_row *r = &m->model_rows[i];
        bool seen = !is_layer(r);
        for (size_t k = 0; k < i && !seen; k++)
            seen = is_layer(&m->model_rows[k]) && same_model(&m->model_rows[k], r);
        if (!seen && index-- == 0)
            found = r;
    }
    for (size_t i = 0; found && i < m->n_model_rows; i++) {
        const report_model_row *r = &m->model_rows[i];
        if (is_layer(r) && same_model(r, found) && r->row->context > found->row->context)
            found = r;
    }
    return found;
}

static bool drawn(const plot *p, const report_model_row *r) {
    return is_layer(r) && same_model(r, p->key) && r->row->context == p->key->row->context;
}

static lines_series *line_of(plot *p, const char *config) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->lines[i].config, config) == 0)
            return &p->lines[i];
    if (p->n == LINES_MAX)
        return NULL;
    p->lines[p->n] = (lines_series){.config = config, .source = ""};
    return &p->lines[p->n++];
}

static void scale(plot *p) {
    double low = HUGE_VAL, high = 0;
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r))
            continue;
        double x = r->row->rel_l2;
        lines_series *s = line_of(p, r->name);
        low = fmin(low, x);
        high = fmax(high, x);
        p->layers = r->row->layer > p->layers ? r->row->layer : p->layers;
        if (s && r->row->layer == p->layers)
            s->last = x;
    }
    p->x = svg_linear(-0.2, (double)p->layers + 0.2, LINES_LEFT, LINES_RIGHT);
    p->y = svg_log(low / 1.5, high * 1.5, LINES_BOTTOM, LINES_TOP);
}

/* Draws one line through the rows, in the order of the file. */
static void draw_series(buf *out, const plot *p, const lines_series *s) {
    const char *cls = lines_class(s->config);
    char text[200];
    bool first = true;
    (void)buf_printf(out, "<path class=\"%sl\" d=\"", cls);
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r) || strcmp(r->name, s->config) != 0)
            continue;
        (void)buf_printf(out, "%s%.1f %.1f", first ? "M" : "L",
                         svg_at(&p->x, (double)r->row->layer), svg_at(&p->y, r->row->rel_l2));
        first = false;
    }
    (void)buf_puts(out, "\"/>\n");
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r) || strcmp(r->name, s->config) != 0)
            continue;
        (void)snprintf(text, sizeof text, "%.80s, layer %lld: relative L2 %.2e", s->config,
                       (long long)r->row->layer, r->row->rel_l2);
        svg_circle(out, cls, svg_at(&p->x, (double)r->row->layer), svg_at(&p->y, r->row->rel_l2), 3,
                   text);
    }
    lines_name(out, s, svg_at(&p->x, (double)p->layers), &p->y);
}

static void grid(buf *out, const plot *p) {
    char text[FORMAT_MAX];
    int64_t step = p->layers / 20 + 1;
    for (int64_t layer = 0; layer <= p->layers; layer += step) {
        double x = svg_at(&p->x, (double)layer);
        (void)snprintf(text, sizeof text, "%lld", (long long)layer);
        svg_line(out, "gr", x, LINES_TOP, x, LINES_BOTTOM);
        svg_text(out, "m c s", x, LINES_BOTTOM + 18, text);
    }
}

bool figure_layers(const report_model *m, size_t index, bool alone, buf *out) {
    plot p = {.m = m, .key = find(m, index)};
    if (!p.key)
        return false;
    scale(&p);
    lines_place(p.lines, p.n, &p.y);
    char id[32], name[400], context[FORMAT_MAX];
    format_context(p.key->row->context, context);
    (void)snprintf(id, sizeof id, "layers-%zu", index + 1);
    (void)snprintf(name, sizeof name, "Error by layer against FP64 attention, %.100s, context %s",
                   p.key->row->model, context);
    lines_open(out,
               &(svg_head){.id = id,
                           .title = name,
                           .description = "One line for each configuration. Horizontal axis: "
                                          "layer; vertical axis: relative L2 error. The table "
                                          "of layers has medians and the worst layer; the CSV "
                                          "file has every number.",
                           .alone = alone},
               &p.y, "layer");
    grid(out, &p);
    for (size_t i = 0; i < p.n; i++)
        draw_series(out, &p, &p.lines[i]);
    svg_close(out);
    return true;
}
