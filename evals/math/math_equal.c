#include "evals/math/math_equal.h"

#include <string.h>

#include "evals/math/math_judge.h"
#include "evals/math/math_marks.h"
#include "evals/math/math_rewrite.h"
#include "evals/math/math_spelling.h"
#include "evals/math/math_unit.h"
#include "evals/math/math_wording.h"
#include "evals/pattern.h"

typedef struct {
    const char *s;
    size_t n;
} bytes;

static math_verdict verdict(math_outcome outcome, const char *reason) {
    return (math_verdict){.outcome = outcome, .reason = reason};
}

static math_verdict unread(const char *why, bool gold) {
    return (math_verdict){
        .outcome = MATH_UNPARSED, .reason = why, .gold_unread = gold, .undecided = true};
}

static bool is_layout(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* True if both have the same bytes except for white space. Used for text that cannot be parsed. */
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

/* The text after a name of at most two characters, "x = ..."; the whole text if there is no such
 * name. */
static bytes without_name(bytes a) {
    size_t i = 0, letters = 0;
    for (; i < a.n && a.s[i] != '=' && letters <= 2; i++)
        letters += a.s[i] != ' ';
    if (i == a.n || a.s[i] != '=' || letters > 2)
        return a;
    return (bytes){a.s + i + 1, a.n - i - 1};
}

/* Parses a whole number directly, without a tree. */
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
                 : verdict(MATH_DIFFERENT, "a different integer");
    return true;
}

static math_verdict compare_trees(math_tokens *g, math_tokens *a, math_policy policy,
                                  bool ordered) {
    judge j; /* large, so not zeroed: this function and math_parse() set what is used */
    j.strict = policy == MATH_STRICT;
    j.truth = policy == MATH_TRUTH;
    j.ordered = ordered;
    j.listed = j.named = j.undecided = false;
    j.work = kMathWork;
    j.reason = "a different value";
    const char *why = math_parse(&j.gold, g);
    if (why)
        return unread(why, true);
    if ((why = math_parse(&j.answer, a)))
        return unread(why, false);
    if (j.strict && (j.gold.rounded || j.answer.rounded))
        return verdict(MATH_DIFFERENT, "strict: two values, one of them rounded");
    bool equal = math_judge_answer(&j);
    math_verdict v = verdict(equal ? MATH_EQUAL : MATH_DIFFERENT, j.reason);
    v.undecided = !equal && j.undecided;
    return v;
}

/* True if one side separates thousands by spaces and the other by commas, as in 1 440 and 1,440.
 * Except for MATH_TRUTH, compare() then returns MATH_UNPARSED. False for 1 440 and 1440, which
 * compare() compares. */
static bool is_spaced_otherwise(const math_tokens *g, const math_tokens *a) {
    return (g->spaced_group && a->separated) || (a->spaced_group && g->separated);
}

/* True if the answer's comma is ambiguous: "\theta = 1,440" may be two numbers. So may "x = 1,440",
 * unless the gold has a separator too. */
static bool is_ambiguous(const math_tokens *g, const math_tokens *a) {
    return a->separated && math_is_statement(a) && !(g->separated && math_is_short_naming(a));
}

/* True if the answer has several relations, such as x = 100, y = 200. A 100,200 on the other side
 * is then read as one number. */
static bool names_several(const math_tokens *t) {
    int relations = 0;
    for (size_t i = 0; i < t->count; i++)
        relations += t->tok[i].kind == TOK_REL;
    return relations > 1;
}

/* True if 100,200 on either side may be two numbers. */
static bool may_be_list(const math_tokens *g, const math_tokens *a) {
    return (g->grouped || a->grouped) && !g->zeros && !a->zeros && !names_several(g) &&
           !names_several(a);
}

/* The rules of MATH_FIELD and MATH_STRICT: some spellings that the public graders refuse wherever
 * they agree are refused before the trees are compared. */
static math_verdict compare_public(math_tokens *g, math_tokens *a, math_policy policy, bool group,
                                   bool *grouped) {
    if (g->typed || a->typed)
        return unread("a function's name without a backslash", g->typed);
    if (a->wrapped && (math_is_statement(a) || a->tok[0].kind == TOK_REL))
        return unread("a number in a \\text after its name", false);
    if (g->prose || a->prose)
        return unread("prose", g->prose);
    if (math_drops_letter(g, a))
        return verdict(MATH_DIFFERENT, "the last letter is taken for a unit");
    if (is_ambiguous(g, a)) {
        *grouped = false; /* the answers are not compared as lists either */
        return unread("a thousands separator in a statement", false);
    }
    return compare_trees(g, a, policy, !group);
}

static bool has_token(const math_tokens *t, math_token_kind kind, int arg) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == kind && (arg < 0 || t->tok[i].arg == arg))
            return true;
    return false;
}

static int count_tokens(const math_tokens *t, math_token_kind kind) {
    int n = 0;
    for (size_t i = 0; i < t->count; i++)
        n += t->tok[i].kind == kind;
    return n;
}

/* Reads the colons between numbers as division signs: 3:4. */
static void divide_colons(math_tokens *t) {
    for (size_t i = 1; i < t->count; i++)
        if (t->tok[i].kind == TOK_COLON && t->tok[i - 1].kind == TOK_NUM &&
            t->tok[i + 1].kind == TOK_NUM)
            t->tok[i].kind = TOK_SLASH;
}

/* The number in the power of the unit at @k: the 2 of m^2 or m^{2}. NULL: no power. */
static const math_token *unit_power(const math_token *k) {
    if (k[1].kind != TOK_CARET)
        return NULL;
    return k[2].kind == TOK_LBRACE ? &k[3] : &k[2];
}

static bool same_unit(const math_token *g, const math_token *a) {
    const math_token *m = unit_power(g), *n = unit_power(a);
    bool same = g->text.len == a->text.len && memcmp(g->text.s, a->text.s, g->text.len) == 0;
    if (!m || !n)
        return same && !m && !n;
    return same && m->kind == TOK_NUM && n->kind == TOK_NUM && m->text.len == n->text.len &&
           memcmp(m->text.s, n->text.s, m->text.len) == 0;
}

/* True for a number, perhaps with a minus sign. */
static bool is_number(const math_tokens *t) {
    const math_token *k = t->tok + (t->tok[0].kind == TOK_MINUS);
    return k->kind == TOK_NUM && k[1].kind == TOK_END;
}

/* Drops the unit of an answer such as "5 m" or "5 m^2" if the gold has the same unit. Also drops m,
 * g, s, h and L if the gold is a number without a unit. */
static void drop_unit_letter(const math_tokens *g, math_tokens *a) {
    size_t n = a->count;
    if (n > 5 && a->tok[n - 1].kind == TOK_RBRACE && a->tok[n - 4].kind == TOK_CARET)
        n -= 4;
    else if (n > 3 && a->tok[n - 1].kind == TOK_NUM && a->tok[n - 2].kind == TOK_CARET)
        n -= 2;
    const math_token *last = n > 1 ? &a->tok[n - 1] : a->tok;
    if (last == a->tok || last->kind != TOK_SYM || !last->spaced || last[-1].kind != TOK_NUM)
        return;
    bool number = is_number(g) && strchr("mgshL", *last->text.s) && last->text.len == 1;
    for (size_t i = 0; i < g->count; i++)
        if (number || (g->tok[i].kind == TOK_UNIT && same_unit(&g->tok[i], last))) {
            a->count = n - 1;
            a->tok[n - 1].kind = TOK_END;
            return;
        }
}

/* For MATH_TRUTH: drops the answer's unit (drop_unit_letter()). Marks the degrees of a side for
 * conversion to radians if the other side has no degree sign, but a \pi, a function or radians. A
 * ratio becomes a quotient if the other side is a quotient or another ratio. */
static void align(math_tokens *g, math_tokens *a) {
    drop_unit_letter(g, a);
    bool gd = has_token(g, TOK_DEGREE, -1), ad = has_token(a, TOK_DEGREE, -1);
    math_tokens *other = gd ? a : g;
    bool angles = has_token(other, TOK_CONST, CONST_PI) || has_token(other, TOK_FN, -1) ||
                  math_in_radians(other);
    g->radians = gd && !ad && angles;
    a->radians = ad && !gd && angles;
    int gc = count_tokens(g, TOK_COLON), ac = count_tokens(a, TOK_COLON);
    math_tokens *plain = gc ? a : g;
    bool quotient = has_token(plain, TOK_FRAC, -1) || has_token(plain, TOK_SLASH, -1);
    if (gc + ac == 1 ? quotient : gc == 1 && ac == 1) {
        divide_colons(g);
        divide_colons(a);
    }
}

/* True if both are written the same way. Units and degree signs are ignored, unless degrees are
 * converted. With MATH_TRUTH, "50 thousand" is not 50. */
static bool same_tokens(const math_tokens *g, const math_tokens *a, bool truth) {
    bool scaled = truth && (math_has_large_number(g) || math_has_large_number(a));
    return !g->radians && !a->radians && !scaled && math_tokens_equal(g, a);
}

static math_verdict compare(bytes gold, bytes answer, math_policy policy, bool group,
                            bool *grouped) {
    math_tokens g, a;
    math_verdict v;
    bool truth = policy == MATH_TRUTH;
    const char *gold_why = math_tokenize(&g, gold.s, gold.n, group, truth);
    const char *why = math_tokenize(&a, answer.s, answer.n, group, truth);
    if ((gold_why || why) && same_text(gold, answer))
        return verdict(MATH_EQUAL, "written the same way except for spaces");
    if (gold_why || g.count == 0)
        return unread(gold_why ? gold_why : "empty", true);
    if (why || a.count == 0)
        return unread(why ? why : "empty", false);
    *grouped = may_be_list(&g, &a);
    if (truth && math_units_differ(&g, &a) && !math_convert_unit(&g, &a))
        return verdict(MATH_DIFFERENT, "different units");
    if (!truth && is_spaced_otherwise(&g, &a))
        return unread("thousands separated by spaces", false);
    if (compare_whole_numbers(&g, &a, &v))
        return v;
    if (truth)
        align(&g, &a);
    if (same_tokens(&g, &a, truth))
        return verdict(MATH_EQUAL, "written the same way");
    if (math_words_equal(&g, &a))
        return verdict(MATH_EQUAL, "the same words");
    if (truth && (g.prose || a.prose))
        return unread("prose", g.prose);
    if (truth)
        return compare_trees(&g, &a, policy, !group);
    return compare_public(&g, &a, policy, group, grouped);
}

/* Compares two answers. Thousands separators are read as such; if a comma may also separate two
 * numbers, as in 100,200, the answers are compared as lists too. */
static math_verdict compare_readings(bytes g, bytes a, math_policy policy) {
    bool grouped = false;
    if (g.n == a.n && g.n > 0 && memcmp(g.s, a.s, g.n) == 0)
        return verdict(MATH_EQUAL, "identical");
    math_verdict number = compare(g, a, policy, true, &grouped);
    if (number.outcome == MATH_UNPARSED && number.gold_unread && same_text(g, without_name(a)))
        return verdict(MATH_EQUAL, "written the same way except for a name");
    if (number.outcome == MATH_EQUAL || !grouped)
        return number;
    math_verdict list = compare(g, a, policy, false, &grouped);
    number.undecided |= list.undecided;
    return list.outcome == MATH_EQUAL ? list : number;
}

/* A function that writes another wording of an answer (math_rewrite.h, math_wording.h). */
typedef bool wording(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* An answer in one of two buffers. */
typedef struct {
    char text[2][kMathMaxInput];
    size_t n;
    int which;
} reworded;

static bytes reworded_text(const reworded *r) {
    return (bytes){r->text[r->which], r->n};
}

static bool reword(reworded *r, wording *w) {
    size_t n;
    if (!w(r->text[r->which], r->n, r->text[1 - r->which], kMathMaxInput, &n))
        return false;
    r->which = 1 - r->which;
    r->n = n;
    return true;
}

/* True if the text has the command \in. */
static bool has_membership(bytes s) {
    static const char command[] = "\\in";
    size_t n = sizeof command - 1;
    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.s + i, command, n) == 0 && (i + n == s.n || strchr(" \\\t\n{([", s.s[i + n])))
            return true;
    return false;
}

/* True if the left side of an equation only says what its right side is: in a chain, or as a call
 * of a function. */
static bool names_value(const reworded *a, math_verdict v) {
    static pattern chain = {.regex = "(?<![<>!:])=[^=]+(?<![<>!:])=(?!.*[,;])"};
    char rest[kMathMaxInput];
    size_t n;
    bytes s = reworded_text(a);
    return strcmp(v.reason, "a chain of equations") == 0 ||
           (strcmp(v.reason, "a different kind of object") == 0 &&
            (math_drop_call(s.s, s.n, rest, sizeof rest, &n) ||
             pattern_find(&chain, (span){s.s, s.n}, 0, NULL)));
}

/* True if the text has an inequality. */
static bool has_order(bytes s) {
    static pattern order = {.regex = "[<>]|\\\\[lg](?:e|eq|eqslant)?(?![A-Za-z])"};
    return pattern_find(&order, (span){s.s, s.n}, 0, NULL);
}

/* True if the text says that something is not equal. */
static bool has_inequality(bytes s) {
    static pattern unequal = {.regex = "\\\\neq?(?![A-Za-z])|\u2260"};
    return pattern_find(&unequal, (span){s.s, s.n}, 0, NULL);
}

/* True if @w also rewords the gold. */
static bool rewords_gold(wording *w) {
    return w == math_read_words || w == math_read_parameter || w == math_read_noon ||
           w == math_read_compound || w == math_reduce_ratio || w == math_drop_quantifier;
}

/* True if the gold is a number without a unit. It has digits and signs, and the only letters are
 * those of macros for numbers, and "e" for a power of ten. */
static bool is_bare_number(bytes g) {
    static pattern number = {
        .regex =
            "^(?:[-+0-9.,(){}$\\s*/^]|(?<=[0-9])[eE](?=[-+0-9])|\\\\(?:[dt]?frac|sqrt|pi|times|"
            "cdot)(?![A-Za-z])|\\\\[,;! ])+$"};
    return pattern_find(&number, (span){g.s, g.n}, 0, NULL);
}

/* True if the wording may be that of an answer to the gold @g. */
static bool is_wording_for(wording *w, bytes g) {
    bool colon = memchr(g.s, ':', g.n), matrix = memmem(g.s, g.n, "\\begin", 6);
    if (w == math_read_ratio)
        return colon;
    if (w == math_drop_unit)
        return is_bare_number(g);
    if (w == math_read_hour)
        return !colon;
    if (w == math_read_rows)
        return matrix;
    if (w == math_read_vector)
        return matrix || memchr(g.s, ',', g.n);
    if (w == math_read_notations)
        return !has_membership(g);
    if (w == math_drop_index)
        return !memchr(g.s, '_', g.n);
    if (w == math_drop_condition || w == math_drop_exclusion)
        return !has_order(g) && !has_inequality(g);
    return w != math_read_residue || memmem(g.s, g.n, "mod", 3);
}

/* Compares other wordings of the answer until one is equal to the gold. Each is made from the one
 * before it. The last two wordings drop a left side and read wide spaces as commas. They are tried
 * only if the answer could not be parsed, or if its left side only names the value
 * (names_value()). */
static math_verdict compare_wordings(reworded *g, reworded *a, math_verdict v) {
    static wording *const wordings[] = {
        math_read_parameter,  math_drop_index,        math_read_residue,    math_read_noon,
        math_read_compound,   math_drop_introduction, math_read_words,      math_drop_condition,
        math_drop_exclusion,  math_read_vector,       math_read_conclusion, math_read_notations,
        math_read_range,      math_read_hour,         math_read_rows,       math_read_ratio,
        math_reduce_ratio,    math_drop_quantifier,   math_drop_unit,       math_drop_left_side,
        math_read_wide_spaces};
    enum { kOnlyUnparsed = COUNT(wordings) - 2 };
    for (size_t i = 0; i < COUNT(wordings) && v.outcome != MATH_EQUAL; i++) {
        bytes gold = reworded_text(g);
        bool only_unparsed = i >= kOnlyUnparsed;
        bool chain = wordings[i] == math_drop_left_side && names_value(a, v);
        if (only_unparsed && (v.outcome != MATH_UNPARSED || v.gold_unread) && !chain)
            break;
        if (!is_wording_for(wordings[i], gold))
            continue;
        bool changed = reword(a, wordings[i]);
        if (rewords_gold(wordings[i]))
            changed |= reword(g, wordings[i]);
        if (!changed)
            continue;
        math_verdict next = compare_readings(reworded_text(g), reworded_text(a), MATH_TRUTH);
        v = next.outcome == MATH_UNPARSED && v.outcome == MATH_DIFFERENT ? v : next;
    }
    return v;
}

/* Compares \frac{3}{7} = 0.43 by its left side. The right side must be the gold, rounded. */
static bool equals_before_rounding(bytes g, bytes a) {
    char left[kMathMaxInput], check[kMathMaxInput], digits[kMathMaxInput];
    size_t n;
    if (!math_drop_rounding(a.s, a.n, g.s, g.n, left, check, digits, sizeof left, &n) ||
        compare_readings(g, (bytes){left, n}, MATH_TRUTH).outcome != MATH_EQUAL)
        return false;
    bytes whole = {digits, strlen(digits)}, value = {check, strlen(check)};
    return compare_readings(whole, value, MATH_TRUTH).outcome == MATH_EQUAL;
}

/* The end of the left side of an equation; 0 if there is no equals sign. */
static size_t left_side(bytes s) {
    const char *sign = s.n ? memchr(s.s, '=', s.n) : NULL;
    return sign ? (size_t)(sign - s.s) : 0;
}

/* Compares a gold such as \varphi(100) = 40 by its right side. An answer with a left side must have
 * the same one. */
static bool equals_called_value(bytes g, bytes a) {
    char value[kMathMaxInput], right[kMathMaxInput];
    size_t n, m, left = left_side(a);
    if (!math_drop_call(g.s, g.n, value, sizeof value, &n))
        return false;
    if (left) {
        bytes name = {g.s, left_side(g)}, other = {a.s, left};
        if (compare_readings(name, other, MATH_TRUTH).outcome != MATH_EQUAL ||
            !math_drop_left_side(a.s, a.n, right, sizeof right, &m))
            return false;
        a = (bytes){right, m};
    }
    return compare_readings((bytes){value, n}, a, MATH_TRUTH).outcome == MATH_EQUAL;
}

/* Compares 20 m/s = 72 km/h by the sides whose units can be compared with that of the gold. */
static bool equals_a_quantity(bytes g, bytes a) {
    static pattern equation = {.regex = "^[\\s$]*([0-9][0-9.,]*\\s*\\\\text\\{[^{}=]+\\})\\s*=\\s*"
                                        "([0-9][0-9.,]*\\s*\\\\text\\{[^{}=]+\\})[\\s.$]*$"};
    static const char macro[] = "\\text";
    span groups[PATTERN_GROUPS];
    if (!memmem(g.s, g.n, macro, sizeof macro - 1) ||
        !pattern_find(&equation, (span){a.s, a.n}, 0, groups))
        return false;
    bool equal = false, different = false;
    for (int i = 1; i < 3; i++) {
        math_verdict v = compare_readings(g, (bytes){groups[i].s, groups[i].n}, MATH_TRUTH);
        equal |= v.outcome == MATH_EQUAL;
        different |= v.outcome != MATH_EQUAL && strcmp(v.reason, "different units") != 0;
    }
    return equal && !different;
}

/* Compares general solutions of a differential equation, whose constants may have other names. */
static bool equals_with_constants(bytes g, bytes a) {
    static pattern solution = {.regex = "e\\s*\\^|\\\\(?:sin|cos|exp|ln)(?![A-Za-z])"};
    static pattern condition = {
        .regex = "(?i),?[\\s$]+(?:for|where|with)\\s[^=]*\\bconstants?\\b[^=]*$"};
    char renamed[kMathMaxInput];
    size_t n;
    bool equal = false;
    span groups[PATTERN_GROUPS];
    bool named = pattern_find(&condition, (span){a.s, a.n}, 0, groups);
    if (named)
        a.n = (size_t)(groups[0].s - a.s);
    if (!memchr(a.s, '=', a.n) || (!named && !pattern_find(&solution, (span){g.s, g.n}, 0, NULL)))
        return false;
    if (named && compare_readings(g, a, MATH_TRUTH).outcome == MATH_EQUAL)
        return true;
    for (int way = 0; way < 2 && !equal; way++)
        equal = math_rename_constants(g.s, g.n, way, a.s, a.n, renamed, sizeof renamed, &n) &&
                compare_readings(g, (bytes){renamed, n}, MATH_TRUTH).outcome == MATH_EQUAL;
    return equal;
}

/* Compares a family of solutions with a gold that does not say what its parameter is. */
static bool equals_as_family(bytes g, bytes a) {
    char family[kMathMaxInput], renamed[kMathMaxInput];
    size_t n, m;
    return math_read_parameter(a.s, a.n, family, sizeof family, &n) &&
           math_rename_parameter(g.s, g.n, family, n, renamed, sizeof renamed, &m) &&
           compare_readings(g, (bytes){renamed, m}, MATH_TRUTH).outcome == MATH_EQUAL;
}

/* Compares functions whose arguments have other names. */
static bool equals_with_argument(bytes g, bytes a) {
    char renamed[kMathMaxInput];
    size_t n;
    return math_rename_argument(g.s, g.n, a.s, a.n, renamed, sizeof renamed, &n) &&
           compare_readings(g, (bytes){renamed, n}, MATH_TRUTH).outcome == MATH_EQUAL;
}

/* Compares a numeral with letters for digits, such as 5C7_{16}, without its base. */
static bool equals_without_base(bytes g, bytes a) {
    static pattern based = {.regex = "^[\\s$]*(?:\\\\text\\{)?([0-9A-F]*[A-F][0-9A-F]*)\\}?_"
                                     "(?:\\{?1[1-6]\\}?|\\{\\\\text\\{[a-z]+\\}\\})[\\s$]*$"};
    static pattern numeral = {
        .regex = "^[\\s$]*(?:\\\\(?:text|mathrm|texttt)\\{)?([0-9A-F]+)\\}?[\\s.$]*$"};
    span gold[PATTERN_GROUPS], answer[PATTERN_GROUPS];
    return pattern_find(&based, (span){g.s, g.n}, 0, gold) &&
           pattern_find(&numeral, (span){a.s, a.n}, 0, answer) && gold[1].n == answer[1].n &&
           memcmp(gold[1].s, answer[1].s, gold[1].n) == 0;
}

/* Compares a matrix with a name such as -2I. */
static bool equals_named_matrix(bytes g, bytes a) {
    char matrix[kMathMaxInput];
    size_t n;
    return math_read_matrix_name(g.s, g.n, a.s, a.n, matrix, sizeof matrix, &n) &&
           compare_readings(g, (bytes){matrix, n}, MATH_TRUTH).outcome == MATH_EQUAL;
}

/* Writes I(0) as a name if the gold has such a value of a function in a product. */
static void name_start_values(reworded *g, reworded *a) {
    static pattern product = {.regex = "(?<![A-Za-z\\\\])[A-Za-z]\\s*\\(\\s*0\\s*\\)(?!\\s*=)"};
    bytes gold = reworded_text(g);
    if (pattern_find(&product, (span){gold.s, gold.n}, 0, NULL)) {
        (void)reword(g, math_read_start_value);
        (void)reword(a, math_read_start_value);
    }
}

/* True if the gold says something about a variable, as in "n \\text{ is odd}", and the answer is
 * only the variable. */
static bool lacks_property(bytes g, bytes a) {
    static pattern property = {.regex = "\\\\text\\s*\\{\\s*(?:is|are|must be)\\b"};
    static pattern variable = {.regex = "^[\\s$]*(?:(?:[Ff]or )?[Aa]ll )?\\$?[a-zA-Z][\\s.$]*$"};
    return pattern_find(&variable, (span){a.s, a.n}, 0, NULL) &&
           pattern_find(&property, (span){g.s, g.n}, 0, NULL);
}

static math_verdict compare_truth(bytes g, bytes a) {
    reworded gold = {.which = 0}, answer = {.which = 0};
    if (!math_rewrite(g.s, g.n, gold.text[0], kMathMaxInput, &gold.n))
        return unread("too long", true);
    if (!math_rewrite(a.s, a.n, answer.text[0], kMathMaxInput, &answer.n))
        return unread("too long", false);
    name_start_values(&gold, &answer);
    g = reworded_text(&gold);
    a = reworded_text(&answer);
    if (lacks_property(g, a))
        return verdict(MATH_DIFFERENT, "a variable without what is said about it");
    if (math_are_opposite(g.s, g.n, a.s, a.n))
        return verdict(MATH_DIFFERENT, "an opposite change or direction");
    math_verdict whole = compare_readings(g, a, MATH_TRUTH);
    if (whole.outcome == MATH_EQUAL)
        return whole;
    if (math_phrases_equal(g.s, g.n, a.s, a.n) || math_letters_equal(g.s, g.n, a.s, a.n))
        return verdict(MATH_EQUAL, "the same words");
    if (equals_before_rounding(g, a))
        return verdict(MATH_EQUAL, "the same value, and rounded");
    if (equals_called_value(g, a))
        return verdict(MATH_EQUAL, "the same value of a function");
    if (equals_as_family(g, a))
        return verdict(MATH_EQUAL, "the same family with another parameter");
    if (equals_without_base(g, a))
        return verdict(MATH_EQUAL, "a numeral without its base");
    if (equals_named_matrix(g, a))
        return verdict(MATH_EQUAL, "the same matrix by its name");
    if (equals_with_argument(g, a))
        return verdict(MATH_EQUAL, "the same function of another argument");
    if (equals_with_constants(g, a))
        return verdict(MATH_EQUAL, "the same solution with other constants");
    if (equals_a_quantity(g, a))
        return verdict(MATH_EQUAL, "the same quantity in two units");
    return compare_wordings(&gold, &answer, whole);
}

snap_status math_equal(const char *gold, size_t gold_len, const char *answer, size_t answer_len,
                       math_policy policy, math_verdict *out) {
    if (!gold || !answer || !out)
        return SNAP_E_USAGE;
    bytes g = {gold, gold_len}, a = {answer, answer_len};
    *out = policy == MATH_TRUTH ? compare_truth(g, a) : compare_readings(g, a, policy);
    return SNAP_OK;
}
