/* unicode_age.h - characters that were added in Unicode 15 and 16, for a regex library that
 * supports Unicode 14.
 *
 * For such a library they are unassigned; for Hugging Face's they have a general category, such as
 * letter or symbol. So patterns are matched against a shadow of the text. There each new
 * character is replaced by an older one of the same general category and the same number of bytes.
 * Matches in the shadow are therefore at the same positions as in the text. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UNICODE_AGE_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UNICODE_AGE_H

#include <stdbool.h>

#include "base/buf.h"

/* Whether well-formed UTF-8 contains any of these characters. */
bool unicode_age_has_new(const char *s, size_t n);

/* Writes the shadow of @s, which also has @n bytes, to @out (cleared first). */
void unicode_age_shadow(const char *s, size_t n, buf *out);

#endif
