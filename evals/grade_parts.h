/* grade_parts.h - what the graders share. */
#ifndef SNAPMLA_EVALS_GRADE_PARTS_H
#define SNAPMLA_EVALS_GRADE_PARTS_H

#include "evals/extract.h"
#include "evals/grade.h"

/* Copies what fits of an answer, malformed bytes replaced, no sequence cut in half. */
void grade_keep(grade_result *r, span answer);

/* Why @text, the visible part of the response, holds no answer. */
const char *grade_why_nothing(grade_input in, span text, bool thinking);

/* "25/4" and "x^2" end in a digit that is no answer. */
bool grade_part_of_expression(span text, const extraction *x);

#endif
