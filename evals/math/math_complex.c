#include "evals/math/math_complex.h"

#include <stdlib.h>

enum {
    kMaxMagnitude = 1 << 15, /* values beyond 2^32768 are too large */
    kMaxDegree = 1000,       /* largest degree of a root */
};

static bool is_one(const cx *v) {
    return cx_is_real(v) && mpfr_cmp_ui(v->re, 1) == 0;
}

math_eval_status cx_settle(cx *v, long err) {
    if (!mpfr_number_p(v->re) || !mpfr_number_p(v->im))
        return EVAL_UNDEFINED;
    long m = cx_magnitude(v);
    if (m > kMaxMagnitude)
        return EVAL_UNDEFINED;
    v->err = cx_larger(cx_larger(err, m - kPrecision) + 1, kZeroMagnitude);
    if (cx_part_magnitude(v->re) <= v->err)
        mpfr_set_zero(v->re, 1);
    if (cx_part_magnitude(v->im) <= v->err)
        mpfr_set_zero(v->im, 1);
    return EVAL_OK;
}

/* True if x and y are not zero and so different in size that their sum loses one of them. */
static bool absorbs(const cx *x, const cx *y) {
    return !cx_is_zero(x) && !cx_is_zero(y) && labs(cx_magnitude(x) - cx_magnitude(y)) > kAbsorbed;
}

/* True if v cannot be distinguished from 1 although it was computed from a value other than 1. */
static bool hides_one(const cx *v, bool was_one) {
    cx gap;
    cx_init(&gap);
    if (was_one || !cx_is_real(v))
        return false;
    mpfr_sub_ui(gap.re, v->re, 1, MPFR_RNDN);
    return cx_part_magnitude(gap.re) < -kAbsorbed;
}

math_eval_status cx_add(cx *v, const cx *a) {
    if (absorbs(v, a))
        return EVAL_CLOSE;
    mpfr_add(v->re, v->re, a->re, MPFR_RNDN);
    mpfr_add(v->im, v->im, a->im, MPFR_RNDN);
    return cx_settle(v, cx_larger(v->err, a->err));
}

math_eval_status cx_mul(cx *v, const cx *a) {
    long m = cx_magnitude(v), n = cx_magnitude(a);
    long err = cx_larger(cx_larger(m + a->err, n + v->err), a->err + v->err) + 2;
    if (cx_is_real(v) && cx_is_real(a)) {
        mpfr_mul(v->re, v->re, a->re, MPFR_RNDN);
        return cx_settle(v, err);
    }
    cx t;
    cx_init(&t);
    mpfr_fmms(t.re, v->re, a->re, v->im, a->im, MPFR_RNDN);
    mpfr_fmma(t.im, v->re, a->im, v->im, a->re, MPFR_RNDN);
    cx_copy(v, &t);
    return cx_settle(v, err);
}

math_eval_status cx_invert(cx *v) {
    long m = cx_magnitude(v);
    if (m <= v->err + 2) /* not distinguishable from zero */
        return EVAL_UNDEFINED;
    if (cx_is_real(v)) {
        mpfr_ui_div(v->re, 1, v->re, MPFR_RNDN);
        return cx_settle(v, v->err - 2 * m + 3);
    }
    cx square;
    cx_init(&square);
    mpfr_fmma(square.re, v->re, v->re, v->im, v->im, MPFR_RNDN);
    mpfr_div(v->re, v->re, square.re, MPFR_RNDN);
    mpfr_div(v->im, v->im, square.re, MPFR_RNDN);
    mpfr_neg(v->im, v->im, MPFR_RNDN);
    return cx_settle(v, v->err - 2 * m + 3);
}

math_eval_status cx_set_pi(cx *v) {
    mpfr_const_pi(v->re, MPFR_RNDN);
    mpfr_set_zero(v->im, 1);
    return cx_settle(v, kZeroMagnitude);
}

math_eval_status cx_log(cx *v) {
    long m = cx_magnitude(v);
    if (m <= v->err + 2)
        return EVAL_UNDEFINED;
    cx t;
    cx_init(&t);
    if (cx_is_real(v) && mpfr_sgn(v->re) > 0) {
        mpfr_log(t.re, v->re, MPFR_RNDN);
    } else {
        mpfr_hypot(t.re, v->re, v->im, MPFR_RNDN);
        mpfr_log(t.re, t.re, MPFR_RNDN);
        mpfr_atan2(t.im, v->im, v->re, MPFR_RNDN);
    }
    long err = cx_larger(v->err - m + 2, -kPrecision);
    cx_copy(v, &t);
    return cx_settle(v, err);
}

math_eval_status cx_exp(cx *v) {
    long err = v->err;
    if (cx_magnitude(v) > 17 || err > -8)
        return EVAL_UNDEFINED;
    if (!cx_is_zero(v) && cx_magnitude(v) < -kAbsorbed)
        return EVAL_CLOSE;
    cx t;
    cx_init(&t);
    mpfr_exp(t.re, v->re, MPFR_RNDN);
    if (!cx_is_real(v)) {
        cx angle;
        cx_init(&angle);
        mpfr_sin_cos(angle.im, angle.re, v->im, MPFR_RNDN);
        mpfr_mul(t.im, t.re, angle.im, MPFR_RNDN);
        mpfr_mul(t.re, t.re, angle.re, MPFR_RNDN);
        mpfr_exp(angle.re, v->re, MPFR_RNDN); /* |e^v|, to which the error is proportional */
        err += cx_larger(cx_part_magnitude(angle.re), cx_magnitude(&t));
    } else {
        err += cx_magnitude(&t);
    }
    cx_copy(v, &t);
    return cx_settle(v, err + 2);
}

math_eval_status cx_sqrt(cx *v) {
    if (cx_is_zero(v))
        return cx_settle(v, v->err / 2 + 1);
    if (!cx_is_real(v)) {
        cx half;
        cx_init(&half);
        mpfr_set_d(half.re, 0.5, MPFR_RNDN);
        CHECK(cx_log(v));
        CHECK(cx_mul(v, &half));
        return cx_exp(v);
    }
    if (mpfr_sgn(v->re) > 0) {
        bool one = is_one(v);
        mpfr_sqrt(v->re, v->re, MPFR_RNDN);
        if (hides_one(v, one))
            return EVAL_CLOSE;
    } else {
        mpfr_neg(v->re, v->re, MPFR_RNDN);
        mpfr_sqrt(v->im, v->re, MPFR_RNDN);
        mpfr_set_zero(v->re, 1);
    }
    return cx_settle(v, v->err - cx_magnitude(v) + 1);
}

/* The real root if there is one, so the cube root of -8 is -2; otherwise the principal root. */
math_eval_status cx_root(cx *v, int64_t degree) {
    if (degree < 1 || degree > kMaxDegree)
        return EVAL_UNDEFINED;
    if (cx_is_zero(v))
        return cx_settle(v, v->err / degree + 1);
    if (cx_is_real(v) && (mpfr_sgn(v->re) > 0 || degree % 2 == 1)) {
        long m = cx_magnitude(v);
        bool one = is_one(v);
        mpfr_rootn_ui(v->re, v->re, (unsigned long)degree, MPFR_RNDN);
        if (hides_one(v, one))
            return EVAL_CLOSE;
        return cx_settle(v, v->err - m + cx_magnitude(v) + 2);
    }
    cx part;
    cx_init(&part);
    mpfr_set_si(part.re, degree, MPFR_RNDN);
    CHECK(cx_invert(&part));
    CHECK(cx_log(v));
    CHECK(cx_mul(v, &part));
    return cx_exp(v);
}

math_eval_status cx_power(cx *v, int64_t e) {
    if (cx_is_zero(v))
        return e > 0 ? EVAL_OK : EVAL_UNDEFINED;
    if (e < 0)
        CHECK(cx_invert(v));
    cx x, square;
    cx_init(&x);
    cx_init(&square);
    mpfr_set_ui(x.re, 1, MPFR_RNDN);
    cx_copy(&square, v);
    for (uint64_t k = (uint64_t)(e < 0 ? -e : e); k; k >>= 1) {
        if (k & 1)
            CHECK(cx_mul(&x, &square));
        if (k > 1)
            CHECK(cx_mul(&square, &square));
    }
    cx_copy(v, &x);
    return EVAL_OK;
}
