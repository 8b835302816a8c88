/* similarity.h - how similar two texts are, as Python's difflib.SequenceMatcher.ratio() says. */
#ifndef SNAPMLA_EVALS_SIMILARITY_H
#define SNAPMLA_EVALS_SIMILARITY_H

#include "base/err.h"
#include "evals/pattern.h"

/**
 * similarity_ratio - 2 M / T, where T is the number of characters of both texts and M the number of
 *                    those that match
 *
 * M is found as SequenceMatcher does with its defaults: the longest common run of characters, and
 * then the same to its left and right. In a text @b of 200 characters or more, a run must contain a
 * character that makes up at most about 1 % of @b. 1 for two empty texts. SNAP_E_NOMEM.
 *
 * @a, @b: UTF-8; in the worst case the time is the product of their lengths
 */
snap_status similarity_ratio(span a, span b, double *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
