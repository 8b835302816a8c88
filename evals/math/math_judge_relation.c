#include "evals/math/math_judge.h"

static int flipped(int rel) {
    switch (rel) {
    case REL_LT:
        return REL_GT;
    case REL_LE:
        return REL_GE;
    case REL_GT:
        return REL_LT;
    case REL_GE:
        return REL_LE;
    default:
        return rel;
    }
}

/* True if an equation is solved, as x = 20. */
static bool is_solved(part p) {
    part right = child(p, 1);
    return is_kind(child(p, 0), NODE_SYM) && math_is_constant(right.t, right.i);
}

/* True if one name is a symbol and the other a function of a symbol: y and f(x). */
static bool names_function(part g, part a) {
    part symbol = is_kind(g, NODE_SYM) ? g : a, call = is_kind(g, NODE_SYM) ? a : g;
    part second = child(call, 1);
    return is_kind(symbol, NODE_SYM) && is_kind(call, NODE_MUL) &&
           is_kind(child(call, 0), NODE_SYM) && is_kind(second, NODE_SYM) && !next(second).i;
}

/* Compares relations side by side, also with exchanged sides. With MATH_TRUTH, y = 2x is also
 * f(x) = 2x. */
static bool same_sides(judge *j, part g, part a) {
    int rg = at(g)->arg, ra = at(a)->arg;
    part left = child(a, 0), right = child(a, 1);
    if (rg == ra && math_judge_parts(j, child(g, 0), left) &&
        math_judge_parts(j, child(g, 1), right))
        return true;
    if (rg != REL_IN && rg == flipped(ra) && math_judge_parts(j, child(g, 0), right) &&
        math_judge_parts(j, child(g, 1), left))
        return true;
    return j->truth && rg == REL_EQ && ra == REL_EQ && names_function(child(g, 0), left) &&
           math_judge_parts(j, child(g, 1), right);
}

/* Compares relations by their sides. Two equations with symbols that are not members of a list may
 * also match if their differences (left side - right side) are multiples of each other. If one of
 * them is solved, such as x = 20, the factor must be 1 or -1, because no public grader accepts
 * 2x = 40 for it. */
bool math_judge_relations(judge *j, part g, part a) {
    if (g.t->chained || a.t->chained) /* the middle parts of the chain were dropped */
        return leave_undecided(j, "a chain of equations");
    if (same_sides(j, g, a))
        return true;
    part dg = child(g, 2), da = child(a, 2);
    if (j->listed || a.t->juxtaposed || g.t->verbatim || a.t->verbatim || at(g)->arg != REL_EQ ||
        at(a)->arg != REL_EQ || !math_has_symbol(dg.t, dg.i) || !math_has_symbol(da.t, da.i))
        return leave_undecided(j, "a different relation");
    math_match kind = is_solved(g) || is_solved(a) ? MATCH_SIGNED : MATCH_MULTIPLE;
    math_reading x = reading(j, dg, true), y = reading(j, da, true);
    bool equal = false;
    math_eval_status st = math_numeric_match(&x, dg.i, &y, da.i, kind, &equal);
    if (st != EVAL_OK)
        return leave_undecided(j, math_undecided(st));
    return decide(j, equal, equal ? "the same relation" : "a different relation");
}

/* True if a left side is a name. A symbol always is. If the right side is an expression, so is a
 * product of symbols such as f(x); otherwise, a tuple of symbols such as (x,y). */
static bool is_name(part p, bool expression) {
    if (is_kind(p, NODE_SYM))
        return true;
    if (!is_kind(p, expression ? NODE_MUL : NODE_TUPLE))
        return false;
    for (p = child(p, 0); p.i; p = next(p))
        if (!is_kind(p, NODE_SYM))
            return false;
    return true;
}

/* math_without_name() for MATH_TRUTH. The left side of an equation may be anything if the right
 * side is no expression, has a \pm, or is a constant and @any is set. Otherwise it must be a word
 * or a name. */
static part without_any_name(part p, bool any) {
    part left = child(p, 0), right = child(p, 1);
    bool value =
        !is_expression(right) || (any && math_is_constant(right.t, right.i)) || at(right)->pm;
    bool named = is_kind(left, NODE_WORD) || is_name(left, is_expression(right));
    bool equation = at(p)->arg == REL_EQ && (value || named);
    bool member = at(p)->arg == REL_IN && named && !is_expression(right);
    return equation || member ? right : p;
}

part math_without_name(part p, bool any) {
    if (!is_kind(p, NODE_REL))
        return p;
    if (p.t->truth)
        return without_any_name(p, any);
    part left = child(p, 0), right = child(p, 1);
    bool based = is_kind(right, NODE_BASED);
    bool named = is_name(left, (based || is_expression(right)) && !at(right)->pm) &&
                 !is_kind(right, NODE_WORD);
    bool alike = is_expression(right) && !at(right)->pm && same_tree(left, right); /* such as i =
                                                                                      i */
    bool constant = math_is_constant(right.t, right.i) || alike;
    if ((at(p)->arg == REL_EQ && (named || (any && constant))) ||
        (at(p)->arg == REL_IN && named && !is_expression(right) && !is_kind(right, NODE_MATRIX)))
        return right;
    return p;
}
