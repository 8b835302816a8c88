#include "evals/math/math_judge.h"

#include <string.h>

/* ---- comparing values ---- */

/* Compares rational functions by their values at a random point of a prime field and, if these are
 * equal, of a second one. */
static math_eval_status same_in_fields(const math_reading *rg, uint16_t g, const math_reading *ra,
                                       uint16_t a, bool *equal) {
    *equal = true;
    for (int f = 0; f < kMathFields && *equal; f++) {
        uint64_t x, y;
        math_eval_status st = math_eval_field(rg, g, f, &x);
        if (st == EVAL_OK)
            st = math_eval_field(ra, a, f, &y);
        if (st != EVAL_OK)
            return st;
        *equal = x == y;
    }
    return EVAL_OK;
}

const char *math_undecided(math_eval_status st) {
    switch (st) {
    case EVAL_UNDEFINED:
        return "a value is undefined or too large";
    case EVAL_CLOSE:
        return "too close to distinguish";
    case EVAL_COSTLY:
        return "too costly to evaluate";
    default:
        return "not comparable as values";
    }
}

static bool same_reading(judge *j, part g, bool gold_percent, part a, bool answer_percent) {
    math_reading rg = reading(j, g, gold_percent), ra = reading(j, a, answer_percent);
    bool equal = false;
    math_eval_status st = same_in_fields(&rg, g.i, &ra, a.i, &equal);
    if (st == EVAL_OK)
        return decide(j, equal, equal ? "the same value, exactly" : "a different value");
    if (st == EVAL_OTHER)
        st = math_numeric_match(&rg, g.i, &ra, a.i, MATCH_SAME, &equal);
    if (st != EVAL_OK)
        return leave_undecided(j, math_undecided(st));
    return decide(j, equal, equal ? "the same value to 50 digits" : "a different value");
}

/* True for an integer as written: it may have a minus sign, a percent sign and ".0". */
static bool is_integer_literal(part p) {
    while (is_kind(p, NODE_NEG) || is_kind(p, NODE_PERCENT))
        p = child(p, 0);
    if (!is_kind(p, NODE_NUM))
        return false;
    math_span s = at(p)->u.text;
    const char *point = memchr(s.s, '.', s.len);
    for (const char *c = point ? point + 1 : s.s + s.len; c < s.s + s.len; c++)
        if (*c != '0')
            return false;
    return true;
}

/* True for a decimal below 1 such as 0.75 or .75, also with a minus sign. */
static bool is_below_one(part p) {
    while (is_kind(p, NODE_NEG))
        p = child(p, 0);
    if (!is_kind(p, NODE_NUM))
        return false;
    math_span t = at(p)->u.text;
    return t.len > 1 && (t.s[0] == '.' || (t.s[0] == '0' && t.s[1] == '.'));
}

/* True if @p is a whole number with a fraction, as 37\frac{1}{2}. */
static bool is_mixed_number(part p) {
    while (is_kind(p, NODE_NEG) || is_kind(p, NODE_PERCENT))
        p = child(p, 0);
    if (!is_kind(p, NODE_ADD) || child(p, 2).i)
        return false;
    part whole = child(p, 0), quotient = child(p, 1);
    return is_kind(whole, NODE_NUM) && is_kind(quotient, NODE_MUL) &&
           is_kind(child(quotient, 0), NODE_NUM) && is_kind(child(quotient, 1), NODE_INV);
}

/* True for a fraction of whole numbers that is between -1 and 1. */
static bool is_proper_fraction(part p) {
    int64_t x, y;
    while (is_kind(p, NODE_NEG))
        p = child(p, 0);
    if (!is_kind(p, NODE_MUL) || child(p, 2).i || !is_kind(child(p, 1), NODE_INV))
        return false;
    part above = child(p, 0), below = child(child(p, 1), 0);
    return math_integer(above.t, above.i, &x) && math_integer(below.t, below.i, &y) && x < y;
}

/* True if the side with a percent sign, n%, may equal n. With MATH_TRUTH, n must be a number. With
 * the other policies, n must be a number or be written like the other side, and only an integer
 * without a minus sign may have a long name before it. */
static bool drops_percent(const judge *j, part g, part a) {
    part marked = g.t->has_percent ? g : a;
    bool whole = !is_kind(marked, NODE_NEG) && is_integer_literal(marked);
    if (j->truth) { /* "75%" may be the gold 75 of a question for percents; 0.75% is not 0.75 */
        bool fraction = a.t->has_percent && (is_below_one(g) || is_proper_fraction(g));
        return (math_is_numeral(marked) || is_mixed_number(marked)) && !fraction;
    }
    return (math_is_numeral(marked) || same_tree(g, a)) && (whole || !j->named);
}

/* Compares with percent signs. n% can mean n/100 or n: MATH_STRICT accepts only n, the others both
 * (n as far as drops_percent() allows). If both sides have a sign, both are read the same way. */
static bool same_value(judge *j, part g, part a) {
    bool gp = g.t->has_percent, ap = a.t->has_percent;
    if (!j->strict && (gp || ap) && same_reading(j, g, gp, a, ap))
        return true;
    if (gp != ap && !drops_percent(j, g, a))
        return leave_undecided(j, "a percent sign on an expression");
    return same_reading(j, g, false, a, false);
}

int math_infinity(part p) {
    int sign = 1;
    for (; is_kind(p, NODE_NEG); p = child(p, 0))
        sign = -sign;
    return is_kind(p, NODE_CONST) && at(p)->arg == CONST_INF ? sign : 0;
}

bool math_is_empty_set(part p) {
    return is_kind(p, NODE_CONST) && at(p)->arg == CONST_EMPTY;
}

/* ---- comparing as written ---- */

bool math_is_numeral(part p) {
    while (is_kind(p, NODE_NEG) || is_kind(p, NODE_PERCENT))
        p = child(p, 0);
    return is_kind(p, NODE_NUM);
}

/* True if @p is a fraction of two integers, perhaps with a minus sign. */
static bool fraction_literal(part p, int64_t *n, int64_t *d) {
    bool negative = is_kind(p, NODE_NEG);
    if (negative)
        p = child(p, 0);
    if (!is_kind(p, NODE_MUL))
        return false;
    part over = child(p, 1);
    if (next(over).i || !is_kind(over, NODE_INV) || !math_integer(p.t, at(p)->first, n) ||
        !math_integer(p.t, at(over)->first, d))
        return false;
    if (negative)
        *n = -*n;
    return true;
}

/* True if digits / 10^decimals * 10^exponent is an integer in double precision, or if the
 * exponent exceeds 22. False for a negative exponent, and for a longer mantissa than 16
 * characters with an exponent up to 22. */
static bool is_whole_product(math_span mantissa, int64_t exponent) {
    double digits = 0, scale = 1;
    bool point = false;
    if (mantissa.len > 16 || exponent < 0 || exponent > 22)
        return exponent > 22;
    for (uint32_t i = 0; i < mantissa.len; i++) {
        point |= mantissa.s[i] == '.';
        if (mantissa.s[i] == '.')
            continue;
        digits = 10 * digits + (mantissa.s[i] - '0');
        scale *= point ? 10 : 1;
    }
    double product = digits / scale;
    for (scale = 1; exponent > 0; exponent--)
        scale *= 10;
    product *= scale;
    return product >= 9007199254740992.0 || product == (double)(int64_t)product;
}

/* True if double precision rounds a product: in doubles, which Math-Verify uses, 2.26 \cdot 10^2 is
 * 225.99999999999997. */
static bool is_rounded(part p) {
    while (is_kind(p, NODE_NEG))
        p = child(p, 0);
    if (!is_kind(p, NODE_MUL))
        return false;
    part mantissa = child(p, 0), power = child(p, 1);
    if (!math_is_numeral(mantissa) || is_integer_literal(mantissa) || !is_kind(power, NODE_POW))
        return false;
    int64_t base, exponent;
    part e = child(power, 1);
    return math_integer(p.t, at(power)->first, &base) && base == 10 &&
           math_integer(p.t, e.i, &exponent) && !is_whole_product(at(mantissa)->u.text, exponent);
}

static bool same_as_written(judge *j, part g, part a) {
    int64_t n, d, m, e;
    if (fraction_literal(g, &n, &d) && fraction_literal(a, &m, &e) && (n != m || d != e))
        return decide(j, false, "strict: a fraction in different terms");
    if (is_integer_literal(g) != is_integer_literal(a))
        return decide(j, false, "strict: only one of them is written as an integer");
    return true;
}

/* True if @p is arithmetic and its tree is a relation, as with x = 3(1/4). */
static bool is_named_number(part p) {
    part root = {p.t, p.t->root, p.pm};
    return is_relation(root) && math_is_arithmetic(p.t, p.i);
}

/* The reason why MATH_FIELD and MATH_STRICT refuse a pair of expressions whatever their values.
 * NULL if there is none. */
static const char *why_refused(part g, part a) {
    bool whole = is_integer_literal(g);
    if (a.t->juxtaposed && (whole || is_named_number(a)))
        return "integers multiplied without a sign";
    if (a.t->framed && !math_is_numeral(a) && (whole || !same_tree(g, a)))
        return "a different expression in a \\text or with a line break";
    if (whole && is_rounded(a))
        return "an integer in scientific notation that double precision rounds";
    if ((g.t->separated && !math_is_numeral(g)) || (a.t->separated && !math_is_numeral(a)))
        return "a thousands separator in an expression";
    return NULL;
}

/* Compares two expressions as they are written. If they are not written in the same way, the
 * verdict is "undecided" with the reason @why. */
static bool same_verbatim(judge *j, part g, part a, const char *why) {
    bool percent = g.t->has_percent != a.t->has_percent;
    if (same_tree(g, a) && !(percent && (j->named || j->truth)))
        return decide(j, true, "written the same way");
    return leave_undecided(j, why);
}

bool math_judge_values(judge *j, part g, part a) {
    int x = math_infinity(g), y = math_infinity(a);
    if (x || y)
        return decide(j, x == y, x == y ? "the same infinity" : "an infinity");
    if (math_is_empty_set(g) || math_is_empty_set(a))
        return decide(j, math_is_empty_set(g) && math_is_empty_set(a), "the empty set");
    if (j->strict && !same_as_written(j, g, a))
        return false;
    const char *why = g.t->verbatim ? g.t->verbatim : a.t->verbatim;
    if (why)
        return same_verbatim(j, g, a, why);
    if (!j->truth && (why = why_refused(g, a)))
        return leave_undecided(j, why);
    return same_value(j, g, a);
}
