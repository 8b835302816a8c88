/* json_text.h - checks whether a text is JSON in the sense of Python's json.loads. */
#ifndef SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H
#define SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H

#include "evals/pattern.h"

/* Accepts any JSON value of at most 900 levels, and also NaN, Infinity and -Infinity. Numbers may
 * have any size, keys may repeat, and escapes may hold half of a surrogate pair. */
bool json_text_valid(span text);

#endif
