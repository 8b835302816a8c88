/* fig_parity.c - draws a forest plot. Each comparison is one line. Unless it was refused, the line
 * shows its difference with the 90 % interval (thick) and the 95 % interval (thin), over a band
 * that shows the margin. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/svg.h"

static const double kWidth = 940, kLeft = 218, kRight = 650, kTop = 64, kRow = 34;
enum { kRowsMax = 60 }; /* more comparisons are in the table only */

typedef struct {
    const eval_record *e; /* NULL for a comparison over all tasks */
    const pair_record *p;
    const char *device; /* in a comparison of devices; else NULL */
} entry;

static const char *device_of(const report_model *m, int file) {
    return m->labels ? report_name_of(m, file) : NULL;
}

static size_t collect(const report_model *m, entry out[kRowsMax]) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->pairs.n && n < kRowsMax; k++)
            out[n++] = (entry){m->evals[i].row, &m->evals[i].row->pairs.at[k],
                               device_of(m, m->evals[i].file)};
    for (size_t i = 0; i < m->n_pooled && n < kRowsMax; i++)
        out[n++] = (entry){NULL, m->pooled[i].row, device_of(m, m->pooled[i].file)};
    return n;
}

static svg_scale scale(const entry *rows, size_t n) {
    double reach = 1;
    for (size_t i = 0; i < n; i++) {
        const pair_record *p = rows[i].p;
        reach = fmax(reach, p->margin_pp * 1.25);
        if (p->refused[0])
            continue;
        reach = fmax(reach, fabs(p->delta_pp));
        reach = fmax(reach, fmax(fabs(p->ci95_pp[0]), fabs(p->ci95_pp[1])));
    }
    return svg_linear(-reach * 1.06, reach * 1.06, kLeft, kRight);
}

static const char *verdict_class(const pair_record *p) {
    if (p->refused[0])
        return "v-refused";
    if (p->sensitivity[0])
        return strcmp(p->sensitivity, "blind") == 0 ? "v-open" : "v-equivalent";
    return strcmp(p->verdict, "equivalent") == 0  ? "v-equivalent"
           : strcmp(p->verdict, "different") == 0 ? "v-different"
                                                  : "v-open";
}

static void axis(buf *out, const svg_scale *s, double bottom) {
    double ticks[SVG_TICKS_MAX];
    size_t n = svg_ticks(s, 8, ticks);
    for (size_t i = 0; i < n; i++) {
        char text[FORMAT_MAX];
        double x = svg_at(s, ticks[i]);
        format_signed(ticks[i], svg_decimals(ticks, n), text);
        svg_line(out, "gr", x, kTop - 4, x, bottom);
        svg_text(out, "m c s", x, bottom + 18, text);
    }
    svg_line(out, "ax", svg_at(s, 0), kTop - 4, svg_at(s, 0), bottom);
    svg_text(out, "m c", (kLeft + kRight) / 2, bottom + 40,
             "difference of accuracy, percentage points (above 0: the arm is better)");
}

static void interval(buf *out, const svg_scale *s, const char *cls, const double ci[2], double y,
                     double half) {
    if (isfinite(ci[0]) && isfinite(ci[1]))
        svg_rect(out, cls, svg_at(s, ci[0]), y - half, fmax(svg_at(s, ci[1]) - svg_at(s, ci[0]), 1),
                 2 * half, NULL);
}

static void numbers(buf *out, const pair_record *p, double y) {
    char delta[FORMAT_MAX], ci[FORMAT_MAX], text[3 * FORMAT_MAX];
    format_signed(p->delta_pp, 2, delta);
    format_interval(p->ci90_pp, 2, ci);
    (void)snprintf(text, sizeof text, "%s  %s", delta, ci);
    svg_text(out, "n", kRight + 16, y + 4, text);
}

static void band(buf *out, const svg_scale *s, const pair_record *p, double y) {
    if (!p->refused[0])
        svg_rect(out, "band", svg_at(s, -p->margin_pp), y - kRow / 2,
                 svg_at(s, p->margin_pp) - svg_at(s, -p->margin_pp), kRow, NULL);
}

static void draw(buf *out, const svg_scale *s, const entry *row, double y) {
    const pair_record *p = row->p;
    char text[400], tasks[32], samples[32] = "", problems[32] = "";
    (void)snprintf(tasks, sizeof tasks, "all %zu tasks", p->tasks.n);
    if (row->e)
        (void)snprintf(samples, sizeof samples, ", K %lld", (long long)row->e->samples_per_problem);
    if (row->device)
        (void)snprintf(problems, sizeof problems, ", n %lld", (long long)p->problems);
    (void)snprintf(text, sizeof text, "%.100s%s", row->e ? row->e->task : tasks, problems);
    svg_text_cut(out, "", 0, y, text, 30);
    (void)snprintf(text, sizeof text, "%.100s vs %.100s, n %lld%s%s", p->arm, p->baseline,
                   (long long)p->problems, samples, p->control[0] ? ", control" : "");
    svg_text_cut(out, "m s", 0, y + 13, row->device ? row->device : text, row->device ? 34 : 38);
    if (p->refused[0]) {
        svg_text_cut(out, "v-refused s", kRight + 16, y + 4, p->refused, 26);
        svg_text(out, "b s v-refused", kWidth - 90, y + 4, "refused");
        return;
    }
    (void)buf_printf(out, "<g class=\"%s\">\n", verdict_class(p));
    interval(out, s, "ci95", p->ci95_pp, y, 1);
    interval(out, s, "ci90", p->ci90_pp, y, 3.5);
    if (isfinite(p->delta_pp))
        svg_diamond(out, "est", svg_at(s, p->delta_pp), y, 6.5, NULL);
    numbers(out, p, y);
    svg_text(out, "b s", kWidth - 90, y + 4, p->sensitivity[0] ? p->sensitivity : p->verdict);
    (void)buf_puts(out, "</g>\n");
}

bool figure_parity(const report_model *m, size_t index, bool alone, buf *out) {
    entry rows[kRowsMax];
    size_t n = index ? 0 : collect(m, rows);
    if (!n)
        return false;
    svg_scale s = scale(rows, n);
    double bottom = kTop + (double)n * kRow;
    svg_open(out, &(svg_head){.id = "parity-1",
                              .title = "Quality parity: difference of accuracy to the baseline",
                              .description = "A diamond shows the mean difference, the thick bar "
                                             "its 90 % interval, the thin bar its 95 % interval, "
                                             "and the band the margin. If the 90 % bar is within "
                                             "the band, the arms are equivalent. The parity "
                                             "table has the numbers.",
                              .width = kWidth,
                              .height = bottom + 54,
                              .alone = alone});
    svg_text(out, "b", 0, 14, "Quality parity: difference of accuracy to the baseline");
    svg_text(out, "m s", 0, 34,
             "thick: 90 % interval, thin: 95 %, band: the margin; a thick bar inside the band is "
             "equivalence");
    svg_text(out, "m s", kRight + 16, kTop - 12, "Δ pp, 90 % CI");
    svg_text(out, "m s", kWidth - 90, kTop - 12, "verdict");
    for (size_t i = 0; i < n; i++)
        band(out, &s, rows[i].p, kTop + ((double)i + 0.5) * kRow);
    axis(out, &s, bottom);
    for (size_t i = 0; i < n; i++)
        draw(out, &s, &rows[i], kTop + ((double)i + 0.5) * kRow);
    svg_close(out);
    return true;
}
