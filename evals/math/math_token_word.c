/* Reads the tokens of words, of units and of the content of \text. */
#include "evals/math/math_lexer.h"

enum { kMaxTexts = 4 }; /* largest depth of nested \text for MATH_TRUTH */

void math_push_letter(lexer *l, const char *s, size_t n) {
    if (n == 1 && *s == 'e')
        push(l, TOK_CONST, CONST_E, s, n);
    else if (n == 1 && *s == 'i')
        push(l, TOK_CONST, CONST_I, s, n);
    else
        push(l, TOK_SYM, 0, s, n);
}

static const math_spelling *find_word(const lexer *l, const char *s, size_t n) {
    const math_spelling *w = math_find_word(s, n);
    return w || !l->truth ? w : math_find_rare_word(s, n);
}

static int unit_place(const lexer *l) {
    return l->inside ? '(' : l->gap;
}

/* For MATH_TRUTH: true for a word of a unit that is typed without a \text: the last words of "461
 * miles per hour", the h of km/h. @l->s is at its end. */
static bool is_bare_unit(const lexer *l, const char *s, size_t n) {
    const math_tokens *t = l->out;
    size_t k = t->count;
    if (k > 1 && t->tok[k - 1].kind == TOK_SLASH && t->tok[k - 2].kind == TOK_UNIT)
        return true;
    bool inches = n == 2 && memcmp(s, "in", 2) == 0 && k && t->tok[k - 1].kind == TOK_NUM;
    bool after_word = l->run_end > 0 && l->run_end == k;
    if ((n < 3 && !inches) || !after_value(l) || after_word ||
        !(l->spaced || t->tok[k - 1].kind == TOK_UNIT) || math_find_word(s, n))
        return false;
    for (const char *rest = l->s; rest < l->end; rest++)
        if (!is_letter(*rest) && !is_space(*rest) && !strchr(".^23/{}$", *rest))
            return false;
    return !inches || skip_spaces(l, l->s) == l->end || strchr(".^$", *skip_spaces(l, l->s));
}

/* True if a bracket or \mathbb follows, as in "x in [0, 1]". */
static bool opens_set(const lexer *l) {
    const char *s = skip_spaces(l, l->s);
    return s < l->end && (strchr("[({", *s) || starts(l, s, "\\{") || starts(l, s, "\\mathbb"));
}

void math_lex_letters(lexer *l) {
    const char *s = l->s;
    while (l->s < l->end && is_letter(*l->s))
        l->s++;
    size_t n = (size_t)(l->s - s);
    const math_spelling *w = find_word(l, s, n);
    bool member = l->truth && n == 2 && memcmp(s, "in", 2) == 0 && l->spaced && l->out->count &&
                  l->out->tok[l->out->count - 1].kind == TOK_SYM && opens_set(l);
    if (member) {
        push(l, TOK_REL, REL_IN, s, n);
    } else if (l->truth && !w && is_bare_unit(l, s, n)) {
        push(l, TOK_UNIT, 0, s, n);
    } else if (w) {
        l->out->typed |= w->kind == TOK_FN;
        push(l, w->kind, w->arg, s, n);
    } else if (n > 1 && after_value(l) && math_is_unit(s, n)) {
        if (l->s < l->end && *l->s == '^' && !l->truth)
            l->why = "a power of a unit outside \\text";
        push(l, TOK_UNIT, unit_place(l), s, n);
    } else {
        l->out->prose |= n > 1 && l->spaced && l->run_end > 0 && l->run_end == l->out->count;
        for (size_t i = 0; i < n; i++)
            math_push_letter(l, s + i, 1);
        l->run_end = n > 1 ? l->out->count : 0;
    }
}

const char *math_group_end(const lexer *l, const char *s) {
    int depth = 0;
    for (; s < l->end; s++) {
        if (*s == '\\' && s + 1 < l->end)
            s++;
        else if (*s == '{')
            depth++;
        else if (*s == '}' && --depth == 0)
            return s;
    }
    return l->end;
}

/* True if the content of a \text is mathematics: it is ASCII, has no plain words and no letters
 * that label a number, as in "(b) 0", and is not a unit without a number. */
static bool is_mathematics(const char *s, const char *end) {
    bool letter = false, digit = false, unit = false;
    while (s < end) {
        if ((unsigned char)*s >= 0x80)
            return false;
        digit |= is_digit(*s);
        const char *run = s;
        while (s < end && is_letter(*s))
            s++;
        size_t n = (size_t)(s - run);
        letter |= n == 1 && !math_is_unit(run, n);
        unit |= math_is_unit(run, n);
        if (n > 1 && !math_find_word(run, n) && !math_is_unit(run, n))
            return false;
        s += n == 0;
    }
    return digit ? !letter : !unit;
}

void math_lex_piece(lexer *l, const char *s, const char *end) {
    const char *after = l->s, *whole_end = l->end;
    l->s = s;
    l->end = end;
    math_lex(l);
    l->s = after;
    l->end = whole_end;
}

static bool has_digit(const char *s, const char *end) {
    while (s < end && !is_digit(*s))
        s++;
    return s < end;
}

/* How to read the content of a \text (with outer spaces removed): as a unit after a value, as
 * mathematics (TOK_END), or as words. */
static math_token_kind text_kind(const lexer *l, const char *s, const char *end, bool glued) {
    bool letter = is_letter(*s), one = end - s == 1;
    if (memchr(s, '\\', (size_t)(end - s)) || (one && !letter))
        return TOK_END;
    if (one && glued && (*s == 'i' || *s == 'e'))
        return TOK_END;
    if (after_value(l))
        return TOK_UNIT;
    return is_mathematics(s, end) ? TOK_END : TOK_WORD;
}

void math_lex_text(lexer *l) {
    const char *open = skip_spaces(l, l->s);
    if (open == l->end || *open != '{')
        return;
    const char *end = math_group_end(l, open), *s = open + 1;
    l->s = end < l->end ? end + 1 : end;
    bool glued = s < end && !is_space(*s);
    while (s < end && is_space(*s))
        s++;
    while (end > s && (is_space(end[-1]) || (l->truth && end - s > 3 && end[-1] == '.')))
        end--;
    size_t n = (size_t)(end - s);
    if (n == 0 || (n == 1 && *s == '.' && after_value(l))) /* \text{.} only ends a sentence */
        return;
    if (l->quoted >= (l->truth ? kMaxTexts : 1)) {
        l->why = "a \\text within a \\text";
        return;
    }
    l->out->text = true;
    const math_spelling *w = find_word(l, s, n);
    math_token_kind kind = w ? (math_token_kind)w->kind : text_kind(l, s, end, glued);
    if (kind == TOK_END) {
        l->out->wrapped |= has_digit(s, end);
        l->quoted++;
        math_lex_piece(l, s, end);
        l->quoted--;
    } else if (kind == TOK_PERCENT) {
        push(l, kind, 2, s, n);
    } else {
        push(l, kind, w ? w->arg : kind == TOK_UNIT ? unit_place(l) : 0, s, n);
    }
}
