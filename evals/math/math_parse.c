/* Recursive descent parser; operators with the lowest precedence come first:
 *
 *   list      relation { "," relation }
 *   relation  set { ("=" | "<" | "\in" ...) set }
 *   set       sum { ("\cup" | "\cap" | "\setminus") sum }
 *   sum       terms [ "\over" terms ]
 *   terms     { "+" | "-" | "\pm" } product { ("+" | "-" | "\pm") product }
 *   product   factor { ["*" | "/"] factor }      without a sign: multiplication
 *   factor    atom { "^" argument | "!" | "%" | degree | unit }
 *
 * Every recursion passes through math_parse_atom() or math_parse_exponent(), which count the
 * depth. */
#include <string.h>

#include "evals/math/math_parser.h"

enum { kMaxPostfixes = 8 }; /* per factor: x!!!! deepens the tree without nesting the source */

/* ---- factors ---- */

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

/* A degree sign is ignored, and so is the letter in 20^\circ C. */
static uint16_t parse_degree(parser *p, uint16_t a) {
    const math_token *k = ++p->k;
    if (k->kind == TOK_SYM && k->text.len == 1 && (k->text.s[0] == 'C' || k->text.s[0] == 'F'))
        p->k++;
    return a;
}

/* Parses the word "percent". It must follow an integer that is the whole answer, or the whole right
 * side of an equation ("x = 5 percent"). */
static uint16_t parse_percent_word(parser *p, uint16_t a) {
    const math_token *number = p->k - 1;
    bool whole = number == p->first || (number[-1].kind == TOK_REL && number[-1].arg == REL_EQ);
    if (!whole || p->t->separated || number->kind != TOK_NUM || p->k[1].kind != TOK_END ||
        memchr(number->text.s, '.', number->text.len))
        return fail(p, "a percentage of something that is not an integer");
    p->k++;
    p->t->has_percent = true;
    return new_unary(p, NODE_PERCENT, 0, a);
}

static uint16_t parse_postfix(parser *p, uint16_t a) {
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
        if (p->k++->arg == 2 && p->t->node[a].kind != NODE_NUM)
            return a; /* "percent" in a \text is ignored like a unit, except after a number */
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
        only_as_written(p, "a binomial multiplied without a sign");
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
            return c.node;
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

/* Parses a sum, or {a \over b} with single terms. With sums it fails: the public graders use only
 * the last term of a sum. */
uint16_t math_parse_sum(parser *p) {
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
        return math_starts_factor(p) ? 0 : NODE_UNION; /* the letter U as a union sign */
    default:
        return 0;
    }
}

static uint16_t parse_set(parser *p) {
    chain c = {.kind = NODE_UNION};
    if (!chain_add(p, &c, math_parse_sum(p)))
        return 0;
    for (int op, used = 0; (op = set_operator(p)) != 0; used = op) {
        if (used && op != used)
            return fail(p, "mixed set operations");
        c.kind = (math_node_kind)op;
        p->k++;
        if (!chain_add(p, &c, math_parse_sum(p)))
            return 0;
    }
    return c.node;
}

static uint16_t new_copy(parser *p, uint16_t i) {
    uint16_t n = i ? new_node(p, NODE_NUM, 0) : 0;
    if (n) {
        p->t->node[n] = p->t->node[i]; /* the copy shares the children */
        p->t->node[n].next = 0;
    }
    return n;
}

/* Adds the third child of a relation, left - right. Two equations are compared by it if their sides
 * differ; for inequalities it is not used. */
static bool add_difference(parser *p, uint16_t rel) {
    uint16_t left = p->t->node[rel].first, right = p->t->node[left].next;
    uint16_t minus = new_unary(p, NODE_NEG, 0, new_copy(p, right));
    p->t->node[right].next = new_binary(p, NODE_ADD, 0, new_copy(p, left), minus);
    return p->t->node[right].next != 0;
}

/* Skips the sign of an equation without a left side: "= 5". */
static void skip_leading_signs(parser *p) {
    for (; p->k == p->first && p->k->kind == TOK_REL && p->k->arg == REL_EQ; p->first++, p->k++)
        p->t->leading = true;
    if (p->t->leading && p->k == p->first)
        p->t->plain = p->k[p->k->kind == TOK_MINUS].kind == TOK_NUM;
}

/* Parses a relation or a chain of them. A chain of equations keeps only its ends: x = 10/2 = 5
 * becomes x = 5. Other chains, such as 1 < x < 2, keep all relations. */
static uint16_t parse_relation(parser *p) {
    skip_leading_signs(p);
    chain all = {.kind = NODE_AND};
    int before = p->relations;
    uint16_t left = parse_set(p), rel = 0;
    while (left && p->k->kind == TOK_REL) {
        int op = p->k->arg;
        p->k++;
        p->unit = false;
        uint16_t right = parse_set(p);
        if (p->unit && left && p->t->node[left].kind == NODE_WORD)
            return fail(p, "a word as a name, with a unit");
        if (right && p->relations != before) /* the relations of a chain share parts, which nested
                                                relations would multiply */
            return fail(p, "a relation within a relation");
        if (!right)
            return 0;
        if (op == REL_EQ && rel && p->t->node[rel].arg == REL_EQ) {
            int kind = p->t->node[right].kind;
            if (kind >= NODE_WORD && kind != NODE_MATRIX)
                return fail(p, "a chain of equations whose parts are not values");
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

/* Accepts one of "," ";" "and" ", and". A list with semicolons may have no other separator. */
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

uint16_t math_parse_list(parser *p) {
    int semicolon = -1; /* not known yet */
    chain c = {.kind = NODE_LIST};
    for (;;) {
        if (!chain_add(p, &c, parse_relation(p)))
            return 0;
        if (p->k->kind != TOK_COMMA) {
            if (semicolon >= 0)
                p->t->node[c.node].arg = (int16_t)semicolon;
            return c.node;
        }
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

/* True for an expression without \pm, for \pm b and a \pm b, which have two values, and for lists,
 * sets and relations of these. In other places the public graders do not agree on a meaning. */
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

/* True if the tokens after \approx are a value and not a sentence: no relation, no full stop,
 * nothing incomplete. */
static bool is_rounding(const math_token *k) {
    for (; k->kind != TOK_END; k++)
        if (k->kind == TOK_REL || k->kind == TOK_POINT || k->kind == TOK_DOTS ||
            (k->kind == TOK_COMMA && k[1].kind == TOK_END))
            return false;
    return true;
}

const char *math_parse(math_tree *out, math_tokens *t) {
    parser p = {.t = out, .k = t->tok, .first = t->tok};
    out->used = 1;
    out->root = 0;
    out->has_pm = out->has_percent = out->juxtaposed = out->chained = out->leading = false;
    out->times = out->plain = false;
    out->verbatim = NULL;
    out->framed = t->wrapped || t->broken;
    out->separated = t->separated;
    out->short_name = math_is_short_naming(t);
    bool about = accept(&p, TOK_APPROX);
    uint16_t root = math_parse_list(&p);
    if (about && root && (!is_numeral(out, root) || t->tok[1].kind == TOK_PLUS))
        root = fail(&p, "an approximation that is not a number");
    if (root && out->has_pm)
        mark_pm(out, root);
    if (root && t->broken && math_at(out, root)->kind >= NODE_WORD)
        only_as_written(&p, "a line break after something that is not a value");
    if (root && out->has_pm && !is_plain_pm(out, root))
        only_as_written(&p, "\\pm within an expression");
    /* the value after the \approx of a constant is the same, rounded */
    out->rounded = p.k->kind == TOK_APPROX && !p.unit && math_is_constant(out, root) &&
                   !out->leading && !t->broken && is_rounding(p.k);
    if (root && p.k->kind != TOK_END && !out->rounded)
        root = fail(&p, "something follows the answer");
    out->root = root;
    return root ? NULL : p.why ? p.why : "too many parts";
}
