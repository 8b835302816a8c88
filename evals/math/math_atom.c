/* The part of the parser with the highest precedence (see math_parse.c): atoms, and arguments of
 * commands. */
#include "evals/math/math_parser.h"

uint64_t math_hash_token(uint64_t h, const math_token *k) {
    h = (h ^ k->kind) * 1099511628211u;
    for (uint32_t i = 0; i < k->text.len; i++)
        h = (h ^ (unsigned char)k->text.s[i]) * 1099511628211u;
    return h;
}

/* ---- arguments ---- */

uint16_t math_parse_argument(parser *p, bool whole) {
    math_token *k = p->k;
    if (k->kind == TOK_NUM && k->text.len > 1 && !whole) {
        uint16_t n = new_number(p, k->text.s, 1);
        k->text.s++;
        k->text.len--;
        return n;
    }
    return math_parse_atom(p);
}

/* Parses an exponent. a^b^c is a^(b^c), and a^-1 needs no braces. */
uint16_t math_parse_exponent(parser *p) {
    bool negative = false;
    if (!enter(p))
        return 0;
    for (; p->k->kind == TOK_MINUS || p->k->kind == TOK_PLUS; p->k++)
        negative ^= p->k->kind == TOK_MINUS;
    uint16_t e = math_parse_argument(p, true);
    if (e && accept(p, TOK_CARET))
        e = new_binary(p, NODE_POW, 0, e, math_parse_exponent(p));
    p->depth--;
    return negative ? new_unary(p, NODE_NEG, 0, e) : e;
}

bool math_parse_subscript(parser *p, uint64_t *id) {
    int braces = 0;
    do {
        if (p->k->kind == TOK_END)
            return false;
        if (p->k->kind == TOK_LBRACE)
            braces++;
        else if (p->k->kind == TOK_RBRACE)
            braces--;
        else
            *id = math_hash_token(*id, p->k);
        p->k++;
    } while (braces > 0);
    return true;
}

/* ---- atoms ---- */

/* Parses a symbol. For one letter, upper and lower case are the same name: x = 5 equals X = 5. */
static uint16_t parse_symbol(parser *p) {
    math_token letter = *p->k++;
    char c = letter.text.s[0], small = (char)(c | 32);
    if (letter.text.len == 1 && c >= 'A' && c <= 'Z')
        letter.text.s = &small;
    uint64_t id = math_hash_token(kMathHashSeed, &letter);
    while (p->k->kind == TOK_PRIME)
        id = math_hash_token(id, p->k++);
    if (accept(p, TOK_UNDERSCORE) && !math_parse_subscript(p, &id))
        return fail(p, "a subscript is missing");
    uint16_t n = new_node(p, NODE_SYM, 0);
    if (n)
        p->t->node[n].u.id = id;
    return n;
}

bool math_starts_factor(const parser *p) {
    const math_token *k = p->k;
    switch (k->kind) {
    case TOK_NUM:
        return k[-1].kind != TOK_NUM;
    case TOK_SYM: /* a U between brackets is a union sign */
        return !(k > p->first && k->text.len == 1 && k->text.s[0] == 'U' &&
                 k[-1].kind == TOK_RPAREN && k[1].kind == TOK_LPAREN);
    case TOK_BAR:
        return p->bars == 0;
    case TOK_CONST:
    case TOK_FN:
    case TOK_FRAC:
    case TOK_BINOM:
    case TOK_SQRT:
    case TOK_LPAREN:
    case TOK_LBRACE:
    case TOK_LFLOOR:
    case TOK_BEGIN:
        return true;
    default:
        return false;
    }
}

static uint16_t parse_leaf(parser *p) {
    const math_token *k = p->k++;
    if (k->kind == TOK_CONST)
        return new_node(p, NODE_CONST, k->arg);
    if (k->kind == TOK_EMPTYSET)
        return new_node(p, NODE_CONST, CONST_EMPTY);
    uint16_t n = new_node(p, NODE_WORD, 0);
    if (n)
        p->t->node[n].u.text = k->text;
    return n;
}

static uint16_t parse_atom_kind(parser *p) {
    switch (p->k->kind) {
    case TOK_NUM:
        return math_parse_number(p);
    case TOK_SYM:
        return parse_symbol(p);
    case TOK_CONST:
    case TOK_EMPTYSET:
    case TOK_WORD:
        return parse_leaf(p);
    case TOK_FRAC:
        p->k++;
        return math_parse_fraction(p);
    case TOK_BINOM:
        return math_parse_binomial(p);
    case TOK_SQRT:
        return math_parse_root(p);
    case TOK_FN:
        return math_parse_function(p);
    case TOK_LPAREN:
        return math_parse_bracketed(p);
    case TOK_LBRACE:
        return math_parse_group(p);
    case TOK_LSET:
        return math_parse_braced_set(p);
    case TOK_BAR:
        return math_parse_absolute(p);
    case TOK_LFLOOR:
        return math_parse_rounding(p);
    case TOK_BEGIN:
        return math_parse_matrix(p);
    case TOK_END:
        return fail(p, "the answer is incomplete");
    default:
        return fail(p, "a value is missing or not understood");
    }
}

uint16_t math_parse_atom(parser *p) {
    uint16_t n = enter(p) ? parse_atom_kind(p) : 0;
    p->depth--;
    return n;
}
