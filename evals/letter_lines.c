#include "evals/letter_lines.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "evals/letter_clause.h"

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

/* The mention with which a line begins, as in "B) text", "Option B: text", "(B)"; NONE if it begins
 * otherwise. */
static size_t label_of(const letter_tokens *t, line l) {
    size_t i = l.first;
    for (size_t n = 0; i < l.end && n < LABEL_WORDS; n++, i++) {
        const token *k = &t->t[i];
        bool skip = (n < 2 && (k->kind == TOKEN_NUMBER || (n && k->kind == TOKEN_STOP))) ||
                    k->kind == TOKEN_YES || k->kind == TOKEN_NO || k->kind == TOKEN_OPEN ||
                    (k->kind == TOKEN_WORD && IS(k, WORD_OPTION));
        if (!skip)
            break;
    }
    const token *k = at(t, i), *next = at(t, i + 1);
    if (i >= l.end || k->kind != TOKEN_OPTION || k->ordinal)
        return NONE;
    bool answer_line =
        l.end - i >= 3 && next->kind == TOKEN_COLON && k->letter == 'A' && !k->framed &&
        at(t, i + 2)->kind == TOKEN_OPTION &&
        (i + 3 == l.end || (i + 4 == l.end && at(t, i + 3)->kind == TOKEN_STOP)); /* "A: C" */
    if (answer_line)
        return NONE;
    bool mark =
        k->framed || k->bracket || i + 1 >= l.end || next->kind == TOKEN_STOP ||
        next->kind == TOKEN_COLON || next->kind == TOKEN_DASH || next->kind == TOKEN_YES ||
        next->kind == TOKEN_NO || next->kind == TOKEN_CLOSE ||
        (next->kind == TOKEN_WORD && IS(next, WORD_WHY) && !IS(next, WORD_CASE)) ||
        (next->kind == TOKEN_ARROW && at(t, i + 2)->kind == TOKEN_WORD &&
         IS(at(t, i + 2), WORD_RIGHT | WORD_WRONG | WORD_YES | WORD_NOT | WORD_MAY)) ||
        (next->kind == TOKEN_WORD && IS(next, WORD_YES | WORD_NOT | WORD_RIGHT) &&
         i + 2 == l.end) ||
        (next->kind == TOKEN_COMMA && at(t, i + 2)->kind == TOKEN_WORD &&
         IS(at(t, i + 2), WORD_WHY)) ||
        (next->kind == TOKEN_OPEN && k->letter != 'A' && at(t, l.end - 1)->kind == TOKEN_CLOSE);
    return mark ? i : NONE;
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
        bool label =
            k->framed || k->bracket || next->kind == TOKEN_STOP || next->kind == TOKEN_COLON;
        if (k->kind == TOKEN_OPTION && k->letter != t->t[own].letter && label)
            return true;
    }
    return false;
}

/* The option of which a line consists or with which it begins. */
static size_t in_line(const letter_tokens *t, line l) {
    size_t i = label_of(t, l);
    if (i == NONE || names_others(t, l, i) || letter_in_list(t, i) ||
        at(t, i + 1)->kind == TOKEN_ASK)
        return NONE;
    clause c = letter_clause(t, i);
    return c.letter && c.verdict != CLAUSE_DENIES && c.verdict != CLAUSE_OPEN ? i : NONE;
}

/* True if nothing but closing words comes after the token @i in its line. */
static bool closes(const letter_tokens *t, size_t i, line l) {
    bool text = t->t[i - 1].framed && i > 1 && l.end - i <= GLOSS &&
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
            for (size_t j = l.first; j < i; j++)
                if (t->t[j].kind == TOKEN_OPTION || t->t[j].kind == TOKEN_NAME)
                    return false;
            return true;
        case TOKEN_COMMA:
            return words > 0 || IS(at(t, i - 2), WORD_SO | WORD_YES | WORD_WAIT | WORD_NOT) ||
                   (t->t[i].framed && t->t[i].kind == TOKEN_OPTION);
        case TOKEN_YES:
        case TOKEN_NO:
            continue;
        case TOKEN_WORD:
            if (IS(k, WORD_SO | WORD_FILL | WORD_OPTION | WORD_ANSWER | WORD_RIGHT | WORD_IT |
                          WORD_BUT | WORD_AND | WORD_MOST) &&
                !IS(k, WORD_NOT | WORD_OUT | WORD_THING))
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

static size_t in_last_line(const letter_tokens *t) {
    line l = line_before(t, (line){t->n, t->n});
    size_t i = in_line(t, l);
    if (i != NONE)
        return i;
    for (i = l.end; i > l.first && t->t[i - 1].kind != TOKEN_OPTION;)
        i--;
    if (i == l.first || !closes(t, i, l) || (label_of(t, l) == i - 1 && letter_in_list(t, i - 1)))
        return NONE;
    i--;
    clause c = letter_clause(t, i);
    if (c.verdict == CLAUSE_DENIES || c.verdict == CLAUSE_OPEN || t->t[i].native ||
        c.letter == '\0')
        return NONE;
    if (i > l.first && at(t, i - 1)->kind != TOKEN_STOP) { /* "A or B", "A, B" */
        for (size_t j = i; j > l.first && j + 4 > i; j--)
            if (t->t[j - 1].kind == TOKEN_OPTION) {
                char letter = letter_clause(t, j - 1).letter;
                if (!letter)
                    return NONE;
            }
    }
    const token *k = &t->t[i], *before = at(t, i - 1);
    bool cut_off = i + 1 == l.end && i > l.first + 1 && before->kind == TOKEN_WORD &&
                   IS(before, WORD_OPTION) && !IS(before, WORD_ANSWER) &&
                   at(t, i - 2)->kind == TOKEN_STOP;
    if (cut_off || (k->small && !k->framed && !k->bracket && i > l.first))
        return NONE;
    return is_set_off(t, i, l) ? i : NONE;
}

/* True if a line with the label @i calls its option right: a check mark, "correct", "yes". */
static bool is_checked(const letter_tokens *t, line l, size_t i) {
    for (size_t j = l.first; j < l.end; j++) {
        const token *k = &t->t[j], *before = at(t, j - 1);
        if (k->kind == TOKEN_YES)
            return true;
        bool yes = k->kind == TOKEN_WORD && j > i && IS(k, WORD_RIGHT | WORD_YES) &&
                   ((k->n == 7 && !strncasecmp(t->text.s + k->at, "correct", 7)) ||
                    (k->n == 4 && !strncasecmp(t->text.s + k->at, "true", 4)) ||
                    (k->n == 5 && !strncasecmp(t->text.s + k->at, "right", 5)) ||
                    (k->n == 3 && !strncasecmp(t->text.s + k->at, "yes", 3)));
        bool set_off = before->kind == TOKEN_COLON || before->kind == TOKEN_OPEN ||
                       before->kind == TOKEN_DASH || before->kind == TOKEN_STOP ||
                       before->kind == TOKEN_ARROW ||
                       (j == i + 1 && ((!t->t[i].framed && !t->t[i].bracket) ||
                                       at(t, j + 1)->kind != TOKEN_LINE));
        const token *next = at(t, j + 1);
        bool ended =
            next->kind == TOKEN_LINE || next->kind == TOKEN_STOP || next->kind == TOKEN_CLOSE ||
            next->kind == TOKEN_COLON || next->kind == TOKEN_COMMA || next->kind == TOKEN_DASH ||
            next->kind == TOKEN_SEMICOLON || before->kind == TOKEN_COLON || IS(next, WORD_AND);
        if (yes && set_off && ended)
            return true;
    }
    return false;
}

/* The only option whose line is checked. */
static size_t checked(const letter_tokens *t) {
    size_t found = NONE;
    for (line l = line_after(t, (line){0, 0}); l.first < t->n; l = line_after(t, l)) {
        size_t i = label_of(t, l);
        if (i == NONE) { /* "A [no], B [yes]" in one line */
            for (size_t j = l.first; j + 1 < l.end; j++)
                if (t->t[j].kind == TOKEN_OPTION && t->t[j + 1].kind == TOKEN_YES)
                    i = found == NONE || t->t[found].letter == t->t[j].letter ? j : i;
            if (i == NONE)
                continue;
        } else if (names_others(t, l, i)) {
            size_t yes = NONE;
            for (size_t j = l.first; j + 1 < l.end; j++)
                if (t->t[j].kind == TOKEN_OPTION && t->t[j + 1].kind == TOKEN_YES)
                    yes = j;
            if (yes == NONE)
                continue;
            i = yes;
        } else if (!is_checked(t, l, i)) {
            continue;
        }
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
