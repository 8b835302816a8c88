/* math_marks.h - what stands behind the value of an answer: a full stop, a degree, a unit. */
#ifndef SNAPMLA_EVALS_MATH_MATH_MARKS_H
#define SNAPMLA_EVALS_MATH_MATH_MARKS_H

#include "evals/math/math_token.h"

/* Drops the last token where it is a mark that some grader of the field takes for none. */
void math_drop_mark(math_tokens *t);

/* Returns NULL, or a static text saying which mark none of them takes where it stands. */
const char *math_check_marks(const math_tokens *t);

#endif
