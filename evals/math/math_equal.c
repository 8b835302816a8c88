#include "evals/math/math_equal.h"

#include <string.h>

#include "evals/math/math_judge.h"
#include "evals/math/math_marks.h"

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
    j.ordered = ordered;
    j.listed = j.named = false;
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
    return verdict(equal ? MATH_EQUAL : MATH_DIFFERENT, j.reason);
}

/* True if one side separates thousands by spaces and the other by commas, as in 1 440 and 1,440.
 * compare() then returns MATH_UNPARSED. False for 1 440 and 1440, which compare() compares. */
static bool is_spaced_otherwise(const math_tokens *g, const math_tokens *a) {
    return (g->spaced_group && a->separated) || (a->spaced_group && g->separated);
}

/* True if the answer's comma is ambiguous: "\theta = 1,440" may be two numbers. So may "x = 1,440",
 * unless the gold has a separator too. */
static bool is_ambiguous(const math_tokens *g, const math_tokens *a) {
    return a->separated && math_is_statement(a) && !(g->separated && math_is_short_naming(a));
}

/* True for an answer with several relations, such as x = 100, y = 200. A 100,200 on the other side
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

static math_verdict compare(bytes gold, bytes answer, math_policy policy, bool group,
                            bool *grouped) {
    math_tokens g, a;
    math_verdict v;
    const char *gold_why = math_tokenize(&g, gold.s, gold.n, group);
    const char *why = math_tokenize(&a, answer.s, answer.n, group);
    if ((gold_why || why) && same_text(gold, answer))
        return verdict(MATH_EQUAL, "written the same way except for spaces");
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
        return verdict(MATH_EQUAL, "written the same way");
    if (math_words_equal(&g, &a))
        return verdict(MATH_EQUAL, "the same words");
    if (g.typed || a.typed)
        return unread("a function's name without a backslash", g.typed);
    if (a.wrapped && (math_is_statement(&a) || a.tok[0].kind == TOK_REL))
        return unread("a number in a \\text after its name", false);
    if (g.prose || a.prose)
        return unread("prose", g.prose);
    if (math_drops_letter(&g, &a))
        return verdict(MATH_DIFFERENT, "the last letter is taken for a unit");
    if (is_ambiguous(&g, &a)) {
        *grouped = false; /* not compared as a list either */
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
        *out = verdict(MATH_EQUAL, "written the same way except for a name");
        return SNAP_OK;
    }
    if (out->outcome != MATH_EQUAL && grouped) { /* 100,200 may be two numbers: compare again as a
                                                    list */
        math_verdict list = compare(g, a, policy, false, &grouped);
        if (list.outcome == MATH_EQUAL)
            *out = list;
    }
    return SNAP_OK;
}
