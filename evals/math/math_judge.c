#include "evals/math/math_judge.h"

#include <string.h>

#include "evals/math/math_parser.h"

/* Compares the children in order. */
static bool same_children(judge *j, part g, part a) {
    g = child(g, 0);
    a = child(a, 0);
    for (; g.i && a.i; g = next(g), a = next(a))
        if (!math_judge_parts(j, g, a))
            return false;
    return !g.i && !a.i ? true : decide(j, false, "a different number of parts");
}

enum { kAngleBrackets = 4 }; /* the bit of \langle in the arg of a NODE_TUPLE */

static bool same_tuple(judge *j, part g, part a) {
    int ignored = j->truth ? kAngleBrackets : 0;
    if ((at(g)->arg | ignored) != (at(a)->arg | ignored))
        return decide(j, false, "different brackets");
    return same_children(j, g, a);
}

static bool same_word(judge *j, part g, part a) {
    math_span s = at(g)->u.text, t = at(a)->u.text;
    bool equal = s.len == t.len && memcmp(s.s, t.s, s.len) == 0;
    return equal ? decide(j, true, "the same word") : leave_undecided(j, "a different word");
}

/* Compares collections. A list may equal a set. Except with MATH_STRICT, a tuple in round brackets
 * may equal a list. */
static bool same_collection(judge *j, part g, part a) {
    if (is_kind(g, NODE_UNION) != is_kind(a, NODE_UNION))
        return leave_undecided(j, "a different kind of object");
    bool tuple = is_kind(g, NODE_TUPLE) != is_kind(a, NODE_TUPLE);
    bool list = is_kind(g, NODE_LIST) || is_kind(a, NODE_LIST);
    if (j->truth && j->ordered && at(g)->kind != at(a)->kind)
        return leave_undecided(j, "brackets around what may be one number");
    if (j->truth && at(g)->kind != at(a)->kind && (math_is_empty_set(g) || math_is_empty_set(a)))
        return decide(j, false, "the empty set and a set with members");
    if (!tuple)
        return math_judge_members(j, g, a, j->strict || j->ordered);
    part t = is_kind(g, NODE_TUPLE) ? g : a;
    if (!list || j->strict || at(t)->arg != 0)
        return leave_undecided(j, "a tuple and something else");
    if (!j->truth && math_has_repeats(j, g))
        return leave_undecided(j, "a tuple and a list with repeated members");
    return same_children(j, g, a);
}

/* Compares residue classes: 10 (mod 7) is 3 (mod 7). */
static bool same_residue(judge *j, part g, part a) {
    int64_t x, y, m, n;
    part gm = child(g, 1), am = child(a, 1);
    part gv = math_without_name(child(g, 0), false), av = math_without_name(child(a, 0), false);
    if (j->truth && math_integer(g.t, gv.i, &x) && math_integer(a.t, av.i, &y) &&
        math_integer(g.t, gm.i, &m) && math_integer(a.t, am.i, &n) && m > 0 && m == n)
        return decide(j, (x % m + m - y % m) % m == 0, "residues of the same modulus");
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
    case NODE_MOD:
        return same_residue(j, g, a);
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

enum { kSquareBrackets = 3 }; /* the arg of a NODE_TUPLE in square brackets */

static bool is_square(part p) {
    return is_kind(p, NODE_TUPLE) && at(p)->arg == kSquareBrackets;
}

/* Compares a matrix with rows in square brackets: [[1,2],[3,4]]. */
static bool same_rows(judge *j, part matrix, part tuple, bool gold_first) {
    part row = child(matrix, 0), x = child(tuple, 0);
    for (; row.i && x.i; row = next(row), x = next(x))
        if (!is_square(x) || !(gold_first ? same_children(j, row, x) : same_children(j, x, row)))
            return decide(j, false, "a different row");
    return decide(j, !row.i && !x.i, "a matrix as rows in brackets");
}

/* Compares a matrix of one column or one row with a tuple of its entries, and any matrix with a
 * bracketed list of bracketed rows. */
static bool same_vector(judge *j, part matrix, part tuple, bool gold_first) {
    part row = child(matrix, 0), x = child(tuple, 0);
    if (is_square(tuple) && is_square(x))
        return same_rows(j, matrix, tuple, gold_first);
    bool lone = !next(row).i;
    part c = lone ? child(row, 0) : row;
    for (; c.i && x.i; c = next(c), x = next(x)) {
        part entry = lone ? c : child(c, 0);
        if ((!lone && next(entry).i) ||
            !(gold_first ? math_judge_parts(j, entry, x) : math_judge_parts(j, x, entry)))
            return decide(j, false, "a different vector");
    }
    int square = at(tuple)->arg & 3; /* [1,2] is an interval */
    bool vector = square == 0 || (square == 3 && child(tuple, 2).i);
    return decide(j, !c.i && !x.i && vector, "a vector as a tuple");
}

static bool is_base_ten(part p) {
    static const math_token ten = {.kind = TOK_NUM, .text = {"10", 2}};
    return is_kind(p, NODE_BASED) && at(p)->u.id == math_hash_token(kMathHashSeed, &ten);
}

bool math_judge_parts(judge *j, part g, part a) {
    if (--j->work < 0)
        return leave_undecided(j, math_undecided(EVAL_COSTLY));
    if (is_relation(g) != is_relation(a)) {
        g = math_without_name(g, false);
        a = math_without_name(a, false);
    }
    if (j->truth && is_kind(a, NODE_MOD) && is_expression(g)) /* 113 (mod 1000) */
        a = child(a, 0);
    if (is_expression(g) && is_expression(a))
        return math_judge_values(j, g, a);
    bool equal;
    if (j->truth && math_judge_intervals(j, g, a, &equal))
        return equal;
    if (at(g)->kind == at(a)->kind)
        return same_kind(j, g, a);
    if (j->truth && is_kind(g, NODE_MATRIX) && is_kind(a, NODE_TUPLE))
        return same_vector(j, g, a, true);
    if (j->truth && is_kind(a, NODE_MATRIX) && is_kind(g, NODE_TUPLE))
        return same_vector(j, a, g, false);
    if (j->truth && is_kind(g, NODE_BASED) &&
        is_kind(a, NODE_NUM)) /* the question names the base */
        return decide(j, same_tree(child(g, 0), a), "a numeral without its base");
    if (j->truth && is_expression(g) && is_base_ten(a))
        return math_judge_values(j, g, child(a, 0));
    return leave_undecided(j, "a different kind of object");
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
 * equals at most the same text after the sign. */
static bool same_after_sign(judge *j, part g, part a) {
    part number = a.t->leading ? a : g, other = a.t->leading ? g : a;
    bool numeral = math_is_numeral(number);
    bool value = math_is_numeral(other) || math_is_arithmetic(other.t, other.i);
    if (numeral && number.t->plain && value)
        return math_judge_values(j, g, a);
    return !numeral && !is_relation(g) && g.t->times == a.t->times && same_tree(g, a)
               ? decide(j, true, "written the same way")
               : leave_undecided(j, "an equation without its left side");
}

/* The tuple of a named point: A(1,2). */
static part without_point_name(part p) {
    part name = child(p, 0), tuple = is_kind(p, NODE_MUL) ? next(name) : p;
    bool named = is_kind(p, NODE_MUL) && is_kind(name, NODE_SYM) && is_kind(tuple, NODE_TUPLE);
    return named && !next(tuple).i ? tuple : p;
}

/* The right side of an equation whose left side equals the gold, such as
 * \frac{\sin 2x}{\sin x} = 2\cos x; otherwise @a. The caller compares the right side too. */
static part without_equal_side(judge *j, part g, part a) {
    if (!is_expression(g) || !is_kind(a, NODE_REL) || at(a)->arg != REL_EQ || a.t->chained)
        return a;
    part left = child(a, 0), right = child(a, 1);
    bool values = is_expression(left) && !is_kind(left, NODE_SYM) && is_expression(right);
    return values && math_judge_values(j, g, left) ? right : a;
}

bool math_judge_answer(judge *j) {
    part gold = {&j->gold, j->gold.root, 1}, answer = {&j->answer, j->answer.root, 1};
    part g = gold, a = answer;
    if (is_relation(g) != is_relation(a)) {
        g = math_without_name(g, false);
        a = math_without_name(a, !j->strict);
    }
    if (j->truth)
        a = without_equal_side(j, g, without_point_name(a));
    j->named = (g.i != gold.i && !g.t->short_name) || (a.i != answer.i && !a.t->short_name);
    if (g.t->leading || a.t->leading)
        return same_after_sign(j, g, a);
    if (!j->strict && is_single(g) && is_kind(a, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, g, a, true);
    if (!j->strict && is_single(a) && is_kind(g, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, a, g, false);
    bool equal;
    if (j->truth && math_judge_intervals(j, g, a, &equal))
        return equal;
    return is_collection(g) || is_collection(a) ? same_collection(j, g, a)
                                                : math_judge_parts(j, g, a);
}
