/* Parses brackets of all kinds, and matrices. */
#include <string.h>

#include "evals/math/math_parser.h"

/* Parses the content of ( ), [ ] or \langle \rangle. A single item is returned without brackets. */
uint16_t math_parse_bracketed(parser *p) {
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
    } else if (p->t->truth && node->kind == NODE_NUM && p->k->kind == TOK_UNDERSCORE) {
        return math_parse_base(p, n);
    } else if (p->t->truth) {
        return n;
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

uint16_t math_parse_group(parser *p) {
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
            n = fail_in_public(p, n, "a unit in brackets");
        only_as_written_in_public(p, "a unit within an expression");
    }
    if (!n || !expect(p, TOK_RBRACE, n))
        return 0;
    bool based = p->t->truth && p->t->node[n].kind == NODE_NUM && p->k->kind == TOK_UNDERSCORE;
    return based ? math_parse_base(p, n) : n; /* {204}_{5} */
}

/* For MATH_TRUTH: skips the x of \{x \mid x > 3\}, and the \mathbb{R} in \{x \in \mathbb{R} : x >
 * 3\}. @p->k is after the brace. */
static bool skip_variable(parser *p) {
    const math_token *k = p->k;
    if (!p->t->truth || k->kind != TOK_SYM)
        return false;
    k++;
    if (k->kind == TOK_REL && k->arg == REL_IN)
        while (k->kind != TOK_BAR && k->kind != TOK_COLON && k->kind != TOK_RSET &&
               k->kind != TOK_END)
            k++;
    if (k->kind != TOK_BAR && k->kind != TOK_COLON)
        return false;
    p->k += k + 1 - p->k;
    return true;
}

uint16_t math_parse_braced_set(parser *p) {
    p->k++;
    if (skip_variable(p)) {
        uint16_t condition = math_parse_list(p);
        return condition ? expect(p, TOK_RSET, condition) : 0;
    }
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
        n = fail_in_public(p, n, "a unit in brackets");
    return n ? expect(p, TOK_RSET, n) : 0;
}

uint16_t math_parse_absolute(parser *p) {
    p->k++;
    p->bars++;
    p->unit = false;
    uint16_t n = math_parse_sum(p);
    p->bars--;
    if (p->unit || p->t->separated)
        n = fail_in_public(p, n, "a unit or a separator between bars");
    return n ? expect(p, TOK_BAR, new_unary(p, NODE_FN, FN_ABS, n)) : 0;
}

uint16_t math_parse_rounding(parser *p) {
    int fn = p->k->arg;
    p->k++;
    uint16_t n = math_parse_sum(p);
    if (n && p->k->arg != fn)
        return fail(p, "unbalanced brackets");
    return n ? expect(p, TOK_RFLOOR, new_unary(p, NODE_FN, fn, n)) : 0;
}

static bool text_is(math_span s, const char *name) {
    return s.len == strlen(name) && memcmp(s.s, name, s.len) == 0;
}

/* Parses rows of cells up to \end. Each row is a list node, also if it has one cell. */
uint16_t math_parse_matrix(parser *p) {
    math_token *name = p->k++;
    bool array = text_is(name->text, "array");
    if (!array && !text_is(name->text, "pmatrix") && !text_is(name->text, "bmatrix") &&
        !text_is(name->text, "matrix") && !text_is(name->text, "smallmatrix"))
        return fail(p, "an environment that is not a matrix");
    uint64_t columns = 0;
    if (array && (p->k->kind != TOK_LBRACE || !math_parse_subscript(p, &columns)))
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
