/* math_unit.h - compares the units of two answers (MATH_TRUTH). */
#ifndef SNAPMLA_EVALS_MATH_MATH_UNIT_H
#define SNAPMLA_EVALS_MATH_MATH_UNIT_H

#include "evals/math/math_token.h"

/* True if both answers have units, all of them are known, and they differ: cm^2 and cm^3, a.m. and
 * p.m., a percent sign and degrees. False if an answer has no unit, or one that is not in the
 * table, and for a degree sign and radians. */
bool math_units_differ(const math_tokens *g, const math_tokens *a);

/* True if the only unit of an answer is the radian. */
bool math_in_radians(const math_tokens *t);

/* How often the unit named @t fits into the unit named @s: 60 for hours and minutes. 0 if that is
 * no whole number, or if the units are unknown or not of one quantity. */
int64_t math_unit_ratio(const char *s, size_t n, const char *t, size_t m);

/* Converts an answer that is a number with one unit to the unit of the gold: 1500 mL becomes
 * 1500 * 1 / 1000 if the gold is in litres. A square or cubic unit gets these factors two or three
 * times. False, and @a is unchanged, if this is not possible. */
bool math_convert_unit(const math_tokens *g, math_tokens *a);

#endif
