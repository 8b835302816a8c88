/* math_eval.h - evaluates an expression at a point, in a prime field or in the complex numbers.
 *
 * Two expressions are the same rational function of their symbols if they agree at a random point
 * of a large prime field. Two different ones agree with a probability of at most degree/p, about
 * 2^-60 (Schwartz 1980, Zippel 1979), and two fields are checked. pi and e count as symbols, which
 * is right for rational functions. So does i, because none of the public graders uses i^2 = -1.
 * Only for MATH_TRUTH, i is a square root of -1. Expressions that are not rational functions
 * (roots, logarithms, angles, symbols in exponents) are computed in 256-bit complex arithmetic,
 * with an error bound for each value. Branches are the principal ones, except for odd roots of
 * negative real numbers. */
#ifndef SNAPMLA_EVALS_MATH_MATH_EVAL_H
#define SNAPMLA_EVALS_MATH_MATH_EVAL_H

#include "evals/math/math_tree.h"

typedef enum {
    EVAL_OK,
    EVAL_OTHER,     /* possibly defined, but not in this arithmetic */
    EVAL_UNDEFINED, /* 1/0, log 0, too large, or the error bound became too large */
    EVAL_CLOSE,     /* too close to another value to distinguish: 2^{1/2^{1000}} and 1 */
    EVAL_COSTLY,    /* the work limit of this grading is used up, or memory is exhausted */
} math_eval_status;

enum { kMathFields = 2, kMathPoints = 5, kMathWork = 20000 };

/* How to evaluate one tree, and how much work is left. */
typedef struct {
    const math_tree *t;
    int pm;       /* +1 or -1: the sign that \pm stands for */
    bool percent; /* n% is n/100 if set, else n */
    int *work;    /* work left, kMathWork at first; both sides of a comparison share it */
} math_reading;

/**
 * math_eval_field - the value of expression @i in prime field number @field at its random point
 *
 * @out: values of different trees can be compared for the same @field
 *
 * EVAL_OTHER if the expression is not a rational function, or has a factorial that is too large for
 * this arithmetic.
 */
math_eval_status math_eval_field(const math_reading *r, uint16_t i, int field, uint64_t *out);

typedef enum {
    MATCH_SAME,     /* a = b */
    MATCH_MULTIPLE, /* a = c b for a real constant c other than 0 */
    MATCH_SIGNED,   /* a = b or a = -b */
} math_match;

/**
 * math_numeric_match - compare two expressions at random real points, up to kMathPoints of them
 *
 * The expressions match if, at every point where both are defined, they agree within their error
 * bounds and to at least 50 digits. There must be two such points, or one if there are no symbols.
 * They do not match if they differ at any such point.
 *
 * Returns EVAL_OK with the result in @match, or the reason why there is none.
 */
math_eval_status math_numeric_match(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, math_match kind, bool *match);

/* The order of the values of two real constants: @order gets a number below, equal to or above 0.
 * It is not written unless EVAL_OK is returned. */
math_eval_status math_numeric_order(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, int *order);

#endif
