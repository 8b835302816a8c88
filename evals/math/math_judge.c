#include "evals/math/math_judge.h"

#include <string.h>

/* Compares the children in order. */
static bool same_children(judge *j, part g, part a) {
    g = child(g, 0);
    a = child(a, 0);
    for (; g.i && a.i; g = next(g), a = next(a))
        if (!math_judge_parts(j, g, a))
            return false;
    return !g.i && !a.i ? true : decide(j, false, "a different number of parts");
}

static bool same_tuple(judge *j, part g, part a) {
    if (at(g)->arg != at(a)->arg)
        return decide(j, false, "different brackets");
    return same_children(j, g, a);
}

static bool same_word(judge *j, part g, part a) {
    math_span s = at(g)->u.text, t = at(a)->u.text;
    bool equal = s.len == t.len && memcmp(s.s, t.s, s.len) == 0;
    return decide(j, equal, equal ? "the same word" : "a different word");
}

/* Compares collections. A list may equal a set. With MATH_FIELD, a tuple in round brackets may
 * equal a list. */
static bool same_collection(judge *j, part g, part a) {
    if (is_kind(g, NODE_UNION) != is_kind(a, NODE_UNION))
        return decide(j, false, "a different kind of object");
    bool tuple = is_kind(g, NODE_TUPLE) != is_kind(a, NODE_TUPLE);
    bool list = is_kind(g, NODE_LIST) || is_kind(a, NODE_LIST);
    if (!tuple)
        return math_judge_members(j, g, a, j->strict || j->ordered);
    part t = is_kind(g, NODE_TUPLE) ? g : a;
    if (!list || j->strict || at(t)->arg != 0)
        return decide(j, false, "a tuple and something else");
    if (math_has_repeats(j, g))
        return decide(j, false, "a tuple and a list with repeated members");
    return same_children(j, g, a);
}

static bool same_kind(judge *j, part g, part a) {
    switch (at(g)->kind) {
    case NODE_TUPLE:
        return same_tuple(j, g, a);
    case NODE_LIST: /* inside a matrix: a row */
    case NODE_INTERSECTION:
    case NODE_DIFFERENCE:
        return same_children(j, g, a);
    case NODE_SET:
    case NODE_UNION:
        return math_judge_members(j, g, a, j->strict);
    case NODE_AND:
        return math_judge_members(j, g, a, true);
    case NODE_MATRIX:
        return same_children(j, g, a);
    case NODE_REL:
        return math_judge_relations(j, g, a);
    case NODE_BASED:
        if (at(g)->u.id != at(a)->u.id)
            return decide(j, false, "a different base");
        return math_judge_parts(j, child(g, 0), child(a, 0));
    default:
        return same_word(j, g, a);
    }
}

bool math_judge_parts(judge *j, part g, part a) {
    if (--j->work < 0)
        return decide(j, false, math_undecided(EVAL_COSTLY));
    if (is_relation(g) != is_relation(a)) {
        g = math_without_name(g, false);
        a = math_without_name(a, false);
    }
    if (is_expression(g) && is_expression(a))
        return math_judge_values(j, g, a);
    if (at(g)->kind == at(a)->kind)
        return same_kind(j, g, a);
    return decide(j, false, "a different kind of object");
}

static bool is_single(part p) {
    return is_expression(p) || is_kind(p, NODE_MATRIX);
}

/* Compares a single value with a list of repetitions: "7 or 7" equals 7. */
static bool same_repeated(judge *j, part one, part list, bool gold_first) {
    for (part m = child(list, 0); m.i; m = next(m))
        if (!is_single(m) ||
            !(gold_first ? math_judge_parts(j, one, m) : math_judge_parts(j, m, one)))
            return decide(j, false, "a value and a list");
    return decide(j, true, "the same value, repeated");
}

static bool is_collection(part p) {
    return is_kind(p, NODE_LIST) || is_kind(p, NODE_SET) || p.t->has_pm;
}

/* Compares equations without a left side. For the public graders, "= 5" is a number, and "= x + 1"
 * equals only the same text after the sign. */
static bool same_after_sign(judge *j, part g, part a) {
    part number = a.t->leading ? a : g, other = a.t->leading ? g : a;
    bool numeral = math_is_numeral(number);
    bool value = math_is_numeral(other) || math_is_arithmetic(other.t, other.i);
    if (numeral && number.t->plain && value)
        return math_judge_values(j, g, a);
    return !numeral && !is_relation(g) && g.t->times == a.t->times && same_tree(g, a)
               ? decide(j, true, "written the same way")
               : decide(j, false, "an equation without its left side");
}

bool math_judge_answer(judge *j) {
    part gold = {&j->gold, j->gold.root, 1}, answer = {&j->answer, j->answer.root, 1};
    part g = gold, a = answer;
    if (is_relation(g) != is_relation(a)) {
        g = math_without_name(g, false);
        a = math_without_name(a, !j->strict);
    }
    j->named = (g.i != gold.i && !g.t->short_name) || (a.i != answer.i && !a.t->short_name);
    if (g.t->leading || a.t->leading)
        return same_after_sign(j, g, a);
    if (!j->strict && is_single(g) && is_kind(a, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, g, a, true);
    if (!j->strict && is_single(a) && is_kind(g, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, a, g, false);
    return is_collection(g) || is_collection(a) ? same_collection(j, g, a)
                                                : math_judge_parts(j, g, a);
}
