#include "evals/math/math_judge.h"

enum { kMaxItems = 64 }; /* of a list or set: matching two is quadratic */

/* The members of a list or set, or a thing itself; \pm makes two of one. */
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

static bool same_in_order(judge *j, const part *g, const part *a, int n) {
    for (int k = 0; k < n; k++)
        if (!math_judge_parts(j, g[k], a[k]))
            return false;
    return true;
}

/* As multisets. Equality is transitive, so that any partner will do. */
static bool same_in_any_order(judge *j, const part *g, part *a, int n) {
    for (int k = 0; k < n; k++) {
        int m = k;
        while (m < n && !math_judge_parts(j, g[k], a[m]))
            m++;
        if (m == n)
            return decide(j, false, "a member without a partner");
        part partner = a[m];
        a[m] = a[k];
        a[k] = partner;
    }
    return true;
}

bool math_judge_members(judge *j, part g, part a, bool ordered) {
    part gs[kMaxItems], as[kMaxItems];
    int n = members(g, gs), m = members(a, as);
    if (n < 0 || m < 0)
        return decide(j, false, "too many members");
    if (n != m)
        return decide(j, false, "another number of members");
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
