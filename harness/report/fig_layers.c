/* fig_layers.c - relative L2 error of each configuration layer by layer, at the longest context of a model;
 * the error is logarithmic. A line a configuration, named at its end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/figures.h"
#include "harness/report/format.h"
#include "harness/report/svg.h"

static const double kWidth = 940, kHeight = 400, kLeft = 66, kRight = 720, kTop = 44, kBottom = 340;
static const double kLabelStep = 15; /* pixels between names at the lines' ends */
enum { kLinesMax = 16 };

typedef struct {
    const char *config;
    double last;  /* error of the last layer */
    double label; /* y of the name */
} series;

typedef struct {
    const report_model *m;
    const report_model_row *key; /* file, model and context of this figure */
    series lines[kLinesMax];
    size_t n;
    int64_t layers; /* the last one */
    svg_scale x, y;
} plot;

static bool is_layer(const report_model_row *r) {
    return strcmp(r->kind, "layer") == 0 && js_get_num(r->row, "rel_l2", 0) > 0;
}

static bool same_model(const report_model_row *a, const report_model_row *b) {
    return a->file == b->file && strcmp(a->model, b->model) == 0;
}

/* A row of the index-th figure: of another model than any row before, at that one's longest context. */
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
        if (is_layer(r) && same_model(r, found) && r->context > found->context)
            found = r;
    }
    return found;
}

static bool drawn(const plot *p, const report_model_row *r) {
    return is_layer(r) && same_model(r, p->key) && r->context == p->key->context;
}

static series *line_of(plot *p, const char *config) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->lines[i].config, config) == 0)
            return &p->lines[i];
    if (p->n == kLinesMax)
        return NULL;
    p->lines[p->n] = (series){.config = config};
    return &p->lines[p->n++];
}

static int by_label(const void *a, const void *b) {
    double x = ((const series *)a)->label, y = ((const series *)b)->label;
    return (x > y) - (x < y);
}

static void scale(plot *p) {
    double low = HUGE_VAL, high = 0;
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r))
            continue;
        double x = js_get_num(r->row, "rel_l2", 0);
        series *s = line_of(p, r->name);
        low = fmin(low, x);
        high = fmax(high, x);
        p->layers = r->layer > p->layers ? r->layer : p->layers;
        if (s && r->layer == p->layers)
            s->last = x;
    }
    p->x = svg_linear(-0.2, (double)p->layers + 0.2, kLeft, kRight);
    p->y = svg_log(low / 1.5, high * 1.5, kBottom, kTop);
}

/* Pushes down what overlaps, then up again what fell off the bottom. */
static void place_labels(plot *p) {
    for (size_t i = 0; i < p->n; i++)
        p->lines[i].label = svg_at(&p->y, p->lines[i].last);
    qsort(p->lines, p->n, sizeof *p->lines, by_label);
    for (size_t i = 1; i < p->n; i++)
        p->lines[i].label = fmax(p->lines[i].label, p->lines[i - 1].label + kLabelStep);
    double limit = kBottom + 4;
    for (size_t i = p->n; i-- > 0; limit -= kLabelStep)
        p->lines[i].label = fmin(p->lines[i].label, limit);
}

static const char *class_of(const char *config) {
    return strcmp(config, "bf16") == 0 ? "bf" : strcmp(config, "snapmla") == 0 ? "f8" : "other";
}

/* Rows come layer by layer. */
static void draw_series(buf *out, const plot *p, const series *s) {
    const char *cls = class_of(s->config);
    char text[200], error[FORMAT_MAX];
    bool first = true;
    (void)buf_printf(out, "<path class=\"%sl\" d=\"", cls);
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r) || strcmp(r->name, s->config) != 0)
            continue;
        (void)buf_printf(out, "%s%.1f %.1f", first ? "M" : "L", svg_at(&p->x, (double)r->layer),
                         svg_at(&p->y, js_get_num(r->row, "rel_l2", 0)));
        first = false;
    }
    (void)buf_puts(out, "\"/>\n");
    for (size_t i = 0; i < p->m->n_model_rows; i++) {
        const report_model_row *r = &p->m->model_rows[i];
        if (!drawn(p, r) || strcmp(r->name, s->config) != 0)
            continue;
        (void)snprintf(text, sizeof text, "%.80s, layer %lld: relative L2 %.2e", s->config,
                       (long long)r->layer, js_get_num(r->row, "rel_l2", 0));
        svg_circle(out, cls, svg_at(&p->x, (double)r->layer),
                   svg_at(&p->y, js_get_num(r->row, "rel_l2", 0)), 3, text);
    }
    svg_line(out, "lead", svg_at(&p->x, (double)p->layers) + 5, svg_at(&p->y, s->last), kRight + 16,
             s->label);
    format_science(s->last, error);
    (void)snprintf(text, sizeof text, "%.80s  %s", s->config, error);
    svg_text_cut(out, strcmp(cls, "other") == 0 ? "s" : "b s", kRight + 20, s->label + 4, text, 32);
}

static void grid(buf *out, const plot *p) {
    double ticks[SVG_TICKS_MAX];
    char text[FORMAT_MAX];
    size_t n = svg_ticks(&p->y, 0, ticks);
    for (size_t i = 0; i < n; i++) {
        double y = svg_at(&p->y, ticks[i]);
        (void)snprintf(text, sizeof text, "%.0e", ticks[i]);
        svg_line(out, "gr", kLeft, y, kRight, y);
        svg_text(out, "m e s", kLeft - 8, y + 4, text);
    }
    int64_t step = p->layers / 20 + 1;
    for (int64_t layer = 0; layer <= p->layers; layer += step) {
        double x = svg_at(&p->x, (double)layer);
        (void)snprintf(text, sizeof text, "%lld", (long long)layer);
        svg_line(out, "gr", x, kTop, x, kBottom);
        svg_text(out, "m c s", x, kBottom + 18, text);
    }
}

bool figure_layers(const report_model *m, size_t index, bool alone, buf *out) {
    plot p = {.m = m, .key = find(m, index)};
    if (!p.key)
        return false;
    scale(&p);
    place_labels(&p);
    char id[32], name[400], context[FORMAT_MAX];
    format_context(p.key->context, context);
    (void)snprintf(id, sizeof id, "layers-%zu", index + 1);
    (void)snprintf(name, sizeof name, "Error by layer against FP64 attention, %.100s, context %s",
                   p.key->model, context);
    svg_open(out, &(svg_head){.id = id,
                              .title = name,
                              .description = "A line a configuration: layer across, relative L2 "
                                             "error up. The table of layers has medians and the "
                                             "worst; the sheet has every number.",
                              .width = kWidth,
                              .height = kHeight,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
    grid(out, &p);
    for (size_t i = 0; i < p.n; i++)
        draw_series(out, &p, &p.lines[i]);
    svg_text(out, "m c", (kLeft + kRight) / 2, kBottom + 42, "layer");
    svg_text_up(out, "m c", 16, (kTop + kBottom) / 2, "relative L2 error");
    svg_close(out);
    return true;
}
