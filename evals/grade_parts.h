/* grade_parts.h - functions that the graders share. */
#ifndef SNAPMLA_EVALS_GRADE_PARTS_H
#define SNAPMLA_EVALS_GRADE_PARTS_H

#include "evals/extract.h"
#include "evals/grade.h"

/* Stores the answer in r->extracted, cut between characters if it is longer. U+FFFD replaces
 * malformed bytes. */
void grade_keep(grade_result *r, span answer);

/* The reason why @text, the visible part of the response, holds no answer. */
const char *grade_why_nothing(grade_input in, span text, bool thinking);

/* True if the character directly before the number that was found shows that it is only a part of
 * an expression such as "25/4" or "x^2". */
bool grade_part_of_expression(span text, const extraction *x);

#endif
