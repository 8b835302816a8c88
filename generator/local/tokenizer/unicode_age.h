/* unicode_age.h - characters that came with Unicode 15 and 16, for a library of patterns that knows 14.
 *
 * Such a library takes them for unassigned, where Hugging Face's has them as letters, marks or symbols. So patterns
 * look at a shadow of the text, in which an older character of the same general category stands for each,
 * of as many bytes: whatever matches there matches here, at the same places. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UNICODE_AGE_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UNICODE_AGE_H

#include <stdbool.h>

#include "base/buf.h"

/* Whether well-formed UTF-8 has any of them. */
bool unicode_age_has_new(const char *s, size_t n);

/* The shadow of @s into @out (cleared first), of @n bytes as well. */
void unicode_age_shadow(const char *s, size_t n, buf *out);

#endif
