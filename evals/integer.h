/* integer.h - parses integers as models write them. */
#ifndef SNAPMLA_EVALS_INTEGER_H
#define SNAPMLA_EVALS_INTEGER_H

#include <stdbool.h>

#include "evals/pattern.h"

enum { INTEGER_MAX = 512 }; /* size of @out; texts of this many bytes and more are refused */

/**
 * integer_parse - the integer that a piece of LaTeX or prose states
 *
 * @text: "204", "033", "1,024", "1{,}024", "204.", "204.0", "\text{204 minutes}", "x = 204",
 *        "36^\circ", "$204$", "**204**", "(204)", "the number is 204"
 * @out:  canonical digits: no leading zeros, "-" if negative; 0 has no sign
 *
 * False for other texts, such as an expression (2^3, \frac{6}{2}), several numbers, or a decimal
 * that is not an integer. Integers may exceed 64 bits.
 */
bool integer_parse(span text, char out[INTEGER_MAX]);

bool integer_has_digit(span text);

#endif
