/* math_equal.h - is a model's answer the same mathematical object as the gold answer?
 *
 * Both are LaTeX as people and models write it ("\frac12", "x = 58,500", "\text{(C)}", "(3,4]").
 * Each is cut into tokens (math_token.h), parsed into a tree (math_tree.h) and compared by what it
 * denotes: tuples, sets, intervals, matrices, equations and inequalities by structure, and the
 * expressions in them by value (math_eval.h): rational functions by their images in two prime
 * fields, which different ones share with a chance below 2^-100; all else in 256 bit complex
 * arithmetic with tracked error bounds, at random points. There is no computer algebra in it, so
 * there is nothing that can run away: size, depth and work are bounded, and nothing is allocated
 * save inside MPFR.
 *
 * What counts as the same where the public graders differ is a policy:
 *
 *                                             MATH_FIELD          MATH_STRICT
 *   2/4 for 1/2                               equal               different
 *   0.5 for 1/2, 7.0 for 7                    equal               equal
 *   integer expression (4/2) for an integer   equal               different
 *   a list in another order, or as a set      equal               different
 *   (a,b) for a,b                             equal               different
 *   50\% for 50 or for 0.5                    equal               equal, different
 *   units, degrees, currency, "x =" in front  ignored             ignored
 *   capital and small letters of symbols      the same            the same
 *
 * Where all of the field's graders refuse what a reader would take (4(7) for 28, a typed root sign,
 * \sqrt{3} with a full stop, an inequality for an interval), so do both policies; README.md has the
 * list. The full stop of "9." is part of a numeral.
 * Sources: hendrycks/math, openai/prm800k (strict follows its grader), huggingface/Math-Verify. */
#ifndef SNAPMLA_EVALS_MATH_MATH_EQUAL_H
#define SNAPMLA_EVALS_MATH_MATH_EQUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef enum {
    MATH_FIELD, /* accept what the field's graders accept between them; the default */
    MATH_STRICT,
} math_policy;

typedef enum {
    MATH_DIFFERENT,
    MATH_EQUAL,
    MATH_UNPARSED, /* one side is no answer this engine can read, and the words differ too */
} math_outcome;

typedef struct {
    math_outcome outcome;
    const char *reason; /* the rule that decided, for people; static storage */
    bool gold_unread;   /* MATH_UNPARSED because of the gold: a fault of the data set */
} math_verdict;

/**
 * math_equal - judge one answer
 *
 * @gold, @answer: the bare answers, any bytes, not NUL-terminated; `$` and \boxed{} may be around
 * @out: written on success
 *
 * Any input has a verdict; SNAP_E_USAGE only for a NULL pointer. Pure and thread-safe: the same
 * inputs give the same verdict, and nothing is kept between calls. Uses less than 512 KiB of stack.
 */
snap_status math_equal(const char *gold, size_t gold_len, const char *answer, size_t answer_len,
                       math_policy policy, math_verdict *out) SNAP_CHECK_RESULT;

#endif
