/* Recursive descent, loosest binding first:
 *
 *   list      relation { "," relation }
 *   relation  set { ("=" | "<" | "\in" ...) set }
 *   set       sum { ("\cup" | "\cap" | "\setminus") sum }
 *   sum       terms [ "\over" terms ]
 *   terms     ["+" | "-" | "\pm"] product { ("+" | "-" | "\pm") product }
 *   product   factor { ["*" | "/"] factor }      a missing sign is a product
 *   factor    atom { "^" argument | "!" | "%" | degree | unit }
 *
 * Every recursion passes through parse_atom() or parse_exponent(), which count the depth. */
#include <string.h>

#include "evals/math/math_tree.h"

enum { kMaxPostfixes = 8 }; /* of one factor: x!!!! deepens the tree without nesting the source */

typedef struct {
    math_tree *t;
    math_token *k; /* next token */
    math_token *first;
    int depth;
    int bars;      /* open |...|: the next bar closes */
    int relations; /* parsed so far */
    bool unit;     /* the last factor had one */
    const char *why;
} parser;

static uint16_t parse_list(parser *p);
static uint16_t parse_sum(parser *p);
static uint16_t parse_factor(parser *p);
static uint16_t parse_atom(parser *p);

/* ---- nodes ---- */

static uint16_t fail(parser *p, const char *why) {
    if (!p->why)
        p->why = why;
    return 0;
}

static uint16_t new_node(parser *p, math_node_kind kind, int arg) {
    math_tree *t = p->t;
    if (p->why)
        return 0;
    if (t->used == kMathMaxNodes)
        return fail(p, "too many parts");
    t->node[t->used] = (math_node){.kind = (uint8_t)kind, .arg = (int16_t)arg};
    return t->used++;
}

/* Nodes with children are 0 if a child is: an error needs no check on its way up. */
static uint16_t new_unary(parser *p, math_node_kind kind, int arg, uint16_t a) {
    uint16_t n = a ? new_node(p, kind, arg) : 0;
    if (n)
        p->t->node[n].first = a;
    return n;
}

static uint16_t new_binary(parser *p, math_node_kind kind, int arg, uint16_t a, uint16_t b) {
    uint16_t n = b ? new_unary(p, kind, arg, a) : 0;
    if (n)
        p->t->node[a].next = b;
    return n;
}

static uint16_t new_quotient(parser *p, uint16_t a, uint16_t b) {
    return new_binary(p, NODE_MUL, 0, a, new_unary(p, NODE_INV, 0, b));
}

static uint16_t new_number(parser *p, const char *digits, size_t n) {
    uint16_t i = new_node(p, NODE_NUM, 0);
    if (i)
        p->t->node[i].u.text = (math_span){digits, (uint32_t)n};
    return i;
}

/* An n-ary node that grows; a single child stands for itself. */
typedef struct {
    math_node_kind kind;
    uint16_t node, last;
} chain;

static bool chain_add(parser *p, chain *c, uint16_t child) {
    if (!child)
        return false;
    if (!c->last) {
        c->node = c->last = child;
        return true;
    }
    if (c->node == c->last)
        c->node = new_unary(p, c->kind, 0, c->last);
    if (!c->node)
        return false;
    p->t->node[c->last].next = child;
    c->last = child;
    return true;
}

/* FNV-1a over names: equal names, equal ids. */
static uint64_t hash_token(uint64_t h, const math_token *k) {
    h = (h ^ k->kind) * 1099511628211u;
    for (uint32_t i = 0; i < k->text.len; i++)
        h = (h ^ (unsigned char)k->text.s[i]) * 1099511628211u;
    return h;
}

static const uint64_t kHashSeed = 14695981039346656037u;

static bool accept(parser *p, math_token_kind kind) {
    if (p->k->kind != kind)
        return false;
    p->k++;
    return true;
}

static uint16_t expect(parser *p, math_token_kind kind, uint16_t node) {
    return accept(p, kind) ? node : fail(p, "unbalanced brackets");
}

static void only_as_written(parser *p, const char *why) {
    if (!p->t->verbatim)
        p->t->verbatim = why;
}

static bool enter(parser *p) {
    if (++p->depth <= kMathMaxDepth)
        return true;
    fail(p, "nested too deeply");
    return false;
}

/* ---- arguments ---- */

/* What \frac, \sqrt, ^ and _ take: a group, or what follows; of a number one digit, as LaTeX has
 * it, or with @whole all of it. */
static uint16_t parse_argument(parser *p, bool whole) {
    math_token *k = p->k;
    if (k->kind == TOK_NUM && k->text.len > 1 && !whole) {
        uint16_t n = new_number(p, k->text.s, 1);
        k->text.s++;
        k->text.len--;
        return n;
    }
    return parse_atom(p);
}

/* a^b^c is a^(b^c), a^-1 needs no braces. */
static uint16_t parse_exponent(parser *p) {
    bool negative = false;
    if (!enter(p))
        return 0;
    for (; p->k->kind == TOK_MINUS || p->k->kind == TOK_PLUS; p->k++)
        negative ^= p->k->kind == TOK_MINUS;
    uint16_t e = parse_argument(p, true);
    if (e && accept(p, TOK_CARET))
        e = new_binary(p, NODE_POW, 0, e, parse_exponent(p));
    p->depth--;
    return negative ? new_unary(p, NODE_NEG, 0, e) : e;
}

/* A subscript is part of a name: its tokens go into the hash. */
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

/* Whether a fraction of two plain numbers follows: after a whole number it makes a mixed one. */
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
    uint16_t b = a ? parse_argument(p, false) : 0;
    return new_quotient(p, a, b);
}

/* Of -7 1/2 a sign takes the 7 alone, and 3 4/4 is no mixed number. */
static void check_mixed(parser *p, uint16_t fraction, bool typed, bool negative) {
    int64_t a, b;
    if (!fraction)
        return;
    const math_node *n = math_at(p->t, math_at(p->t, fraction)->first);
    bool whole = math_integer(p->t, math_at(p->t, fraction)->first, &a) &&
                 math_integer(p->t, math_at(p->t, n->next)->first, &b);
    if ((typed && negative) || (whole && (a == 0 || a >= b)))
        only_as_written(p, "no mixed number");
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

/* Small and capital letters name one thing: x = 5 is X = 5. */
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

/* The content of ( ), [ ], or a group: one item stands for itself. */
static uint16_t parse_bracketed(parser *p) {
    int open = p->k->arg, bars = p->bars;
    bool sized = p->k->text.len > 0;
    p->k++;
    p->bars = 0;
    uint16_t n = parse_list(p);
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
        return fail(p, "large brackets around what is no value");
    }
    return n;
}

static uint16_t parse_group(parser *p) {
    int bars = p->bars;
    bool whole = p->k == p->first;
    p->k++;
    p->bars = 0;
    uint16_t n = parse_list(p);
    p->bars = bars;
    if (n && p->t->node[n].kind == NODE_LIST)
        p->t->node[n].kind = NODE_SET;
    if (whole && p->k[-1].kind == TOK_UNIT)
        return fail(p, "a unit in brackets");
    return n ? expect(p, TOK_RBRACE, n) : 0;
}

static uint16_t parse_braced_set(parser *p) {
    p->k++;
    if (accept(p, TOK_RSET))
        return new_node(p, NODE_CONST, CONST_EMPTY);
    int bars = p->bars;
    p->bars = 0;
    uint16_t n = parse_list(p);
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
    uint16_t n = parse_sum(p);
    p->bars--;
    if (p->unit || p->t->separated)
        return fail(p, "a unit or a separator between bars");
    return n ? expect(p, TOK_BAR, new_unary(p, NODE_FN, FN_ABS, n)) : 0;
}

static uint16_t parse_rounding(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t n = parse_sum(p);
    if (n && p->k->arg != fn)
        return fail(p, "unbalanced brackets");
    return n ? expect(p, TOK_RFLOOR, new_unary(p, NODE_FN, fn, n)) : 0;
}

static uint16_t parse_root(parser *p) {
    bool whole = p->k->arg != 0; /* "sqrt(3)", as a word */
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
    uint16_t n = parse_argument(p, false);
    uint16_t k = n ? parse_argument(p, false) : 0;
    return new_binary(p, NODE_FN, FN_BINOMIAL, n, k);
}

static bool text_is(math_span s, const char *name) {
    return s.len == strlen(name) && memcmp(s.s, name, s.len) == 0;
}

/* Rows of cells until \end; each row is a list node, even of one cell. */
static uint16_t parse_matrix(parser *p) {
    math_token *name = p->k++;
    bool array = text_is(name->text, "array");
    if (!array && !text_is(name->text, "pmatrix") && !text_is(name->text, "bmatrix") &&
        !text_is(name->text, "matrix") && !text_is(name->text, "smallmatrix"))
        return fail(p, "an environment that is no matrix");
    uint64_t columns = 0;
    if (array && (p->k->kind != TOK_LBRACE || !parse_subscript(p, &columns)))
        return fail(p, "an array without columns");
    uint16_t matrix = new_node(p, NODE_MATRIX, 0), last = 0;
    while (matrix && p->k->kind != TOK_END_ENV) {
        uint16_t row = new_node(p, NODE_LIST, 0), cell = 0;
        do {
            uint16_t c = parse_sum(p);
            if (!row || !c)
                return 0;
            *(cell ? &p->t->node[cell].next : &p->t->node[row].first) = c;
            cell = c;
        } while (accept(p, TOK_AMP));
        *(last ? &p->t->node[last].next : &p->t->node[matrix].first) = row;
        last = row;
        if (!accept(p, TOK_ROW) && p->k->kind != TOK_END_ENV)
            return fail(p, "a matrix that isn't closed");
    }
    if (!last || p->k->text.len != name->text.len ||
        memcmp(p->k->text.s, name->text.s, name->text.len) != 0)
        return fail(p, "a matrix that is empty or isn't closed");
    p->k++;
    return matrix;
}

static bool starts_factor(const parser *p) {
    const math_token *k = p->k;
    switch (k->kind) {
    case TOK_NUM:
        return k[-1].kind != TOK_NUM;
    case TOK_SYM: /* between brackets, U is typed for a union */
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

/* Without brackets a function takes the product that follows, up to the next function. */
static uint16_t parse_function_argument(parser *p) {
    if (p->k->kind == TOK_LPAREN) /* \ln(2)^3 is the third power of \ln 2 */
        return parse_atom(p);
    if (p->k->kind == TOK_LBRACE)
        return parse_factor(p);
    bool negative = accept(p, TOK_MINUS);
    chain product = {.kind = NODE_MUL};
    do {
        if (!chain_add(p, &product, parse_factor(p)))
            return 0;
    } while (starts_factor(p) && p->k->kind != TOK_FN && p->k->kind != TOK_LPAREN);
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

static uint16_t parse_function(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t base = 0, power = 0;
    if (fn == FN_LOG && accept(p, TOK_UNDERSCORE) && !(base = parse_argument(p, false)))
        return 0;
    if (accept(p, TOK_CARET)) {
        power = parse_exponent(p);
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
        only_as_written(p, "a circular function of inverse ones");
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
        return fail(p, "it breaks off");
    default:
        return fail(p, "a value is missing or not understood");
    }
}

static uint16_t parse_atom(parser *p) {
    uint16_t n = enter(p) ? parse_atom_kind(p) : 0;
    p->depth--;
    return n;
}

/* ---- factors ---- */

/* cm, cm^2, m/s, miles per hour: ignored after a value. */
static bool skip_units(parser *p) {
    while (p->k->kind == TOK_UNIT) {
        p->k++;
        if (accept(p, TOK_CARET) && !parse_exponent(p))
            return false;
        if (p->k->kind == TOK_SLASH && p->k[1].kind == TOK_UNIT)
            p->k++;
    }
    return true;
}

/* A degree sign never counts, in 20^\circ C its letter neither. */
static uint16_t parse_degree(parser *p, uint16_t a) {
    const math_token *k = ++p->k;
    if (k->kind == TOK_SYM && k->text.len == 1 && (k->text.s[0] == 'C' || k->text.s[0] == 'F'))
        p->k++;
    return a;
}

/* The word stands behind an integer that is the whole answer, save "x =" in front. */
static uint16_t parse_percent_word(parser *p, uint16_t a) {
    const math_token *number = p->k - 1;
    bool whole = number == p->first || (number[-1].kind == TOK_REL && number[-1].arg == REL_EQ);
    if (!whole || p->t->separated || number->kind != TOK_NUM || p->k[1].kind != TOK_END ||
        memchr(number->text.s, '.', number->text.len))
        return fail(p, "a percentage of what is no integer");
    p->k++;
    p->t->has_percent = true;
    return new_unary(p, NODE_PERCENT, 0, a);
}

static uint16_t parse_postfix(parser *p, uint16_t a) {
    switch (p->k->kind) {
    case TOK_CARET:
        p->k++;
        return new_binary(p, NODE_POW, 0, a, parse_exponent(p));
    case TOK_BANG:
        p->k++;
        return new_unary(p, NODE_FN, FN_FACTORIAL, a);
    case TOK_PERCENT:
        if (p->k->arg == 1)
            return parse_percent_word(p, a);
        if (p->k++->arg == 2 && p->t->node[a].kind != NODE_NUM)
            return a; /* a unit like others */
        if (p->t->node[a].kind == NODE_PERCENT)
            return fail(p, "a percentage of what is no number");
        if (p->t->node[a].kind == NODE_BASED)
            return a;
        if (!math_is_arithmetic(p->t, a))
            only_as_written(p, "a percentage of what is no number");
        p->t->has_percent = true;
        return new_unary(p, NODE_PERCENT, 0, a);
    case TOK_DEGREE:
        return parse_degree(p, a);
    default: /* TOK_UNIT */
        p->unit = true;
        return skip_units(p) ? a : 0;
    }
}

static bool starts_postfix(const math_token *k) {
    return k->kind == TOK_CARET || k->kind == TOK_BANG || k->kind == TOK_PERCENT ||
           k->kind == TOK_DEGREE || k->kind == TOK_UNIT;
}

static uint16_t parse_factor(parser *p) {
    uint16_t a = parse_atom(p);
    p->unit = false;
    for (int i = 0; a && starts_postfix(p->k); i++) {
        if (i == kMaxPostfixes)
            return fail(p, "nested too deeply");
        a = parse_postfix(p, a);
    }
    return a;
}

/* A sign after "*" or "/": 2 \cdot -3. */
static uint16_t parse_signed_factor(parser *p) {
    bool negative = false;
    for (; p->k->kind == TOK_MINUS; p->k++)
        negative = !negative;
    uint16_t a = parse_factor(p);
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

/* A factor without a sign before it; @before is the one that it follows. */
static uint16_t parse_juxtaposed(parser *p, uint16_t before) {
    bool bracket = p->k->kind == TOK_LPAREN;
    uint16_t f = parse_factor(p);
    if (f && is_binomial(p->t, f) && (is_whole(p->t, before) || is_binomial(p->t, before)))
        only_as_written(p, "a binomial multiplied without a sign");
    if (f && bracket && is_whole(p->t, before) && (is_whole(p->t, f) || is_whole_fraction(p->t, f)))
        p->t->juxtaposed = true;
    return f;
}

static uint16_t parse_product(parser *p) {
    chain c = {.kind = NODE_MUL};
    if (!chain_add(p, &c, parse_factor(p)))
        return 0;
    for (;;) {
        uint16_t f;
        if (accept(p, TOK_TIMES))
            f = parse_signed_factor(p);
        else if (accept(p, TOK_SLASH))
            f = new_unary(p, NODE_INV, 0, parse_signed_factor(p));
        else if (starts_factor(p))
            f = parse_juxtaposed(p, c.last);
        else
            return c.node;
        if (!chain_add(p, &c, f))
            return 0;
    }
}

static bool starts_term(const math_token *k) {
    return k->kind == TOK_PLUS || k->kind == TOK_MINUS || k->kind == TOK_PM;
}

/* Signs, then a product: - - \pm 3x. */
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
    if (signs && a && p->t->node[a].kind >= NODE_WORD)
        return fail(p, "a sign in front of what is no value");
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
    } while (starts_term(p->k));
    return c.node;
}

/* {a \over b} of single terms: of a sum the graders take the last. */
static uint16_t parse_sum(parser *p) {
    uint16_t a = parse_terms(p);
    if (!a || !accept(p, TOK_OVER))
        return a;
    uint16_t b = parse_terms(p);
    if (p->t->node[a].kind == NODE_ADD || (b && p->t->node[b].kind == NODE_ADD))
        return fail(p, "\\over with a sum");
    return new_quotient(p, a, b);
}

/* ---- sets, relations, lists ---- */

static int set_operator(const parser *p) {
    switch (p->k->kind) {
    case TOK_CUP:
        return NODE_UNION;
    case TOK_CAP:
        return NODE_INTERSECTION;
    case TOK_SETMINUS:
        return NODE_DIFFERENCE;
    case TOK_SYM:
        return starts_factor(p) ? 0 : NODE_UNION; /* a typed U */
    default:
        return 0;
    }
}

static uint16_t parse_set(parser *p) {
    chain c = {.kind = NODE_UNION};
    if (!chain_add(p, &c, parse_sum(p)))
        return 0;
    for (int op, used = 0; (op = set_operator(p)) != 0; used = op) {
        if (used && op != used)
            return fail(p, "mixed set operations");
        c.kind = (math_node_kind)op;
        p->k++;
        if (!chain_add(p, &c, parse_sum(p)))
            return 0;
    }
    return c.node;
}

static uint16_t new_copy(parser *p, uint16_t i) {
    uint16_t n = i ? new_node(p, NODE_NUM, 0) : 0;
    if (n) {
        p->t->node[n] = p->t->node[i]; /* shares the children */
        p->t->node[n].next = 0;
    }
    return n;
}

/* The third child of a relation: left - right, which is what inequalities compare. */
static bool add_difference(parser *p, uint16_t rel) {
    uint16_t left = p->t->node[rel].first, right = p->t->node[left].next;
    uint16_t minus = new_unary(p, NODE_NEG, 0, new_copy(p, right));
    p->t->node[right].next = new_binary(p, NODE_ADD, 0, new_copy(p, left), minus);
    return p->t->node[right].next != 0;
}

/* A chain of equations keeps its ends: x = 10/2 = 5 says x = 5. Other chains, 1 < x < 2, say
 * several things. */
static uint16_t parse_relation(parser *p) {
    for (; p->k == p->first && p->k->kind == TOK_REL && p->k->arg == REL_EQ; p->first++, p->k++)
        p->t->leading = true;
    chain all = {.kind = NODE_AND};
    int before = p->relations;
    uint16_t left = parse_set(p), rel = 0;
    while (left && p->k->kind == TOK_REL) {
        int op = p->k->arg;
        p->k++;
        p->unit = false;
        uint16_t right = parse_set(p);
        if (p->unit && left && p->t->node[left].kind == NODE_WORD)
            return fail(p, "a word for a name, and a unit");
        if (right && p->relations != before) /* their shared parts would multiply */
            return fail(p, "a relation within a relation");
        if (!right)
            return 0;
        if (op == REL_EQ && rel && p->t->node[rel].arg == REL_EQ) {
            int kind = p->t->node[right].kind;
            if (kind >= NODE_WORD && kind != NODE_MATRIX)
                return fail(p, "a chain of equations of what is no value");
            p->t->node[p->t->node[rel].first].next = right;
            p->t->chained = true;
        } else {
            if (rel && !add_difference(p, rel))
                return 0;
            rel = new_binary(p, NODE_REL, op, rel ? new_copy(p, left) : left, right);
            if (!chain_add(p, &all, rel))
                return 0;
        }
        left = right;
    }
    if (rel && !add_difference(p, rel))
        return 0;
    p->relations += rel != 0;
    return rel ? all.node : left;
}

/* One of "," ";" "and" ", and". A list that has semicolons has nothing else. */
static bool accept_comma(parser *p, int *semicolon) {
    bool here = p->k->arg == ';', comma = p->k->arg == 0;
    if (*semicolon >= 0 && *semicolon != here)
        return false;
    *semicolon = here;
    p->k++;
    if (comma && p->k->kind == TOK_COMMA && p->k->arg == 'a')
        p->k++;
    return true;
}

static uint16_t parse_list(parser *p) {
    int semicolon = -1; /* not known yet */
    chain c = {.kind = NODE_LIST};
    for (;;) {
        if (!chain_add(p, &c, parse_relation(p)))
            return 0;
        if (p->k->kind != TOK_COMMA)
            return c.node;
        if (!accept_comma(p, &semicolon))
            return fail(p, "commas and semicolons in one list");
    }
}

static bool mark_pm(math_tree *t, uint16_t i) {
    math_node *n = &t->node[i];
    n->pm = n->kind == NODE_PM;
    for (uint16_t c = n->first; c; c = t->node[c].next)
        n->pm |= mark_pm(t, c);
    return n->pm;
}

/* a, \pm b and a \pm b, or a list of these, have two values; elsewhere the sign has no meaning that
 * the graders agree on. */
static bool is_plain_pm(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    if (!n->pm)
        return true;
    if (n->kind == NODE_PM)
        return !math_at(t, n->first)->pm;
    bool sum = n->kind == NODE_ADD && !math_at(t, n->first)->pm;
    if (!sum && n->kind != NODE_LIST && n->kind != NODE_SET && n->kind != NODE_REL)
        return false;
    for (uint16_t c = n->first; c; c = math_at(t, c)->next)
        if (!is_plain_pm(t, c))
            return false;
    return true;
}

static bool is_numeral(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    return n->kind == NODE_NUM || (n->kind == NODE_NEG && math_at(t, n->first)->kind == NODE_NUM);
}

const char *math_parse(math_tree *out, math_tokens *t) {
    parser p = {.t = out, .k = t->tok, .first = t->tok};
    out->used = 1;
    out->root = 0;
    out->has_pm = out->has_percent = out->juxtaposed = out->chained = out->leading = false;
    out->verbatim = NULL;
    out->framed = t->wrapped || t->broken;
    out->separated = t->separated;
    bool about = accept(&p, TOK_APPROX);
    uint16_t root = parse_list(&p);
    if (about && root && (!is_numeral(out, root) || t->tok[1].kind == TOK_PLUS))
        root = fail(&p, "approximately what is no number");
    if (root && out->has_pm)
        mark_pm(out, root);
    if (root && t->broken && math_at(out, root)->kind >= NODE_WORD)
        only_as_written(&p, "a line break behind what is no value");
    if (root && out->has_pm && !is_plain_pm(out, root))
        only_as_written(&p, "\\pm within an expression");
    /* what follows the \approx of a constant is the same, rounded */
    out->rounded = p.k->kind == TOK_APPROX && !p.unit && math_is_constant(out, root);
    if (root && p.k->kind != TOK_END && !out->rounded)
        root = fail(&p, "something follows the answer");
    out->root = root;
    return root ? NULL : p.why ? p.why : "too many parts";
}

/* ---- questions about a tree ---- */

bool math_has_symbol(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    if (n->kind == NODE_SYM || (n->kind == NODE_CONST && n->arg == CONST_I))
        return true;
    for (uint16_t c = math_at(t, i)->first; c; c = math_at(t, c)->next)
        if (math_has_symbol(t, c))
            return true;
    return false;
}

static bool same_node(const math_node *n, const math_node *m) {
    if (n->kind != m->kind || n->arg != m->arg)
        return false;
    if (n->kind == NODE_NUM || n->kind == NODE_WORD)
        return n->u.text.len == m->u.text.len &&
               memcmp(n->u.text.s, m->u.text.s, n->u.text.len) == 0;
    return (n->kind != NODE_SYM && n->kind != NODE_BASED) || n->u.id == m->u.id;
}

bool math_same_tree(const math_tree *t, uint16_t i, const math_tree *u, uint16_t j) {
    while (math_at(t, i)->kind == NODE_PERCENT)
        i = math_at(t, i)->first;
    while (math_at(u, j)->kind == NODE_PERCENT)
        j = math_at(u, j)->first;
    const math_node *n = math_at(t, i), *m = math_at(u, j);
    if (!same_node(n, m))
        return false;
    uint16_t c = n->first, d = m->first;
    for (; c && d; c = math_at(t, c)->next, d = math_at(u, d)->next)
        if (!math_same_tree(t, c, u, d))
            return false;
    return !c && !d;
}

bool math_is_arithmetic(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    if (n->kind == NODE_SYM || n->kind == NODE_CONST || n->kind >= NODE_FN)
        return false;
    for (uint16_t c = n->first; c; c = math_at(t, c)->next)
        if (!math_is_arithmetic(t, c))
            return false;
    return true;
}

bool math_is_expression(const math_tree *t, uint16_t i) {
    return math_at(t, i)->kind < NODE_WORD;
}

bool math_is_constant(const math_tree *t, uint16_t i) {
    return math_is_expression(t, i) && !math_at(t, i)->pm && !math_has_symbol(t, i);
}

static bool integer_literal(math_span s, int64_t *value) {
    *value = 0;
    for (uint32_t i = 0; i < s.len; i++)
        if (s.s[i] == '.' || i == 18)
            return false;
        else
            *value = *value * 10 + (s.s[i] - '0');
    return true;
}

bool math_integer(const math_tree *t, uint16_t i, int64_t *value) {
    const math_node *n = math_at(t, i);
    int64_t a;
    switch (n->kind) {
    case NODE_NUM:
        return integer_literal(n->u.text, value);
    case NODE_NEG:
        return math_integer(t, n->first, &a) && !__builtin_sub_overflow(0, a, value);
    case NODE_ADD:
    case NODE_MUL:
        *value = n->kind == NODE_MUL;
        for (uint16_t c = n->first; c; c = math_at(t, c)->next)
            if (!math_integer(t, c, &a) ||
                (n->kind == NODE_ADD ? __builtin_add_overflow(*value, a, value)
                                     : __builtin_mul_overflow(*value, a, value)))
                return false;
        return true;
    default:
        return false;
    }
}
