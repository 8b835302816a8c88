#include "harness/view/lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/format.h"

static const double kLabelStep = 15; /* least pixels between two names */

const char *lines_class(const char *config) {
    return strcmp(config, "bf16") == 0 ? "bf" : strcmp(config, "snapmla") == 0 ? "f8" : "other";
}

static int by_label(const void *a, const void *b) {
    double x = ((const lines_series *)a)->label, y = ((const lines_series *)b)->label;
    return (x > y) - (x < y);
}

/* Moves overlapping names down, and then moves up those that would be below the plot. */
void lines_place(lines_series *s, size_t n, const svg_scale *y) {
    for (size_t i = 0; i < n; i++)
        s[i].label = svg_at(y, s[i].last);
    qsort(s, n, sizeof *s, by_label);
    for (size_t i = 1; i < n; i++)
        s[i].label = fmax(s[i].label, s[i - 1].label + kLabelStep);
    double limit = LINES_BOTTOM + 4;
    for (size_t i = n; i-- > 0; limit -= kLabelStep)
        s[i].label = fmin(s[i].label, limit);
}

void lines_open(buf *out, const svg_head *head, const svg_scale *y, const char *across) {
    double ticks[SVG_TICKS_MAX];
    char text[FORMAT_MAX];
    svg_head sized = *head;
    sized.width = LINES_WIDTH;
    sized.height = LINES_HEIGHT;
    svg_open(out, &sized);
    svg_text_cut(out, "b", 0, 14, head->title, 120);
    size_t n = svg_ticks(y, 0, ticks);
    for (size_t i = 0; i < n; i++) {
        double at = svg_at(y, ticks[i]);
        (void)snprintf(text, sizeof text, "%.0e", ticks[i]);
        svg_line(out, "gr", LINES_LEFT, at, LINES_RIGHT, at);
        svg_text(out, "m e s", LINES_LEFT - 8, at + 4, text);
    }
    svg_text(out, "m c", (LINES_LEFT + LINES_RIGHT) / 2.0, LINES_BOTTOM + 42, across);
    svg_text_up(out, "m c", 16, (LINES_TOP + LINES_BOTTOM) / 2.0, "relative L2 error");
}

void lines_name(buf *out, const lines_series *s, double x, const svg_scale *y) {
    char text[400], error[FORMAT_MAX];
    bool stands_out = strcmp(lines_class(s->config), "other") != 0;
    format_science(s->last, error);
    (void)snprintf(text, sizeof text, "%.100s%s%.100s", s->config, s->source[0] ? ", " : "",
                   s->source);
    svg_line(out, "lead", x + 5, svg_at(y, s->last), LINES_RIGHT + 16, s->label);
    svg_text_cut(out, stands_out ? "b s" : "s", LINES_RIGHT + 20, s->label + 4, text, 20);
    svg_text(out, stands_out ? "b s e" : "s e", LINES_WIDTH, s->label + 4, error);
}
