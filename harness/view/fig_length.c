/* fig_length.c - draws accuracy over the mean length of answers. Each arm of each task is a point
 * with its 95 % interval. A thin line leads from the baseline to each other arm. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/view/figures.h"
#include "harness/view/format.h"
#include "harness/view/svg.h"

static const double kWidth = 940, kHeight = 420, kLeft = 66, kRight = 900, kTop = 64, kBottom = 350;

enum { kNames = 40, kNameColumns = 20 };
static const double kNameHeight = 14, kColumnWidth = 7; /* of names, in pixels (estimated) */

/* The place of a task's name: its left end and its base line. */
typedef struct {
    double x, y, width;
} name_place;

typedef struct {
    svg_scale x, y;
    size_t arms; /* largest number of arms of a task */
    name_place names[kNames];
    size_t n_names;
} plot;

/* Rows of further metrics of a task are left out: they are about the same answers. */
static bool is_first_metric(const eval_record *e) {
    return !strchr(e->task, ':');
}

static bool can_draw(const arm_record *a) {
    return a->completion_tokens_mean > 0 && isfinite(a->accuracy_pct);
}

static double low_of(const arm_record *a) {
    return isfinite(a->ci95_pct[0]) ? a->ci95_pct[0] : a->accuracy_pct;
}

static double high_of(const arm_record *a) {
    return isfinite(a->ci95_pct[1]) ? a->ci95_pct[1] : a->accuracy_pct;
}

/* Returns false if there is nothing to draw. */
static bool scale(const report_model *m, plot *p) {
    double x0 = HUGE_VAL, x1 = 0, y0 = 100, y1 = 0;
    p->arms = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++) {
            const arm_record *a = &m->evals[i].row->arms.at[k];
            if (!is_first_metric(m->evals[i].row) || !can_draw(a))
                continue;
            p->arms = p->arms > k + 1 ? p->arms : k + 1;
            x0 = fmin(x0, a->completion_tokens_mean);
            x1 = fmax(x1, a->completion_tokens_mean);
            y0 = fmin(y0, low_of(a));
            y1 = fmax(y1, high_of(a));
        }
    if (!(x1 > 0))
        return false;
    double spare = fmax((x1 - x0) * 0.3, x1 * 0.05);
    p->x = x1 > 5 * x0 ? svg_log(x0 / 1.25, x1 * 1.25, kLeft, kRight)
                       : svg_linear(fmax(x0 - spare, 0), x1 + spare, kLeft, kRight);
    p->y = svg_linear(fmax(y0 - 5, 0), fmin(fmax(y1, y0) + 5, 100), kBottom, kTop);
    return true;
}

/* The class of the k-th arm of a task. The first is the baseline. */
static const char *class_of(size_t k) {
    return k == 0 ? "bf" : k == 1 ? "f8" : "other";
}

static void axes(buf *out, const plot *p) {
    double ticks[SVG_TICKS_MAX];
    char text[FORMAT_MAX];
    size_t n = svg_ticks(&p->y, 6, ticks);
    for (size_t i = 0; i < n; i++) {
        double y = svg_at(&p->y, ticks[i]);
        format_fixed(ticks[i], 0, text);
        svg_line(out, "gr", kLeft, y, kRight, y);
        svg_text(out, "m e s", kLeft - 8, y + 4, text);
    }
    n = svg_ticks(&p->x, 6, ticks);
    for (size_t i = 0; i < n; i++) {
        double x = svg_at(&p->x, ticks[i]);
        format_fixed(ticks[i], p->x.log ? svg_decimals(&ticks[i], 1) : svg_decimals(ticks, n),
                     text);
        svg_line(out, "gr", x, kTop, x, kBottom);
        svg_text(out, "m c s", x, kBottom + 18, text);
    }
    svg_line(out, "ax", kLeft, kBottom, kRight, kBottom);
    svg_line(out, "ax", kLeft, kTop, kLeft, kBottom);
    svg_text(out, "m c", (kLeft + kRight) / 2, kBottom + 42, "completion tokens per answer, mean");
    svg_text_up(out, "m c", 16, (kTop + kBottom) / 2, "accuracy, %");
}

static void draw_arm(buf *out, const plot *p, const eval_record *e, size_t k) {
    const arm_record *a = &e->arms.at[k], *base = &e->arms.at[0];
    double x = svg_at(&p->x, a->completion_tokens_mean), y = svg_at(&p->y, a->accuracy_pct);
    char tip[400], ci[FORMAT_MAX], line[8];
    if (k && can_draw(base))
        svg_line(out, "lead", svg_at(&p->x, base->completion_tokens_mean),
                 svg_at(&p->y, base->accuracy_pct), x, y);
    (void)snprintf(line, sizeof line, "%sl", class_of(k));
    svg_line(out, line, x, svg_at(&p->y, low_of(a)), x, svg_at(&p->y, high_of(a)));
    format_range(a->ci95_pct, 1, ci);
    (void)snprintf(tip, sizeof tip,
                   "%.100s, %.100s: accuracy %.1f %%, 95 %% interval %s, %.0f tokens per answer",
                   e->task, a->name, a->accuracy_pct, ci, a->completion_tokens_mean);
    svg_circle(out, class_of(k), x, y, 5, tip);
}

static bool is_free(const plot *p, const name_place *at) {
    for (size_t i = 0; i < p->n_names; i++) {
        const name_place *o = &p->names[i];
        if (fabs(at->y - o->y) < kNameHeight && at->x < o->x + o->width && o->x < at->x + at->width)
            return false;
    }
    return at->y > kTop && at->y < kBottom;
}

/* Moves the name down, or else up, to a place where no other name is. Returns false if there is
 * none. Then only the tooltip of the point has the name. */
static bool place_name(plot *p, name_place *at) {
    const double y = at->y;
    for (int step = 0; step < 2 * kNames; step++) {
        at->y = y + kNameHeight * (step < kNames ? step : kNames - 1 - step);
        if (p->n_names < kNames && is_free(p, at)) {
            p->names[p->n_names++] = *at;
            return true;
        }
    }
    return false;
}

/* Writes the name of a task beside one of its points. */
static void draw_name(buf *out, plot *p, const char *name, double x, double y) {
    const double width = kColumnWidth * fmin(kNameColumns, (double)strlen(name));
    const bool left = x > kRight - 130;
    name_place at = {left ? x - 9 - width : x + 9, y - 8, width};
    if (place_name(p, &at))
        svg_text_cut(out, left ? "m s e" : "m s", left ? x - 9 : x + 9, at.y, name, kNameColumns);
}

/* Draws the arms of a task, the baseline on top, and the task's name beside the arm with the
 * longest answers. */
static void draw_task(buf *out, plot *p, const eval_record *e) {
    const arm_record *last = NULL;
    for (size_t k = e->arms.n; k-- > 0;) {
        const arm_record *a = &e->arms.at[k];
        if (!can_draw(a))
            continue;
        draw_arm(out, p, e, k);
        if (!last || a->completion_tokens_mean > last->completion_tokens_mean)
            last = a;
    }
    if (!last)
        return;
    draw_name(out, p, e->task, svg_at(&p->x, last->completion_tokens_mean),
              svg_at(&p->y, last->accuracy_pct));
}

/* The name of the k-th arm if it is the same in all tasks that have one, else @other. */
static const char *name_of(const report_model *m, size_t k, const char *other) {
    const char *name = NULL;
    for (size_t i = 0; i < m->n_evals; i++) {
        const eval_record *e = m->evals[i].row;
        if (!is_first_metric(e) || k >= e->arms.n)
            continue;
        if (name && strcmp(name, e->arms.at[k].name) != 0)
            return other;
        name = e->arms.at[k].name;
    }
    return name ? name : other;
}

static void legend(buf *out, const report_model *m, size_t arms) {
    const char *const names[] = {name_of(m, 0, "baseline"), name_of(m, 1, "second arm"),
                                 "further arms and controls"};
    double x = kLeft;
    for (size_t k = 0; k < sizeof names / sizeof *names && k < arms; k++) {
        svg_circle(out, class_of(k), x, 40, 5, NULL);
        svg_text_cut(out, "m s", x + 10, 44, names[k], 30);
        x += 40 + 7 * fmin(30, (double)strlen(names[k]));
    }
}

bool figure_length(const report_model *m, size_t index, bool alone, buf *out) {
    plot p = {0};
    if (index || !scale(m, &p))
        return false;
    svg_open(out, &(svg_head){.id = "length-1",
                              .title = "Accuracy against length of answers",
                              .description = "Each point is one arm in one task, with the 95 % "
                                             "interval of its accuracy as a vertical line. A thin "
                                             "line leads from the baseline to each other arm. The "
                                             "table of arms has the numbers.",
                              .width = kWidth,
                              .height = kHeight,
                              .alone = alone});
    svg_text(out, "b", 0, 14, "Accuracy against length of answers");
    legend(out, m, p.arms);
    axes(out, &p);
    for (size_t i = 0; i < m->n_evals; i++)
        if (is_first_metric(m->evals[i].row))
            draw_task(out, &p, m->evals[i].row);
    svg_close(out);
    return true;
}
