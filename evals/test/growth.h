/* growth.h - checks how the time of grading grows with the length of the response. */
#ifndef EVALS_TEST_GROWTH_H
#define EVALS_TEST_GROWTH_H

#include <stddef.h>

#include "evals/grade.h"

/* For each of @n pieces, asserts that @g needs at most nine times the CPU time, plus 50 ms, for a
 * response of four times the length. Quadratic work would need sixteen times as long. Prints the
 * pieces that fail. */
void growth_is_linear(const grader *g, const char *gold, const char *const *pieces, size_t n);

#endif
