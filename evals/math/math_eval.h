/* math_eval.h - the value of an expression at a point, in a prime field or in the complex numbers.
 *
 * Two expressions denote the same rational function of their symbols if they agree at a random
 * point of a large prime field: were they different, they would agree with a chance of degree/p,
 * about 2^-60 (Schwartz 1980, Zippel 1979), and two fields are asked. pi and e count as symbols,
 * which they are as far as rational functions go; so does i, since none of the field's graders
 * uses that its square is -1. What is no rational function (roots, logarithms,
 * angles, symbols in exponents) is computed in 256 bit complex arithmetic, each value with a bound
 * of its error; branches are the principal ones. */
#ifndef SNAPMLA_EVALS_MATH_MATH_EVAL_H
#define SNAPMLA_EVALS_MATH_MATH_EVAL_H

#include "evals/math/math_tree.h"

typedef enum {
    EVAL_OK,
    EVAL_OTHER,     /* defined perhaps, but not in this arithmetic */
    EVAL_UNDEFINED, /* 1/0, log 0, too large, or its error bound has grown too wide */
    EVAL_CLOSE,     /* nearer to another value than the digits can tell: 2^{1/2^{1000}} and 1 */
    EVAL_COSTLY,    /* the work allowed for one grading is used up */
} math_eval_status;

enum { kMathFields = 2, kMathPoints = 5, kMathWork = 20000 };

/* How to read one tree, and how much may still be spent. */
typedef struct {
    const math_tree *t;
    int pm;       /* +1 or -1: the branch of \pm */
    bool percent; /* n% is n/100, or else n */
    int *work;    /* units of about 0.2 us left; shared by both sides of a comparison */
} math_reading;

/**
 * math_eval_field - the value of expression @i in prime field number @field at its random point
 *
 * @out: comparable between trees for the same @field
 *
 * EVAL_OTHER if the expression is no rational function.
 */
math_eval_status math_eval_field(const math_reading *r, uint16_t i, int field, uint64_t *out);

typedef enum {
    MATCH_SAME,     /* a = b */
    MATCH_MULTIPLE, /* a = c b for a real constant c other than 0 */
    MATCH_SIGNED,   /* a = b or a = -b */
} math_match;

/**
 * math_numeric_match - compare two expressions at up to kMathPoints random real points
 *
 * They match if they do within their error bounds, to 50 digits at least, at every point where
 * both are defined, and there are two such points (one, if there are no symbols).
 *
 * Returns EVAL_OK with the answer in @match, or why there is none.
 */
math_eval_status math_numeric_match(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, math_match kind, bool *match);

#endif
