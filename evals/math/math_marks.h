/* math_marks.h - what stands behind the value of an answer: a full stop, a degree, a unit. */
#ifndef SNAPMLA_EVALS_MATH_MATH_MARKS_H
#define SNAPMLA_EVALS_MATH_MATH_MARKS_H

#include "evals/math/math_token.h"

/* Drops the last token where it is a mark that some grader of the field takes for none. */
void math_drop_mark(math_tokens *t);

/* Whether one of both ends in a letter that the field's graders take for a unit, x + y + 2t, and they
 * have no other way to tell that both say the same. */
bool math_drops_letter(const math_tokens *gold, const math_tokens *answer);

/* Returns NULL, or a static text saying which mark none of them takes where it stands. */
const char *math_check_marks(const math_tokens *t);

#endif
