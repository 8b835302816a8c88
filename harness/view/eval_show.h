/* eval_show.h - `eval show RUN`: the questions and answers of a run as text. */
#ifndef SNAPMLA_HARNESS_VIEW_EVAL_SHOW_H
#define SNAPMLA_HARNESS_VIEW_EVAL_SHOW_H

#include <stdint.h>

#include "base/buf.h"

typedef struct {
    const char *run;     /* a RUN folder, or a file of samples */
    const char *tasks;   /* "aime24,aime25"; NULL: all */
    const char *only;    /* kinds, any of which must hold (sample_kinds); NULL: everything */
    const char *problem; /* id; NULL: all */
    int64_t sample;      /* -1: all */
    const char *arm;     /* whose answers count for @only and are shown; NULL: everybody's */
    int64_t rows;        /* questions at most; 0: all */
    bool full;           /* the answers themselves, side by side */
    bool json;           /* the rows as they are stored, a line each */
    bool color;
    int width; /* of the terminal, characters */
} show_options;

/* Takes a piece of the output. */
typedef snap_status (*show_sink)(void *ctx, const buf *text, snap_err *err);

/**
 * eval_show - a table of questions, a line each with what every arm answered; or the answers
 *
 * One problem and one sample mean @full. A run that is still going on can be read. SNAP_E_USAGE for
 * a kind, task, arm or problem that is unknown here; what reading the file gives.
 */
snap_status eval_show(const show_options *o, show_sink sink, void *ctx,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
