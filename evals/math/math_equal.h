/* math_equal.h - is a model's answer the same mathematical object as the gold answer?
 *
 * Both are LaTeX as people and models write it ("\frac12", "x = 58,500", "\text{(C)}", "(3,4]").
 * Each answer is split into tokens (math_token.h), parsed into a tree (math_tree.h) and compared by
 * meaning: tuples, sets, intervals, matrices, equations and inequalities by structure, and the
 * expressions in them by value (math_eval.h). Rational functions are compared by their values in
 * two prime fields. Two different ones agree with a probability below 2^-100 if the numerator of
 * their difference has a degree up to 2500. Other expressions are computed at random points in
 * 256-bit complex arithmetic with error bounds. There is no computer algebra, so running time
 * cannot explode: size, depth and work are bounded. Only MPFR, GMP and (for MATH_TRUTH) the regular
 * expressions of pattern.h allocate memory.
 *
 * Graders differ in what they accept as equal. A policy decides:
 *
 *                                             MATH_TRUTH   MATH_FIELD   MATH_STRICT
 *   2/4 for 1/2                               equal        equal        different
 *   0.5 for 1/2, 7.0 for 7                    equal        equal        equal
 *   integer expression (4/2) for an integer   equal        equal        different
 *   a list or set in another order            equal        equal        different
 *   (a,b) for a,b                             equal        equal        different
 *   50\% for 50                               equal        equal        equal
 *   50\% for 0.5                              equal        equal        different
 *   \frac13\% for \frac13                     different    equal        equal
 *   a unit that the gold lacks, "x = 5" for 5 equal        equal        equal
 *   cm^3 for cm^2, a.m. for p.m.              different    equal        equal
 *   some typed signs; \sqrt{3}. for \sqrt{3}  equal        unparsed     unparsed
 *   x > 2 for (2,\infty)                      equal        different    different
 *   case of Latin letters (but not of i, e)   the same     the same     the same
 *   case of Greek letters                     different    different    different
 *
 * MATH_FIELD and MATH_STRICT also refuse other spellings that a human would accept, but which the
 * public graders refuse wherever they agree, for example 4(7) for 28. README.md has the list.
 * Sources: hendrycks/math, openai/prm800k (strict follows its grader), huggingface/Math-Verify. */
#ifndef SNAPMLA_EVALS_MATH_MATH_EQUAL_H
#define SNAPMLA_EVALS_MATH_MATH_EQUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef enum {
    MATH_TRUTH, /* accept what is shown to be equal, whatever the public graders say; the default */
    MATH_FIELD, /* give the verdict of the public graders where they agree, and otherwise accept
                   what is shown to be equal (README.md) */
    MATH_STRICT,
} math_policy;

typedef enum {
    MATH_DIFFERENT,
    MATH_EQUAL,
    MATH_UNPARSED, /* one side cannot be read as an answer, and the texts differ, too */
} math_outcome;

typedef struct {
    math_outcome outcome;
    const char *reason; /* the rule that decided, for humans; static storage */
    bool undecided;     /* neither equality nor a difference is shown: the outcome is MATH_UNPARSED,
                           or some parts were not compared or could not be computed */
    bool gold_unread;   /* MATH_UNPARSED because the gold cannot be read: an error in the data
                           set */
} math_verdict;

/**
 * math_equal - judge one answer
 *
 * @gold, @answer: the bare answers, any bytes, not NUL-terminated, possibly inside `$` or \boxed{}
 * @out: written on success
 *
 * Every input gets a verdict; SNAP_E_USAGE only for a NULL pointer. After a fault (base/fault.h),
 * such as exhausted memory, the verdict must not be used. Thread-safe: without a fault, the same
 * inputs give the same verdict. Uses less than 512 KiB of stack.
 */
snap_status math_equal(const char *gold, size_t gold_len, const char *answer, size_t answer_len,
                       math_policy policy, math_verdict *out) SNAP_CHECK_RESULT;

#endif
