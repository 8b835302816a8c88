#include "base/term.h"

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
    return (term_progress){.what = what,
                           .total = total,
                           .started_ns = clock_now_ns(),
                           .enabled = !quiet_mode && in_foreground(STDERR_FILENO)};
}

void term_progress_update(term_progress *p, int64_t done, const char *note) {
    int64_t now = clock_now_ns();
    if (!p->enabled || now - p->started_ns < kDelayNs || now - p->shown_ns < kRedrawNs)
        return;
    p->shown_ns = now;
    p->visible = true;
    (void)fprintf(stderr, "\r\033[K%s: %lld", p->what, (long long)done);
    if (p->total)
        (void)fprintf(stderr, "/%lld (%d %%)", (long long)p->total, (int)(100 * done / p->total));
    if (note) {
        char shown[kNote + 1];
        (void)text_show(shown, sizeof shown, note);
        (void)fprintf(stderr, "  %s", shown);
    }
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
