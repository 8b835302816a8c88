#include "evals/math/math_equal.h"

#include <string.h>

#include "evals/math/math_eval.h"

enum { kMaxItems = 64 }; /* of a list or set: matching two is quadratic */

/* One grading. */
typedef struct {
    math_tree gold, answer;
    bool strict;  /* MATH_STRICT */
    bool ordered; /* lists, too, are compared in order */
    bool listed;  /* inside a list: its relations are compared side by side */
    int work;
    const char *reason; /* of the last comparison that decided */
} judge;

/* A part of an answer: a node, and the branch of \pm it is read with. */
typedef struct {
    const math_tree *t;
    uint16_t i;
    int pm;
} part;

static bool same(judge *j, part g, part a);

static bool decide(judge *j, bool equal, const char *reason) {
    j->reason = reason;
    return equal;
}

static const math_node *at(part p) {
    return math_at(p.t, p.i);
}

static part child(part p, int k) {
    uint16_t i = at(p)->first;
    for (; i && k > 0; k--)
        i = math_at(p.t, i)->next;
    return (part){p.t, i, p.pm};
}

static part next(part p) {
    return (part){p.t, at(p)->next, p.pm};
}

static bool is_kind(part p, math_node_kind kind) {
    return at(p)->kind == kind;
}

/* ---- values ---- */

static math_reading reading(judge *j, part p, bool percent) {
    return (math_reading){.t = p.t, .pm = p.pm, .percent = percent, .work = &j->work};
}

/* Exact for rational functions: in a prime field, and in a second one to be sure. */
static math_eval_status same_in_fields(const math_reading *rg, uint16_t g, const math_reading *ra,
                                       uint16_t a, bool *equal) {
    *equal = true;
    for (int f = 0; f < kMathFields && *equal; f++) {
        uint64_t x, y;
        math_eval_status st = math_eval_field(rg, g, f, &x);
        if (st == EVAL_OK)
            st = math_eval_field(ra, a, f, &y);
        if (st != EVAL_OK)
            return st;
        *equal = x == y;
    }
    return EVAL_OK;
}

static const char *undecided(math_eval_status st) {
    switch (st) {
    case EVAL_UNDEFINED:
        return "a value is undefined or too large";
    case EVAL_CLOSE:
        return "too close to tell apart";
    case EVAL_COSTLY:
        return "too costly to evaluate";
    default:
        return "not comparable as values";
    }
}

static bool same_reading(judge *j, part g, bool gold_percent, part a, bool answer_percent) {
    math_reading rg = reading(j, g, gold_percent), ra = reading(j, a, answer_percent);
    bool equal = false;
    math_eval_status st = same_in_fields(&rg, g.i, &ra, a.i, &equal);
    if (st == EVAL_OK)
        return decide(j, equal, equal ? "the same value, exactly" : "another value");
    if (st == EVAL_OTHER)
        st = math_numeric_match(&rg, g.i, &ra, a.i, MATCH_SAME, &equal);
    if (st != EVAL_OK)
        return decide(j, false, undecided(st));
    return decide(j, equal, equal ? "the same value to 50 digits" : "another value");
}

static bool same_tree(part g, part a) {
    return math_same_tree(g.t, g.i, a.t, a.i);
}

/* [-] n%, or nothing with a percent sign */
static bool is_percentage(part p) {
    for (; is_kind(p, NODE_NEG); p = child(p, 0))
        continue;
    return !p.t->has_percent || is_kind(p, NODE_PERCENT);
}

/* n% is n/100, and n: field takes both readings, strict the second. Two signs are read alike. */
static bool same_value(judge *j, part g, part a) {
    bool gp = g.t->has_percent, ap = a.t->has_percent;
    if (!j->strict && (gp || ap) && same_reading(j, g, gp, a, ap))
        return true;
    if (gp != ap && !(is_percentage(g) && is_percentage(a)) && !same_tree(g, a))
        return decide(j, false, "a percent sign within an expression");
    return same_reading(j, g, false, a, false);
}

/* Which infinity an expression is: +1, -1, or 0 for none. */
static int infinity(part p) {
    int sign = 1;
    for (; is_kind(p, NODE_NEG); p = child(p, 0))
        sign = -sign;
    return is_kind(p, NODE_CONST) && at(p)->arg == CONST_INF ? sign : 0;
}

static bool is_empty_set(part p) {
    return is_kind(p, NODE_CONST) && at(p)->arg == CONST_EMPTY;
}

/* ---- what strict adds: as written ---- */

static bool is_integer_literal(part p) {
    while (is_kind(p, NODE_NEG) || is_kind(p, NODE_PERCENT))
        p = child(p, 0);
    if (!is_kind(p, NODE_NUM))
        return false;
    math_span s = at(p)->u.text;
    const char *point = memchr(s.s, '.', s.len);
    for (const char *c = point ? point + 1 : s.s + s.len; c < s.s + s.len; c++)
        if (*c != '0')
            return false;
    return true;
}

/* [-] digits [%]: what may have a thousands separator */
static bool is_numeral(part p) {
    while (is_kind(p, NODE_NEG) || is_kind(p, NODE_PERCENT))
        p = child(p, 0);
    return is_kind(p, NODE_NUM);
}

/* [-] integer / integer */
static bool fraction_literal(part p, int64_t *n, int64_t *d) {
    bool negative = is_kind(p, NODE_NEG);
    if (negative)
        p = child(p, 0);
    if (!is_kind(p, NODE_MUL))
        return false;
    part over = child(p, 1);
    if (next(over).i || !is_kind(over, NODE_INV) || !math_integer(p.t, at(p)->first, n) ||
        !math_integer(p.t, at(over)->first, d))
        return false;
    if (negative)
        *n = -*n;
    return true;
}

/* digits / 10^decimals * 10^exponent is whole in the arithmetic of doubles. */
static bool is_whole_product(math_span mantissa, int64_t exponent) {
    double digits = 0, scale = 1;
    bool point = false;
    if (mantissa.len > 16 || exponent < 0 || exponent > 22)
        return exponent > 22;
    for (uint32_t i = 0; i < mantissa.len; i++) {
        point |= mantissa.s[i] == '.';
        if (mantissa.s[i] == '.')
            continue;
        digits = 10 * digits + (mantissa.s[i] - '0');
        scale *= point ? 10 : 1;
    }
    double product = digits / scale;
    for (scale = 1; exponent > 0; exponent--)
        scale *= 10;
    product *= scale;
    return product >= 9007199254740992.0 || product == (double)(int64_t)product;
}

/* 2.26 \cdot 10^2 is 225.99999999999997 to the field's graders, who compute it in doubles. */
static bool is_rounded(part p) {
    while (is_kind(p, NODE_NEG))
        p = child(p, 0);
    if (!is_kind(p, NODE_MUL))
        return false;
    part mantissa = child(p, 0), power = child(p, 1);
    if (!is_numeral(mantissa) || is_integer_literal(mantissa) || !is_kind(power, NODE_POW))
        return false;
    int64_t base, exponent;
    part e = child(power, 1);
    return math_integer(p.t, at(power)->first, &base) && base == 10 &&
           math_integer(p.t, e.i, &exponent) && !is_whole_product(at(mantissa)->u.text, exponent);
}

static bool same_as_written(judge *j, part g, part a) {
    int64_t n, d, m, e;
    if (fraction_literal(g, &n, &d) && fraction_literal(a, &m, &e) && (n != m || d != e))
        return decide(j, false, "strict: a fraction in other terms");
    if (is_integer_literal(g) != is_integer_literal(a))
        return decide(j, false, "strict: one of both is no integer as written");
    return true;
}

/* ---- structures ---- */

/* Children in order. */
static bool same_children(judge *j, part g, part a) {
    g = child(g, 0);
    a = child(a, 0);
    for (; g.i && a.i; g = next(g), a = next(a))
        if (!same(j, g, a))
            return false;
    return !g.i && !a.i ? true : decide(j, false, "another number of parts");
}

static bool same_tuple(judge *j, part g, part a) {
    if (at(g)->arg != at(a)->arg)
        return decide(j, false, "other brackets");
    return same_children(j, g, a);
}

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
        if (!same(j, g[k], a[k]))
            return false;
    return true;
}

/* As multisets. Equality is transitive, so that any partner will do. */
static bool same_in_any_order(judge *j, const part *g, part *a, int n) {
    for (int k = 0; k < n; k++) {
        int m = k;
        while (m < n && !same(j, g[k], a[m]))
            m++;
        if (m == n)
            return decide(j, false, "a member without a partner");
        part partner = a[m];
        a[m] = a[k];
        a[k] = partner;
    }
    return true;
}

static bool same_members(judge *j, part g, part a, bool ordered) {
    part gs[kMaxItems], as[kMaxItems];
    int n = members(g, gs), m = members(a, as);
    if (n < 0 || m < 0)
        return decide(j, false, "too many members");
    if (n != m)
        return decide(j, false, "another number of members");
    j->listed = true;
    return ordered ? same_in_order(j, gs, as, n) : same_in_any_order(j, gs, as, n);
}

/* ---- relations ---- */

static bool is_relation(part p) {
    return is_kind(p, NODE_REL) || is_kind(p, NODE_AND);
}

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

/* x = 20 */
static bool is_solved(part p) {
    part right = child(p, 1);
    return is_kind(child(p, 0), NODE_SYM) && math_is_constant(right.t, right.i);
}

/* Side by side; an equation that is no member of a list also if a - b is a multiple of c - d, but
 * no grader takes 2x = 40 for x = 20. */
static bool same_relation(judge *j, part g, part a) {
    if (g.t->chained || a.t->chained) /* their middles are gone */
        return decide(j, false, "a chain of equations");
    int rg = at(g)->arg, ra = at(a)->arg;
    part left = child(a, 0), right = child(a, 1);
    if (rg == ra && same(j, child(g, 0), left) && same(j, child(g, 1), right))
        return true;
    if (rg != REL_IN && rg == flipped(ra) && same(j, child(g, 0), right) &&
        same(j, child(g, 1), left))
        return true;
    part dg = child(g, 2), da = child(a, 2);
    if (j->listed || rg != REL_EQ || ra != REL_EQ || !math_has_symbol(dg.t, dg.i) ||
        !math_has_symbol(da.t, da.i))
        return decide(j, false, "another relation");
    math_match kind = is_solved(g) || is_solved(a) ? MATCH_SIGNED : MATCH_MULTIPLE;
    math_reading x = reading(j, dg, true), y = reading(j, da, true);
    bool equal = false;
    math_eval_status st = math_numeric_match(&x, dg.i, &y, da.i, kind, &equal);
    if (st != EVAL_OK)
        return decide(j, false, undecided(st));
    return decide(j, equal, equal ? "the same relation" : "another relation");
}

static bool is_expression(part p) {
    return math_is_expression(p.t, p.i);
}

/* Whether a left side is what a thing is called: x or (x,y), of an expression also f(x). */
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

/* x = 5 for 5, (x,y) = (1,2) for (1,2), x \in [0,1] for [0,1]: the right side of a relation that
 * only names it. With @any, a constant may have any left side (2+3 = 5). Words have no names. */
static part unnamed(part p, bool any) {
    if (!is_kind(p, NODE_REL))
        return p;
    part left = child(p, 0), right = child(p, 1);
    bool based = is_kind(right, NODE_BASED);
    bool named = is_name(left, (based || is_expression(right)) && !at(right)->pm) &&
                 !is_kind(right, NODE_WORD);
    bool constant = math_is_constant(right.t, right.i);
    if ((at(p)->arg == REL_EQ && (named || (any && constant))) ||
        (at(p)->arg == REL_IN && named && !is_expression(right) && !is_kind(right, NODE_MATRIX)))
        return right;
    return p;
}

/* ---- any two parts ---- */

static bool same_expression(judge *j, part g, part a) {
    int x = infinity(g), y = infinity(a);
    if (x || y)
        return decide(j, x == y, x == y ? "the same infinity" : "an infinity");
    if (is_empty_set(g) || is_empty_set(a))
        return decide(j, is_empty_set(g) && is_empty_set(a), "the empty set");
    if (j->strict && !same_as_written(j, g, a))
        return false;
    const char *verbatim = g.t->verbatim ? g.t->verbatim : a.t->verbatim;
    if (verbatim)
        return same_tree(g, a) ? decide(j, true, "written alike") : decide(j, false, verbatim);
    if (a.t->juxtaposed && is_integer_literal(g))
        return decide(j, false, "integers multiplied without a sign");
    if (a.t->framed && is_integer_literal(g) && !is_numeral(a))
        return decide(j, false, "an expression for an integer, in a \\text or with a line break");
    if (is_integer_literal(g) && is_rounded(a))
        return decide(j, false, "an integer in scientific notation that doubles round");
    if ((g.t->separated && !is_numeral(g)) || (a.t->separated && !is_numeral(a)))
        return decide(j, false, "a thousands separator in an expression");
    return same_value(j, g, a);
}

static bool same_word(judge *j, part g, part a) {
    math_span s = at(g)->u.text, t = at(a)->u.text;
    bool equal = s.len == t.len && memcmp(s.s, t.s, s.len) == 0;
    return decide(j, equal, equal ? "the same word" : "another word");
}

static bool repeats(judge *j, part p) {
    for (part c = child(p, 0); c.i; c = next(c))
        for (part d = next(c); d.i; d = next(d))
            if (same(j, c, d))
                return true;
    return false;
}

/* A list meets a set, and (field) a tuple in round brackets meets a list. */
static bool same_collection(judge *j, part g, part a) {
    if (is_kind(g, NODE_UNION) != is_kind(a, NODE_UNION))
        return decide(j, false, "another kind of object");
    bool tuple = is_kind(g, NODE_TUPLE) != is_kind(a, NODE_TUPLE);
    bool list = is_kind(g, NODE_LIST) || is_kind(a, NODE_LIST);
    if (!tuple)
        return same_members(j, g, a, j->strict || j->ordered);
    part t = is_kind(g, NODE_TUPLE) ? g : a;
    if (!list || j->strict || at(t)->arg != 0)
        return decide(j, false, "a tuple and something else");
    if (repeats(j, g))
        return decide(j, false, "a tuple and a list with repeated members");
    return same_children(j, g, a);
}

static bool same_kind(judge *j, part g, part a) {
    switch (at(g)->kind) {
    case NODE_TUPLE:
        return same_tuple(j, g, a);
    case NODE_LIST: /* in a matrix: a row */
    case NODE_INTERSECTION:
    case NODE_DIFFERENCE:
        return same_children(j, g, a);
    case NODE_SET:
    case NODE_UNION:
        return same_members(j, g, a, j->strict);
    case NODE_AND:
        return same_members(j, g, a, true);
    case NODE_MATRIX:
        return same_children(j, g, a);
    case NODE_REL:
        return same_relation(j, g, a);
    case NODE_BASED:
        if (at(g)->u.id != at(a)->u.id)
            return decide(j, false, "another base");
        return same(j, child(g, 0), child(a, 0));
    default:
        return same_word(j, g, a);
    }
}

static bool same(judge *j, part g, part a) {
    if (--j->work < 0)
        return decide(j, false, undecided(EVAL_COSTLY));
    if (is_relation(g) != is_relation(a)) {
        g = unnamed(g, false);
        a = unnamed(a, false);
    }
    if (is_expression(g) && is_expression(a))
        return same_expression(j, g, a);
    if (at(g)->kind == at(a)->kind)
        return same_kind(j, g, a);
    return decide(j, false, "another kind of object");
}

static bool is_single(part p) {
    return is_expression(p) || is_kind(p, NODE_MATRIX);
}

/* "7 or 7" is 7. */
static bool same_repeated(judge *j, part one, part list, bool gold_first) {
    for (part m = child(list, 0); m.i; m = next(m))
        if (!is_single(m) || !(gold_first ? same(j, one, m) : same(j, m, one)))
            return decide(j, false, "a value and a list");
    return decide(j, true, "the same value, repeated");
}

static bool is_collection(part p) {
    return is_kind(p, NODE_LIST) || is_kind(p, NODE_SET) || p.t->has_pm;
}

static bool is_arithmetic(part p) {
    return math_is_arithmetic(p.t, p.i);
}

static bool same_answer(judge *j) {
    part g = {&j->gold, j->gold.root, 1}, a = {&j->answer, j->answer.root, 1};
    if (is_relation(g) != is_relation(a)) {
        g = unnamed(g, false);
        a = unnamed(a, !j->strict);
    }
    if ((g.t->leading || a.t->leading) && !(is_arithmetic(g) && is_arithmetic(a)))
        return !is_relation(g) && same_tree(g, a)
                   ? decide(j, true, "written alike")
                   : decide(j, false, "an equation without its left side");
    if (!j->strict && is_single(g) && is_kind(a, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, g, a, true);
    if (!j->strict && is_single(a) && is_kind(g, NODE_LIST) && !g.t->has_pm && !a.t->has_pm)
        return same_repeated(j, a, g, false);
    return is_collection(g) || is_collection(a) ? same_collection(j, g, a) : same(j, g, a);
}

/* ---- two texts ---- */

typedef struct {
    const char *s;
    size_t n;
} bytes;

static math_verdict verdict(math_outcome outcome, const char *reason) {
    return (math_verdict){.outcome = outcome, .reason = reason};
}

static math_verdict unread(const char *why, bool gold) {
    return (math_verdict){.outcome = MATH_UNPARSED, .reason = why, .gold_unread = gold};
}

static bool is_layout(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The same bytes, save white space: what is left to say of text that is no LaTeX we know. */
static bool same_text(bytes g, bytes a) {
    size_t i = 0, k = 0, shared = 0;
    for (;; i++, k++, shared++) {
        while (i < g.n && is_layout(g.s[i]))
            i++;
        while (k < a.n && is_layout(a.s[k]))
            k++;
        if (i == g.n || k == a.n)
            return i == g.n && k == a.n && shared > 0;
        if (g.s[i] != a.s[k])
            return false;
    }
}

/* What a name of one or two letters stands in front of, "x = ..."; else the whole. */
static bytes without_name(bytes a) {
    size_t i = 0, letters = 0;
    for (; i < a.n && a.s[i] != '=' && letters <= 2; i++)
        letters += a.s[i] != ' ';
    if (i == a.n || a.s[i] != '=' || letters > 2)
        return a;
    return (bytes){a.s + i + 1, a.n - i - 1};
}

/* Whole numbers need no tree. */
static bool whole_number(const math_tokens *t, bool *negative, math_span *digits) {
    const math_token *k = t->tok;
    *negative = k->kind == TOK_MINUS;
    k += *negative;
    if (k->kind != TOK_NUM || k[1].kind != TOK_END || memchr(k->text.s, '.', k->text.len))
        return false;
    *digits = k->text;
    while (digits->len > 1 && *digits->s == '0') {
        digits->s++;
        digits->len--;
    }
    return true;
}

static bool compare_whole_numbers(const math_tokens *g, const math_tokens *a, math_verdict *out) {
    bool gn, an;
    math_span gd, ad;
    if (!whole_number(g, &gn, &gd) || !whole_number(a, &an, &ad))
        return false;
    bool zero = gd.len == 1 && *gd.s == '0';
    bool equal = gd.len == ad.len && memcmp(gd.s, ad.s, gd.len) == 0 && (gn == an || zero);
    *out = equal ? verdict(MATH_EQUAL, "the same integer")
                 : verdict(MATH_DIFFERENT, "another integer");
    return true;
}

static math_verdict compare_trees(math_tokens *g, math_tokens *a, math_policy policy,
                                  bool ordered) {
    judge j; /* large: what matters is set here and by math_parse() */
    j.strict = policy == MATH_STRICT;
    j.ordered = ordered;
    j.listed = false;
    j.work = kMathWork;
    j.reason = "another value";
    const char *why = math_parse(&j.gold, g);
    if (why)
        return unread(why, true);
    if ((why = math_parse(&j.answer, a)))
        return unread(why, false);
    if (j.strict && (j.gold.rounded || j.answer.rounded))
        return verdict(MATH_DIFFERENT, "strict: two values, one of them rounded");
    bool equal = same_answer(&j);
    return verdict(equal ? MATH_EQUAL : MATH_DIFFERENT, j.reason);
}

/* 1 440 is 1440, but not for whoever writes 1,440. */
static bool is_spaced_otherwise(const math_tokens *g, const math_tokens *a) {
    return (g->spaced_group && a->separated) || (a->spaced_group && g->separated);
}

/* "\theta = 1,440" may be two numbers; "x = 1,440" may, too, unless the gold has a separator. */
static bool is_ambiguous(const math_tokens *g, const math_tokens *a) {
    return a->separated && math_is_statement(a) && !(g->separated && math_is_short_naming(a));
}

/* x = 100, y = 200: then the other's 100,200 is one number. */
static bool names_several(const math_tokens *t) {
    int relations = 0;
    for (size_t i = 0; i < t->count; i++)
        relations += t->tok[i].kind == TOK_REL;
    return relations > 1;
}

/* Whether 100,200 on either side may have been two numbers after all. */
static bool may_be_list(const math_tokens *g, const math_tokens *a) {
    return (g->grouped || a->grouped) && !g->zeros && !a->zeros && !names_several(g) &&
           !names_several(a);
}

static math_verdict compare(bytes gold, bytes answer, math_policy policy, bool group,
                            bool *grouped) {
    math_tokens g, a;
    math_verdict v;
    const char *gold_why = math_tokenize(&g, gold.s, gold.n, group);
    const char *why = math_tokenize(&a, answer.s, answer.n, group);
    if ((gold_why || why) && same_text(gold, answer))
        return verdict(MATH_EQUAL, "written alike, save spaces");
    if (gold_why || g.count == 0)
        return unread(gold_why ? gold_why : "empty", true);
    if (why || a.count == 0)
        return unread(why ? why : "empty", false);
    *grouped = may_be_list(&g, &a);
    if (is_spaced_otherwise(&g, &a))
        return unread("thousands separated by spaces", false);
    if (compare_whole_numbers(&g, &a, &v))
        return v;
    if (math_tokens_equal(&g, &a))
        return verdict(MATH_EQUAL, "written alike");
    if (math_words_equal(&g, &a))
        return verdict(MATH_EQUAL, "the same words");
    if (g.typed || a.typed)
        return unread("a function's name without a backslash", g.typed);
    if (a.wrapped && (math_is_statement(&a) || a.tok[0].kind == TOK_REL))
        return unread("a number in a \\text, behind its name", false);
    if (g.prose || a.prose)
        return unread("prose", g.prose);
    if (is_ambiguous(&g, &a)) {
        *grouped = false; /* not as a list either */
        return unread("a thousands separator in a statement", false);
    }
    return compare_trees(&g, &a, policy, !group);
}

snap_status math_equal(const char *gold, size_t gold_len, const char *answer, size_t answer_len,
                       math_policy policy, math_verdict *out) {
    if (!gold || !answer || !out)
        return SNAP_E_USAGE;
    bytes g = {gold, gold_len}, a = {answer, answer_len};
    bool grouped = false;
    if (g.n == a.n && g.n > 0 && memcmp(g.s, a.s, g.n) == 0) {
        *out = verdict(MATH_EQUAL, "identical");
        return SNAP_OK;
    }
    *out = compare(g, a, policy, true, &grouped);
    if (out->outcome == MATH_UNPARSED && out->gold_unread && same_text(g, without_name(a))) {
        *out = verdict(MATH_EQUAL, "written alike, save a name");
        return SNAP_OK;
    }
    if (out->outcome != MATH_EQUAL && grouped) { /* 100,200 may have been two numbers after all */
        math_verdict list = compare(g, a, policy, false, &grouped);
        if (list.outcome == MATH_EQUAL)
            *out = list;
    }
    return SNAP_OK;
}
