/* json_text.h - is a text JSON, as Python's json.loads takes it? */
#ifndef SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H
#define SNAPMLA_EVALS_IFEVAL_JSON_TEXT_H

#include "evals/pattern.h"

/* Any value. Beside RFC 8259: NaN, Infinity and -Infinity, numbers of any size, keys that come twice, halves
 * of surrogate pairs. At most 900 levels. */
bool json_text_valid(span text);

#endif
