/* letter_glyph.h - characters of Unicode that are drawn as a Latin letter: full-width,
 * mathematical, circled, squared and in parentheses. */
#ifndef SNAPMLA_EVALS_LETTER_GLYPH_H
#define SNAPMLA_EVALS_LETTER_GLYPH_H

#include "evals/pattern.h"

/* Reads such a character at the start of @s. Returns its length in bytes; 0 if there is none.
 * *letter: its ASCII letter; a capital if the character has a frame. *framed: it has a circle, a
 * square or parentheses. */
size_t letter_glyph(span s, char *letter, bool *framed);

#endif
