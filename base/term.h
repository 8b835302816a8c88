/* term.h - what a terminal shows: colour where it is wanted, progress where somebody looks.
 *
 * Colour: --color=always|never wins; else a terminal, TERM not "dumb", NO_COLOR unset or empty.
 * Progress goes to standard error, only when that is a terminal and this process is in its
 * foreground, and only after a second: quick commands stay silent. */
#ifndef SNAPMLA_BASE_TERM_H
#define SNAPMLA_BASE_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum { TERM_AUTO, TERM_ALWAYS, TERM_NEVER } term_color;

void term_set_color(term_color mode);
bool term_use_color(int fd);

/* Characters in a line of the terminal at @fd; COLUMNS where it is set, 120 for what is no terminal. */
int term_width(int fd);

/* --quiet: no progress, no warnings. */
void term_set_quiet(bool quiet);

typedef struct {
    const char *what; /* "bench", borrowed */
    int64_t total;    /* 0 = unknown */
    int64_t started_ns, shown_ns;
    bool enabled, visible;
} term_progress;

term_progress term_progress_start(const char *what, int64_t total);
/* Redraws at most ten times a second; @note (may be NULL) says what is going on. */
void term_progress_update(term_progress *p, int64_t done, const char *note);
void term_progress_end(term_progress *p); /* erases the line */

/* "warning: ..." on standard error, after the progress line was erased. */
void term_warn(const char *fmt, ...) SNAP_PRINTF(1, 2);

#endif
