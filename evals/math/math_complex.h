/* math_complex.h - complex numbers of 256 bits, each with an error bound.
 *
 * An operation changes its first operand. It returns EVAL_OK, or the reason why there is no value:
 * undefined, too large, too close to another value to distinguish the two in 50 digits, or
 * (cx_function() only) not real. Branches are the principal ones, but an odd root of a negative
 * real number is the real root. */
#ifndef SNAPMLA_EVALS_MATH_MATH_COMPLEX_H
#define SNAPMLA_EVALS_MATH_MATH_COMPLEX_H

#include <mpfr.h>
#include <stdbool.h>
#include <stdint.h>

#include "evals/math/math_eval.h"

enum {
    kPrecision = 256, /* bits */
    kLimbs = kPrecision / GMP_NUMB_BITS,
    kAgreement = 166,            /* 50 decimal digits in bits */
    kAbsorbed = kAgreement - 16, /* a term that is smaller by this many bits does not affect a
                                    comparison */
    kZeroMagnitude = -(1 << 28),
};

/* A value with an absolute error of at most 2^err. It holds its own limbs, so MPFR never allocates
 * for it. It must not be copied by assignment. */
typedef struct {
    mpfr_t re, im;
    long err;
    mp_limb_t limb[2][kLimbs];
} cx;

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        math_eval_status check_ = (expr);                                                          \
        if (check_ != EVAL_OK)                                                                     \
            return check_;                                                                         \
    } while (0)

/* Sets v to exact zero. */
static inline void cx_init(cx *v) {
    mpfr_custom_init_set(v->re, MPFR_ZERO_KIND, 0, kPrecision, v->limb[0]);
    mpfr_custom_init_set(v->im, MPFR_ZERO_KIND, 0, kPrecision, v->limb[1]);
    v->err = kZeroMagnitude;
}

static inline void cx_copy(cx *to, const cx *from) {
    mpfr_set(to->re, from->re, MPFR_RNDN);
    mpfr_set(to->im, from->im, MPFR_RNDN);
    to->err = from->err;
}

static inline bool cx_is_real(const cx *v) {
    return mpfr_zero_p(v->im);
}

static inline bool cx_is_zero(const cx *v) {
    return mpfr_zero_p(v->re) && mpfr_zero_p(v->im);
}

static inline long cx_larger(long a, long b) {
    return a > b ? a : b;
}

static inline long cx_part_magnitude(const mpfr_t x) {
    return mpfr_zero_p(x) ? kZeroMagnitude : mpfr_get_exp(x);
}

/* Returns m such that the modulus is in [2^(m-1), 2^(m+1)). */
static inline long cx_magnitude(const cx *v) {
    return cx_larger(cx_part_magnitude(v->re), cx_part_magnitude(v->im));
}

/* Ends an operation: adds the rounding error to @err, the exponent of the error that the operands'
 * errors cause. EVAL_UNDEFINED if the value is too large or is not a number. Parts that cannot be
 * distinguished from zero become zero, which puts the value on the right side of a branch cut. */
math_eval_status cx_settle(cx *v, long err);

math_eval_status cx_add(cx *v, const cx *a);
math_eval_status cx_mul(cx *v, const cx *a);
math_eval_status cx_invert(cx *v);
math_eval_status cx_set_pi(cx *v);
math_eval_status cx_log(cx *v);
math_eval_status cx_exp(cx *v);
math_eval_status cx_sqrt(cx *v);
math_eval_status cx_root(cx *v, int64_t degree);
math_eval_status cx_power(cx *v, int64_t e);

/* Applies a math_fn to a real argument: circular functions and their inverses, hyperbolic
 * functions, rounding. EVAL_OTHER if the argument or the result is not real. */
math_eval_status cx_function(cx *v, int fn);

#endif
