/* draw.h - numbers of a stated distribution: lengths in tokens, and think times in seconds.
 *
 *   N                      fixed
 *   uniform:A-B            uniform from A to B; whole numbers from A to B when it is a length
 *   lognormal:MEDIAN:SIGMA log-normal: exp(N(ln MEDIAN, SIGMA))
 *   exponential:MEAN       exponential
 *   file:PATH              drawn with replacement from the numbers of a file, one for each line
 *
 * Number i depends on the distribution, the seed, the stream and i only. Numbers outside of the
 * allowed range are moved to its nearest end. */
#ifndef SNAPMLA_HARNESS_SERVING_DRAW_H
#define SNAPMLA_HARNESS_SERVING_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum { DRAW_FIXED, DRAW_UNIFORM, DRAW_LOGNORMAL, DRAW_EXPONENTIAL, DRAW_FILE } draw_kind;

typedef struct {
    draw_kind kind;
    double a, b;        /* N, A-B, MEDIAN:SIGMA or MEAN */
    double min, max;    /* the allowed range */
    const double *list; /* DRAW_FILE: the numbers of the file */
    size_t n;
} draw;

/**
 * draw_parse - parse the text of an option
 *
 * @flag:     the option, for messages: "--input"
 * @min, @max: the allowed range. All parameters except SIGMA must lie in it, and so must the
 *            numbers of a file
 * @mem:      owns the numbers of a file
 *
 * SNAP_E_USAGE for another form or a number out of range; SNAP_E_INPUT for a malformed file;
 * SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status draw_parse(const char *flag, const char *text, double min, double max, arena *mem,
                       draw *out, snap_err *err) SNAP_CHECK_RESULT;

/* Returns number @index of a stream. */
double draw_at(const draw *d, uint64_t seed, uint64_t stream, uint64_t index);

/* Returns number @index of a stream, rounded to a whole number. For `uniform`, each whole number
 * from A to B is equally likely. */
int64_t draw_length(const draw *d, uint64_t seed, uint64_t stream, uint64_t index);

#endif
