/* letters.h - one character after the other. */
#ifndef SNAPMLA_EVALS_IFEVAL_LETTERS_H
#define SNAPMLA_EVALS_IFEVAL_LETTERS_H

#include <stdint.h>

#include "evals/pattern.h"

/* The character at *at of UTF-8 text, which is moved behind it; a byte that starts none is one itself. */
uint32_t letters_next(span text, size_t *at);

bool letters_is_upper(uint32_t c); /* of Latin, Greek, Cyrillic, Armenian */
bool letters_is_space(uint32_t c); /* as Python's str.isspace() */

/* Without white space at both ends. */
span letters_trim(span text);

#endif
