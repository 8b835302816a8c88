/* stream.h - generates a stream of problems of several styles and levels, or of chats about long
 * texts (evals/longtext/training.h). */
#ifndef SNAPMLA_EVALS_SYNTH_STREAM_H
#define SNAPMLA_EVALS_SYNTH_STREAM_H

#include "base/parallel.h"
#include "evals/longtext/training.h"
#include "evals/synth/synth.h"

enum { SYNTH_LEVEL_LIST = 64 };

typedef struct {
    synth_style style[SYNTH_STYLES];
    int styles;
    int level[SYNTH_LEVEL_LIST]; /* a level that is listed twice occurs twice as often */
    int levels;
    synth_split split;
    uint64_t seed;
    int64_t start, count; /* problems start .. start + count - 1 of the stream */
    bool solutions;
    int kind[TRAINING_KINDS];
    int kinds; /* not 0: chats of these kinds, in place of problems */
    int64_t length[SYNTH_LEVEL_LIST];
    int lengths;
    int questions;
    double chars_per_token;
} synth_plan;

/* Receives one problem or chat as a line with its newline. An error ends the stream. */
typedef snap_status (*synth_sink)(void *ctx, const char *lines, size_t n, snap_err *err);

/**
 * synth_stream - write problems as lines of JSON, using all threads of a pool
 *
 * Problem i has the style at position i mod styles, and the level at position (i / styles) mod
 * levels. Chat i has the kind at position i mod kinds, and the length at position (i / kinds) mod
 * lengths. Held-out problems never repeat within @count. A training stream may repeat problems.
 *
 * SNAP_E_USAGE for a plan without styles or levels (for chats: without lengths) or with a negative
 * start or count, and if 32 other numbers give no new held-out problem, for example because more
 * are requested than exist. SNAP_E_INPUT if a length is too small for a kind; SNAP_E_NOMEM; errors
 * of @sink.
 */
snap_status synth_stream(const synth_plan *plan, parallel *pool, synth_sink sink, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
