/* How the time of grading grows with the response. */
#ifndef EVALS_TEST_GROWTH_H
#define EVALS_TEST_GROWTH_H

#include <stddef.h>

#include "evals/grade.h"

/* Asserts, for each of @n pieces, that four times as much of it takes @g about four times as long to grade
 * against @gold, where quadratic work would take sixteen times: processor time, so that what else the
 * machine does hardly counts. Names the pieces that fail. */
void growth_is_linear(const grader *g, const char *gold, const char *const *pieces, size_t n);

#endif
