/* growth.h - checks how the time of grading grows with the length of the response. */
#ifndef EVALS_TEST_GROWTH_H
#define EVALS_TEST_GROWTH_H

#include <stddef.h>

#include "evals/grade.h"

/* For each of @n pieces, asserts that for four times as much of the piece, @g needs at most nine
 * times as long plus 50 ms; quadratic work would need sixteen times as long. It measures CPU time.
 * Prints the pieces that fail. */
void growth_is_linear(const grader *g, const char *gold, const char *const *pieces, size_t n);

#endif
