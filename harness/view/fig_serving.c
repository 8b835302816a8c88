/* fig_serving.c - draws servers over the load: throughput against the speed of one user, and
 * goodput against the offered load. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/serving_panel.h"

enum { kPoints = 64 };
static const double kWidth = 940, kHeight = 330, kLeft = 64, kTop = 74, kBottom = 280, kRight = 900;

/* The load points of one arm, by load. */
typedef struct {
    const serving_record *at[kPoints];
    size_t n;
} curve;

static int by_load(const void *a, const void *b) {
    double x = (*(const serving_record *const *)a)->load;
    double y = (*(const serving_record *const *)b)->load;
    return (x > y) - (x < y);
}

static curve curve_of(const report_model *m, int file, const char *loop, const char *arm) {
    curve c = {.n = 0};
    for (size_t i = 0; i < m->n_serving && c.n < kPoints; i++)
        if (panel_has(&m->serving[i], "load", file, loop, arm))
            c.at[c.n++] = m->serving[i].row;
    if (c.n)
        qsort(c.at, c.n, sizeof c.at / kPoints, by_load);
    return c;
}

/* Rates per GPU if they are known for all rows, which makes servers of different sizes
 * comparable. */
static double throughput_of(const serving_record *r, bool gpu) {
    return gpu ? r->gpu_tok_s : r->output_tok_s;
}

static bool per_gpu(const report_model *m, int file) {
    for (size_t i = 0; i < m->n_serving; i++)
        if (m->serving[i].file == file && strcmp(m->serving[i].row->kind, "load") == 0 &&
            isnan(m->serving[i].row->gpu_tok_s))
            return false;
    return true;
}

static void open_figure(buf *out, const report_model *m, int file, const char *id,
                        const char *title, const char *description, size_t index, bool alone) {
    char full[32], name[300];
    (void)snprintf(full, sizeof full, "%s-%zu", id, index + 1);
    (void)snprintf(name, sizeof name, "%s%s%.180s", title, m->n_files > 1 ? ", " : "",
                   m->n_files > 1 ? report_name_of(m, file) : "");
    svg_open(out, &(svg_head){.id = full,
                              .title = name,
                              .description = description,
                              .width = kWidth,
                              .height = kHeight,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
}

static void load_text(const serving_record *r, char out[32]) {
    (void)snprintf(out, 32, "%.4g%s", r->load, strcmp(r->loop, "open") == 0 ? "/s" : "");
}

/* ---- throughput against the speed of one user ---- */

static bool has_users(const serving_record *r) {
    return r->user_tok_s > 0 && r->output_tok_s > 0;
}

static void draw_pareto(buf *out, const panel *p, const panel_arms *arms, int arm, const curve *c,
                        bool gpu) {
    double x[kPoints], y[kPoints];
    char tip[160], load[32];
    for (size_t i = 0; i < c->n; i++) {
        x[i] = c->at[i]->user_tok_s;
        y[i] = throughput_of(c->at[i], gpu);
    }
    panel_line(out, p, panel_class(arms, arm, true), x, y, c->n);
    for (size_t i = 0; i < c->n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        load_text(c->at[i], load);
        (void)snprintf(tip, sizeof tip, "%.60s, load %s: %.4g tokens/s, %.4g per user%s",
                       c->at[i]->arm, load, y[i], x[i], c->at[i]->saturated ? ", saturated" : "");
        svg_circle(out, panel_class(arms, arm, false), svg_at(&p->x, x[i]), svg_at(&p->y, y[i]),
                   c->at[i]->saturated ? 2.2 : 3.6, tip);
        svg_text(out, "m s", svg_at(&p->x, x[i]) + 6, svg_at(&p->y, y[i]) - 5, load);
    }
}

bool figure_serving_pareto(const report_model *m, size_t index, bool alone, buf *out) {
    int file;
    const char *loop;
    if (!panel_find(m, index, "load", has_users, &file, &loop))
        return false;
    panel_arms arms = panel_arms_of(m, file, loop);
    bool gpu = per_gpu(m, file);
    double x = 0, y = 0;
    curve c[PANEL_ARMS];
    for (int a = 0; a < arms.n; a++) {
        c[a] = curve_of(m, file, loop, arms.name[a]);
        for (size_t i = 0; i < c[a].n; i++) {
            x = fmax(x, c[a].at[i]->user_tok_s);
            y = fmax(y, throughput_of(c[a].at[i], gpu));
        }
    }
    open_figure(out, m, file, "serving-pareto", "Throughput against the speed of one user",
                "One line for each arm, one point for each load. Up and to the right is better. "
                "The table of load points has the numbers.",
                index, alone);
    panel_legend(out, &arms, 6, 34);
    panel p = {svg_linear(0, 1.08 * x, kLeft, kRight), svg_linear(0, 1.12 * y, kBottom, kTop),
               gpu ? "output tokens/s per GPU" : "output tokens/s", "tokens/s of one user"};
    panel_grid(out, &p);
    for (int a = 0; a < arms.n; a++)
        draw_pareto(out, &p, &arms, a, &c[a], gpu);
    svg_close(out);
    return true;
}

/* ---- goodput ---- */

static bool has_goodput(const serving_record *r) {
    return isfinite(r->goodput_s);
}

static void draw_knee(buf *out, const panel *p, const report_model *m, int file, const char *loop,
                      const panel_arms *arms, int arm) {
    for (size_t i = 0; i < m->n_serving; i++) {
        const serving_record *r = m->serving[i].row;
        if (!panel_has(&m->serving[i], "knee", file, loop, arms->name[arm]) ||
            !isfinite(r->knee_lo) || !isfinite(r->knee_hi))
            continue;
        double y = p->y.from - 6 - 7 * arm, from = svg_at(&p->x, r->knee_lo);
        char tip[160];
        (void)snprintf(tip, sizeof tip, "%.60s: highest load within the targets, %.4g to %.4g",
                       r->arm, r->knee_lo, r->knee_hi);
        svg_rect(out, panel_class(arms, arm, false), from, y, svg_at(&p->x, r->knee_hi) - from, 4,
                 tip);
    }
}

static void draw_goodput(buf *out, const panel *p, const panel_arms *arms, int arm,
                         const curve *c) {
    double x[kPoints], y[kPoints];
    char tip[160], load[32];
    for (size_t i = 0; i < c->n; i++) {
        x[i] = c->at[i]->load;
        y[i] = c->at[i]->goodput_s;
    }
    panel_line(out, p, panel_class(arms, arm, true), x, y, c->n);
    for (size_t i = 0; i < c->n; i++) {
        const double *ci = c->at[i]->goodput_s_ci95;
        if (!isfinite(y[i]))
            continue;
        load_text(c->at[i], load);
        (void)snprintf(tip, sizeof tip, "%.60s, load %s: goodput %.4g/s [%.4g, %.4g], %.4g %%",
                       c->at[i]->arm, load, y[i], ci[0], ci[1], c->at[i]->good_pct);
        if (isfinite(ci[0]) && isfinite(ci[1]))
            svg_line(out, panel_class(arms, arm, true), svg_at(&p->x, x[i]), svg_at(&p->y, ci[0]),
                     svg_at(&p->x, x[i]), svg_at(&p->y, ci[1]));
        svg_circle(out, panel_class(arms, arm, false), svg_at(&p->x, x[i]), svg_at(&p->y, y[i]),
                   3.4, tip);
    }
}

bool figure_serving_goodput(const report_model *m, size_t index, bool alone, buf *out) {
    int file;
    const char *loop;
    if (!panel_find(m, index, "load", has_goodput, &file, &loop))
        return false;
    panel_arms arms = panel_arms_of(m, file, loop);
    bool open = strcmp(loop, "open") == 0;
    double x = 0, y = 0;
    curve c[PANEL_ARMS];
    for (int a = 0; a < arms.n; a++) {
        c[a] = curve_of(m, file, loop, arms.name[a]);
        for (size_t i = 0; i < c[a].n; i++) {
            x = fmax(x, c[a].at[i]->load);
            y = fmax(y, fmax(c[a].at[i]->goodput_s, c[a].at[i]->goodput_s_ci95[1]));
        }
    }
    open_figure(out, m, file, "serving-goodput", "Requests within the targets against the load",
                "Requests per second that met every target, with 95 % intervals. A bar at the "
                "bottom spans the highest load that was shown to meet the targets and the lowest "
                "that was shown to miss one.",
                index, alone);
    panel_legend(out, &arms, 6, 34);
    panel p = {svg_linear(0, 1.05 * x, kLeft, kRight),
               svg_linear(0, fmax(1.1 * y, 1e-9), kBottom, kTop), "goodput, requests/s",
               open ? "requests/s offered" : "requests at a time"};
    panel_grid(out, &p);
    if (open)
        svg_line(out, "lead", p.x.from, p.y.from, svg_at(&p.x, fmin(p.x.hi, p.y.hi)),
                 svg_at(&p.y, fmin(p.x.hi, p.y.hi)));
    for (int a = 0; a < arms.n; a++) {
        draw_goodput(out, &p, &arms, a, &c[a]);
        draw_knee(out, &p, m, file, loop, &arms, a);
    }
    svg_close(out);
    return true;
}
