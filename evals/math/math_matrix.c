/* Applies operations to matrices and tuples for the parser: a scalar factor, a minus sign, a
 * transpose. */
#include "evals/math/math_parser.h"
#include "evals/math/math_spelling.h"

enum { kMaxCells = 64 };

static bool is_matrix(const parser *p, uint16_t i) {
    return p->t->node[i].kind == NODE_MATRIX;
}

/* The product of an entry and the factors of @product except @whole. */
static uint16_t scaled_entry(parser *p, uint16_t product, uint16_t whole, uint16_t entry) {
    chain c = {.kind = NODE_MUL};
    for (uint16_t f = p->t->node[product].first; f; f = p->t->node[f].next)
        if (!chain_add(p, &c, new_copy(p, f == whole ? entry : f)))
            return 0;
    return c.node;
}

/* Replaces each entry of a row or tuple by scaled_entry(), or by its negative if @product is 0. */
static bool scale_row(parser *p, uint16_t product, uint16_t whole, uint16_t row) {
    uint16_t before = 0;
    for (uint16_t entry = p->t->node[row].first, next; entry; entry = next) {
        next = p->t->node[entry].next;
        uint16_t made = product ? scaled_entry(p, product, whole, entry)
                                : new_unary(p, NODE_NEG, 0, new_copy(p, entry));
        if (!made)
            return false;
        *(before ? &p->t->node[before].next : &p->t->node[row].first) = made;
        p->t->node[made].next = next;
        before = made;
    }
    return true;
}

static uint16_t scale_whole(parser *p, uint16_t product, uint16_t whole) {
    uint16_t n = new_copy(p, whole);
    if (!n)
        return 0;
    if (!is_matrix(p, n))
        return scale_row(p, product, whole, n) ? n : 0;
    for (uint16_t row = p->t->node[n].first; row; row = p->t->node[row].next)
        if (!scale_row(p, product, whole, row))
            return 0;
    return n;
}

uint16_t math_scale(parser *p, uint16_t product) {
    uint16_t whole = 0;
    const math_node *n = math_at(p->t, product);
    if (!p->t->truth || n->kind != NODE_MUL)
        return product;
    for (uint16_t f = n->first; f; f = p->t->node[f].next) {
        int kind = p->t->node[f].kind;
        if ((kind == NODE_MATRIX || kind == NODE_TUPLE) && !whole)
            whole = f;
        else if (kind >= NODE_WORD)
            return product;
    }
    if (!whole)
        return product;
    for (uint16_t f = n->first; f && !is_matrix(p, whole); f = p->t->node[f].next)
        if (f != whole && !math_is_constant(p->t, f)) /* A(1,2) is a named point */
            return product;
    return scale_whole(p, product, whole);
}

uint16_t math_negate_matrix(parser *p, uint16_t matrix) {
    return scale_whole(p, 0, matrix);
}

/* True if the next tokens are ^T, ^{T} or ^\top. Skips them. */
static bool accept_transpose(parser *p) {
    math_token *k = p->k + 1;
    bool braced = k->kind == TOK_LBRACE;
    k += braced;
    bool named = k->kind == TOK_SYM && ((k->text.len == 1 && *k->text.s == 'T') ||
                                        span_is(k->text.s, k->text.len, "top"));
    if (p->k->kind != TOK_CARET || !named || (braced && k[1].kind != TOK_RBRACE))
        return false;
    p->k = k + 1 + braced;
    return true;
}

uint16_t math_parse_transpose(parser *p, uint16_t matrix) {
    uint16_t cell[kMaxCells], row = p->t->node[matrix].first;
    size_t rows = 0, columns = 0, count = 0;
    bool tuple = p->t->node[matrix].kind == NODE_TUPLE;
    if (!p->t->truth || (!tuple && !is_matrix(p, matrix)) || !accept_transpose(p))
        return 0;
    if (tuple) { /* a column */
        p->t->node[matrix].arg = 0;
        return matrix;
    }
    for (; row; row = p->t->node[row].next, rows++) {
        size_t before = count;
        for (uint16_t c = p->t->node[row].first; c; c = p->t->node[c].next) {
            if (count == kMaxCells)
                return fail(p, "a matrix that is too large");
            cell[count++] = c;
        }
        columns = rows == 0 ? count : columns;
        if (count - before != columns)
            return fail(p, "a matrix whose rows differ in length");
    }
    uint16_t n = new_node(p, NODE_MATRIX, 0), last = 0;
    for (size_t j = 0; j < columns; j++) {
        uint16_t made = new_node(p, NODE_LIST, 0), before = 0;
        if (!n || !made)
            return 0;
        for (size_t i = 0; i < rows; i++) {
            uint16_t c = new_copy(p, cell[i * columns + j]);
            if (!c)
                return 0;
            *(before ? &p->t->node[before].next : &p->t->node[made].first) = c;
            before = c;
        }
        *(last ? &p->t->node[last].next : &p->t->node[n].first) = made;
        last = made;
    }
    return n;
}
