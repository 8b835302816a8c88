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
#include "evals/math/math_parser.h"

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

/* True if @i is the absolute value of a symbol, as |x|. */
static bool is_absolute_symbol(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    return n->kind == NODE_FN && n->arg == FN_ABS && math_at(t, n->first)->kind == NODE_SYM;
}

/* For MATH_TRUTH: adds a fourth child to a relation such as |x| < a or a > |x|. It is -a, the other
 * end of the interval. */
static bool add_opposite(parser *p, uint16_t rel) {
    uint16_t left = p->t->node[rel].first, right = p->t->node[left].next;
    bool swapped = is_absolute_symbol(p->t, right);
    if (!p->t->truth || (!swapped && !is_absolute_symbol(p->t, left)))
        return true;
    uint16_t difference = p->t->node[right].next;
    uint16_t opposite = new_unary(p, NODE_NEG, 0, new_copy(p, swapped ? left : right));
    p->t->node[difference].next = opposite;
    return opposite != 0;
}

/* Adds the third child of a relation, left - right. math_judge_relations() may compare two
 * equations by it; for inequalities it is not used. */
static bool add_difference(parser *p, uint16_t rel) {
    uint16_t left = p->t->node[rel].first, right = p->t->node[left].next;
    uint16_t minus = new_unary(p, NODE_NEG, 0, new_copy(p, right));
    p->t->node[right].next = new_binary(p, NODE_ADD, 0, new_copy(p, left), minus);
    return p->t->node[right].next != 0 && add_opposite(p, rel);
}

/* Skips the sign of an equation without a left side: "= 5". */
static void skip_leading_signs(parser *p) {
    for (; p->k == p->first && p->k->kind == TOK_REL && p->k->arg == REL_EQ; p->first++, p->k++)
        p->t->leading = !p->t->truth;
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
        if (p->unit && left && p->t->node[left].kind == NODE_WORD && !p->t->truth)
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

/* Accepts one of "," ";" "and" ", and". A list with semicolons may have no other separator, except
 * for MATH_TRUTH, which reads them as commas. */
static bool accept_comma(parser *p, int *semicolon) {
    bool here = p->k->arg == ';' && !p->t->truth, comma = p->k->arg == 0;
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

/* Parses the modulus of 3 \pmod 7 or 3 \text{ mod } 7. */
static uint16_t parse_modulus(parser *p, uint16_t a) {
    p->k++;
    return new_binary(p, NODE_MOD, 0, a, math_parse_atom(p));
}

static void clear(math_tree *out, const math_tokens *t) {
    out->used = 1;
    out->root = 0;
    out->has_pm = out->has_percent = out->juxtaposed = out->chained = out->leading = false;
    out->times = out->plain = false;
    out->truth = t->truth;
    out->verbatim = NULL;
    out->framed = t->wrapped || t->broken;
    out->separated = t->separated;
    out->short_name = math_is_short_naming(t);
}

/* Parses the list, and notes what only some policies accept. */
static uint16_t parse_values(parser *p, const math_tokens *t) {
    math_tree *out = p->t;
    bool about = accept(p, TOK_APPROX);
    uint16_t root = math_parse_list(p);
    if (about && root && (!is_numeral(out, root) || t->tok[1].kind == TOK_PLUS))
        root = fail(p, "an approximation that is not a number");
    if (root && out->has_pm)
        mark_pm(out, root);
    if (root && t->broken && math_at(out, root)->kind >= NODE_WORD)
        only_as_written_in_public(p, "a line break after something that is not a value");
    if (root && out->has_pm && !is_plain_pm(out, root))
        only_as_written_in_public(p, "\\pm within an expression");
    return root;
}

const char *math_parse(math_tree *out, math_tokens *t) {
    parser p = {.t = out, .k = t->tok, .first = t->tok, .angle = t->radians};
    clear(out, t);
    uint16_t root = parse_values(&p, t);
    /* the value after the \approx of a constant is the same, rounded */
    bool exact = root && math_is_constant(out, root) && !p.unit && !out->leading && !t->broken;
    if (out->truth && root && p.k->kind == TOK_APPROX && math_is_expression(out, root) && !exact) {
        p.k++; /* x \approx 5 */
        root = math_parse_list(&p);
    }
    exact |= out->truth;
    out->rounded = p.k->kind == TOK_APPROX && exact && is_rounding(p.k);
    if (root && p.k->kind == TOK_MOD)
        root = parse_modulus(&p, root);
    if (root && p.k->kind != TOK_END && !out->rounded)
        root = fail(&p, "something follows the answer");
    out->root = root;
    return root ? NULL : p.why ? p.why : "too many parts";
}
