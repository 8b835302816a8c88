/* names.h - names and values for the tasks of longtext.h: what is asked for, and distractors at a
 * chosen distance from it. */
#ifndef SNAPMLA_EVALS_LONGTEXT_NAMES_H
#define SNAPMLA_EVALS_LONGTEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/rng.h"

enum { NAME_MAX_BYTES = 32, NAMES_MOST = 512 };

/* How much a distractor differs from the name that is asked for. */
typedef enum {
    DISTANCE_UNLIKE,    /* "amber falcon", "linen otter": both words differ */
    DISTANCE_WORD,      /* "amber falcon", "amber otter": one of two words differs */
    DISTANCE_CHARACTER, /* "KQVMZT", "KQVMZR": one of six letters differs */
} name_distance;

extern const char *const name_distances[]; /* "unlike", "word", "character"; NULL-terminated */

typedef struct {
    char text[NAME_MAX_BYTES];
} text_name;

/* Fills out[0 .. n-1] with distinct names. The first @asked are names to ask for. Each other name,
 * out[i], has @distance from out[i % asked]. SNAP_E_INPUT if there are fewer than @n names. @n is
 * at most NAMES_MOST, @asked at least 1 and at most @n. */
snap_status names_draw(name_distance distance, rng *r, text_name *out, size_t n, size_t asked,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Draws a name of six letters. */
void name_code(rng *r, text_name *out);

/* Draws @n distinct names of six letters, at most NAMES_MOST. */
void codes_draw(rng *r, text_name *out, size_t n);

/* Draws @n distinct numbers of six digits, at most NAMES_MOST. */
void values_draw(rng *r, text_name *out, size_t n);

/* True if one of the first @n names has that text. */
bool names_have(const text_name *names, size_t n, const char *text);

#endif
