/* compare.h - compares a program's output or return value with the expected one, by the rules of
 * LiveCodeBench's checker. */
#ifndef SNAPMLA_EVALS_CODE_COMPARE_H
#define SNAPMLA_EVALS_CODE_COMPARE_H

#include <stdbool.h>

#include "evals/pattern.h"

/* Compares two texts line by line. White space (as Python's str.isspace() defines it) at the ends
 * of the text and of each line is ignored. The numbers of lines must agree. Two lines are equal if
 * their texts are, or if both consist of the same number of decimal numbers and these are exactly
 * equal: 6.0 equals 6, and 1e0 equals 1, but 0.30000000000000004 does not equal 0.3. As a number,
 * NaN equals nothing. */
bool compare_output(span got, span expected);

/* Compares two values written as JSON, like Python's ==. Beyond JSON: NaN, Infinity, integers of
 * any length, tuples in parentheses (never equal to a list), and ! for a value that equals nothing.
 * true equals 1, and 3 equals 3.0. If a key occurs twice, the last one counts. VALUE_MALFORMED if a
 * text cannot be read or is nested too deeply; VALUE_NO_MEMORY after a fault (base/fault.h). */
typedef enum { VALUE_SAME, VALUE_DIFFERS, VALUE_MALFORMED, VALUE_NO_MEMORY } value_verdict;
value_verdict compare_value(span got, span expected);

/* True if compare_value() can read the text. */
bool compare_is_value(span text);

#endif
