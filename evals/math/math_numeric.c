#include <string.h>

#include "base/fault.h"
#include "evals/math/math_complex.h"
#include "evals/math/math_memory.h"

enum {
    kMaxDigits = 1000,
    kMaxFactorial = 5000,
    kCheap = 1,
    kDear = 60, /* work of one power or function, in the unit of kMathWork */
};

typedef struct {
    const math_reading *r;
    int point;
    fault_mark began;
    bool *unreal; /* set if a root, a power or a logarithm of a real number is not real */
} context;

/* ---- evaluating a tree ---- */

static math_eval_status eval(const context *c, uint16_t i, cx *out);

static math_eval_status spend(const context *c, int cost) {
    *c->r->work -= cost;
    return *c->r->work < 0 || fault_since(c->began) ? EVAL_COSTLY : EVAL_OK;
}

static math_eval_status eval_number(math_span s, cx *out) {
    char digits[kMaxDigits + 1];
    if (s.len > kMaxDigits)
        return EVAL_UNDEFINED;
    memcpy(digits, s.s, s.len);
    digits[s.len] = '\0';
    mpfr_set_str(out->re, digits, 10, MPFR_RNDN);
    return cx_settle(out, kZeroMagnitude);
}

/* The value of a symbol at a point. At points 0 and 1 it is positive, so its roots and logarithms
 * are real; at the others it may have either sign. */
static math_eval_status eval_symbol(const context *c, uint64_t id, cx *out) {
    uint64_t x = id ^ ((uint64_t)c->point * 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    double u = 0.2 + 3.0 * ((double)(x >> 11) / 9007199254740992.0);
    mpfr_set_d(out->re, c->point > 1 && (x & 1) ? -u : u, MPFR_RNDN);
    return EVAL_OK;
}

static math_eval_status eval_constant(const context *c, int which, cx *out) {
    switch (which) {
    case CONST_PI:
        return cx_set_pi(out);
    case CONST_E:
        mpfr_set_ui(out->re, 1, MPFR_RNDN);
        return cx_exp(out);
    case CONST_I: /* MATH_TRUTH: the imaginary unit; else a symbol whose value is not real */
        if (c->r->t->truth) {
            mpfr_set_ui(out->im, 1, MPFR_RNDN);
            return EVAL_OK;
        }
        mpfr_set_ui(out->im, 3, MPFR_RNDN);
        return eval_symbol(c, UINT64_C(0x69), out);
    default:
        return EVAL_OTHER;
    }
}

static math_eval_status eval_chain(const context *c, const math_node *n, cx *out) {
    bool product = n->kind == NODE_MUL;
    mpfr_set_ui(out->re, product, MPFR_RNDN);
    for (uint16_t k = n->first; k; k = math_at(c->r->t, k)->next) {
        cx x;
        cx_init(&x);
        CHECK(eval(c, k, &x));
        CHECK(product ? cx_mul(out, &x) : cx_add(out, &x));
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

/* True if a value is real and has at most six decimals. The root of 66, for example, has more. */
static bool is_short_decimal(const cx *v) {
    cx scaled;
    cx_init(&scaled);
    mpfr_mul_ui(scaled.re, v->re, 1000000, MPFR_RNDN);
    mpfr_round(scaled.im, scaled.re);
    mpfr_sub(scaled.re, scaled.re, scaled.im, MPFR_RNDN);
    return cx_is_real(v) && cx_part_magnitude(scaled.re) <= v->err + 21;
}

static bool is_decimal_fraction(const math_node *n) {
    return n->kind == NODE_NUM && memchr(n->u.text.s, '.', n->u.text.len);
}

/* Notes that a function or a power of real numbers is not real. */
static math_eval_status note_domain(const context *c, bool real, const cx *out) {
    *c->unreal = *c->unreal || (real && !cx_is_real(out));
    return EVAL_OK;
}

/* Evaluates a power. For the public graders, a constant to a decimal power, such as 66^{0.5}, is a
 * rounded number. So it has a value here only if the result is a short decimal. */
static math_eval_status eval_power(const context *c, const math_node *n, cx *out) {
    const math_tree *t = c->r->t;
    uint16_t exponent = math_at(t, n->first)->next;
    int64_t e;
    CHECK(eval(c, n->first, out));
    CHECK(spend(c, kDear));
    bool real = cx_is_real(out);
    if (math_integer(t, exponent, &e))
        return cx_power(out, e);
    if (unit_fraction(t, exponent, &e)) {
        CHECK(cx_root(out, e));
        return note_domain(c, real, out);
    }
    cx x;
    cx_init(&x);
    CHECK(eval(c, exponent, &x));
    if (cx_is_zero(out))
        return cx_is_real(&x) && mpfr_sgn(x.re) > 0 ? EVAL_OK : EVAL_UNDEFINED;
    real = real && cx_is_real(&x);
    CHECK(cx_log(out));
    CHECK(cx_mul(out, &x));
    CHECK(cx_exp(out));
    (void)note_domain(c, real, out);
    bool rounded =
        !t->truth && is_decimal_fraction(math_at(t, exponent)) && math_is_constant(t, n->first);
    return rounded && !is_short_decimal(out) ? EVAL_OTHER : EVAL_OK;
}

/* Computes x! as Gamma(x + 1), where the symbols in x have the values of the point. */
static math_eval_status eval_gamma(const context *c, uint16_t i, cx *out) {
    enum { kMost = 64, kLostBits = 12 };
    CHECK(eval(c, i, out));
    if (!cx_is_real(out) || mpfr_cmp_si(out->re, -1) <= 0 || mpfr_cmp_si(out->re, kMost) > 0)
        return EVAL_UNDEFINED;
    mpfr_add_ui(out->re, out->re, 1, MPFR_RNDN);
    mpfr_gamma(out->re, out->re, MPFR_RNDN);
    long err = cx_larger(out->err, -kPrecision) + cx_larger(cx_magnitude(out), 0);
    return cx_settle(out, err + kLostBits);
}

/* Factorials and binomials with symbols: n!, \binom{2n}{n}. */
static math_eval_status eval_factorials(const context *c, const math_node *n, cx *out) {
    const math_tree *t = c->r->t;
    uint16_t below = math_at(t, n->first)->next;
    CHECK(eval_gamma(c, n->first, out));
    if (n->arg != FN_BINOMIAL)
        return EVAL_OK;
    cx top, k, f;
    cx_init(&top);
    cx_init(&k);
    cx_init(&f);
    CHECK(eval_gamma(c, below, &f));
    CHECK(cx_invert(&f));
    CHECK(cx_mul(out, &f));
    CHECK(eval(c, n->first, &top));
    CHECK(eval(c, below, &k));
    mpfr_neg(k.re, k.re, MPFR_RNDN);
    CHECK(cx_add(&top, &k));
    if (!cx_is_real(&top) || mpfr_cmp_si(top.re, -1) <= 0)
        return EVAL_UNDEFINED;
    mpfr_add_ui(top.re, top.re, 1, MPFR_RNDN);
    mpfr_gamma(top.re, top.re, MPFR_RNDN);
    CHECK(cx_settle(&top, cx_larger(top.err, -kPrecision) + cx_larger(cx_magnitude(&top), 0) + 12));
    CHECK(cx_invert(&top));
    return cx_mul(out, &top);
}

/* n! for a small n; a binomial from three factorials. With MATH_TRUTH, they may have symbols. */
static math_eval_status eval_combinatorial(const context *c, const math_node *n, cx *out) {
    int64_t a, k;
    const math_tree *t = c->r->t;
    if (t->truth && (math_has_symbol(t, n->first) ||
                     (n->arg == FN_BINOMIAL && math_has_symbol(t, math_at(t, n->first)->next))))
        return eval_factorials(c, n, out);
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
    return cx_settle(out, cx_magnitude(out) - kPrecision + 3);
}

static math_eval_status eval_logarithm(const context *c, const math_node *n, cx *out) {
    uint16_t base = math_at(c->r->t, n->first)->next;
    CHECK(cx_log(out));
    if (n->arg == FN_LN)
        return EVAL_OK;
    cx x;
    cx_init(&x);
    mpfr_set_ui(x.re, 10, MPFR_RNDN);
    if (base)
        CHECK(eval(c, base, &x));
    CHECK(cx_log(&x));
    CHECK(cx_invert(&x));
    return cx_mul(out, &x);
}

static math_eval_status eval_function(const context *c, const math_node *n, cx *out) {
    int64_t degree;
    CHECK(spend(c, kDear));
    if (n->arg == FN_FACTORIAL || n->arg == FN_BINOMIAL)
        return eval_combinatorial(c, n, out);
    CHECK(eval(c, n->first, out));
    bool real = cx_is_real(out);
    switch (n->arg) {
    case FN_SQRT:
        CHECK(cx_sqrt(out));
        return note_domain(c, real, out);
    case FN_ROOT:
        if (!math_integer(c->r->t, math_at(c->r->t, n->first)->next, &degree))
            return EVAL_OTHER;
        CHECK(cx_root(out, degree));
        return note_domain(c, real, out);
    case FN_EXP:
        return cx_exp(out);
    case FN_LN:
    case FN_LOG:
        CHECK(eval_logarithm(c, n, out));
        return note_domain(c, real, out);
    case FN_ABS:
        mpfr_hypot(out->re, out->re, out->im, MPFR_RNDN);
        mpfr_set_zero(out->im, 1);
        return cx_settle(out, out->err);
    default:
        return cx_function(out, n->arg);
    }
}

static math_eval_status eval_percent(const context *c, const math_node *n, cx *out) {
    CHECK(eval(c, n->first, out));
    if (!c->r->percent)
        return EVAL_OK;
    mpfr_div_ui(out->re, out->re, 100, MPFR_RNDN);
    mpfr_div_ui(out->im, out->im, 100, MPFR_RNDN);
    return cx_settle(out, out->err);
}

static math_eval_status eval_signed(const context *c, const math_node *n, bool negative, cx *out) {
    CHECK(eval(c, n->first, out));
    if (negative) {
        mpfr_neg(out->re, out->re, MPFR_RNDN);
        mpfr_neg(out->im, out->im, MPFR_RNDN);
    }
    return EVAL_OK;
}

static math_eval_status eval(const context *c, uint16_t i, cx *out) {
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
        return cx_invert(out);
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

/* ---- comparing values ---- */

/* Checks a = b within the error bounds. EVAL_UNDEFINED if the bounds leave fewer than 50 decimals
 * and fewer than 50 significant digits. */
static math_eval_status close_values(const cx *a, const cx *b, bool *equal) {
    cx d;
    cx_init(&d);
    long bound = cx_larger(a->err, b->err) + 2, m = cx_larger(cx_magnitude(a), cx_magnitude(b));
    if (bound > -kAgreement && bound > m - kAgreement)
        return EVAL_UNDEFINED;
    mpfr_sub(d.re, a->re, b->re, MPFR_RNDN);
    mpfr_sub(d.im, a->im, b->im, MPFR_RNDN);
    *equal = cx_magnitude(&d) <= bound;
    return EVAL_OK;
}

/* Checks that a/b is a real constant, which is 1 or -1 for MATCH_SIGNED. The first point stores it
 * in @first, and later points compare with it. */
static math_eval_status match_ratio(cx *a, cx *b, math_match kind, cx *first, bool *equal) {
    CHECK(cx_invert(b));
    CHECK(cx_mul(a, b));
    if (cx_is_zero(a))
        return EVAL_UNDEFINED;
    if (!cx_is_zero(first))
        return close_values(a, first, equal);
    cx_copy(first, a);
    *equal = cx_is_real(a);
    if (kind == MATCH_MULTIPLE || !*equal)
        return EVAL_OK;
    cx one;
    cx_init(&one);
    mpfr_set_ui(one.re, 1, MPFR_RNDN);
    mpfr_abs(a->re, a->re, MPFR_RNDN);
    return close_values(a, &one, equal);
}

static math_eval_status match_at(const context *a, uint16_t i, const context *b, uint16_t j,
                                 math_match kind, cx *first, bool *equal) {
    cx x, y;
    cx_init(&x);
    cx_init(&y);
    CHECK(eval(a, i, &x));
    CHECK(eval(b, j, &y));
    if (*a->unreal && a->r->t->truth && a->point > 1)
        return EVAL_UNDEFINED; /* outside of the real domain of the gold */
    return kind == MATCH_SAME ? close_values(&x, &y, equal)
                              : match_ratio(&x, &y, kind, first, equal);
}

math_eval_status math_numeric_match(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, math_match kind, bool *match) {
    bool symbols = math_has_symbol(a->t, i) || math_has_symbol(b->t, j);
    int points = symbols ? kMathPoints : 1, needed = symbols ? 2 : 1, seen = 0;
    math_eval_status st = EVAL_UNDEFINED;
    const fault_mark began = fault_begin();
    math_memory_prepare();
    cx first;
    cx_init(&first);
    *match = true;
    for (int k = 0; k < points && *match; k++) {
        bool unreal = false, other = false, equal = false;
        context ca = {a, k, began, &unreal}, cb = {b, k, began, &other};
        math_eval_status here = match_at(&ca, i, &cb, j, kind, &first, &equal);
        if (here == EVAL_OK) {
            *match = equal;
            seen++;
        } else {
            st = here;
        }
    }
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); /* frees the cache of this thread, which may end after
                                                the call */
    return seen >= needed || (seen > 0 && !*match) ? EVAL_OK : st;
}

math_eval_status math_numeric_order(const math_reading *a, uint16_t i, const math_reading *b,
                                    uint16_t j, int *order) {
    const fault_mark began = fault_begin();
    bool unreal = false;
    context ca = {a, 0, began, &unreal}, cb = {b, 0, began, &unreal};
    cx x, y;
    cx_init(&x);
    cx_init(&y);
    math_memory_prepare();
    math_eval_status st = eval(&ca, i, &x);
    if (st == EVAL_OK)
        st = eval(&cb, j, &y);
    if (st == EVAL_OK && (!cx_is_real(&x) || !cx_is_real(&y)))
        st = EVAL_OTHER;
    if (st == EVAL_OK)
        *order = mpfr_cmp(x.re, y.re);
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
    return st;
}
