#include <limits.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

#include "evals/math/math_eval.h"

enum {
    kPrecision = 256, /* bits */
    kLimbs = kPrecision / GMP_NUMB_BITS,
    kAgreement = 166,            /* bits of 50 digits */
    kAbsorbed = kAgreement - 16, /* what is smaller by so many bits is lost to a comparison */
    kMaxMagnitude = 1 << 15,     /* values beyond 2^32768 are too large */
    kMaxAngle = 64,              /* sin of more than 2^64 is not worth its reduction */
    kMaxDigits = 1000,
    kMaxFactorial = 5000,
    kMaxDegree = 1000, /* of a root */
    kZeroMagnitude = -(1 << 28),
    kCheap = 1,
    kDear = 60, /* a transcendental function, in units of work */
};

/* A complex number off by at most 2^err in modulus. The limbs are its own: mpfr never allocates
 * for it, and it can't be copied by assignment. */
typedef struct {
    mpfr_t re, im;
    long err;
    mp_limb_t limb[2][kLimbs];
} value;

typedef struct {
    const math_reading *r;
    int point;
} context;

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        math_eval_status check_ = (expr);                                                          \
        if (check_ != EVAL_OK)                                                                     \
            return check_;                                                                         \
    } while (0)

/* ---- values ---- */

static void init(value *v) {
    mpfr_custom_init_set(v->re, MPFR_ZERO_KIND, 0, kPrecision, v->limb[0]);
    mpfr_custom_init_set(v->im, MPFR_ZERO_KIND, 0, kPrecision, v->limb[1]);
    v->err = kZeroMagnitude;
}

static void copy(value *to, const value *from) {
    mpfr_set(to->re, from->re, MPFR_RNDN);
    mpfr_set(to->im, from->im, MPFR_RNDN);
    to->err = from->err;
}

static bool is_real(const value *v) {
    return mpfr_zero_p(v->im);
}

static bool is_zero(const value *v) {
    return mpfr_zero_p(v->re) && mpfr_zero_p(v->im);
}

static bool is_one(const value *v) {
    return is_real(v) && mpfr_cmp_ui(v->re, 1) == 0;
}

static long larger(long a, long b) {
    return a > b ? a : b;
}

static long magnitude_of(const mpfr_t x) {
    return mpfr_zero_p(x) ? kZeroMagnitude : mpfr_get_exp(x);
}

/* The modulus is in [2^(m-1), 2^(m+1)). */
static long magnitude(const value *v) {
    return larger(magnitude_of(v->re), magnitude_of(v->im));
}

/* Closes an operation: @err is what the operands' errors came to. Parts that can't be told from
 * zero become zero, which puts values on the right side of a branch cut. */
static math_eval_status settle(value *v, long err) {
    if (!mpfr_number_p(v->re) || !mpfr_number_p(v->im))
        return EVAL_UNDEFINED;
    long m = magnitude(v);
    if (m > kMaxMagnitude)
        return EVAL_UNDEFINED;
    v->err = larger(larger(err, m - kPrecision) + 1, kZeroMagnitude);
    if (magnitude_of(v->re) <= v->err)
        mpfr_set_zero(v->re, 1);
    if (magnitude_of(v->im) <= v->err)
        mpfr_set_zero(v->im, 1);
    return EVAL_OK;
}

/* ---- arithmetic ---- */

/* Whether x and y, neither of them zero, differ in size so much that a sum hides one of them. */
static bool absorbs(const value *x, const value *y) {
    return !is_zero(x) && !is_zero(y) && labs(magnitude(x) - magnitude(y)) > kAbsorbed;
}

/* Whether v is 1 to a comparison, though it was computed from what is not. */
static bool hides_one(const value *v, bool was_one) {
    value gap;
    init(&gap);
    if (was_one || !is_real(v))
        return false;
    mpfr_sub_ui(gap.re, v->re, 1, MPFR_RNDN);
    return magnitude_of(gap.re) < -kAbsorbed;
}

static math_eval_status add(value *v, const value *a) {
    if (absorbs(v, a))
        return EVAL_CLOSE;
    mpfr_add(v->re, v->re, a->re, MPFR_RNDN);
    mpfr_add(v->im, v->im, a->im, MPFR_RNDN);
    return settle(v, larger(v->err, a->err));
}

static math_eval_status mul(value *v, const value *a) {
    long m = magnitude(v), n = magnitude(a);
    long err = larger(larger(m + a->err, n + v->err), a->err + v->err) + 2;
    if (is_real(v) && is_real(a)) {
        mpfr_mul(v->re, v->re, a->re, MPFR_RNDN);
        return settle(v, err);
    }
    value t;
    init(&t);
    mpfr_fmms(t.re, v->re, a->re, v->im, a->im, MPFR_RNDN);
    mpfr_fmma(t.im, v->re, a->im, v->im, a->re, MPFR_RNDN);
    copy(v, &t);
    return settle(v, err);
}

static math_eval_status invert(value *v) {
    long m = magnitude(v);
    if (m <= v->err + 2) /* zero, for all we know */
        return EVAL_UNDEFINED;
    if (is_real(v)) {
        mpfr_ui_div(v->re, 1, v->re, MPFR_RNDN);
        return settle(v, v->err - 2 * m + 3);
    }
    value square;
    init(&square);
    mpfr_fmma(square.re, v->re, v->re, v->im, v->im, MPFR_RNDN);
    mpfr_div(v->re, v->re, square.re, MPFR_RNDN);
    mpfr_div(v->im, v->im, square.re, MPFR_RNDN);
    mpfr_neg(v->im, v->im, MPFR_RNDN);
    return settle(v, v->err - 2 * m + 3);
}

static math_eval_status set_pi(value *v) {
    mpfr_const_pi(v->re, MPFR_RNDN);
    mpfr_set_zero(v->im, 1);
    return settle(v, kZeroMagnitude);
}

static math_eval_status logarithm(value *v) {
    long m = magnitude(v);
    if (m <= v->err + 2)
        return EVAL_UNDEFINED;
    value t;
    init(&t);
    if (is_real(v) && mpfr_sgn(v->re) > 0) {
        mpfr_log(t.re, v->re, MPFR_RNDN);
    } else {
        mpfr_hypot(t.re, v->re, v->im, MPFR_RNDN);
        mpfr_log(t.re, t.re, MPFR_RNDN);
        mpfr_atan2(t.im, v->im, v->re, MPFR_RNDN);
    }
    long err = larger(v->err - m + 2, -kPrecision);
    copy(v, &t);
    return settle(v, err);
}

static math_eval_status exponential(value *v) {
    long err = v->err;
    if (magnitude(v) > 17 || err > -8)
        return EVAL_UNDEFINED;
    if (!is_zero(v) && magnitude(v) < -kAbsorbed)
        return EVAL_CLOSE;
    value t;
    init(&t);
    mpfr_exp(t.re, v->re, MPFR_RNDN);
    if (!is_real(v)) {
        value angle;
        init(&angle);
        mpfr_sin_cos(angle.im, angle.re, v->im, MPFR_RNDN);
        mpfr_mul(t.im, t.re, angle.im, MPFR_RNDN);
        mpfr_mul(t.re, t.re, angle.re, MPFR_RNDN);
        mpfr_exp(angle.re, v->re, MPFR_RNDN); /* what the error scales with */
        err += larger(magnitude_of(angle.re), magnitude(&t));
    } else {
        err += magnitude(&t);
    }
    copy(v, &t);
    return settle(v, err + 2);
}

static math_eval_status square_root(value *v) {
    if (is_zero(v))
        return settle(v, v->err / 2 + 1);
    if (!is_real(v)) {
        value half;
        init(&half);
        mpfr_set_d(half.re, 0.5, MPFR_RNDN);
        CHECK(logarithm(v));
        CHECK(mul(v, &half));
        return exponential(v);
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
    return settle(v, v->err - magnitude(v) + 1);
}

/* The real root where there is one, so that the cube root of -8 is -2; else the principal one. */
static math_eval_status root(value *v, int64_t degree) {
    if (degree < 1 || degree > kMaxDegree)
        return EVAL_UNDEFINED;
    if (is_zero(v))
        return settle(v, v->err / degree + 1);
    if (is_real(v) && (mpfr_sgn(v->re) > 0 || degree % 2 == 1)) {
        long m = magnitude(v);
        bool one = is_one(v);
        mpfr_rootn_ui(v->re, v->re, (unsigned long)degree, MPFR_RNDN);
        if (hides_one(v, one))
            return EVAL_CLOSE;
        return settle(v, v->err - m + magnitude(v) + 2);
    }
    value part;
    init(&part);
    mpfr_set_si(part.re, degree, MPFR_RNDN);
    CHECK(invert(&part));
    CHECK(logarithm(v));
    CHECK(mul(v, &part));
    return exponential(v);
}

static math_eval_status integer_power(value *v, int64_t e) {
    if (is_zero(v))
        return e > 0 ? EVAL_OK : EVAL_UNDEFINED;
    if (e < 0)
        CHECK(invert(v));
    value x, square;
    init(&x);
    init(&square);
    mpfr_set_ui(x.re, 1, MPFR_RNDN);
    copy(&square, v);
    for (uint64_t k = (uint64_t)(e < 0 ? -e : e); k; k >>= 1) {
        if (k & 1)
            CHECK(mul(&x, &square));
        if (k > 1)
            CHECK(mul(&square, &square));
    }
    copy(v, &x);
    return EVAL_OK;
}

/* ---- functions of a real argument ---- */

typedef int (*mpfr_function)(mpfr_t, const mpfr_t, mpfr_rnd_t);

/* f with |f'| <= 2^slope near v. */
static math_eval_status apply(value *v, mpfr_function f, long slope) {
    f(v->re, v->re, MPFR_RNDN);
    return settle(v, larger(v->err + slope, -kPrecision));
}

static math_eval_status circular(value *v, int fn) {
    value sine;
    if (magnitude(v) > kMaxAngle)
        return EVAL_UNDEFINED;
    if (!is_zero(v) && magnitude(v) < -kAbsorbed / 2) /* 1 - x^2/2 */
        return EVAL_CLOSE;
    init(&sine);
    long err = larger(v->err, -kPrecision);
    mpfr_sin_cos(sine.re, v->re, v->re, MPFR_RNDN);
    CHECK(settle(&sine, err));
    CHECK(settle(v, err));
    switch (fn) {
    case FN_COS:
        return EVAL_OK;
    case FN_SEC:
        return invert(v);
    case FN_TAN:
        CHECK(invert(v));
        return mul(v, &sine);
    case FN_COT:
        CHECK(invert(&sine));
        return mul(v, &sine);
    default: /* FN_SIN, FN_CSC */
        copy(v, &sine);
        return fn == FN_CSC ? invert(v) : EVAL_OK;
    }
}

static math_eval_status inverse_circular(value *v, int fn) {
    if (fn == FN_ACOT || fn == FN_ASEC || fn == FN_ACSC) {
        CHECK(invert(v));
        fn -= FN_ACOT - FN_ATAN;
        fn = fn == FN_ATAN ? FN_ATAN : fn == FN_ATAN + 1 ? FN_ACOS : FN_ASIN;
    }
    if (fn == FN_ATAN && magnitude(v) > kAbsorbed)
        return EVAL_CLOSE; /* to pi/2 */
    if (fn == FN_ATAN)
        return apply(v, mpfr_atan, 0);
    long err = v->err;
    value gap; /* 1 - |v|: the slope grows without bound towards it */
    init(&gap);
    mpfr_abs(gap.re, v->re, MPFR_RNDN);
    mpfr_ui_sub(gap.re, 1, gap.re, MPFR_RNDN);
    if (magnitude(&gap) <= err + 2) {
        mpfr_set_si(v->re, mpfr_sgn(v->re), MPFR_RNDN);
        v->err = err / 2 + 2;
    } else if (mpfr_sgn(gap.re) < 0) {
        return EVAL_OTHER;
    } else {
        v->err -= (magnitude(&gap) - 1) / 2 - 1;
    }
    return apply(v, fn == FN_ASIN ? mpfr_asin : mpfr_acos, 0);
}

static math_eval_status hyperbolic(value *v, int fn) {
    if (magnitude(v) > 14)
        return EVAL_UNDEFINED;
    if (!is_zero(v) && (magnitude(v) < -kAbsorbed / 2 || (fn == FN_TANH && magnitude(v) > 5)))
        return EVAL_CLOSE;
    if (fn == FN_TANH)
        return apply(v, mpfr_tanh, 0);
    long err = v->err;
    (fn == FN_SINH ? mpfr_sinh : mpfr_cosh)(v->re, v->re, MPFR_RNDN);
    return settle(v, err + larger(magnitude(v), 0) + 1);
}

/* A value that can't be told from an integer is that integer. */
static math_eval_status round_value(value *v, int fn) {
    value nearest;
    init(&nearest);
    if (v->err > -kAgreement)
        return EVAL_UNDEFINED;
    mpfr_round(nearest.re, v->re);
    mpfr_sub(nearest.im, nearest.re, v->re, MPFR_RNDN);
    if (magnitude_of(nearest.im) <= v->err + 1)
        mpfr_set(v->re, nearest.re, MPFR_RNDN);
    else if (fn == FN_FLOOR)
        mpfr_floor(v->re, v->re);
    else
        mpfr_ceil(v->re, v->re);
    return settle(v, kZeroMagnitude);
}

static math_eval_status real_function(value *v, int fn) {
    if (!is_real(v))
        return EVAL_OTHER;
    if (fn <= FN_CSC)
        return circular(v, fn);
    if (fn <= FN_ACSC)
        return inverse_circular(v, fn);
    if (fn <= FN_TANH)
        return hyperbolic(v, fn);
    return round_value(v, fn);
}

/* ---- the tree ---- */

static math_eval_status eval(const context *c, uint16_t i, value *out);

static math_eval_status spend(const context *c, int cost) {
    *c->r->work -= cost;
    return *c->r->work < 0 ? EVAL_COSTLY : EVAL_OK;
}

static math_eval_status eval_number(math_span s, value *out) {
    char digits[kMaxDigits + 1];
    if (s.len > kMaxDigits)
        return EVAL_UNDEFINED;
    memcpy(digits, s.s, s.len);
    digits[s.len] = '\0';
    mpfr_set_str(out->re, digits, 10, MPFR_RNDN);
    return settle(out, kZeroMagnitude);
}

/* Points 0 and 1 are positive, where roots and logarithms are real; the others have any sign. */
static math_eval_status eval_symbol(const context *c, uint64_t id, value *out) {
    uint64_t x = id ^ ((uint64_t)c->point * 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    double u = 0.2 + 3.0 * ((double)(x >> 11) / 9007199254740992.0);
    mpfr_set_d(out->re, c->point > 1 && (x & 1) ? -u : u, MPFR_RNDN);
    return EVAL_OK;
}

static math_eval_status eval_constant(const context *c, int which, value *out) {
    switch (which) {
    case CONST_PI:
        return set_pi(out);
    case CONST_E:
        mpfr_set_ui(out->re, 1, MPFR_RNDN);
        return exponential(out);
    case CONST_I: /* a letter like others, and not real */
        mpfr_set_ui(out->im, 3, MPFR_RNDN);
        return eval_symbol(c, UINT64_C(0x69), out);
    default:
        return EVAL_OTHER;
    }
}

static math_eval_status eval_chain(const context *c, const math_node *n, value *out) {
    bool product = n->kind == NODE_MUL;
    mpfr_set_ui(out->re, product, MPFR_RNDN);
    for (uint16_t k = n->first; k; k = math_at(c->r->t, k)->next) {
        value x;
        init(&x);
        CHECK(eval(c, k, &x));
        CHECK(product ? mul(out, &x) : add(out, &x));
    }
    return EVAL_OK;
}

/* The degree of a root that is written as a power: 3 for x^{1/3}. */
static bool unit_fraction(const math_tree *t, uint16_t i, int64_t *degree) {
    const math_node *n = math_at(t, i);
    int64_t one;
    if (n->kind == NODE_MUL && n->first && math_integer(t, n->first, &one) && one == 1) {
        const math_node *second = math_at(t, math_at(t, n->first)->next);
        return second->kind == NODE_INV && !second->next && math_integer(t, second->first, degree);
    }
    return false;
}

/* Whether a real value has few decimals: the root of 66 has not. */
static bool is_short_decimal(const value *v) {
    value scaled;
    init(&scaled);
    mpfr_mul_ui(scaled.re, v->re, 1000000, MPFR_RNDN);
    mpfr_round(scaled.im, scaled.re);
    mpfr_sub(scaled.re, scaled.re, scaled.im, MPFR_RNDN);
    return is_real(v) && magnitude_of(scaled.re) <= v->err + 21;
}

static bool is_decimal_fraction(const math_node *n) {
    return n->kind == NODE_NUM && memchr(n->u.text.s, '.', n->u.text.len);
}

/* A constant to a decimal power, 66^{0.5}, is a rounded number to the field's graders: it has a value
 * if that is a decimal, too. */
static math_eval_status eval_power(const context *c, const math_node *n, value *out) {
    const math_tree *t = c->r->t;
    uint16_t exponent = math_at(t, n->first)->next;
    int64_t e;
    CHECK(eval(c, n->first, out));
    CHECK(spend(c, kDear));
    if (math_integer(t, exponent, &e))
        return integer_power(out, e);
    if (unit_fraction(t, exponent, &e))
        return root(out, e);
    value x;
    init(&x);
    CHECK(eval(c, exponent, &x));
    if (is_zero(out))
        return is_real(&x) && mpfr_sgn(x.re) > 0 ? EVAL_OK : EVAL_UNDEFINED;
    CHECK(logarithm(out));
    CHECK(mul(out, &x));
    CHECK(exponential(out));
    bool rounded = is_decimal_fraction(math_at(t, exponent)) && math_is_constant(t, n->first);
    return rounded && !is_short_decimal(out) ? EVAL_OTHER : EVAL_OK;
}

/* n! for a small n; binomials from three of them. */
static math_eval_status eval_combinatorial(const context *c, const math_node *n, value *out) {
    int64_t a, k;
    if (!math_integer(c->r->t, n->first, &a) || a < 0 || a > kMaxFactorial)
        return EVAL_OTHER;
    mpfr_fac_ui(out->re, (unsigned long)a, MPFR_RNDN);
    if (n->arg == FN_BINOMIAL) {
        if (!math_integer(c->r->t, math_at(c->r->t, n->first)->next, &k) || k < 0 || k > a)
            return EVAL_OTHER;
        mpfr_fac_ui(out->im, (unsigned long)k, MPFR_RNDN);
        mpfr_div(out->re, out->re, out->im, MPFR_RNDN);
        mpfr_fac_ui(out->im, (unsigned long)(a - k), MPFR_RNDN);
        mpfr_div(out->re, out->re, out->im, MPFR_RNDN);
        mpfr_set_zero(out->im, 1);
    }
    return settle(out, magnitude(out) - kPrecision + 3);
}

static math_eval_status eval_logarithm(const context *c, const math_node *n, value *out) {
    uint16_t base = math_at(c->r->t, n->first)->next;
    CHECK(logarithm(out));
    if (n->arg == FN_LN)
        return EVAL_OK;
    value x;
    init(&x);
    mpfr_set_ui(x.re, 10, MPFR_RNDN);
    if (base)
        CHECK(eval(c, base, &x));
    CHECK(logarithm(&x));
    CHECK(invert(&x));
    return mul(out, &x);
}

static math_eval_status eval_function(const context *c, const math_node *n, value *out) {
    int64_t degree;
    CHECK(spend(c, kDear));
    if (n->arg == FN_FACTORIAL || n->arg == FN_BINOMIAL)
        return eval_combinatorial(c, n, out);
    CHECK(eval(c, n->first, out));
    switch (n->arg) {
    case FN_SQRT:
        return square_root(out);
    case FN_ROOT:
        if (!math_integer(c->r->t, math_at(c->r->t, n->first)->next, &degree))
            return EVAL_OTHER;
        return root(out, degree);
    case FN_EXP:
        return exponential(out);
    case FN_LN:
    case FN_LOG:
        return eval_logarithm(c, n, out);
    case FN_ABS:
        mpfr_hypot(out->re, out->re, out->im, MPFR_RNDN);
        mpfr_set_zero(out->im, 1);
        return settle(out, out->err);
    default:
        return real_function(out, n->arg);
    }
}

static math_eval_status eval_percent(const context *c, const math_node *n, value *out) {
    CHECK(eval(c, n->first, out));
    if (!c->r->percent)
        return EVAL_OK;
    mpfr_div_ui(out->re, out->re, 100, MPFR_RNDN);
    mpfr_div_ui(out->im, out->im, 100, MPFR_RNDN);
    return settle(out, out->err);
}

static math_eval_status eval_signed(const context *c, const math_node *n, bool negative,
                                    value *out) {
    CHECK(eval(c, n->first, out));
    if (negative) {
        mpfr_neg(out->re, out->re, MPFR_RNDN);
        mpfr_neg(out->im, out->im, MPFR_RNDN);
    }
    return EVAL_OK;
}

static math_eval_status eval(const context *c, uint16_t i, value *out) {
    const math_node *n = math_at(c->r->t, i);
    CHECK(spend(c, kCheap));
    switch (n->kind) {
    case NODE_NUM:
        return eval_number(n->u.text, out);
    case NODE_SYM:
        return eval_symbol(c, n->u.id, out);
    case NODE_CONST:
        return eval_constant(c, n->arg, out);
    case NODE_ADD:
    case NODE_MUL:
        return eval_chain(c, n, out);
    case NODE_NEG:
        return eval_signed(c, n, true, out);
    case NODE_PM:
        return eval_signed(c, n, n->arg * c->r->pm < 0, out);
    case NODE_INV:
        CHECK(eval(c, n->first, out));
        return invert(out);
    case NODE_POW:
        return eval_power(c, n, out);
    case NODE_FN:
        return eval_function(c, n, out);
    case NODE_PERCENT:
        return eval_percent(c, n, out);
    default:
        return EVAL_OTHER;
    }
}

/* ---- comparing ---- */

/* Whether a = b: within the error bounds, which must leave 50 digits. */
static math_eval_status close_values(const value *a, const value *b, bool *equal) {
    value d;
    init(&d);
    long bound = larger(a->err, b->err) + 2, m = larger(magnitude(a), magnitude(b));
    if (bound > -kAgreement && bound > m - kAgreement)
        return EVAL_UNDEFINED;
    mpfr_sub(d.re, a->re, b->re, MPFR_RNDN);
    mpfr_sub(d.im, a->im, b->im, MPFR_RNDN);
    *equal = magnitude(&d) <= bound;
    return EVAL_OK;
}

/* Whether a/b is a real constant, 1 or -1 for MATCH_SIGNED: @first, which the first point sets. */
static math_eval_status match_ratio(value *a, value *b, math_match kind, value *first,
                                    bool *equal) {
    CHECK(invert(b));
    CHECK(mul(a, b));
    if (is_zero(a))
        return EVAL_UNDEFINED;
    if (!is_zero(first))
        return close_values(a, first, equal);
    copy(first, a);
    *equal = is_real(a);
    if (kind == MATCH_MULTIPLE || !*equal)
        return EVAL_OK;
    value one;
    init(&one);
    mpfr_set_ui(one.re, 1, MPFR_RNDN);
    mpfr_abs(a->re, a->re, MPFR_RNDN);
    return close_values(a, &one, equal);
}

static math_eval_status match_at(const context *a, uint16_t i, const context *b, uint16_t j,
                                 math_match kind, value *first, bool *equal) {
    value x, y;
    init(&x);
    init(&y);
    CHECK(eval(a, i, &x));
    CHECK(eval(b, j, &y));
    return kind == MATCH_SAME ? close_values(&x, &y, equal)
                              : match_ratio(&x, &y, kind, first, equal);
}

math_eval_status math_numeric_match(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, math_match kind, bool *match) {
    bool symbols = math_has_symbol(a->t, i) || math_has_symbol(b->t, j);
    int points = symbols ? kMathPoints : 1, needed = symbols ? 2 : 1, seen = 0;
    math_eval_status st = EVAL_UNDEFINED;
    value first;
    init(&first);
    *match = true;
    for (int k = 0; k < points && *match; k++) {
        context ca = {a, k}, cb = {b, k};
        bool equal = false;
        math_eval_status here = match_at(&ca, i, &cb, j, kind, &first, &equal);
        if (here == EVAL_OK) {
            *match = equal;
            seen++;
        } else {
            st = here;
        }
    }
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); /* of this thread, which may end here */
    return seen >= needed || (seen > 0 && !*match) ? EVAL_OK : st;
}
