#include "evals/math/math_judge.h"

enum { kMaxItems = 64 }; /* members of a list or set; matching two of them is quadratic */

/* Stores the members of a list, set, union or chain, or another part itself; a part with \pm counts
 * as two. Returns their number; -1 if there are too many. */
static int members(part p, part *out) {
    bool many = is_kind(p, NODE_LIST) || is_kind(p, NODE_SET) || is_kind(p, NODE_UNION) ||
                is_kind(p, NODE_AND);
    int n = 0;
    for (part c = many ? child(p, 0) : p; c.i; c = next(c)) {
        bool both = at(c)->pm;
        if (n + 2 > kMaxItems)
            return -1;
        if (both)
            out[n++] = (part){c.t, c.i, -1};
        out[n++] = c;
        if (!many)
            break;
    }
    return n;
}

static bool are_numerals(const part *p, int n) {
    while (n > 0 && math_is_numeral(p[n - 1]))
        n--;
    return n == 0;
}

static bool same_in_order(judge *j, const part *g, const part *a, int n) {
    if (j->ordered && are_numerals(g, n) != are_numerals(a, n)) /* a list of numerals such as 61,328
                                                                   may also be one number; 61, 328+0
                                                                   may not */
        return leave_undecided(j, "an expression in a list that may be one number");
    for (int k = 0; k < n; k++)
        if (!math_judge_parts(j, g[k], a[k]))
            return false;
    return true;
}

/* Compares as multisets. Equality is transitive, so each member may be paired with any equal
 * one. */
static bool same_in_any_order(judge *j, const part *g, part *a, int n) {
    for (int k = 0; k < n; k++) {
        int m = k;
        while (m < n && !math_judge_parts(j, g[k], a[m]))
            m++;
        if (m == n)
            return decide(j, false, "a member without an equal one");
        part partner = a[m];
        a[m] = a[k];
        a[k] = partner;
    }
    return true;
}

/* The first member. In "x = 1, 2" the name x belongs to both members, so the first one is returned
 * without it. */
static part without_common_name(const part *p, int n) {
    for (int k = 1; k < n; k++)
        if (is_relation(p[k]))
            return p[0];
    bool lone = is_kind(p[0], NODE_REL) && is_kind(child(p[0], 0), NODE_SYM);
    return lone && !p[0].t->chained ? math_without_name(p[0], false) : p[0];
}

static bool appears(part x, const part *p, int n) {
    while (n > 0 && !same_tree(p[n - 1], x))
        n--;
    return n > 0;
}

/* Number of members that are written differently, including their names. */
static int count_different(const part *p, int n) {
    part first = without_common_name(p, n);
    int different = 1;
    for (int k = 1; k < n; k++)
        different += !same_tree(first, p[k]) && !appears(p[k], p + 1, k - 1);
    return different;
}

static bool has_relation(const part *p, int n) {
    while (n > 0 && !is_relation(p[n - 1]))
        n--;
    return n > 0;
}

/* Checks repeated members: if there are relations, both lists must have as many members that are
 * written differently. Math-Verify compares sets: for it, 2, 2 is one number, x = 2, y = 2 are two
 * equations, and f(x) = 2, 2 is an equation and a number. */
static bool same_repeats(const part *g, const part *a, int n) {
    return (!has_relation(g, n) && !has_relation(a, n)) ||
           count_different(g, n) == count_different(a, n);
}

/* True if a member after the first names a tuple or set, as "B = (3,4)" in the list A = (1,2),
 * B = (3,4). The public graders remove at most a name before the whole list. So (1,2), (3,4) is not
 * equal to this list for them. */
static bool names_structures(const part *p, int n) {
    for (int k = 1; k < n; k++)
        if (is_kind(p[k], NODE_REL) && !is_expression(child(p[k], 1)))
            return true;
    return false;
}

bool math_judge_members(judge *j, part g, part a, bool ordered) {
    part gs[kMaxItems], as[kMaxItems];
    int n = members(g, gs), m = members(a, as);
    if (n < 0 || m < 0)
        return leave_undecided(j, "too many members");
    if (n != m)
        return decide(j, false, "a different number of members");
    if (!j->truth && names_structures(gs, n) != names_structures(as, n))
        return leave_undecided(j, "members whose names cannot be removed");
    if (j->ordered && at(g)->arg != at(a)->arg)
        return leave_undecided(j, "semicolons in a list that may be one number");
    if (!j->truth && !same_repeats(gs, as, n))
        return leave_undecided(j, "repeated members with different names");
    j->listed = true;
    return ordered ? same_in_order(j, gs, as, n) : same_in_any_order(j, gs, as, n);
}

bool math_has_repeats(judge *j, part p) {
    for (part c = child(p, 0); c.i; c = next(c))
        for (part d = next(c); d.i; d = next(d))
            if (math_judge_parts(j, c, d))
                return true;
    return false;
}
