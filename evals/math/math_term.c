/* Parses sums, products and factors (see math_parse.c). */
#include <string.h>

#include "evals/math/math_parser.h"
#include "evals/math/math_spelling.h"

/* The largest number of postfixes of a factor. Each "!" of x!!!! adds a level to the tree, and
 * kMathMaxDepth does not limit these levels: it counts only values inside of values, as in
 * brackets. */
enum { kMaxPostfixes = 8 };

/* ---- factors and what follows them ---- */

/* Skips units after a value: cm, cm^2, m/s, miles per hour. */
static bool skip_units(parser *p) {
    while (p->k->kind == TOK_UNIT) {
        p->k++;
        if (p->k->kind == TOK_CARET && p->k[1].kind == TOK_NUM && p->k[1].text.len > 1)
            return fail(p, "a unit to a power of more than one digit");
        if (accept(p, TOK_CARET) && !math_parse_exponent(p))
            return false;
        if (p->k->kind == TOK_SLASH && p->k[1].kind == TOK_UNIT)
            p->k++;
    }
    return true;
}

/* A degree sign is ignored, and so is the letter in 20^\circ C. With MATH_TRUTH, degrees are
 * converted to radians where p->angle is set. */
static uint16_t parse_degree(parser *p, uint16_t a) {
    const math_token *k = ++p->k;
    if (p->angle && p->t->truth) { /* \sin 30^\circ */
        uint16_t pi = new_node(p, NODE_CONST, CONST_PI);
        return new_binary(p, NODE_MUL, 0, a, new_quotient(p, pi, new_number(p, "180", 3)));
    }
    if (k->kind == TOK_SYM && k->text.len == 1 && (k->text.s[0] == 'C' || k->text.s[0] == 'F'))
        p->k++;
    return a;
}

/* Parses the word "percent". Except for MATH_TRUTH, it must follow an integer that is the whole
 * answer, or the whole right side of an equation ("x = 5 percent"). */
static uint16_t parse_percent_word(parser *p, uint16_t a) {
    const math_token *number = p->k - 1;
    bool whole = number == p->first || (number[-1].kind == TOK_REL && number[-1].arg == REL_EQ);
    if (!p->t->truth && (!whole || p->t->separated || number->kind != TOK_NUM ||
                         p->k[1].kind != TOK_END || memchr(number->text.s, '.', number->text.len)))
        return fail(p, "a percentage of something that is not an integer");
    p->k++;
    p->t->has_percent = true;
    return new_unary(p, NODE_PERCENT, 0, a);
}

/* The number that the text after a value begins with, such as a million; NULL: none. */
static const char *large_number(math_span s) {
    static const struct {
        const char *word, *value;
    } table[] = {{"hundred", "100"},
                 {"thousand", "1000"},
                 {"million", "1000000"},
                 {"billion", "1000000000"},
                 {"trillion", "1000000000000"}};
    for (size_t i = 0; i < COUNT(table); i++) {
        size_t n = strlen(table[i].word);
        if (s.len >= n && memcmp(s.s, table[i].word, n) == 0)
            return table[i].value;
    }
    return NULL;
}

bool math_has_large_number(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_UNIT && large_number(t->tok[i].text))
            return true;
    return false;
}

/* Multiplies @a by the large_number() of the next token, if it has one, and does not skip the
 * token. */
static uint16_t parse_large_number(parser *p, uint16_t a) {
    const char *value = large_number(p->k->text);
    return value ? new_binary(p, NODE_MUL, 0, a, new_number(p, value, strlen(value))) : a;
}

static uint16_t parse_postfix(parser *p, uint16_t a) {
    uint16_t transpose = math_parse_transpose(p, a);
    if (transpose || p->why)
        return transpose;
    switch (p->k->kind) {
    case TOK_CARET:
        p->k++;
        return new_binary(p, NODE_POW, 0, a, math_parse_exponent(p));
    case TOK_BANG:
        p->k++;
        return new_unary(p, NODE_FN, FN_FACTORIAL, a);
    case TOK_PERCENT:
        if (p->k->arg == 1)
            return parse_percent_word(p, a);
        if (p->k++->arg == 2 && p->t->node[a].kind != NODE_NUM && !p->t->truth)
            return a; /* "percent" in a \text is ignored like a unit, except after a number and for
                         MATH_TRUTH */
        if (p->t->node[a].kind == NODE_PERCENT)
            return fail(p, "a percentage of something that is not a number");
        if (p->t->node[a].kind == NODE_BASED)
            return a;
        if (!math_is_arithmetic(p->t, a))
            only_as_written(p, "a percentage of something that is not a number");
        p->t->has_percent = true;
        return new_unary(p, NODE_PERCENT, 0, a);
    case TOK_DEGREE:
        return parse_degree(p, a);
    default: /* TOK_UNIT */
        p->unit = true;
        a = p->t->truth ? parse_large_number(p, a) : a;
        return skip_units(p) ? a : 0;
    }
}

static bool starts_postfix(const math_token *k) {
    return k->kind == TOK_CARET || k->kind == TOK_BANG || k->kind == TOK_PERCENT ||
           k->kind == TOK_DEGREE || k->kind == TOK_UNIT;
}

uint16_t math_parse_factor(parser *p) {
    uint16_t a = math_parse_atom(p);
    p->unit = false;
    for (int i = 0; a && starts_postfix(p->k); i++) {
        if (i == kMaxPostfixes)
            return fail(p, "nested too deeply");
        a = parse_postfix(p, a);
    }
    return a;
}

/* Parses a factor after "*" or "/", which may have a sign: 2 \cdot -3. */
static uint16_t parse_signed_factor(parser *p) {
    bool negative = false;
    for (; p->k->kind == TOK_MINUS; p->k++)
        negative = !negative;
    uint16_t a = math_parse_factor(p);
    return negative ? new_unary(p, NODE_NEG, 0, a) : a;
}

static bool is_whole(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    return n->kind == NODE_NUM && !memchr(n->u.text.s, '.', n->u.text.len);
}

static bool is_whole_fraction(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    if (n->kind != NODE_MUL || !is_whole(t, n->first))
        return false;
    const math_node *over = math_at(t, math_at(t, n->first)->next);
    return over->kind == NODE_INV && is_whole(t, over->first);
}

static bool is_binomial(const math_tree *t, uint16_t i) {
    return math_at(t, i)->kind == NODE_FN && math_at(t, i)->arg == FN_BINOMIAL;
}

static bool is_signed_whole(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    return is_whole(t, n->kind == NODE_NEG ? n->first : i);
}

/* Parses a factor that follows the factor @before without a sign between them. */
static uint16_t parse_juxtaposed(parser *p, uint16_t before) {
    bool bracket = p->k->kind == TOK_LPAREN || p->k[-1].kind == TOK_RPAREN;
    bool brace = p->k->kind == TOK_LBRACE || p->k[-1].kind == TOK_RBRACE;
    uint16_t f = math_parse_factor(p);
    if (f && is_binomial(p->t, f) && (is_whole(p->t, before) || is_binomial(p->t, before)))
        only_as_written_in_public(p, "a binomial multiplied without a sign");
    if (f && brace && is_whole(p->t, before) && is_whole(p->t, f))
        only_as_written(p, "digits next to digits in braces");
    if (f && bracket && is_signed_whole(p->t, before) &&
        (is_whole(p->t, f) || is_whole_fraction(p->t, f)))
        p->t->juxtaposed = true;
    return f;
}

static uint16_t parse_product(parser *p) {
    chain c = {.kind = NODE_MUL};
    if (!chain_add(p, &c, math_parse_factor(p)))
        return 0;
    for (;;) {
        uint16_t f;
        p->t->times |= p->k->kind == TOK_TIMES;
        if (accept(p, TOK_TIMES))
            f = parse_signed_factor(p);
        else if (accept(p, TOK_SLASH))
            f = new_unary(p, NODE_INV, 0, parse_signed_factor(p));
        else if (math_starts_factor(p))
            f = parse_juxtaposed(p, c.last);
        else
            return math_scale(p, c.node);
        if (!chain_add(p, &c, f))
            return 0;
    }
}

static bool starts_term(const math_token *k) {
    return k->kind == TOK_PLUS || k->kind == TOK_MINUS || k->kind == TOK_PM;
}

/* Parses signs and then a product: - - 3x or \pm 3x. */
static uint16_t parse_term(parser *p) {
    bool negative = false;
    int pm = 0, signs = 0;
    for (; starts_term(p->k); p->k++, signs++) {
        negative ^= p->k->kind == TOK_MINUS;
        if (p->k->kind == TOK_PM)
            pm = p->k->arg;
    }
    if (pm && signs > 1)
        return fail(p, "signs around \\pm");
    uint16_t a = parse_product(p);
    if (negative && !pm && a && p->t->truth && p->t->node[a].kind == NODE_MATRIX)
        return math_negate_matrix(p, a);
    if (signs && a && p->t->node[a].kind >= NODE_WORD)
        return fail(p, "a sign before something that is not a value");
    if (pm) {
        p->t->has_pm = true;
        a = new_unary(p, NODE_PM, pm, a);
    }
    return negative ? new_unary(p, NODE_NEG, 0, a) : a;
}

static uint16_t parse_terms(parser *p) {
    chain c = {.kind = NODE_ADD};
    do {
        if (!chain_add(p, &c, parse_term(p)))
            return 0;
        if (p->unit && starts_term(p->k))
            only_as_written(p, "a unit within a sum");
    } while (starts_term(p->k));
    return c.node;
}

/* Parses a sum, {a \choose b}, or {a \over b}. If a or b of \over is a sum, it fails, except for
 * MATH_TRUTH. No public grader reads a+b \over c+d as a quotient of sums: for Math-Verify it is
 * a + b/c + d. */
uint16_t math_parse_sum(parser *p) {
    uint16_t a = parse_terms(p);
    bool choose = p->k->arg == 1;
    if (!a || !accept(p, TOK_OVER))
        return a;
    uint16_t b = parse_terms(p);
    if (choose)
        return new_binary(p, NODE_FN, FN_BINOMIAL, a, b);
    if (p->t->node[a].kind == NODE_ADD || (b && p->t->node[b].kind == NODE_ADD))
        b = fail_in_public(p, b, "\\over with a sum");
    return new_quotient(p, a, b);
}
