/* math_marks.h - marks after the value of an answer: a full stop, a degree sign, a unit. */
#ifndef SNAPMLA_EVALS_MATH_MATH_MARKS_H
#define SNAPMLA_EVALS_MATH_MATH_MARKS_H

#include "evals/math/math_token.h"

/* Removes the last token if it is a mark that some public grader ignores. */
void math_drop_mark(math_tokens *t);

/* For MATH_TRUTH: removes punctuation at the end, and a remark after the value, as in "5 \text{
 * (since } 2+3=5)". */
void math_trim_prose(math_tokens *t);

/* True if one answer ends in a letter that may be a unit, as the t of x + y + 2t, the other does
 * not end in this letter, and the public graders have no other way to find the answers equal. */
bool math_drops_letter(const math_tokens *gold, const math_tokens *answer);

/* Checks the degree signs and the first unit. NULL if MATH_FIELD and MATH_STRICT accept them at
 * their places; else a static text that names the first mark which they refuse there. */
const char *math_check_marks(const math_tokens *t);

/* For MATH_TRUTH: NULL, or a static text if words such as "only if" follow a value. */
const char *math_check_conditions(const math_tokens *t);

#endif
