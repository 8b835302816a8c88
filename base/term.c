#include "base/term.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { kNoTerminal = 120, kWidest = 10000, kNote = 60, kWarning = 2000 };
enum { kDelayNs = 1000000000, kRedrawNs = 100000000 };
static const int64_t kLineNs = INT64_C(60000000000);

static term_color color_mode = TERM_AUTO;
static bool quiet_mode;

void term_set_color(term_color mode) {
    color_mode = mode;
}

void term_set_quiet(bool quiet) {
    quiet_mode = quiet;
}

bool term_use_color(int fd) {
    if (color_mode != TERM_AUTO)
        return color_mode == TERM_ALWAYS;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool dumb = !term || strcmp(term, "dumb") == 0;
    return isatty(fd) && !dumb && !(no_color && *no_color);
}

int term_width(int fd) {
    struct winsize size = {0};
    int64_t columns = 0;
    const char *set = getenv("COLUMNS");
    if (set && text_to_int(set, &columns) && columns > 0 && columns <= kWidest)
        return (int)columns;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : kNoTerminal;
}

static bool in_foreground(int fd) {
    return isatty(fd) && tcgetpgrp(fd) == getpgrp();
}

term_progress term_progress_start(const char *what, int64_t total) {
    bool lines = !isatty(STDERR_FILENO);
    return (term_progress){.what = what,
                           .total = total,
                           .started_ns = clock_now_ns(),
                           .enabled = !quiet_mode && (lines || in_foreground(STDERR_FILENO)),
                           .lines = lines};
}

/* "2.0/s", "12.0/min" or "3.0/h": the first of these units in which the rate is 1 or more, or else
 * the last one. */
static void rate_text(double per_second, char *out, size_t cap) {
    if (per_second >= 1)
        (void)snprintf(out, cap, "%.1f/s", per_second);
    else if (per_second * 60 >= 1)
        (void)snprintf(out, cap, "%.1f/min", per_second * 60);
    else
        (void)snprintf(out, cap, "%.1f/h", per_second * 3600);
}

/* "45 s", "12 min" or "3 h 20 min" */
static void duration_text(double seconds, char *out, size_t cap) {
    double minutes = seconds / 60;
    if (minutes < 2)
        (void)snprintf(out, cap, "%.0f s", seconds);
    else if (minutes < 120)
        (void)snprintf(out, cap, "%.0f min", minutes);
    else
        (void)snprintf(out, cap, "%.0f h %02d min", floor(minutes / 60), (int)fmod(minutes, 60));
}

void term_progress_text(const term_progress *p, int64_t done, int64_t now_ns,
                        char out[TERM_PROGRESS_TEXT]) {
    char rate[32], left[48];
    double seconds = (double)(now_ns - p->started_ns) / 1e9;
    int64_t since = done - p->before;
    size_t n = (size_t)snprintf(out, TERM_PROGRESS_TEXT, "%.40s: %lld", p->what, (long long)done);
    if (p->total)
        n += (size_t)snprintf(out + n, TERM_PROGRESS_TEXT - n, "/%lld (%d %%)", (long long)p->total,
                              (int)(100 * done / p->total));
    if (since <= 0 || !(seconds > 0))
        return;
    rate_text((double)since / seconds, rate, sizeof rate);
    n += (size_t)snprintf(out + n, TERM_PROGRESS_TEXT - n, ", %s", rate);
    if (done >= p->total)
        return;
    duration_text((double)(p->total - done) * seconds / (double)since, left, sizeof left);
    (void)snprintf(out + n, TERM_PROGRESS_TEXT - n, ", %s left", left);
}

static bool is_due(const term_progress *p, int64_t now) {
    int64_t last = p->shown_ns > p->started_ns ? p->shown_ns : p->started_ns;
    if (p->lines)
        return now - last >= kLineNs;
    return now - p->started_ns >= kDelayNs && now - p->shown_ns >= kRedrawNs;
}

void term_progress_update(term_progress *p, int64_t done, const char *note) {
    char text[TERM_PROGRESS_TEXT], shown[kNote + 1] = "";
    int64_t now = clock_now_ns();
    if (!p->enabled || !is_due(p, now))
        return;
    p->shown_ns = now;
    p->visible = !p->lines;
    term_progress_text(p, done, now, text);
    if (note)
        (void)text_show(shown, sizeof shown, note);
    (void)fprintf(stderr, "%s%s%s%s%s", p->lines ? "" : "\r\033[K", text, note ? "  " : "", shown,
                  p->lines ? "\n" : "");
    (void)fflush(stderr);
}

void term_progress_end(term_progress *p) {
    if (p->visible)
        (void)fputs("\r\033[K", stderr);
    p->visible = false;
}

void term_warn(const char *fmt, ...) {
    if (quiet_mode)
        return;
    char raw[kWarning], shown[kWarning];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    (void)text_show(shown, sizeof shown, raw);
    (void)fprintf(stderr, "%swarning: %s\n", in_foreground(STDERR_FILENO) ? "\r\033[K" : "", shown);
}
