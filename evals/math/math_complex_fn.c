#include "evals/math/math_complex.h"

enum { kMaxAngle = 64 }; /* an argument above 2^64 is refused: reducing it would cost too much */

typedef int (*mpfr_function)(mpfr_t, const mpfr_t, mpfr_rnd_t);

/* Applies f, for which |f'| <= 2^slope near v. */
static math_eval_status apply(cx *v, mpfr_function f, long slope) {
    f(v->re, v->re, MPFR_RNDN);
    return cx_settle(v, cx_larger(v->err + slope, -kPrecision));
}

static math_eval_status circular(cx *v, int fn) {
    cx sine;
    if (cx_magnitude(v) > kMaxAngle)
        return EVAL_UNDEFINED;
    if (!cx_is_zero(v) && cx_magnitude(v) < -kAbsorbed / 2) /* 1 - x^2/2 cannot be distinguished
                                                               from 1 */
        return EVAL_CLOSE;
    cx_init(&sine);
    long err = cx_larger(v->err, -kPrecision);
    mpfr_sin_cos(sine.re, v->re, v->re, MPFR_RNDN);
    CHECK(cx_settle(&sine, err));
    CHECK(cx_settle(v, err));
    switch (fn) {
    case FN_COS:
        return EVAL_OK;
    case FN_SEC:
        return cx_invert(v);
    case FN_TAN:
        CHECK(cx_invert(v));
        return cx_mul(v, &sine);
    case FN_COT:
        CHECK(cx_invert(&sine));
        return cx_mul(v, &sine);
    default: /* FN_SIN, FN_CSC */
        cx_copy(v, &sine);
        return fn == FN_CSC ? cx_invert(v) : EVAL_OK;
    }
}

static math_eval_status inverse_circular(cx *v, int fn) {
    if (fn == FN_ACOT || fn == FN_ASEC || fn == FN_ACSC) {
        CHECK(cx_invert(v));
        fn -= FN_ACOT - FN_ATAN;
        fn = fn == FN_ATAN ? FN_ATAN : fn == FN_ATAN + 1 ? FN_ACOS : FN_ASIN;
    }
    if (fn == FN_ATAN && cx_magnitude(v) > kAbsorbed)
        return EVAL_CLOSE; /* too close to pi/2 */
    if (fn == FN_ATAN)
        return apply(v, mpfr_atan, 0);
    long err = v->err;
    cx gap; /* 1 - |v|; the slope has no bound where this is near zero */
    cx_init(&gap);
    mpfr_abs(gap.re, v->re, MPFR_RNDN);
    mpfr_ui_sub(gap.re, 1, gap.re, MPFR_RNDN);
    if (cx_magnitude(&gap) <= err + 2) {
        mpfr_set_si(v->re, mpfr_sgn(v->re), MPFR_RNDN);
        v->err = err / 2 + 2;
    } else if (mpfr_sgn(gap.re) < 0) {
        return EVAL_OTHER;
    } else {
        v->err -= (cx_magnitude(&gap) - 1) / 2 - 1;
    }
    return apply(v, fn == FN_ASIN ? mpfr_asin : mpfr_acos, 0);
}

static math_eval_status hyperbolic(cx *v, int fn) {
    if (cx_magnitude(v) > 14)
        return EVAL_UNDEFINED;
    if (!cx_is_zero(v) &&
        (cx_magnitude(v) < -kAbsorbed / 2 || (fn == FN_TANH && cx_magnitude(v) > 5)))
        return EVAL_CLOSE;
    if (fn == FN_TANH)
        return apply(v, mpfr_tanh, 0);
    long err = v->err;
    (fn == FN_SINH ? mpfr_sinh : mpfr_cosh)(v->re, v->re, MPFR_RNDN);
    return cx_settle(v, err + cx_larger(cx_magnitude(v), 0) + 1);
}

/* Rounds a value. A value that cannot be distinguished from an integer is that integer. */
static math_eval_status round_value(cx *v, int fn) {
    cx nearest;
    cx_init(&nearest);
    if (v->err > -kAgreement)
        return EVAL_UNDEFINED;
    mpfr_round(nearest.re, v->re);
    mpfr_sub(nearest.im, nearest.re, v->re, MPFR_RNDN);
    if (cx_part_magnitude(nearest.im) <= v->err + 1)
        mpfr_set(v->re, nearest.re, MPFR_RNDN);
    else if (fn == FN_FLOOR)
        mpfr_floor(v->re, v->re);
    else
        mpfr_ceil(v->re, v->re);
    return cx_settle(v, kZeroMagnitude);
}

math_eval_status cx_function(cx *v, int fn) {
    if (!cx_is_real(v))
        return EVAL_OTHER;
    if (fn <= FN_CSC)
        return circular(v, fn);
    if (fn <= FN_ACSC)
        return inverse_circular(v, fn);
    if (fn <= FN_TANH)
        return hyperbolic(v, fn);
    return round_value(v, fn);
}
