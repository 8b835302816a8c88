#include "evals/math/math_tree.h"

#include <string.h>

bool math_has_symbol(const math_tree *t, uint16_t i) {
    const math_node *n = math_at(t, i);
    if (n->kind == NODE_SYM || (n->kind == NODE_CONST && n->arg == CONST_I && !t->truth))
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
