#include "harness/view/serving_panel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/format.h"

bool panel_has(const report_serving *s, const char *kind, int file, const char *loop,
               const char *arm) {
    return s->file == file && strcmp(s->row->kind, kind) == 0 && strcmp(s->row->loop, loop) == 0 &&
           strcmp(s->row->arm, arm) == 0;
}

panel_arms panel_arms_of(const report_model *m, int file, const char *loop) {
    panel_arms a = {.n = 0};
    for (size_t i = 0; i < m->n_serving && a.n < PANEL_ARMS; i++) {
        const report_serving *s = &m->serving[i];
        bool known = false;
        for (int k = 0; k < a.n; k++)
            known |= strcmp(a.name[k], s->row->arm) == 0;
        if (!known && panel_has(s, "load", file, loop, s->row->arm))
            a.name[a.n++] = s->row->arm;
    }
    return a;
}

const char *panel_class(const panel_arms *a, int arm, bool line) {
    static const char *const marks[] = {"bf", "f8", "other", "other"};
    static const char *const lines[] = {"bfl", "f8l", "otherl", "otherl dash"};
    return (line ? lines : marks)[arm < a->n ? arm : PANEL_ARMS - 1];
}

void panel_legend(buf *out, const panel_arms *a, double x, double y) {
    for (int i = 0; i < a->n; i++) {
        svg_circle(out, panel_class(a, i, false), x, y - 4, 4, NULL);
        svg_text_cut(out, "b s", x + 8, y, a->name[i], 20);
        x += 40 + 7 * fmin(20, (double)strlen(a->name[i]));
    }
}

void panel_grid(buf *out, const panel *p) {
    double ticks[SVG_TICKS_MAX], last = -1e9;
    char text[FORMAT_MAX];
    size_t n = svg_ticks(&p->y, 5, ticks);
    svg_text(out, "s m", p->x.from, p->y.to - 10, p->title);
    for (size_t i = 0; i < n; i++) {
        double y = svg_at(&p->y, ticks[i]);
        (void)snprintf(text, sizeof text, "%.4g", ticks[i]);
        svg_line(out, "gr", p->x.from, y, p->x.to, y);
        svg_text(out, "m e s", p->x.from - 5, y + 4, text);
    }
    n = svg_ticks(&p->x, 5, ticks);
    for (size_t i = 0; i < n; i++) {
        double x = svg_at(&p->x, ticks[i]);
        if (x - last < 34)
            continue;
        last = x;
        (void)snprintf(text, sizeof text, "%.4g", ticks[i]);
        svg_line(out, "gr", x, p->y.from, x, p->y.to);
        svg_text(out, "m c s", x, p->y.from + 16, text);
    }
    svg_text(out, "m c s", (p->x.from + p->x.to) / 2, p->y.from + 34, p->x_label);
}

void panel_line(buf *out, const panel *p, const char *cls, const double *x, const double *y,
                size_t n) {
    size_t drawn = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        if (!drawn)
            (void)buf_printf(out, "<path class=\"%s\" d=\"", cls);
        (void)buf_printf(out, "%s%.1f %.1f", drawn++ ? "L" : "M", svg_at(&p->x, x[i]),
                         svg_at(&p->y, y[i]));
    }
    if (drawn)
        (void)buf_puts(out, "\"/>\n");
}

bool panel_find(const report_model *m, size_t index, const char *kind, panel_value value, int *file,
                const char **loop) {
    static const char *const loops[] = {"open", "closed"};
    for (*file = 0; *file < m->n_files; (*file)++)
        for (size_t l = 0; l < 2; l++) {
            bool found = false;
            *loop = loops[l];
            for (size_t i = 0; i < m->n_serving && !found; i++) {
                const report_serving *s = &m->serving[i];
                found = panel_has(s, kind, *file, *loop, s->row->arm) && (!value || value(s->row));
            }
            if (found && index-- == 0)
                return true;
        }
    return false;
}
