/* The part of the parser with the highest precedence (see math_parse.c): atoms, and arguments of
 * commands. */
#include <string.h>

#include "evals/math/math_parser.h"

/* Adds a token to an FNV-1a hash. Equal names get equal ids. */
static uint64_t hash_token(uint64_t h, const math_token *k) {
    h = (h ^ k->kind) * 1099511628211u;
    for (uint32_t i = 0; i < k->text.len; i++)
        h = (h ^ (unsigned char)k->text.s[i]) * 1099511628211u;
    return h;
}

static const uint64_t kHashSeed = 14695981039346656037u;

/* ---- arguments ---- */

/* Parses the argument of \frac, \binom, \sqrt, ^ or \log_: a group or the next atom. From a number
 * it takes one digit, as LaTeX does, or all of it with @whole. */
static uint16_t parse_argument(parser *p, bool whole) {
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
    uint16_t e = parse_argument(p, true);
    if (e && accept(p, TOK_CARET))
        e = new_binary(p, NODE_POW, 0, e, math_parse_exponent(p));
    p->depth--;
    return negative ? new_unary(p, NODE_NEG, 0, e) : e;
}

/* Parses a subscript. It is part of the name, so its tokens except braces go into the hash. */
static bool parse_subscript(parser *p, uint64_t *id) {
    int braces = 0;
    do {
        if (p->k->kind == TOK_END)
            return false;
        if (p->k->kind == TOK_LBRACE)
            braces++;
        else if (p->k->kind == TOK_RBRACE)
            braces--;
        else
            *id = hash_token(*id, p->k);
        p->k++;
    } while (braces > 0);
    return true;
}

/* ---- atoms ---- */

static bool plain_part(const math_token **k) {
    const math_token *s = *k;
    if (s->kind == TOK_NUM) {
        *k = s + 1;
        return true;
    }
    *k = s + 3;
    return s->kind == TOK_LBRACE && s[1].kind == TOK_NUM && s[2].kind == TOK_RBRACE;
}

/* True if a fraction of two plain numbers follows. After a whole number it makes a mixed number. */
static bool at_plain_fraction(const math_token *k) {
    if (k->kind == TOK_NUM)
        return k->spaced && k[1].kind == TOK_SLASH && k[2].kind == TOK_NUM;
    if (k->kind != TOK_FRAC)
        return false;
    k++;
    if (k->kind == TOK_NUM && k->text.len == 2)
        return true;
    return plain_part(&k) && plain_part(&k);
}

static uint16_t parse_fraction(parser *p) {
    uint16_t a = parse_argument(p, false);
    if (p->k->kind == TOK_NUM && p->k->text.len > 1)
        only_as_written(p, "more digits than a fraction takes");
    uint16_t b = a ? parse_argument(p, false) : 0;
    return new_quotient(p, a, b);
}

/* Checks a mixed number such as 3 1/2. It is compared only literally if it is typed with a sign, as
 * in -7 1/2, where the sign would apply to the 7 alone, or if its fraction is 0 or not below 1, as
 * in 3 4/4. */
static void check_mixed(parser *p, uint16_t fraction, bool typed, bool negative) {
    int64_t a, b;
    if (!fraction)
        return;
    const math_node *n = math_at(p->t, math_at(p->t, fraction)->first);
    bool whole = math_integer(p->t, math_at(p->t, fraction)->first, &a) &&
                 math_integer(p->t, math_at(p->t, n->next)->first, &b);
    if ((typed && negative) || (whole && (a == 0 || a >= b)))
        only_as_written(p, "not a mixed number");
}

static uint16_t parse_number(parser *p) {
    const math_token *k = p->k++;
    uint16_t n = new_number(p, k->text.s, k->text.len);
    bool whole = memchr(k->text.s, '.', k->text.len) == NULL;
    if (accept(p, TOK_UNDERSCORE)) {
        uint64_t id = kHashSeed;
        if (!parse_subscript(p, &id))
            return fail(p, "a subscript is missing");
        uint16_t based = new_unary(p, NODE_BASED, 0, n);
        if (based)
            p->t->node[based].u.id = id;
        return based;
    }
    if (!whole || !at_plain_fraction(p->k))
        return n;
    uint16_t fraction;
    bool typed = p->k->kind == TOK_NUM, negative = k > p->first && k[-1].kind == TOK_MINUS;
    if (accept(p, TOK_FRAC)) {
        fraction = parse_fraction(p);
    } else {
        uint16_t a = new_number(p, p->k[0].text.s, p->k[0].text.len);
        fraction = new_quotient(p, a, new_number(p, p->k[2].text.s, p->k[2].text.len));
        p->k += 3;
    }
    check_mixed(p, fraction, typed, negative);
    return new_binary(p, NODE_ADD, 0, n, fraction);
}

/* Parses a symbol. For one letter, upper and lower case are the same name: x = 5 equals X = 5. */
static uint16_t parse_symbol(parser *p) {
    math_token letter = *p->k++;
    char c = letter.text.s[0], small = (char)(c | 32);
    if (letter.text.len == 1 && c >= 'A' && c <= 'Z')
        letter.text.s = &small;
    uint64_t id = hash_token(kHashSeed, &letter);
    while (p->k->kind == TOK_PRIME)
        id = hash_token(id, p->k++);
    if (accept(p, TOK_UNDERSCORE) && !parse_subscript(p, &id))
        return fail(p, "a subscript is missing");
    uint16_t n = new_node(p, NODE_SYM, 0);
    if (n)
        p->t->node[n].u.id = id;
    return n;
}

/* Parses the content of ( ), [ ] or \langle \rangle. A single item is returned without brackets. */
static uint16_t parse_bracketed(parser *p) {
    int open = p->k->arg, bars = p->bars;
    bool sized = p->k->text.len > 0;
    p->k++;
    p->bars = 0;
    uint16_t n = math_parse_list(p);
    p->bars = bars;
    if (!n || p->k->kind != TOK_RPAREN)
        return fail(p, "unbalanced brackets");
    int close = p->k->arg;
    if ((open == '<') != (close == '>'))
        return fail(p, "unbalanced brackets");
    p->k++;
    math_node *node = &p->t->node[n];
    if (node->kind == NODE_LIST) {
        node->kind = NODE_TUPLE;
        node->arg = (int16_t)((open == '[') | (close == ']') << 1 | (open == '<') << 2);
    } else if ((open == '(') != (close == ')')) {
        return fail(p, "unbalanced brackets");
    } else if (p->k[-2].kind == TOK_UNIT) {
        return fail(p, "a unit in brackets");
    } else if ((node->kind == NODE_REL && node->arg == REL_IN) ||
               (node->kind == NODE_UNION && open == '[')) {
        return fail(p, "a set in brackets");
    } else if (sized && node->kind >= NODE_WORD) {
        return fail(p, "large brackets around something that is not a value");
    }
    return n;
}

static uint16_t parse_group(parser *p) {
    int bars = p->bars;
    bool whole = p->k == p->first;
    p->k++;
    p->bars = 0;
    uint16_t n = math_parse_list(p);
    p->bars = bars;
    if (n && p->t->node[n].kind == NODE_LIST)
        p->t->node[n].kind = NODE_SET;
    if (p->k[-1].kind == TOK_UNIT) {
        if (whole)
            return fail(p, "a unit in brackets");
        only_as_written(p, "a unit within an expression");
    }
    return n ? expect(p, TOK_RBRACE, n) : 0;
}

static uint16_t parse_braced_set(parser *p) {
    p->k++;
    if (accept(p, TOK_RSET))
        return new_node(p, NODE_CONST, CONST_EMPTY);
    int bars = p->bars;
    p->bars = 0;
    uint16_t n = math_parse_list(p);
    p->bars = bars;
    if (n && p->t->node[n].kind == NODE_LIST)
        p->t->node[n].kind = NODE_SET;
    else
        n = new_unary(p, NODE_SET, 0, n);
    if (p->k[-1].kind == TOK_UNIT)
        return fail(p, "a unit in brackets");
    return n ? expect(p, TOK_RSET, n) : 0;
}

static uint16_t parse_absolute(parser *p) {
    p->k++;
    p->bars++;
    p->unit = false;
    uint16_t n = math_parse_sum(p);
    p->bars--;
    if (p->unit || p->t->separated)
        return fail(p, "a unit or a separator between bars");
    return n ? expect(p, TOK_BAR, new_unary(p, NODE_FN, FN_ABS, n)) : 0;
}

static uint16_t parse_rounding(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t n = math_parse_sum(p);
    if (n && p->k->arg != fn)
        return fail(p, "unbalanced brackets");
    return n ? expect(p, TOK_RFLOOR, new_unary(p, NODE_FN, fn, n)) : 0;
}

static uint16_t parse_root(parser *p) {
    bool whole = p->k->arg != 0; /* "sqrt(3)" as a word, without a backslash */
    p->k++;
    uint16_t degree = 0;
    if ((p->k->kind == TOK_LPAREN && p->k->arg == '(') != whole)
        return fail(p, "a root typed as sqrt3 or \\sqrt(3)");
    if (p->k->kind == TOK_LPAREN && p->k->arg == '[') {
        degree = parse_bracketed(p);
        if (!degree)
            return 0;
    }
    uint16_t a = parse_argument(p, whole);
    return degree ? new_binary(p, NODE_FN, FN_ROOT, a, degree) : new_unary(p, NODE_FN, FN_SQRT, a);
}

static uint16_t parse_binomial(parser *p) {
    p->k++;
    bool braced = p->k->kind == TOK_LBRACE;
    uint16_t n = parse_argument(p, false);
    braced &= p->k->kind == TOK_LBRACE;
    uint16_t k = n ? parse_argument(p, false) : 0;
    if (!braced)
        only_as_written(p, "a binomial without braces");
    return new_binary(p, NODE_FN, FN_BINOMIAL, n, k);
}

static bool text_is(math_span s, const char *name) {
    return s.len == strlen(name) && memcmp(s.s, name, s.len) == 0;
}

/* Parses rows of cells up to \end. Each row is a list node, also if it has one cell. */
static uint16_t parse_matrix(parser *p) {
    math_token *name = p->k++;
    bool array = text_is(name->text, "array");
    if (!array && !text_is(name->text, "pmatrix") && !text_is(name->text, "bmatrix") &&
        !text_is(name->text, "matrix") && !text_is(name->text, "smallmatrix"))
        return fail(p, "an environment that is not a matrix");
    uint64_t columns = 0;
    if (array && (p->k->kind != TOK_LBRACE || !parse_subscript(p, &columns)))
        return fail(p, "an array without columns");
    uint16_t matrix = new_node(p, NODE_MATRIX, 0), last = 0;
    while (matrix && p->k->kind != TOK_END_ENV) {
        uint16_t row = new_node(p, NODE_LIST, 0), cell = 0;
        do {
            uint16_t c = math_parse_sum(p);
            if (!row || !c)
                return 0;
            *(cell ? &p->t->node[cell].next : &p->t->node[row].first) = c;
            cell = c;
        } while (accept(p, TOK_AMP));
        *(last ? &p->t->node[last].next : &p->t->node[matrix].first) = row;
        last = row;
        if (!accept(p, TOK_ROW) && p->k->kind != TOK_END_ENV)
            return fail(p, "a matrix that is not closed");
    }
    if (!last || p->k->text.len != name->text.len ||
        memcmp(p->k->text.s, name->text.s, name->text.len) != 0)
        return fail(p, "a matrix that is empty or not closed");
    p->k++;
    return matrix;
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

/* Parses a function's argument. Without braces or brackets, it is the product that follows, up to
 * the next function or opening bracket; it may have a minus sign. */
static uint16_t parse_function_argument(parser *p) {
    if (p->k->kind == TOK_LPAREN) /* \ln(2)^3 is the third power of \ln 2 */
        return math_parse_atom(p);
    if (p->k->kind == TOK_LBRACE)
        return math_parse_factor(p);
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

/* Marks \log_{9} 19 to be compared only literally if the answer also has a \frac. The public
 * graders then read its digits in another way. */
static void check_base(parser *p) {
    const math_token *k = p->k;
    if (k->kind == TOK_NUM && k[-1].kind == TOK_RBRACE && k->text.len > 1 && k->text.s[1] != '.' &&
        has_fraction(p))
        only_as_written(p, "a logarithm of plain digits after a base in braces");
}

static uint16_t parse_function(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t base = 0, power = 0;
    if (fn == FN_LOG && accept(p, TOK_UNDERSCORE) && !(base = parse_argument(p, false)))
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
    uint16_t a = parse_function_argument(p);
    uint16_t n = base ? new_binary(p, NODE_FN, fn, a, base) : new_unary(p, NODE_FN, fn, a);
    if (a && is_trigonometric(fn) && p->t->node[a].kind != NODE_FN && has_inverse_function(p->t, a))
        only_as_written(p, "a trigonometric function of inverse ones");
    return power ? new_binary(p, NODE_POW, 0, n, power) : n;
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
        return parse_number(p);
    case TOK_SYM:
        return parse_symbol(p);
    case TOK_CONST:
    case TOK_EMPTYSET:
    case TOK_WORD:
        return parse_leaf(p);
    case TOK_FRAC:
        p->k++;
        return parse_fraction(p);
    case TOK_BINOM:
        return parse_binomial(p);
    case TOK_SQRT:
        return parse_root(p);
    case TOK_FN:
        return parse_function(p);
    case TOK_LPAREN:
        return parse_bracketed(p);
    case TOK_LBRACE:
        return parse_group(p);
    case TOK_LSET:
        return parse_braced_set(p);
    case TOK_BAR:
        return parse_absolute(p);
    case TOK_LFLOOR:
        return parse_rounding(p);
    case TOK_BEGIN:
        return parse_matrix(p);
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
