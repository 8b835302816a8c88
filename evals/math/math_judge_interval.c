/* Compares inequalities as intervals, for MATH_TRUTH: 1 < x \le 2 is (1,2], and x < 1 or x > 2 is a
 * union. */
#include "evals/math/math_judge.h"
#include "evals/math/math_parser.h"

enum { kMaxIntervals = 16, kMaxHoles = 8 };

/* One end of an interval. It is infinite if value.i is 0. */
typedef struct {
    part value;
    bool closed;
} end;

typedef struct {
    end low, high;
} interval;

typedef struct {
    interval item[kMaxIntervals];
    int count;
    part hole[kMaxHoles]; /* points that are excluded: x \ne 3 */
    int holes;
    uint64_t symbol;        /* the variable of the inequalities; 0: there are none */
    bool inequality, other; /* other: something that is no interval */
} intervals;

static void add(intervals *s, end low, end high) {
    if (s->count == kMaxIntervals)
        s->other = true;
    else
        s->item[s->count++] = (interval){low, high};
}

static void add_hole(intervals *s, part value) {
    if (s->holes == kMaxHoles)
        s->other = true;
    else
        s->hole[s->holes++] = value;
}

/* The lower end at @value, infinite for -\infty. For \infty, which cannot be a lower end, s->other
 * is set. */
static end lower(intervals *s, part value, bool closed) {
    int sign = math_infinity(value);
    s->other |= sign > 0;
    return sign ? (end){0} : (end){value, closed};
}

static end upper(intervals *s, part value, bool closed) {
    int sign = math_infinity(value);
    s->other |= sign < 0;
    return sign ? (end){0} : (end){value, closed};
}

/* Notes the variable of an inequality. */
static void set_symbol(intervals *s, part name) {
    uint64_t id = at(name)->u.id;
    s->other |= s->symbol && s->symbol != id;
    s->symbol = id;
    s->inequality = true;
}

static bool is_above(int rel) {
    return rel == REL_GT || rel == REL_GE;
}

static bool is_order(int rel) {
    return rel == REL_LT || rel == REL_LE || is_above(rel);
}

/* Adds |x| < 2 or |x| > 2. The relation has -2 as its fourth child. */
static void add_absolute(intervals *s, part p) {
    part left = child(p, 0), right = child(p, 1);
    bool swapped = !is_kind(left, NODE_FN) || at(left)->arg != FN_ABS;
    part name = child(swapped ? right : left, 0), high = swapped ? left : right, low = child(p, 3);
    int rel = at(p)->arg;
    if (!is_order(rel) || !math_is_constant(high.t, high.i)) {
        s->other = true;
        return;
    }
    set_symbol(s, name);
    bool closed = rel == REL_GE || rel == REL_LE, outside = is_above(rel) != swapped;
    if (outside) {
        add(s, (end){0}, upper(s, low, closed));
        add(s, lower(s, high, closed), (end){0});
    } else {
        add(s, lower(s, low, closed), upper(s, high, closed));
    }
}

/* True if @p is \mathbb{R}. */
static bool is_reals(part p) {
    static const math_token sign = {.kind = TOK_SYM, .text = {"mathbb", 6}},
                            name = {.kind = TOK_SYM, .text = {"r", 1}};
    part first = child(p, 0), second = child(p, 1);
    return is_kind(p, NODE_MUL) && is_kind(first, NODE_SYM) && is_kind(second, NODE_SYM) &&
           !next(second).i && at(first)->u.id == math_hash_token(kMathHashSeed, &sign) &&
           at(second)->u.id == math_hash_token(kMathHashSeed, &name);
}

/* Adds x > 2, 2 < x, x \ne 2 or x \in \mathbb{R}. */
static void add_relation(intervals *s, part p) {
    part left = child(p, 0), right = child(p, 1);
    if (child(p, 3).i) {
        add_absolute(s, p);
        return;
    }
    bool swapped = !is_kind(left, NODE_SYM);
    part name = swapped ? right : left, value = swapped ? left : right;
    int rel = at(p)->arg;
    if (rel == REL_IN && is_kind(left, NODE_SYM) && is_reals(right)) {
        set_symbol(s, left);
        add(s, (end){0}, (end){0});
        return;
    }
    if (!is_kind(name, NODE_SYM) || !is_expression(value) || is_kind(value, NODE_SYM) ||
        !(is_order(rel) || rel == REL_NE)) {
        s->other = true;
        return;
    }
    set_symbol(s, name);
    bool closed = rel == REL_GE || rel == REL_LE;
    if (rel == REL_NE)
        add_hole(s, value);
    else if (is_above(rel) != swapped)
        add(s, lower(s, value, closed), (end){0});
    else
        add(s, (end){0}, upper(s, value, closed));
}

/* Adds 1 < x \le 2 or 2 \ge x > 1. */
static void add_chain(intervals *s, part p) {
    part first = child(p, 0), second = next(first), name = child(first, 1);
    int r1 = at(first)->arg, r2 = second.i ? at(second)->arg : REL_EQ;
    if (!second.i || next(second).i || !is_kind(name, NODE_SYM) || !is_order(r1) || !is_order(r2) ||
        is_above(r1) != is_above(r2)) {
        s->other = true;
        return;
    }
    set_symbol(s, name);
    part one = child(first, 0), two = child(second, 1);
    bool first_closed = r1 == REL_LE || r1 == REL_GE, second_closed = r2 == REL_LE || r2 == REL_GE;
    if (is_above(r1))
        add(s, lower(s, two, second_closed), upper(s, one, first_closed));
    else
        add(s, lower(s, one, first_closed), upper(s, two, second_closed));
}

static void add_tuple(intervals *s, part p) {
    part low = child(p, 0), high = next(low);
    int brackets = at(p)->arg;
    if (!high.i || next(high).i || brackets >= 4)
        s->other = true;
    else
        add(s, lower(s, low, brackets & 1), upper(s, high, brackets & 2));
}

/* Adds a set without some of its points. The set is all real numbers or an interval. All real
 * numbers without an interval are added, too. */
static void add_complement(intervals *s, part p) {
    part all = child(p, 0), hole = next(all);
    bool points = is_kind(hole, NODE_SET), tuple = is_kind(all, NODE_TUPLE);
    part low = child(hole, 0), high = next(low);
    bool reals = is_kind(all, NODE_MUL) && is_kind(child(all, 0), NODE_SYM);
    if (next(hole).i || !low.i || !(points ? tuple || reals : reals && is_kind(hole, NODE_TUPLE)) ||
        (!points && (!high.i || next(high).i))) {
        s->other = true;
        return;
    }
    s->inequality = true;
    if (points) {
        for (part c = low; c.i; c = next(c))
            add_hole(s, c);
        if (tuple)
            add_tuple(s, all); /* (0,9) without 4 */
        return;
    }
    int brackets = at(hole)->arg;
    add(s, (end){0}, upper(s, low, !(brackets & 1)));
    add(s, lower(s, high, !(brackets & 2)), (end){0});
}

/* Adds the points of a set. */
static void add_points(intervals *s, part p) {
    for (part c = child(p, 0); c.i; c = next(c))
        add(s, lower(s, c, true), upper(s, c, true));
}

static void collect(intervals *s, part p, int depth) {
    p = math_without_name(p, false);
    switch (at(p)->kind) {
    case NODE_REL:
        add_relation(s, p);
        break;
    case NODE_AND:
        add_chain(s, p);
        break;
    case NODE_TUPLE:
        add_tuple(s, p);
        break;
    case NODE_DIFFERENCE:
        add_complement(s, p);
        break;
    case NODE_SET:
        add_points(s, p);
        break;
    case NODE_LIST:
    case NODE_UNION:
        for (part c = child(p, 0); c.i && depth < 2; c = next(c))
            collect(s, c, depth + 1);
        break;
    case NODE_MUL:
        s->other |= !is_reals(p);
        s->inequality = true;
        add(s, (end){0}, (end){0});
        break;
    default:
        s->other = true;
    }
}

static bool same_end(judge *j, end g, end a) {
    if (g.value.i == 0 || a.value.i == 0)
        return g.value.i == a.value.i;
    return g.closed == a.closed && math_judge_parts(j, g.value, a.value);
}

static bool same_intervals(judge *j, const intervals *g, intervals *a) {
    if (g->count != a->count)
        return false;
    for (int k = 0; k < g->count; k++) {
        int m = k;
        while (m < a->count && !(same_end(j, g->item[k].low, a->item[m].low) &&
                                 same_end(j, g->item[k].high, a->item[m].high)))
            m++;
        if (m == a->count)
            return false;
        interval partner = a->item[m];
        a->item[m] = a->item[k];
        a->item[k] = partner;
    }
    return true;
}

/* True if constant @p is below constant @q. */
static bool is_below(judge *j, part p, part q) {
    int order = 0;
    math_reading x = reading(j, p, true), y = reading(j, q, true);
    return math_is_constant(p.t, p.i) && math_is_constant(q.t, q.i) &&
           math_numeric_order(&x, p.i, &y, q.i, &order) == EVAL_OK && order < 0;
}

/* Reads "x > 1 and x < 4", or "x > 1, x < 4", as an interval: as a union they would be all numbers.
 */
static void intersect(judge *j, intervals *s, part p) {
    if (!is_kind(p, NODE_LIST) || s->other || !s->inequality || s->count != 2)
        return;
    interval *x = &s->item[0], *y = &s->item[1];
    if (x->low.value.i == 0) {
        interval *swap = x;
        x = y;
        y = swap;
    }
    bool opposite = x->low.value.i && !x->high.value.i && !y->low.value.i && y->high.value.i;
    if (!opposite || !is_below(j, x->low.value, y->high.value))
        return;
    s->item[0] = (interval){x->low, y->high};
    s->count = 1;
}

/* Sorts the excluded points. False if they cannot be compared or two are equal. */
static bool sort_holes(judge *j, intervals *s) {
    for (int i = 1; i < s->holes; i++)
        for (int k = i; k > 0 && !is_below(j, s->hole[k - 1], s->hole[k]); k--) {
            part p = s->hole[k];
            if (!is_below(j, p, s->hole[k - 1]))
                return false;
            s->hole[k] = s->hole[k - 1];
            s->hole[k - 1] = p;
        }
    return true;
}

/* Divides the only interval, or all real numbers if there is none, at the excluded points. */
static void remove_holes(judge *j, intervals *s) {
    interval whole = {0};
    if (s->count)
        whole = s->item[0];
    if (!s->holes || s->other)
        return;
    s->other = s->count > 1 || !sort_holes(j, s);
    s->count = 0;
    end low = whole.low;
    for (int i = 0; i < s->holes && !s->other; i++) {
        part hole = s->hole[i];
        s->other |= (low.value.i && !is_below(j, low.value, hole)) ||
                    (whole.high.value.i && !is_below(j, hole, whole.high.value));
        add(s, low, upper(s, hole, false));
        low = lower(s, hole, false);
    }
    add(s, low, whole.high);
}

bool math_judge_intervals(judge *j, part g, part a, bool *equal) {
    intervals s = {0}, t = {0};
    collect(&s, g, 0);
    collect(&t, a, 0);
    intersect(j, &s, g);
    intersect(j, &t, a);
    remove_holes(j, &s);
    remove_holes(j, &t);
    bool joined = is_kind(g, NODE_UNION) && is_kind(a, NODE_LIST); /* (1,2) or (3,4) */
    bool comparable =
        !s.other && !t.other && s.count && t.count && (s.inequality || t.inequality || joined);
    if (!comparable || (s.symbol && t.symbol && s.symbol != t.symbol))
        return false;
    bool same = same_intervals(j, &s, &t);
    *equal = decide(j, same, same ? "the same set of numbers" : "a different set of numbers");
    return true;
}
