/* lengths.h - sequences of different lengths for the cells of a benchmark, drawn from a seed.
 *
 *   uniform:LO-HI            each length from LO to HI is equally likely
 *   lognormal:MEDIAN,SIGMA   the logarithm is normal: about 68 % of the lengths lie between
 *                            MEDIAN / e^SIGMA and MEDIAN * e^SIGMA
 *   bimodal:A,B,SHARE        A with probability SHARE, else B
 *   FILE                     a random line of a file with one length per line
 *
 * A drawn length is rounded, and cut to 1 .. MLA_MAX_CONTEXT. The lengths depend on the seed and
 * the batch only, so all heads, query tokens, scopes and arms have the same ones. */
#ifndef SNAPMLA_HARNESS_BENCH_LENGTHS_H
#define SNAPMLA_HARNESS_BENCH_LENGTHS_H

#include <stdint.h>

#include "base/err.h"

typedef enum { LENGTHS_UNIFORM, LENGTHS_LOGNORMAL, LENGTHS_BIMODAL, LENGTHS_FILE } lengths_kind;

enum { LENGTHS_TEXT = 160, LENGTHS_LINES = 1 << 20 };

typedef struct {
    lengths_kind kind;
    double a, b, share; /* LO and HI; MEDIAN and SIGMA; A, B and SHARE */
    int32_t *lines;     /* LENGTHS_FILE: [n], owned */
    int64_t n;
    char text[LENGTHS_TEXT]; /* the option as result files show it: as given; for a file, the last
                                part of its path and the beginning of its SHA-256 */
} lengths_spec;

/* Reads the text of the option --lengths. Errors: SNAP_E_USAGE (the text has another form or a
 * number is out of range; the message says which), SNAP_E_INPUT (the file has no length, too many,
 * a line that is none, or a NUL byte), SNAP_E_IO, SNAP_E_NOMEM. Release *out with
 * lengths_release(), also after an error. */
snap_status lengths_parse(lengths_spec *out, const char *text, snap_err *err) SNAP_CHECK_RESULT;
void lengths_release(lengths_spec *s);

/* Draws one length for each sequence: @out[batch]. Returns the longest. */
int64_t lengths_draw(const lengths_spec *s, uint64_t seed, int batch, int32_t *out);

#endif
