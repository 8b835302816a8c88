/* compare.h - is an output, or a value, the expected one? As LiveCodeBench's checker decides. */
#ifndef SNAPMLA_EVALS_CODE_COMPARE_H
#define SNAPMLA_EVALS_CODE_COMPARE_H

#include <stdbool.h>

#include "evals/pattern.h"

/* Both without white space at their ends, line by line, each line without white space at its ends: as
 * many lines, and a line equal, or a line of as many decimal numbers that are exactly equal (6.0 is 6,
 * 1e0 is 1, 0.30000000000000004 is not 0.3, NaN is nothing). White space is Unicode's. */
bool compare_output(span got, span expected);

/* Python's == between two values written as JSON. Beyond JSON: NaN, Infinity, integers of any length;
 * tuples in parentheses, which equal no list; ! for a value that equals nothing. true is 1, 3 is 3.0. The
 * last of equal keys counts. */
typedef enum { VALUE_SAME, VALUE_DIFFERS, VALUE_MALFORMED, VALUE_NO_MEMORY } value_verdict;
value_verdict compare_value(span got, span expected);

/* Whether a text is a value, as compare_value() takes it. */
bool compare_is_value(span text);

#endif
