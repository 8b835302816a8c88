/* letters.h - decodes UTF-8 text one character at a time; capitals and white space. */
#ifndef SNAPMLA_EVALS_IFEVAL_LETTERS_H
#define SNAPMLA_EVALS_IFEVAL_LETTERS_H

#include <stdint.h>

#include "evals/pattern.h"

/* Returns the character at *at and moves *at past it. A malformed byte counts as one character. */
uint32_t letters_next(span text, size_t *at);

bool letters_is_upper(uint32_t c); /* supports most Latin, Greek, Cyrillic and Armenian letters */

/* The text without white space at both ends. */
span letters_trim(span text);

#endif
