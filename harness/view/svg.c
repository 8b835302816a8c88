#include "harness/view/svg.h"

#include <math.h>
#include <string.h>

#include "harness/view/assets.h"
#include "harness/view/format.h"

static const double kFar = 1e5; /* pixels: outside any picture, but printable */
static const double kLargest = 1e200;
static const double kPad = 18; /* margin of a figure that is a separate file */

void svg_open(buf *b, const svg_head *h) {
    double pad = h->alone ? kPad : 0, width = h->width + 2 * pad, height = h->height + 2 * pad;
    (void)buf_printf(
        b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" id=\"%s\" role=\"img\" "
        "viewBox=\"%.0f %.0f %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "aria-labelledby=\"%s-t\" aria-describedby=\"%s-d\">\n<title id=\"%s-t\">",
        h->id, -pad, -pad, width, height, width, height, h->id, h->id, h->id);
    format_xml(b, h->title);
    (void)buf_printf(b, "</title>\n<desc id=\"%s-d\">", h->id);
    format_xml(b, h->description);
    (void)buf_puts(b, "</desc>\n");
    if (!h->alone)
        return;
    (void)buf_printf(b, "<style>%s</style>\n", asset_figure_css);
    svg_rect(b, "bg", -pad, -pad, width, height, NULL);
}

void svg_close(buf *b) {
    (void)buf_puts(b, "</svg>\n");
}

static void tip_and_end(buf *b, const char *element, const char *tip) {
    if (!tip) {
        (void)buf_puts(b, "/>\n");
        return;
    }
    (void)buf_puts(b, "><title>");
    format_xml(b, tip);
    (void)buf_printf(b, "</title></%s>\n", element);
}

void svg_line(buf *b, const char *cls, double x1, double y1, double x2, double y2) {
    (void)buf_printf(b, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", cls, x1, y1, x2, y2);
}

void svg_rect(buf *b, const char *cls, double x, double y, double w, double h, const char *tip) {
    (void)buf_printf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
                     cls, x, y, w, h);
    tip_and_end(b, "rect", tip);
}

void svg_circle(buf *b, const char *cls, double x, double y, double r, const char *tip) {
    (void)buf_printf(b, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", cls, x, y, r);
    tip_and_end(b, "circle", tip);
}

void svg_diamond(buf *b, const char *cls, double x, double y, double r, const char *tip) {
    (void)buf_printf(b, "<path class=\"%s\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"", cls,
                     x, y - r, r, r, -r, r, -r, -r);
    tip_and_end(b, "path", tip);
}

void svg_text(buf *b, const char *cls, double x, double y, const char *text) {
    (void)buf_printf(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", cls, x, y);
    format_xml(b, text);
    (void)buf_puts(b, "</text>\n");
}

void svg_text_cut(buf *b, const char *cls, double x, double y, const char *text, size_t columns) {
    (void)buf_printf(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", cls, x, y);
    format_xml_cut(b, text, columns);
    if (strlen(text) > columns) {
        (void)buf_puts(b, "<title>");
        format_xml(b, text);
        (void)buf_puts(b, "</title>");
    }
    (void)buf_puts(b, "</text>\n");
}

void svg_text_up(buf *b, const char *cls, double x, double y, const char *text) {
    (void)buf_printf(b, "<text class=\"%s\" transform=\"translate(%.1f %.1f) rotate(-90)\">", cls,
                     x, y);
    format_xml(b, text);
    (void)buf_puts(b, "</text>\n");
}

svg_scale svg_linear(double lo, double hi, double from, double to) {
    lo = fmax(lo, -kLargest);
    hi = fmin(hi, kLargest);
    return (svg_scale){lo, hi > lo ? hi : lo + 1, from, to, false};
}

svg_scale svg_log(double lo, double hi, double from, double to) {
    lo = fmin(fmax(lo, 1 / kLargest), kLargest);
    hi = fmin(hi, kLargest);
    return (svg_scale){lo, hi > lo ? hi : lo * 10, from, to, true};
}

double svg_at(const svg_scale *s, double x) {
    double t = s->log ? log(x / s->lo) / log(s->hi / s->lo) : (x - s->lo) / (s->hi - s->lo);
    double at = s->from + t * (s->to - s->from);
    return isnan(at) ? s->from : fmax(-kFar, fmin(kFar, at));
}

static double step_of(double span, int n) {
    double raw = span / n, power = pow(10, floor(log10(raw)));
    double lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

static size_t linear_ticks(const svg_scale *s, int n, double out[SVG_TICKS_MAX]) {
    double step = step_of(s->hi - s->lo, n), first = ceil(s->lo / step);
    size_t count = 0;
    while (count < SVG_TICKS_MAX && (first + (double)count) * step <= s->hi) {
        out[count] = (first + (double)count) * step;
        count++;
    }
    return count;
}

static size_t log_ticks(const svg_scale *s, double out[SVG_TICKS_MAX]) {
    static const double leads[] = {1, 2, 5};
    int from = (int)floor(log10(s->lo)), to = (int)ceil(log10(s->hi));
    int stride = (to - from) / 10 + 1, finer = s->hi / s->lo < 300 ? 3 : 1;
    size_t count = 0;
    for (int decade = from; decade <= to; decade += stride)
        for (int i = 0; i < finer; i++) {
            double v = pow(10, decade) * leads[i];
            if (v >= s->lo && v <= s->hi && count < SVG_TICKS_MAX)
                out[count++] = v;
        }
    return count;
}

size_t svg_ticks(const svg_scale *s, int n, double out[SVG_TICKS_MAX]) {
    return s->log ? log_ticks(s, out) : linear_ticks(s, n, out);
}

int svg_decimals(const double *ticks, size_t n) {
    int decimals = 0;
    for (size_t i = 0; i < n; i++)
        for (; decimals < 4; decimals++) {
            const double scaled = ticks[i] * pow(10, decimals);
            if (fabs(scaled - round(scaled)) < 1e-6 * fmax(1, fabs(scaled)))
                break;
        }
    return decimals;
}
