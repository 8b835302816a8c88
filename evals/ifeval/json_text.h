/* json_text.h - checks whether a text is JSON in the sense of Python's json.loads. */
#ifndef SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H
#define SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H

#include "evals/pattern.h"

/* Accepts any JSON value. Beyond RFC 8259 it accepts NaN, Infinity and -Infinity, numbers of any
 * size, duplicate keys, and single halves of surrogate pairs. At most 900 levels. */
bool json_text_valid(span text);

#endif
