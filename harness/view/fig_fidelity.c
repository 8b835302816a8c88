/* fig_fidelity.c - draws the relative L2 error over the context, both logarithmic. There is one
 * line for each configuration and source, with its name at its end. BF16 and SnapMLA have strong
 * colours; the other formats are grey. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/lines.h"

typedef struct {
    const report_model *m;
    const report_fidelity *key; /* file, distribution and kind of this figure */
    lines_series lines[LINES_MAX];
    size_t n;
    svg_scale x, y;
} plot;

static bool same_figure(const report_fidelity *a, const report_fidelity *b) {
    return a->file == b->file && strcmp(a->row->distribution, b->row->distribution) == 0 &&
           strcmp(a->row->kind, b->row->kind) == 0;
}

/* Whether a row can be shown on logarithmic axes. */
static bool can_draw(const report_fidelity *f) {
    return f->row->rel_l2 > 0 && f->row->context > 0 && strcmp(f->row->origin, "measured") == 0;
}

static bool drawn(const plot *p, const report_fidelity *f) {
    return same_figure(f, p->key) && can_draw(f);
}

static bool of_series(const lines_series *s, const report_fidelity *f) {
    return strcmp(s->config, f->row->config) == 0 && strcmp(s->source, f->row->source) == 0;
}

/* Finds the first row of the @index-th figure. A figure without a row to draw is not counted. */
static const report_fidelity *find(const report_model *m, size_t index) {
    for (size_t i = 0; i < m->n_fidelity; i++) {
        bool seen = !can_draw(&m->fidelity[i]);
        for (size_t k = 0; k < i && !seen; k++)
            seen = can_draw(&m->fidelity[k]) && same_figure(&m->fidelity[k], &m->fidelity[i]);
        if (!seen && index-- == 0)
            return &m->fidelity[i];
    }
    return NULL;
}

static void add(plot *p, const report_fidelity *f) {
    for (size_t i = 0; i < p->n; i++)
        if (of_series(&p->lines[i], f))
            return;
    if (p->n < LINES_MAX)
        p->lines[p->n++] = (lines_series){.config = f->row->config, .source = f->row->source};
}

static void scale(plot *p) {
    double x0 = HUGE_VAL, x1 = 0, y0 = HUGE_VAL, y1 = 0;
    for (size_t i = 0; i < p->m->n_fidelity; i++) {
        const report_fidelity *f = &p->m->fidelity[i];
        if (!drawn(p, f))
            continue;
        add(p, f);
        x0 = fmin(x0, (double)f->row->context);
        x1 = fmax(x1, (double)f->row->context);
        y0 = fmin(y0, f->row->rel_l2);
        y1 = fmax(y1, f->row->rel_l2);
    }
    p->x = svg_log(x0 / 1.3, x1 * 1.3, LINES_LEFT, LINES_RIGHT);
    p->y = svg_log(y0 / 1.5, y1 * 1.5, LINES_BOTTOM, LINES_TOP);
}

static double end_of(const plot *p, const lines_series *s) {
    double last = 0;
    int64_t context = 0;
    for (size_t i = 0; i < p->m->n_fidelity; i++) {
        const report_fidelity *f = &p->m->fidelity[i];
        if (drawn(p, f) && of_series(s, f) && f->row->context >= context) {
            context = f->row->context;
            last = f->row->rel_l2;
        }
    }
    return last;
}

/* ---- drawing the figure ---- */

static int by_context(const void *a, const void *b) {
    const report_fidelity *x = *(const report_fidelity *const *)a;
    const report_fidelity *y = *(const report_fidelity *const *)b;
    return (x->row->context > y->row->context) - (x->row->context < y->row->context);
}

static void draw_points(buf *out, const plot *p, const lines_series *s,
                        const report_fidelity **rows, size_t n) {
    const char *cls = lines_class(s->config);
    bool oracle = strcmp(s->source, "reference") == 0;
    (void)buf_printf(out, "<path class=\"%sl%s\" d=\"", cls, oracle ? "" : " dash");
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(out, "%s%.1f %.1f", i ? "L" : "M",
                         svg_at(&p->x, (double)rows[i]->row->context),
                         svg_at(&p->y, rows[i]->row->rel_l2));
    (void)buf_puts(out, "\"/>\n");
    for (size_t i = 0; i < n; i++) {
        char tip[300], context[FORMAT_MAX];
        format_context(rows[i]->row->context, context);
        (void)snprintf(tip, sizeof tip, "%.80s (%.80s), context %s: relative L2 %.2e", s->config,
                       s->source, context, rows[i]->row->rel_l2);
        svg_circle(out, cls, svg_at(&p->x, (double)rows[i]->row->context),
                   svg_at(&p->y, rows[i]->row->rel_l2), 3, tip);
    }
}

static bool draw_series(buf *out, const plot *p, const lines_series *s) {
    const report_fidelity **rows = calloc(p->m->n_fidelity, sizeof(report_fidelity *));
    size_t n = 0;
    for (size_t i = 0; rows && i < p->m->n_fidelity; i++)
        if (drawn(p, &p->m->fidelity[i]) && of_series(s, &p->m->fidelity[i]))
            rows[n++] = &p->m->fidelity[i];
    if (!rows)
        return false;
    qsort(rows, n, sizeof(report_fidelity *), by_context);
    draw_points(out, p, s, rows, n);
    lines_name(out, s, svg_at(&p->x, (double)rows[n - 1]->row->context), &p->y);
    free(rows);
    return true;
}

static void grid(buf *out, const plot *p) {
    char text[FORMAT_MAX];
    int64_t last = 0;
    for (int64_t tokens = 1; tokens < ((int64_t)1 << 40); tokens *= 2) {
        double x = svg_at(&p->x, (double)tokens);
        if ((double)tokens < p->x.lo || (double)tokens > p->x.hi ||
            (last && x - svg_at(&p->x, (double)last) < 44))
            continue;
        last = tokens;
        format_context(tokens, text);
        svg_line(out, "gr", x, LINES_TOP, x, LINES_BOTTOM);
        svg_text(out, "m c s", x, LINES_BOTTOM + 18, text);
    }
}

bool figure_fidelity(const report_model *m, size_t index, bool alone, buf *out) {
    plot p = {.m = m, .key = find(m, index)};
    if (!p.key)
        return false;
    scale(&p);
    for (size_t i = 0; i < p.n; i++)
        p.lines[i].last = end_of(&p, &p.lines[i]);
    lines_place(p.lines, p.n, &p.y);
    char id[32], name[400];
    (void)snprintf(id, sizeof id, "fidelity-%zu", index + 1);
    (void)snprintf(name, sizeof name, "Error against FP64 attention, %.60s, input %.60s%s%.200s",
                   p.key->row->kind, p.key->row->distribution, m->n_files > 1 ? ", " : "",
                   m->n_files > 1 ? report_name_of(m, p.key->file) : "");
    lines_open(out,
               &(svg_head){.id = id,
                           .title = name,
                           .description = "One line for each configuration. Horizontal axis: "
                                          "context; vertical axis: relative L2 error. A level "
                                          "line is an error that does not grow with context. "
                                          "The fidelity table has the numbers.",
                           .alone = alone},
               &p.y, "context, tokens");
    grid(out, &p);
    for (size_t i = 0; i < p.n; i++)
        out->failed |= !draw_series(out, &p, &p.lines[i]);
    svg_close(out);
    return true;
}
