/* nearest.h - the known name that a misspelt one may stand for, for "did you mean". */
#ifndef SNAPMLA_BASE_NEAREST_H
#define SNAPMLA_BASE_NEAREST_H

#include <stddef.h>

enum {
    NEAREST_MAX = 64, /* longer words and names are not compared */
    NEAREST_HINT = NEAREST_MAX + 40
};

/* The name of the list (NULL-terminated) with the smallest edit distance to @word: the number of
 * bytes to insert, delete, replace, or swap with the next one. NULL if that distance is more than a
 * third of the word's length, but one edit is always allowed. NULL, too, if the word has only one
 * byte or more than NEAREST_MAX bytes. Of equally near names the first. */
const char *nearest_name(const char *word, const char *const *names);

/* Writes " (did you mean 'NAME'?)" with the nearest name and @prefix in front of it, or "" if no
 * name is near. Returns @out. */
const char *nearest_hint(const char *word, const char *const *names, const char *prefix,
                         char out[NEAREST_HINT]);

#endif
