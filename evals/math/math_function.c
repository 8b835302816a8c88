/* Parses functions, roots and binomials. */
#include <string.h>

#include "evals/math/math_parser.h"

uint16_t math_parse_root(parser *p) {
    /* Typed without a backslash: "sqrt12" is the root of 12, but \sqrt12 is \sqrt{1} 2. */
    bool whole = p->k->arg != 0;
    p->k++;
    uint16_t degree = 0;
    if (!p->t->truth && (p->k->kind == TOK_LPAREN && p->k->arg == '(') != whole)
        return fail(p, "a root typed as sqrt3 or \\sqrt(3)");
    if (p->k->kind == TOK_LPAREN && p->k->arg == '[') {
        degree = math_parse_bracketed(p);
        if (!degree)
            return 0;
    }
    uint16_t a = math_parse_argument(p, whole);
    return degree ? new_binary(p, NODE_FN, FN_ROOT, a, degree) : new_unary(p, NODE_FN, FN_SQRT, a);
}

enum { kMaxExpanded = 6 };

/* n (n - 1) ... (n - k + 1) / k! */
static uint16_t expand_binomial(parser *p, uint16_t n, int k) {
    static const char *const digits[] = {"0", "1", "2", "3", "4", "5"};
    static const char *const factorials[] = {"1", "1", "2", "6", "24", "120", "720"};
    chain c = {.kind = NODE_MUL};
    bool added = chain_add(p, &c, new_number(p, "1", 1));
    for (int i = 0; i < k && added; i++) {
        uint16_t minus = new_unary(p, NODE_NEG, 0, new_number(p, digits[i], 1));
        added = chain_add(p, &c, new_binary(p, NODE_ADD, 0, new_copy(p, n), minus));
    }
    uint16_t below = new_number(p, factorials[k], strlen(factorials[k]));
    added = added && chain_add(p, &c, new_unary(p, NODE_INV, 0, below));
    return added ? c.node : 0;
}

uint16_t math_parse_binomial(parser *p) {
    p->k++;
    bool braced = p->k->kind == TOK_LBRACE;
    uint16_t n = math_parse_argument(p, false);
    braced &= p->k->kind == TOK_LBRACE;
    uint16_t k = n ? math_parse_argument(p, false) : 0;
    if (!braced)
        only_as_written_in_public(p, "a binomial without braces");
    int64_t top, size;
    if (n && k && p->t->truth && !math_integer(p->t, n, &top) && math_integer(p->t, k, &size) &&
        size >= 0 && size <= kMaxExpanded)
        return expand_binomial(p, n, (int)size);
    return new_binary(p, NODE_FN, FN_BINOMIAL, n, k);
}

/* True if braces hold one pair of brackets and what is in it, as in {\left(7\right)}. @k is the
 * opening brace. */
static bool holds_brackets(const math_token *k) {
    int depth = 0;
    if (k[1].kind != TOK_LPAREN)
        return false;
    for (k++; k->kind != TOK_END; k++) {
        depth += (k->kind == TOK_LPAREN) - (k->kind == TOK_RPAREN);
        if (depth == 0)
            return k[1].kind == TOK_RBRACE;
    }
    return false;
}

/* Parses a function's argument. Without braces or brackets, it is the product that follows, up to
 * the next function or opening bracket; it may have a minus sign. */
static uint16_t parse_function_argument(parser *p) {
    if (p->k->kind == TOK_LPAREN) /* \ln(2)^3 and \ln{(2)}^3 are the third power of \ln 2 */
        return math_parse_atom(p);
    if (p->k->kind == TOK_LBRACE)
        return holds_brackets(p->k) ? math_parse_atom(p) : math_parse_factor(p);
    bool negative = accept(p, TOK_MINUS);
    chain product = {.kind = NODE_MUL};
    do {
        if (!chain_add(p, &product, math_parse_factor(p)))
            return 0;
    } while (math_starts_factor(p) && p->k->kind != TOK_FN && p->k->kind != TOK_LPAREN);
    return negative ? new_unary(p, NODE_NEG, 0, product.node) : product.node;
}

static bool is_trigonometric(int fn) {
    return fn <= FN_CSC;
}

static bool has_inverse_function(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    bool found = n->kind == NODE_FN && n->arg >= FN_ASIN && n->arg <= FN_ACSC;
    for (uint16_t c = n->first; c && !found; c = math_at(t, c)->next)
        found = has_inverse_function(t, c);
    return found;
}

static bool has_fraction(const parser *p) {
    const math_token *k = p->first;
    while (k->kind != TOK_FRAC && k->kind != TOK_END)
        k++;
    return k->kind == TOK_FRAC;
}

/* A logarithm of digits after a base in braces, as in \log_{9} 19: if the answer also has a \frac,
 * Math-Verify reads the digits in another way. The logarithm is then compared only literally,
 * except by MATH_TRUTH. */
static void check_base(parser *p) {
    const math_token *k = p->k;
    if (k->kind == TOK_NUM && k[-1].kind == TOK_RBRACE && k->text.len > 1 && k->text.s[1] != '.' &&
        has_fraction(p))
        only_as_written_in_public(p, "a logarithm of plain digits after a base in braces");
}

uint16_t math_parse_function(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t base = 0, power = 0;
    if (fn == FN_LOG && accept(p, TOK_UNDERSCORE) && !(base = math_parse_argument(p, false)))
        return 0;
    if (base)
        check_base(p);
    if (accept(p, TOK_CARET)) {
        power = math_parse_exponent(p);
        int64_t e;
        if (!power)
            return 0;
        if (is_trigonometric(fn) && math_integer(p->t, power, &e) && e == -1) {
            fn += FN_ASIN - FN_SIN;
            power = 0;
        }
    }
    bool angle = p->angle;
    p->angle |= is_trigonometric(fn);
    uint16_t a = parse_function_argument(p);
    p->angle = angle;
    uint16_t n = base ? new_binary(p, NODE_FN, fn, a, base) : new_unary(p, NODE_FN, fn, a);
    if (a && is_trigonometric(fn) && p->t->node[a].kind != NODE_FN && has_inverse_function(p->t, a))
        only_as_written_in_public(p, "a trigonometric function of inverse ones");
    return power ? new_binary(p, NODE_POW, 0, n, power) : n;
}
