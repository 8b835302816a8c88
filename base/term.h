/* term.h - terminal output: colour, width, progress and warnings.
 *
 * Colour: TERM_ALWAYS or TERM_NEVER decides. With TERM_AUTO, colour is used on a terminal if TERM
 * is set and not "dumb", and NO_COLOR is unset or empty. Progress is written to standard error. On
 * a terminal it is a line that is redrawn. It is shown only if the process started it in the
 * foreground, and only after one second, so that quick commands print none. Elsewhere, for example
 * in a file, it is one line about every minute. */
#ifndef SNAPMLA_BASE_TERM_H
#define SNAPMLA_BASE_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum { TERM_AUTO, TERM_ALWAYS, TERM_NEVER } term_color;

void term_set_color(term_color mode);
bool term_use_color(int fd);

/* Width of the terminal at @fd in characters. COLUMNS overrides it if it is 1..10000. 120 if the
 * width is unknown, for example because @fd is not a terminal. */
int term_width(int fd);

/* If @quiet, term_warn() and the progress started from now on print nothing. */
void term_set_quiet(bool quiet);

typedef struct {
    const char *what; /* borrowed, e.g. "bench"; begins the line */
    int64_t total;    /* 0 = unknown */
    int64_t before; /* done before the start, 0 unless the caller sets it; the rate leaves it out */
    int64_t started_ns, shown_ns;
    bool enabled, visible;
    bool lines; /* standard error is no terminal: one line about every minute */
} term_progress;

term_progress term_progress_start(const char *what, int64_t total);
/* Writes the line if it is due: on a terminal at most ten times per second, elsewhere about every
 * minute. @note describes the current work; it is shown as by text_show(), in at most 60 bytes; may
 * be NULL. */
void term_progress_update(term_progress *p, int64_t done, const char *note);
void term_progress_end(term_progress *p); /* erases the line */

/* Writes the text of the progress at the time @now_ns: "eval: 30/120 (25 %), 2.0/s, 45 s left". The
 * rate is the mean since the start. Rate and time left are absent if nothing was done since the
 * start. The time left is also absent if the total is unknown or nothing is left. */
enum { TERM_PROGRESS_TEXT = 160 };
void term_progress_text(const term_progress *p, int64_t done, int64_t now_ns,
                        char out[TERM_PROGRESS_TEXT]);

/* Prints "warning: ..." to standard error, shown as by text_show(), unless quiet. Erases the
 * progress line first if this process is in the foreground of a terminal. */
void term_warn(const char *fmt, ...) SNAP_PRINTF(1, 2);

#endif
