/* eval_show.h - `snapmla eval show RUN`: the questions and answers of a run as text. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_SHOW_H
#define SNAPMLA_HARNESS_VIEW_EVAL_SHOW_H

#include <stdint.h>

#include "base/buf.h"

typedef struct {
    const char *run;     /* a RUN folder, or a file of samples */
    const char *tasks;   /* "aime24,aime25"; NULL: all */
    const char *only;    /* "wrong,empty": sample_kinds, one of which must apply; NULL: all */
    const char *problem; /* id; NULL: all */
    int64_t sample;      /* -1: all */
    const char *arm;     /* only this arm is shown and counts for @only, except for "differs", which
                            compares all arms; NULL: all arms */
    int64_t rows;        /* maximum number of questions; 0: all */
    bool full;           /* print full answers, arms side by side */
    bool json;           /* print the stored rows, one per line */
    bool color;
    int width; /* width of the terminal in characters */
} show_options;

/* Writes one piece of the output. */
typedef snap_status (*show_sink)(void *ctx, const buf *text, snap_err *err);

/**
 * eval_show - show a table with one question per line and the answer of each arm, or full answers,
 * or the stored rows
 *
 * Setting both @problem and @sample has the effect of @full. A run that is still in progress can be
 * shown. SNAP_E_USAGE for an unknown kind, task or arm, and, with full answers or stored rows, if
 * no question matches; also errors of reading the file and of @sink.
 */
snap_status eval_show(const show_options *o, show_sink sink, void *ctx,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
