/* fig_serving_time.c - draws one load point: the distributions of its latencies, and the course of
 * its first blocks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/serving_panel.h"

static const double kWidth = 940, kHeight = 300, kTop = 74, kBottom = 250;

/* The @index-th load point of the model: a row of kind @kind of the first arm. NULL if there is
 * none. @metric: of the row; NULL: any. Rows of blocks after block 0 are left out. */
static const report_serving *find_point(const report_model *m, size_t index, const char *kind,
                                        const char *metric) {
    for (size_t i = 0; i < m->n_serving; i++) {
        const report_serving *s = &m->serving[i];
        panel_arms arms;
        if (strcmp(s->row->kind, kind) != 0 || (metric && strcmp(s->row->metric, metric) != 0) ||
            s->row->block > 0)
            continue;
        arms = panel_arms_of(m, s->file, s->row->loop);
        if (arms.n && strcmp(arms.name[0], s->row->arm) == 0 && index-- == 0)
            return s;
    }
    return NULL;
}

/* The row of the same load point and kind for another arm. */
static const serving_record *row_of(const report_model *m, const report_serving *like,
                                    const char *arm, const char *metric) {
    for (size_t i = 0; i < m->n_serving; i++) {
        const report_serving *s = &m->serving[i];
        if (panel_has(s, like->row->kind, like->file, like->row->loop, arm) &&
            s->row->point == like->row->point && s->row->block <= 0 &&
            (!metric || strcmp(s->row->metric, metric) == 0))
            return s->row;
    }
    return NULL;
}

static void open_figure(buf *out, const report_model *m, const report_serving *s, const char *id,
                        const char *title, const char *description, size_t index, bool alone) {
    char full[32], name[300];
    (void)snprintf(full, sizeof full, "%s-%zu", id, index + 1);
    (void)snprintf(name, sizeof name, "%s at %.4g%s%s%.160s", title, s->row->load,
                   strcmp(s->row->loop, "open") == 0 ? " requests/s" : " requests at a time",
                   m->n_files > 1 ? ", " : "", m->n_files > 1 ? report_name_of(m, s->file) : "");
    svg_open(out, &(svg_head){.id = full,
                              .title = name,
                              .description = description,
                              .width = kWidth,
                              .height = kHeight,
                              .alone = alone});
    svg_text_cut(out, "b", 0, 14, name, 120);
}

/* ---- distributions ---- */

static void draw_cdf(buf *out, const report_model *m, const report_serving *s,
                     const panel_arms *arms, const char *metric, const char *title, double left) {
    const serving_record *rows[PANEL_ARMS];
    double low = (double)INFINITY, high = 0, share[128];
    for (int a = 0; a < arms->n; a++) {
        rows[a] = row_of(m, s, arms->name[a], metric);
        for (size_t i = 0; rows[a] && i < rows[a]->cdf_ms.n; i++) {
            double x = rows[a]->cdf_ms.at[i];
            low = x > 0 ? fmin(low, x) : low;
            high = fmax(high, x);
        }
    }
    if (!(high > low))
        return;
    panel p = {svg_log(low, high, left, left + 180), svg_linear(0, 1, kBottom, kTop), title, "ms"};
    panel_grid(out, &p);
    for (int a = 0; a < arms->n; a++) {
        size_t n = rows[a] ? rows[a]->cdf_ms.n : 0;
        if (n < 2 || n > sizeof share / sizeof *share)
            continue;
        for (size_t i = 0; i < n; i++)
            share[i] = rows[a]->cdf_ms.at[i] > 0 ? (double)i / (double)(n - 1) : (double)NAN;
        panel_line(out, &p, panel_class(arms, a, true), rows[a]->cdf_ms.at, share, n);
    }
}

bool figure_serving_cdf(const report_model *m, size_t index, bool alone, buf *out) {
    static const char *const metrics[][2] = {{"ttft", "TTFT: share of requests"},
                                             {"itl", "ITL: share of gaps"},
                                             {"tpot", "TPOT: share of requests"},
                                             {"e2e", "E2E: share of requests"}};
    const report_serving *s = find_point(m, index, "latency", "ttft");
    if (!s)
        return false;
    panel_arms arms = panel_arms_of(m, s->file, s->row->loop);
    open_figure(out, m, s, "serving-cdf", "Distributions of latencies",
                "One panel for each latency, one line for each arm; further to the left is "
                "faster. The table of latencies has the percentiles.",
                index, alone);
    panel_legend(out, &arms, 6, 34);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        draw_cdf(out, m, s, &arms, metrics[i][0], metrics[i][1], 40 + 232 * (double)i);
    svg_close(out);
    return true;
}

/* ---- the course of a block ---- */

/* @tokens: the tokens per second, not the requests in flight. */
static const record_numbers *course_of(const serving_record *r, bool tokens) {
    return tokens ? &r->course_tok_s : &r->in_flight;
}

static void draw_course(buf *out, const report_model *m, const report_serving *s,
                        const panel_arms *arms, bool tokens, double left) {
    enum { kSteps = 256 };
    double longest = 0, high = 0, x[kSteps];
    for (int a = 0; a < arms->n; a++) {
        const serving_record *r = row_of(m, s, arms->name[a], NULL);
        for (size_t i = 0; r && i < course_of(r, tokens)->n; i++) {
            high = fmax(high, course_of(r, tokens)->at[i]);
            longest = fmax(longest, r->step_s * (double)(i + 1));
        }
    }
    if (!(high > 0))
        return;
    panel p = {svg_linear(0, longest, left, left + 410), svg_linear(0, 1.08 * high, kBottom, kTop),
               tokens ? "output tokens/s" : "requests in flight", "seconds"};
    double from = svg_at(&p.x, s->row->window[0]), to = svg_at(&p.x, s->row->window[1]);
    if (isfinite(s->row->window[0]) && to > from)
        svg_rect(out, "band", from, p.y.to, to - from, p.y.from - p.y.to, "steady window");
    panel_grid(out, &p);
    for (int a = 0; a < arms->n; a++) {
        const serving_record *r = row_of(m, s, arms->name[a], NULL);
        size_t n = r ? course_of(r, tokens)->n : 0;
        n = n < kSteps ? n : kSteps;
        for (size_t i = 0; i < n; i++)
            x[i] = r->step_s * ((double)i + 0.5);
        if (n)
            panel_line(out, &p, panel_class(arms, a, true), x, course_of(r, tokens)->at, n);
    }
}

bool figure_serving_course(const report_model *m, size_t index, bool alone, buf *out) {
    const report_serving *s = find_point(m, index, "series", NULL);
    if (!s)
        return false;
    panel_arms arms = panel_arms_of(m, s->file, s->row->loop);
    open_figure(out, m, s, "serving-course", "The first block of each arm over time",
                "Requests in flight and output tokens per second. The band is the steady window of "
                "the first arm: what lies outside is in no figure of the tables.",
                index, alone);
    panel_legend(out, &arms, 6, 34);
    draw_course(out, m, s, &arms, false, 44);
    draw_course(out, m, s, &arms, true, 510);
    svg_close(out);
    return true;
}
