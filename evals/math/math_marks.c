#include "evals/math/math_marks.h"

#include <string.h>

#include "evals/math/math_spelling.h"

/* Skips what may come between a number and a full stop: cm^2, a degree sign, a percent sign. */
static const math_token *skip_units(const math_token *k) {
    while (k->kind == TOK_UNIT || k->kind == TOK_DEGREE || k->kind == TOK_PERCENT)
        k += k->kind == TOK_UNIT && k[1].kind == TOK_CARET && k[2].kind == TOK_NUM ? 3 : 1;
    return k;
}

/* Returns the token after \frac{1}{3}; NULL if there is anything else (\dfrac, spaces, other
 * content than numbers). */
static const math_token *skip_fraction(const math_token *k) {
    static const uint8_t kinds[] = {TOK_FRAC,   TOK_LBRACE, TOK_NUM,   TOK_RBRACE,
                                    TOK_LBRACE, TOK_NUM,    TOK_RBRACE};
    if (k->kind != TOK_FRAC || k->text.len != strlen("frac"))
        return NULL;
    for (size_t i = 0; i < COUNT(kinds); i++, k++)
        if (k->kind != kinds[i] || k->spaced)
            return NULL;
    return k;
}

static const math_token *skip_name(const math_tokens *t) {
    const math_token *k = t->tok;
    if (math_is_short_naming(t))
        while (k++->kind != TOK_REL)
            continue;
    return k;
}

/* Removes a full stop that some public grader ignores: in "x = 9.", "0.5." (but not in "\$0.5." and
 * "x = 0.5."), "9 \text{ cm}.", and after \frac{1}{3}. Also removes a UTF-8 degree sign after a
 * whole number if it ends the answer and neither a space nor layout such as a dollar sign precedes
 * the number. */
void math_drop_mark(math_tokens *t) {
    const math_token *number = skip_name(t);
    number += number->kind == TOK_MINUS;
    const math_token *last = skip_fraction(number);
    if (!last && number->kind != TOK_NUM)
        return;
    bool whole = !last && !memchr(number->text.s, '.', number->text.len);
    if (!last)
        last = whole ? skip_units(number + 1) : number + 1;
    bool sign = whole && !number->spaced && !t->tok[0].spaced && number[1].kind == TOK_DEGREE &&
                number[1].arg && number[2].kind == TOK_END;
    bool money = number->kind == TOK_NUM && !whole && (t->tok[0].spaced || number > t->tok + 1);
    if (sign || (last->kind == TOK_POINT && last[1].kind == TOK_END && !money))
        t->count--;
}

/* True if a text after a value begins a remark about it. */
static bool is_remark(math_span s) {
    static const char *const words[] = {"since", "because", "not", "rather", "instead", "as"};
    uint32_t i = 0, end;
    while (i < s.len && !is_letter(s.s[i]))
        i++;
    for (end = i; end < s.len && is_letter(s.s[end]);)
        end++;
    for (size_t k = 0; k < COUNT(words); k++)
        if (span_is(s.s + i, end - i, words[k]))
            return true;
    return false;
}

void math_trim_prose(math_tokens *t) {
    for (size_t i = 1; i < t->count; i++)
        if (t->tok[i].kind == TOK_UNIT && is_remark(t->tok[i].text))
            t->count = i;
    for (; t->count > 1; t->count--) {
        const math_token *last = &t->tok[t->count - 1];
        if (last->kind != TOK_POINT && (last->kind != TOK_COMMA || last->arg > ';'))
            break;
    }
}

/* Refuses a UTF-8 degree sign that math_drop_mark() has not removed, and any degree sign after a
 * unit. */
static const char *check_degrees(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_DEGREE &&
            (t->tok[i].arg || (i > 0 && t->tok[i - 1].kind == TOK_UNIT)))
            return "a degree sign after something that is not a number";
    return NULL;
}

/* True if only a number or a plain fraction, possibly with a short name, precedes @unit, without
 * spaces inside and without a plus sign. */
static bool is_plain_number(const math_tokens *t, const math_token *unit) {
    const math_token *k = t->tok;
    if (math_is_statement(t)) {
        if (!math_is_short_naming(t))
            return false;
        while (k->kind != TOK_REL)
            k++;
        k++;
    }
    const math_token *first = k;
    if (first->kind == TOK_LBRACE)
        return false;
    for (; k < unit; k++) {
        bool number = k->kind == TOK_MINUS || k->kind == TOK_NUM || k->kind == TOK_FRAC ||
                      k->kind == TOK_LBRACE || k->kind == TOK_RBRACE || k->kind == TOK_SLASH;
        if (!number || (k->spaced && k != first))
            return false;
    }
    return true;
}

/* Checks the space before the first unit. A '~' is accepted after a plain number, and \, in an
 * answer without a thousands separator. A unit between \( and \) is refused. */
static const char *check_units(const math_tokens *t) {
    for (const math_token *k = t->tok; k->kind != TOK_END; k++) {
        if (k->kind != TOK_UNIT)
            continue;
        if (k->arg == '(')
            return "a unit between \\( and \\)";
        if ((k->arg == '~' && !is_plain_number(t, k)) || (k->arg == ',' && t->separated))
            return "a space that cannot precede a unit";
        break; /* only the first unit is checked */
    }
    return NULL;
}

/* Words after a value that change it or put a condition on it. */
static bool is_condition(math_span s) {
    static const char *const words[] = {
        "not",     "or",       "if",         "only",       "unless", "times", "less",
        "than",    "maybe",    "digits",     "impossible", "too",    "wrong", "incorrect",
        "invalid", "excluded", "extraneous", "rejected",   "fails",  "cannot"};
    for (uint32_t i = 0, end; i < s.len; i = end + 1) {
        for (end = i; end < s.len && is_letter(s.s[end]);)
            end++;
        for (size_t k = 0; k < COUNT(words); k++)
            if (span_is(s.s + i, end - i, words[k]))
                return true;
    }
    return false;
}

const char *math_check_conditions(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_UNIT && is_condition(t->tok[i].text))
            return "a condition after the value";
    return NULL;
}

const char *math_check_marks(const math_tokens *t) {
    const char *why = check_degrees(t);
    return why ? why : check_units(t);
}

/* The one-letter unit at the end of the answer, such as the t of x + y + 2t. It follows a space, a
 * digit or a brace. 0 if there is none. */
static char unit_letter(const math_tokens *t) {
    const math_token *k = t->count > 1 ? &t->tok[t->count - 1] : t->tok;
    if (t->count < 2 || k->kind != TOK_SYM || k->text.len != 1 || !strchr("cdghlmost", *k->text.s))
        return 0;
    bool apart = k->spaced || k[-1].kind == TOK_NUM || k[-1].kind == TOK_RBRACE;
    return apart ? *k->text.s : 0;
}

/* The letters of a token as a bit set. The letters of a command's name count too. A root counts as
 * three letters, because prm800k reads it that way. */
static uint32_t letters_of(const math_token *k) {
    uint32_t letters = k->kind == TOK_SQRT ? 7 : 0;
    bool named = k->kind == TOK_SYM || k->kind == TOK_FN || k->kind == TOK_CONST;
    for (uint32_t i = 0; named && i < k->text.len; i++)
        if (is_letter(k->text.s[i]))
            letters |= 1u << ((unsigned)k->text.s[i] & 31u);
    return letters;
}

static int count_letters(const math_tokens *g, const math_tokens *a) {
    uint32_t letters = 0;
    for (size_t i = 0; i < g->count; i++)
        letters |= letters_of(&g->tok[i]);
    for (size_t i = 0; i < a->count; i++)
        letters |= letters_of(&a->tok[i]);
    return __builtin_popcount(letters);
}

static bool is_compound(const math_tokens *t) {
    const math_token *k = t->tok;
    while (k->kind != TOK_REL && k->kind != TOK_COMMA && k->kind != TOK_END)
        k++;
    return k->kind != TOK_END;
}

bool math_drops_letter(const math_tokens *gold, const math_tokens *answer) {
    if (unit_letter(gold) == unit_letter(answer))
        return false;
    return is_compound(gold) || is_compound(answer) || count_letters(gold, answer) > 2;
}
