/* letter_lines.c - lists of the options, and letters without a sentence. A comment that only quotes
 * a text is an example of the case that its line handles. */
#include "evals/letter_lines.h"

#include <stdint.h>
#include <string.h>

#include "evals/letter_clause.h"
#include "evals/letter_sides.h"

#define NONE SIZE_MAX

enum { LABEL_WORDS = 4, CLOSING_WORDS = 8, HEADING_WORDS = 16, GLOSS = 8 };

#define IS(t, c) (((t)->is & (c)) != 0)

typedef struct {
    size_t first, end; /* tokens */
} line;

static const token *at(const letter_tokens *t, size_t i) {
    static const token feed = {.kind = TOKEN_LINE};
    return i < t->n ? &t->t[i] : &feed;
}

static line line_at(const letter_tokens *t, size_t i) {
    line l = {i, i};
    while (l.first && t->t[l.first - 1].kind != TOKEN_LINE)
        l.first--;
    while (l.end < t->n && t->t[l.end].kind != TOKEN_LINE)
        l.end++;
    return l;
}

/* The nearest line before or after @l that is not empty; empty if there is none. */
static line line_before(const letter_tokens *t, line l) {
    size_t i = l.first;
    while (i && t->t[i - 1].kind == TOKEN_LINE)
        i--;
    return i ? line_at(t, i - 1) : (line){0, 0};
}

static line line_after(const letter_tokens *t, line l) {
    size_t i = l.end;
    while (i < t->n && t->t[i].kind == TOKEN_LINE)
        i++;
    return i < t->n ? line_at(t, i) : (line){t->n, t->n};
}

#define SET(kind) (1U << (kind))

static bool is_one_of(const token *k, unsigned kinds) {
    return kinds >> k->kind & 1U;
}

static bool is_word(const token *k, word_class is) {
    return k->kind == TOKEN_WORD && IS(k, is);
}

/* True for a character such as a flag or a face. */
static bool is_emoji(const letter_tokens *t, const token *k) {
    return k->kind == TOKEN_WORD && k->n >= 4 && memcmp(t->text.s + k->at, "\xF0\x9F", 2) == 0;
}

/* The first token of a line after its number, marks, and "option". */
static size_t skip_label_words(const letter_tokens *t, line l) {
    size_t i = l.first;
    for (size_t n = 0; i < l.end && n < LABEL_WORDS; n++, i++) {
        const token *k = &t->t[i];
        bool number = n < 2 && (k->kind == TOKEN_NUMBER || (n && k->kind == TOKEN_STOP));
        unsigned marks = SET(TOKEN_YES) | SET(TOKEN_NO) | SET(TOKEN_OPEN) | SET(TOKEN_ARROW);
        bool emoji = is_emoji(t, k);
        if (!number && !emoji && !is_one_of(k, marks) && !is_word(k, WORD_OPTION))
            break;
    }
    return i;
}

/* True if the token after the mention at @i makes it a label: "C)", "C:", "C because", "C yes",
 * "C (text)". */
static bool is_label(const letter_tokens *t, size_t i, line l) {
    const token *k = &t->t[i], *next = at(t, i + 1), *third = at(t, i + 2);
    unsigned signs = SET(TOKEN_STOP) | SET(TOKEN_COLON) | SET(TOKEN_DASH) | SET(TOKEN_YES) |
                     SET(TOKEN_NO) | SET(TOKEN_CLOSE);
    if (k->framed || k->bracket || i + 1 >= l.end || is_one_of(next, signs))
        return true;
    switch ((token_kind)next->kind) {
    case TOKEN_WORD:
        return (IS(next, WORD_WHY) && !IS(next, WORD_CASE)) ||
               (IS(next, WORD_YES | WORD_NOT | WORD_RIGHT) && i + 2 == l.end);
    case TOKEN_ARROW:
        return is_word(third, WORD_RIGHT | WORD_WRONG | WORD_YES | WORD_NOT | WORD_MAY);
    case TOKEN_COMMA:
        return is_word(third, WORD_WHY | WORD_BUT);
    default:
        return next->kind == TOKEN_OPEN && k->letter != 'A' &&
               at(t, l.end - 1)->kind == TOKEN_CLOSE;
    }
}

/* The mention with which a line begins, as in "B) text", "Option B: text", "(B)"; NONE if it begins
 * otherwise. */
static size_t label_of(const letter_tokens *t, line l) {
    size_t i = skip_label_words(t, l), after = i + 3;
    const token *k = at(t, i);
    if (i >= l.end || k->kind != TOKEN_OPTION || k->ordinal)
        return NONE;
    bool ends = after == l.end || (after + 1 == l.end && t->t[after].kind == TOKEN_STOP);
    bool answer = k->letter == 'A' && !k->framed && at(t, i + 1)->kind == TOKEN_COLON &&
                  at(t, i + 2)->kind == TOKEN_OPTION; /* "A: C" */
    return !(answer && ends) && is_label(t, i, l) ? i : NONE;
}

/* True if a line says that the options follow: "Let us go through the options one by one." */
static bool announces_list(const letter_tokens *t, line l) {
    bool study = false, options = false, plural = false, chooses = false;
    size_t words = 0;
    for (size_t i = l.first; i < l.end; i++) {
        const token *k = &t->t[i];
        if (k->kind == TOKEN_OPTION || ++words > HEADING_WORDS)
            return false;
        study = study || IS(k, WORD_STUDY) || (IS(k, WORD_I) && words == 1);
        chooses = chooses || (k->kind == TOKEN_WORD && IS(k, WORD_RIGHT | WORD_MOST));
        plural = plural || (k->kind == TOKEN_WORD && IS(k, WORD_BOTH | WORD_STUDY));
        options = options || (IS(k, WORD_OPTION | WORD_ALL) && k->kind == TOKEN_WORD);
    }
    bool heading = words && words <= 3 && plural && at(t, l.end - 1)->kind == TOKEN_COLON;
    return !chooses && ((study && options) || heading);
}

bool letter_in_list(const letter_tokens *t, size_t i) {
    size_t near = i > LABEL_WORDS ? i - LABEL_WORDS : 0, j = i;
    while (j > near && t->t[j - 1].kind != TOKEN_LINE)
        j--;
    if (j == near && j > 0 && t->t[j - 1].kind != TOKEN_LINE)
        return false;
    line l = line_at(t, i);
    size_t own = label_of(t, l);
    if (own != i)
        return false;
    line b = line_before(t, l), a = line_after(t, l);
    size_t before = label_of(t, b), after = label_of(t, a);
    if (before != NONE && t->t[before].letter != t->t[i].letter)
        return true;
    if (after != NONE && t->t[after].letter != t->t[i].letter)
        return true;
    return b.end > b.first && l.end - l.first > 2 && announces_list(t, b);
}

/* ---- letters without a sentence ---- */

static bool names_others(const letter_tokens *t, line l, size_t own) {
    for (size_t i = l.first; i < l.end; i++) {
        const token *k = &t->t[i], *next = at(t, i + 1);
        unsigned signs = SET(TOKEN_STOP) | SET(TOKEN_COLON) | SET(TOKEN_YES) | SET(TOKEN_NO);
        bool label = k->framed || k->bracket || is_one_of(next, signs);
        bool named = k->named && label && i + 2 < l.end; /* "A. lead B. tin" */
        if ((k->kind == TOKEN_OPTION || named) && k->letter != t->t[own].letter && label)
            return true;
    }
    return false;
}

/* The token after the mention at @i, or after the colon or dash after it. */
static const token *mark_after(const letter_tokens *t, size_t i) {
    return at(t, i + 1 + is_one_of(at(t, i + 1), SET(TOKEN_COLON) | SET(TOKEN_DASH)));
}

/* True if the words from @i on deny what comes before them: "cannot be", "is impossible". */
static bool denies(const letter_tokens *t, size_t i, line l) {
    bool denied = false;
    for (; i < l.end && t->t[i].kind == TOKEN_WORD; i++) {
        const token *k = &t->t[i];
        if (IS(k, WORD_WRONG | WORD_OUT) && !IS(k, WORD_FILL))
            return !denied;
        if (denied && (IS(k, WORD_RIGHT) || letter_has_text(t, k, "possible") ||
                       letter_has_text(t, k, "allowed")))
            return true;
        denied = denied || IS(k, WORD_NOT);
        if (!IS(k, WORD_BE | WORD_AUX | WORD_FILL | WORD_SO | WORD_NOT | WORD_IT))
            return false;
    }
    return denied;
}

/* True if the line rejects the option @own, with which it begins: a cross, or "B: the mass is
 * constant, which cannot be". */
static bool is_rejected(const letter_tokens *t, size_t own, line l) {
    const token *mark = mark_after(t, own);
    if (mark->kind == TOKEN_NO || (own > l.first && t->t[own - 1].kind == TOKEN_NO))
        return true;
    unsigned signs = SET(TOKEN_COMMA) | SET(TOKEN_DASH) | SET(TOKEN_SEMICOLON) | SET(TOKEN_STOP) |
                     SET(TOKEN_OPEN);
    for (size_t i = own + 2; i + 1 < l.end && t->t[i].kind != TOKEN_OPTION; i++) {
        bool turn =
            is_one_of(&t->t[i], signs) && is_word(&t->t[i + 1], WORD_IT | WORD_BUT | WORD_SO);
        turn = turn || (is_word(&t->t[i], WORD_BUT) && !IS(&t->t[i], WORD_FILL));
        for (size_t j = i + 1; turn && j < l.end && j < i + 3; j++)
            if (denies(t, j, l))
                return true;
    }
    return false;
}

/* The option of which a line consists or with which it begins. */
static size_t in_line(const letter_tokens *t, line l) {
    size_t i = label_of(t, l);
    if (i == NONE || names_others(t, l, i) || letter_in_list(t, i) || is_rejected(t, i, l) ||
        at(t, i + 1)->kind == TOKEN_ASK)
        return NONE;
    clause c = letter_clause(t, i);
    return c.letter && c.verdict != CLAUSE_DENIES && c.verdict != CLAUSE_OPEN ? i : NONE;
}

/* True if the label that ends before the token @i follows "so:" or "the answer:", as in "So in the
 * end: C. water". */
static bool is_introduced(const letter_tokens *t, size_t i, line l) {
    size_t j = i - 1;
    bool label = t->t[j].bracket || at(t, i)->kind == TOKEN_STOP, introduced = false;
    if (!label || j == l.first || !is_one_of(&t->t[j - 1], SET(TOKEN_COLON) | SET(TOKEN_ARROW)))
        return false;
    for (j--; j > l.first && !is_one_of(&t->t[j - 1], SET(TOKEN_STOP)); j--) {
        if (t->t[j - 1].kind == TOKEN_OPTION || IS(&t->t[j - 1], WORD_STUDY | WORD_NOT))
            return false;
        introduced = introduced || is_word(&t->t[j - 1], WORD_SO | WORD_ANSWER | WORD_RIGHT);
    }
    return introduced;
}

/* True if nothing but closing words, or the text of a framed option, comes from the token @i on in
 * its line. */
static bool closes(const letter_tokens *t, size_t i, line l) {
    bool labelled = t->t[i - 1].framed || is_introduced(t, i, l);
    bool text = labelled && i > 1 && l.end - i <= GLOSS &&
                !IS(at(t, i), WORD_NOT | WORD_WRONG); /* "(C) property" */
    for (size_t j = i - 1; text && j > l.first && t->t[j - 1].kind != TOKEN_STOP; j--)
        text = t->t[j - 1].kind != TOKEN_OPTION && t->t[j - 1].kind != TOKEN_NAME;
    for (size_t n = 0; i < l.end && !text; i++, n++) {
        const token *k = &t->t[i];
        bool closing = k->kind == TOKEN_STOP || k->kind == TOKEN_CLOSE || k->kind == TOKEN_COMMA ||
                       k->kind == TOKEN_YES ||
                       (k->kind == TOKEN_WORD && n < CLOSING_WORDS &&
                        IS(k, WORD_END | WORD_FILL | WORD_I | WORD_THINK));
        bool emoji = k->kind == TOKEN_WORD && !k->is && (unsigned char)t->text.s[k->at] >= 0xE2;
        if (!closing && !emoji)
            return false;
    }
    return true;
}

/* True if the tokens from @from to @to name options or other letters. If they are a @formula, its
 * variables and units do not count: "F = 30 N". */
static bool names_letters(const letter_tokens *t, size_t from, size_t to, bool formula) {
    bool equation = false, options = false, names = false;
    for (size_t i = from; i < to; i++) {
        equation = equation || (t->t[i].kind == TOKEN_EQUALS && i > from);
        options = options || t->t[i].kind == TOKEN_OPTION;
        names = names || t->t[i].kind == TOKEN_NAME;
    }
    const token *last = at(t, to - 1), *before = at(t, to - 2);
    bool value = last->kind == TOKEN_NUMBER || (to > from + 1 && before->kind == TOKEN_NUMBER);
    return options || (names && !(formula && equation && value));
}

/* True if a final letter is set off from the words before the token @i. */
static bool is_set_off(const letter_tokens *t, size_t i, line l) {
    size_t words = 0;
    for (; i > l.first; i--, words++) {
        const token *k = &t->t[i - 1];
        switch ((token_kind)k->kind) {
        case TOKEN_STOP:
        case TOKEN_ASK:
        case TOKEN_COLON:
        case TOKEN_SEMICOLON:
        case TOKEN_DASH:
        case TOKEN_OPEN:
            return true;
        case TOKEN_EQUALS:
        case TOKEN_ARROW:
            return !names_letters(t, l.first, i - 1, k->kind == TOKEN_ARROW);
        case TOKEN_COMMA:
            return words > 0 || IS(at(t, i - 2), WORD_SO | WORD_YES | WORD_WAIT | WORD_NOT) ||
                   (t->t[i].framed && t->t[i].kind == TOKEN_OPTION);
        case TOKEN_YES:
        case TOKEN_NO:
            continue;
        case TOKEN_WORD:
            if (IS(k, WORD_SO | WORD_FILL | WORD_OPTION | WORD_ANSWER | WORD_RIGHT | WORD_IT |
                          WORD_BUT | WORD_AND | WORD_MOST) &&
                !IS(k, WORD_NOT | WORD_OUT | WORD_THING | WORD_STUDY))
                continue;
            return words == 0 && t->t[i].framed && t->t[i].kind == TOKEN_OPTION &&
                   t->text.s[t->t[i].at] == '(' &&
                   !IS(k, WORD_BE | WORD_OR | WORD_NOT | WORD_STUDY | WORD_OUT | WORD_CHOOSE |
                              WORD_THING);
        case TOKEN_NUMBER:
        case TOKEN_NAME:
        case TOKEN_SIGN:
        case TOKEN_CLOSE:
            return words == 0 && t->t[i].framed;
        default:
            return false;
        }
    }
    return true;
}

size_t letter_first(const letter_tokens *t) {
    return in_line(t, line_after(t, (line){0, 0}));
}

size_t letter_final(const letter_tokens *t) {
    line l = line_before(t, (line){t->n, t->n});
    size_t found = NONE;
    for (size_t i = l.first; i < l.end; i++) {
        const token *k = &t->t[i];
        if (k->kind == TOKEN_OPTION && found == NONE && !k->native && !k->ordinal)
            found = i;
        else if (k->kind == TOKEN_OPTION || k->kind == TOKEN_WORD || k->kind == TOKEN_NUMBER ||
                 k->kind == TOKEN_NAME || k->kind == TOKEN_ASK || k->kind == TOKEN_NO ||
                 (k->kind == TOKEN_SIGN && !strchr("<>|~#.", t->text.s[k->at])))
            return NONE;
    }
    bool listed = found != NONE && letter_in_list(t, found);
    return listed ? NONE : found;
}

/* True if the mention at @i is joined to one just before it: "A or B", "A, B". */
static bool is_joined(const letter_tokens *t, size_t i, line l) {
    if (i == l.first || t->t[i - 1].kind == TOKEN_STOP)
        return false;
    for (size_t j = i; j > l.first && j + 4 > i; j--)
        if (t->t[j - 1].kind == TOKEN_OPTION && !letter_clause(t, j - 1).letter)
            return true;
    return false;
}

/* True if the line breaks off after an option that it was to discuss: "... Option A" */
static bool is_cut_off(const letter_tokens *t, size_t i, line l) {
    const token *before = at(t, i - 1);
    return i + 1 == l.end && i > l.first + 1 && is_word(before, WORD_OPTION) &&
           !IS(before, WORD_ANSWER) && at(t, i - 2)->kind == TOKEN_STOP;
}

static size_t in_last_line(const letter_tokens *t) {
    line l = line_before(t, (line){t->n, t->n});
    size_t i = in_line(t, l), end = l.end;
    if (i != NONE)
        return i;
    while (end > l.first && t->t[end - 1].kind != TOKEN_OPTION)
        end--;
    i = end - 1;
    if (end == l.first || !closes(t, end, l) || letter_in_list(t, i))
        return NONE;
    const token *k = &t->t[i];
    clause c = letter_clause(t, i);
    bool small = k->small && !k->framed && !k->bracket && i > l.first;
    if (c.verdict == CLAUSE_DENIES || c.verdict == CLAUSE_OPEN || k->native || k->ordinal ||
        !c.letter || small || is_joined(t, i, l) || is_cut_off(t, i, l))
        return NONE;
    return is_set_off(t, i, l) ? i : NONE;
}

/* True if the word at @j of a line with the label @i calls the option right: "correct", "yes". */
static bool is_yes(const letter_tokens *t, size_t i, size_t j) {
    static const char *const words[] = {"correct", "true", "right", "yes"};
    const token *before = at(t, j - 1), *next = at(t, j + 1);
    unsigned signs =
        SET(TOKEN_COLON) | SET(TOKEN_OPEN) | SET(TOKEN_DASH) | SET(TOKEN_STOP) | SET(TOKEN_ARROW);
    unsigned ends = SET(TOKEN_LINE) | SET(TOKEN_STOP) | SET(TOKEN_CLOSE) | SET(TOKEN_COLON) |
                    SET(TOKEN_COMMA) | SET(TOKEN_DASH) | SET(TOKEN_SEMICOLON);
    bool bare = !t->t[i].framed && !t->t[i].bracket, yes = false;
    bool follows = j == i + 1 && (bare || next->kind != TOKEN_LINE);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        yes = yes || letter_has_text(t, &t->t[j], words[k]);
    return yes && j > i && (is_one_of(before, signs) || follows) &&
           (is_one_of(next, ends) || before->kind == TOKEN_COLON || IS(next, WORD_AND));
}

/* True if a line with the label @i calls its option right: a check mark, "correct", "yes". */
static bool is_checked(const letter_tokens *t, line l, size_t i) {
    for (size_t j = l.first; j < l.end; j++)
        if (t->t[j].kind == TOKEN_YES || is_yes(t, i, j))
            return true;
    return false;
}

/* The option with a check mark in a line with several options: "A [no], B [yes]", or "[no] A [yes]
 * B" if the line begins with a mark. NONE: there is none, or several. */
static size_t checked_in_line(const letter_tokens *t, line l) {
    size_t found = NONE;
    bool first = is_one_of(&t->t[l.first], SET(TOKEN_YES) | SET(TOKEN_NO));
    for (size_t i = l.first; i < l.end; i++) {
        const token *mark = first ? at(t, i - 1) : mark_after(t, i);
        if (t->t[i].kind != TOKEN_OPTION || mark->kind != TOKEN_YES)
            continue;
        if (found != NONE && t->t[found].letter != t->t[i].letter)
            return NONE;
        found = i;
    }
    return found;
}

/* The option whose line is checked; NONE if there is none, or if several options are checked. */
static size_t checked(const letter_tokens *t) {
    size_t found = NONE;
    for (line l = line_after(t, (line){0, 0}); l.first < t->n; l = line_after(t, l)) {
        size_t i = label_of(t, l);
        if (i == NONE || names_others(t, l, i))
            i = checked_in_line(t, l);
        else if (!is_checked(t, l, i))
            continue;
        if (i == NONE)
            continue;
        if (found != NONE && t->t[found].letter != t->t[i].letter)
            return NONE;
        found = i;
    }
    return found;
}

static size_t in_first_line(const letter_tokens *t) {
    line l = line_after(t, (line){0, 0});
    bool followed = at(t, l.end + 1)->kind == TOKEN_LINE && l.end + 2 < t->n;
    return followed ? in_line(t, l) : NONE;
}

/* The start of the last paragraph. */
static size_t last_paragraph(const letter_tokens *t) {
    for (size_t i = t->n; i > 1; i--)
        if (t->t[i - 1].kind == TOKEN_LINE && t->t[i - 2].kind == TOKEN_LINE)
            return i;
    return 0;
}

/* The option in bold or in parentheses, if there is only one in the text or in its last
 * paragraph and the other options are not named there. */
static size_t marked(const letter_tokens *t) {
    size_t from = 0;
    for (int pass = 0; pass < 2; pass++, from = last_paragraph(t)) {
        size_t found = NONE;
        bool single = true;
        for (size_t i = from; i < t->n && single; i++) {
            const token *k = &t->t[i];
            if (k->kind != TOKEN_OPTION || k->native)
                continue;
            single = found == NONE || t->t[found].letter == k->letter;
            if (found == NONE || k->framed)
                found = i;
        }
        if (found == NONE || !single || !t->t[found].framed || t->t[found].small ||
            t->text.s[t->t[found].at] != '(')
            continue;
        clause c = letter_clause(t, found);
        const token *before = found ? at(t, found - 1) : at(t, t->n);
        bool study = before->kind == TOKEN_WORD && IS(before, WORD_STUDY | WORD_THING);
        if (c.verdict != CLAUSE_DENIES && c.verdict != CLAUSE_OPEN && !letter_in_list(t, found) &&
            !study)
            return found;
    }
    return NONE;
}

size_t letter_without_words(const letter_tokens *t, const char **rule) {
    static const struct {
        const char *rule;
        size_t (*find)(const letter_tokens *t);
    } ways[] = {{"last_line", in_last_line},
                {"check_mark", checked},
                {"first_line", in_first_line},
                {"marked", marked}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t found = ways[i].find(t);
        *rule = ways[i].rule;
        if (found != NONE)
            return found;
    }
    return NONE;
}
