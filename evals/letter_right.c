/* letter_right.c - the words after a mention of an option. A comment that only quotes a text is an
 * example of the case that its line handles. */
#include <string.h>

#include "evals/letter_sides.h"

enum {
    REST = 60,      /* tokens of a sentence that are read after a mention */
    PREDICATE = 12, /* tokens of a predicate */
    GLOSS = 8,      /* unknown words of an option's text between its letter and a verb */
    BRACKET = 16    /* tokens in brackets that are skipped */
};

static const token *at(const letter_tokens *t, size_t i) {
    return letter_token_at(t, i);
}

static bool is_word(const token *k, word_class is) {
    return k->kind == TOKEN_WORD && token_is(k, is);
}

/* ---- what may come between the mention and its verb ---- */

/* Skips a text in brackets. */
static size_t skip_brackets(const letter_tokens *t, size_t i) {
    if (at(t, i)->kind != TOKEN_OPEN)
        return i;
    for (size_t j = i + 1; j < i + BRACKET && at(t, j)->kind != TOKEN_LINE; j++)
        if (at(t, j)->kind == TOKEN_CLOSE)
            return j + 1;
    return i;
}

/* Skips ", rather than B," and "and not B". */
static size_t skip_contrast(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (at(t, j)->kind == TOKEN_COMMA ||
           (is_word(at(t, j), WORD_AND | WORD_BUT) && !token_is(at(t, j), WORD_BE)))
        j++;
    if (!is_word(at(t, j), WORD_NOT | WORD_THAN))
        return i;
    j++;
    while (is_word(at(t, j), WORD_OPTION | WORD_FILL))
        j++;
    if (at(t, j)->kind != TOKEN_OPTION)
        return i;
    char letter;
    j = letter_group_end(t, j, &letter);
    return j + (at(t, j)->kind == TOKEN_COMMA);
}

/* True if the tokens from @i on end the statement, so that the mention is no part of a name. */
static bool is_end(const letter_tokens *t, size_t i) {
    const token *k = at(t, i);
    switch ((token_kind)k->kind) {
    case TOKEN_WORD:
        break;
    case TOKEN_NUMBER:
    case TOKEN_EQUALS:
    case TOKEN_NAME:
    case TOKEN_ARROW:
    case TOKEN_SIGN:
    case TOKEN_OPTION:
        return false;
    default:
        return true;
    }
    unsigned char c = (unsigned char)t->text.s[k->at];
    if (token_is(k, WORD_AND))
        return token_is(at(t, i + 1), WORD_CASE | WORD_IT | WORD_SO | WORD_NOT | WORD_AUX);
    return c >= 0x80 || c == '\'' ||
           token_is(k, WORD_OPTION | WORD_WHY | WORD_THAN | WORD_NOT | WORD_SO | WORD_BUT |
                           WORD_END | WORD_FILL | WORD_ONLY);
}

/* ---- the rest of the sentence ---- */

static bool is_condition(const token *k) {
    return is_word(k, WORD_IF) && !token_is(k, WORD_AUX | WORD_FILL);
}

/* Looks for conditions and a question mark in the rest of the sentence. */
static void read_rest(const letter_tokens *t, size_t i, right_side *r) {
    bool aside = false;
    for (size_t j = i; j < i + REST; j++) {
        const token *k = at(t, j);
        if (k->kind == TOKEN_ASK) {
            r->confirmed = is_word(at(t, j + 1), WORD_YES) && !token_is(at(t, j + 1), WORD_FIT);
            r->asks = !r->confirmed;
            return;
        }
        if (letter_ends_sentence(k)) {
            bool next = is_condition(at(t, j + 1)) || is_condition(at(t, j + 2));
            r->conditional = r->conditional || (k->kind == TOKEN_SEMICOLON && next);
            return;
        }
        aside = aside || k->kind == TOKEN_COMMA || k->kind == TOKEN_OPEN || k->kind == TOKEN_DASH ||
                k->kind == TOKEN_COLON ||
                (is_word(k, WORD_WHY | WORD_BUT) && !token_is(k, WORD_CASE));
        if (is_condition(k) && (!aside || at(t, j - 1)->kind == TOKEN_COMMA))
            r->conditional = true;
    }
}

/* ---- the predicate ---- */

/* True if the word at @i is right only in one respect, as in "right about the sign" and "correct
 * that it falls". */
static bool is_limited(const letter_tokens *t, size_t i, word_class seen) {
    const token *k = at(t, i), *next = at(t, i + 1);
    if (!token_is(k, WORD_RIGHT) || token_is(k, WORD_ANSWER | WORD_OPTION) ||
        next->kind != TOKEN_WORD)
        return false;
    bool noun = !next->is && letter_has_text(t, k, "right") && !letter_is_adverb(t, next);
    bool claims = letter_has_text(t, k, "right") || letter_has_text(t, k, "correct");
    bool only = token_is(next, WORD_ONLY) && token_is(at(t, i + 2), WORD_CASE | WORD_IF);
    return only || noun || token_is(next, WORD_IF | WORD_CASE) ||
           letter_has_text(t, next, "about") ||
           (claims && !(seen & WORD_MOST) && letter_has_text(t, next, "that"));
}

/* True if the word at @i in a predicate says that the option is the right one. @seen: the words
 * before it, of which there are @n. */
static bool says_right(const letter_tokens *t, size_t i, size_t n, word_class seen) {
    const token *k = at(t, i), *next = at(t, i + 1);
    const char *end = t->text.s + k->at + k->n;
    if (token_is(k, WORD_RIGHT | WORD_ANSWER | WORD_LEAVE))
        return true;
    if (token_is(k, WORD_OPTION) && n && letter_has_text(t, at(t, i - 1), "the") &&
        is_word(next, WORD_IT))
        return true; /* "the option that ..." */
    if (seen & WORD_MOST && !token_is(k, WORD_MOST) &&
        (token_is(k, WORD_OPTION | WORD_MAY | WORD_IT) || (!(seen & WORD_ONLY) && k->n > 3)))
        return true; /* "the most likely" */
    if (token_is(k, WORD_POINT) && seen & WORD_MOST)
        return true; /* "the only one consistent with" */
    bool chosen = token_is(k, WORD_CHOOSE) && k->n > 4 && memcmp(end - 2, "ed", 2) == 0;
    bool it = n == 0 && letter_has_text(t, k, "it") && letter_ends_sentence(next);
    return chosen || it || (seen && token_is(k, WORD_I)) || letter_has_text(t, k, "what");
}

#define LIGHT_WORDS                                                                                \
    (WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST | WORD_AUX | WORD_OPTION | WORD_BE | WORD_IT |    \
     WORD_YES | WORD_POINT | WORD_I)

/* What the word at @i of a predicate says if it denies something. *ends: the predicate ends with
 * it. */
static predicate denial(const letter_tokens *t, size_t i, word_class seen, bool *ends) {
    const token *k = at(t, i), *next = at(t, i + 1);
    *ends = true;
    if (token_is(k, WORD_NOT) && !token_is(k, WORD_FILL)) {
        *ends = !is_word(next, WORD_ONLY); /* "not only" */
        return *ends && !is_word(next, WORD_WRONG | WORD_FALSE) ? SAYS_WRONG : SAYS_NOTHING;
    }
    bool right = token_is(k, WORD_RIGHT) || seen & WORD_RIGHT;
    if (token_is(k, WORD_FALSE | WORD_WRONG | WORD_OUT) && !right) {
        bool sought = token_is(k, WORD_FALSE) && is_word(next, WORD_OPTION | WORD_IT);
        return sought && seen & WORD_FILL ? SAYS_RIGHT : SAYS_WRONG; /* "the false statement" */
    }
    *ends = false;
    return SAYS_NOTHING;
}

/* Reads the predicate from @i on, after a verb such as "is". */
static void read_predicate(const letter_tokens *t, size_t i, right_side *r) {
    size_t unknown = 0;
    for (size_t n = 0; n < PREDICATE; n++, i++) {
        const token *k = at(t, i);
        if (k->kind == TOKEN_COMMA && n && is_word(at(t, i + 1), WORD_SO | WORD_FILL))
            continue;
        bool turn = token_is(k, WORD_BUT | WORD_WHY) && !token_is(k, WORD_FILL | WORD_ANSWER);
        bool ends;
        predicate says = denial(t, i, r->seen, &ends);
        if (k->kind != TOKEN_WORD || turn || letter_has_text(t, k, "least"))
            return;
        if (ends || (token_is(k, WORD_MAY) && !(r->seen & WORD_MOST))) {
            r->says = ends ? says : SAYS_POSSIBLE;
            return;
        }
        if (is_limited(t, i, r->seen))
            return;
        if (says_right(t, i, n, r->seen)) {
            r->says = SAYS_RIGHT;
            r->strong =
                token_is(k, WORD_ANSWER | WORD_OPTION) || letter_has_text(t, k, "the one") ||
                letter_has_text(t, k, "right one") ||
                (r->seen & WORD_ONLY && token_is(k, WORD_IT)) ||
                (token_is(k, WORD_RIGHT) && is_word(at(t, i + 1), WORD_ANSWER | WORD_OPTION));
            r->seen |= k->is;
            return;
        }
        bool light = token_is(k, LIGHT_WORDS) || letter_is_adverb(t, k);
        unknown += !light;
        if (unknown > (r->seen & WORD_MOST ? 1U : 0U))
            return;
        r->seen |= k->is;
    }
}

/* ---- the verb after a mention ---- */

/* The state of the search for the verb of a mention. */
typedef struct {
    size_t unknown;
    bool label; /* the option's text may follow its letter */
    bool aux;   /* an auxiliary verb was read */
} verb_search;

/* What a denying word right after the mention says. */
static predicate first_denial(const letter_tokens *t, size_t i, const verb_search *s) {
    const token *k = at(t, i), *next = at(t, i + 1);
    char c = t->text.s[k->at];
    bool text = s->label && c >= 'A' && c <= 'Z'; /* "(B) False, true" */
    bool contrast =
        token_is(k, WORD_NOT) && (next->kind == TOKEN_OPTION || is_word(next, WORD_OPTION));
    return !s->aux && (text || contrast) ? SAYS_NOTHING : SAYS_WRONG;
}

/* True if the mention is chosen as in "C it is" or "C it shall be", with the "it" at @i. */
static bool is_it_is(const letter_tokens *t, size_t i) {
    size_t verb = i + 1;
    if (!letter_has_text(t, at(t, i), "it"))
        return false;
    while (is_word(at(t, verb), WORD_AUX) && !token_is(at(t, verb), WORD_BE | WORD_NOT))
        verb++;
    return token_is(at(t, verb), WORD_BE) && letter_ends_sentence(at(t, verb + 1));
}

/* True if the mention is the best one as in "C best restates" or "C most nearly restates", with the
 * "best" or "most" at @i. */
static bool is_best_verb(const letter_tokens *t, size_t i) {
    size_t verb = i + 1;
    if (!letter_has_text(t, at(t, i), "best") && !letter_has_text(t, at(t, i), "most"))
        return false;
    while (verb < i + 4 && letter_is_adverb(t, at(t, verb)))
        verb++;
    const token *k = at(t, verb);
    return k->kind == TOKEN_WORD && k->n > 3 && t->text.s[k->at + k->n - 1] == 's';
}

/* True if the verb at @i has an object, and means something else than that an option fits: "C holds
 * the claim", but not "C holds the most". */
static bool has_object(const letter_tokens *t, size_t i) {
    static const char *const verbs[] = {"holds", "hold", "works", "work", "stands"};
    static const char *const articles[] = {"the", "a", "an", "his", "her", "its", "their"};
    bool verb = false, article = false;
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
        verb = verb || letter_has_text(t, at(t, i), verbs[k]);
    for (size_t k = 0; verb && k < sizeof articles / sizeof *articles; k++)
        article = article || letter_has_text(t, at(t, i + 1), articles[k]);
    return article && !token_is(at(t, i + 2), WORD_MOST | WORD_RIGHT | WORD_ONLY | WORD_BUT);
}

/* What the first word after the mention says. */
static predicate first_word(const letter_tokens *t, size_t i, const verb_search *s, right_side *r) {
    const token *k = at(t, i), *next = at(t, i + 1);
    if (token_is(k, WORD_NOT | WORD_WRONG | WORD_OUT) && !token_is(k, WORD_FILL))
        return first_denial(t, i, s);
    if (token_is(k, WORD_MAY))
        return SAYS_POSSIBLE;
    r->rule = "fits";
    if (has_object(t, i))
        return SAYS_NOTHING;
    if (token_is(k, WORD_FIT) && !token_is(k, WORD_OPTION)) {
        r->seen |= k->is;
        if (is_word(next, WORD_NOT))
            return SAYS_WRONG; /* "C trifft nicht zu" */
        return is_word(next, WORD_MAY) ? SAYS_POSSIBLE : SAYS_RIGHT;
    }
    if (token_is(k, WORD_LEAVE) || letter_has_text(t, k, "alone") || is_best_verb(t, i))
        return SAYS_RIGHT;
    r->rule = "called_correct";
    bool foreign = (unsigned char)t->text.s[k->at] >= 0x80;
    if (foreign && token_is(k, WORD_RIGHT | WORD_ANSWER) && !token_is(k, WORD_FILL))
        return SAYS_RIGHT;
    r->rule = "points_to";
    bool particle = token_is(k, WORD_END) && letter_ends_sentence(next); /* "C by elimination" */
    return particle || is_it_is(t, i) ? SAYS_RIGHT : SAYS_NOTHING;
}

/* Reads the verb "is" or a similar one at @i and its predicate. */
static void read_be(const letter_tokens *t, size_t i, const verb_search *s, right_side *r) {
    const token *k = at(t, i);
    r->rule = "called_correct";
    if (token_is(k, WORD_NOT)) {
        r->says = SAYS_WRONG;
        return;
    }
    if (token_is(k, WORD_LEAVE)) { /* "remains" */
        r->says = SAYS_RIGHT;
        r->rule = "fits";
    }
    read_predicate(t, i + 1, r);
    if (token_is(k, WORD_MAY) && r->says == SAYS_RIGHT)
        r->says = SAYS_POSSIBLE;
    /* the verb may belong to the option's text: "C) a text that is not short" */
    if (s->unknown && r->says == SAYS_WRONG && !is_word(at(t, i + 1), WORD_WRONG | WORD_OUT))
        r->says = SAYS_NOTHING;
}

/* True if the search for the verb may go on after the word at @i. */
static bool passes(const letter_tokens *t, size_t i, verb_search *s) {
    const token *k = at(t, i);
    s->aux = s->aux || token_is(k, WORD_AUX);
    if (token_is(k, WORD_AUX) || letter_is_adverb(t, k))
        return true;
    s->unknown += !k->is;
    if (s->label)
        return s->unknown <= GLOSS;
    return token_is(k, WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST | WORD_RIGHT | WORD_OPTION |
                           WORD_IT);
}

/* True if the option's text at @i is only a verdict: "C: correct.", "(C) Yes." */
static bool is_mark(const letter_tokens *t, size_t i, bool label) {
    const token *k = at(t, i);
    return label &&
           (letter_has_text(t, k, "correct") || letter_has_text(t, k, "yes") ||
            letter_has_text(t, k, "true") || letter_has_text(t, k, "right")) &&
           (letter_ends_sentence(at(t, i + 1)) || at(t, i + 1)->kind == TOKEN_COMMA);
}

/* True if the comma at @i may come before the verb of the mention. */
static bool is_light_comma(const letter_tokens *t, size_t i, const verb_search *s) {
    return s->aux || is_word(at(t, i + 1), WORD_END | WORD_SO | WORD_BE | WORD_AUX | WORD_FIT);
}

/* Reads the clause as letter_right() does. *stop: a full stop comes before the verb. */
static right_side read_clause(const letter_tokens *t, size_t end, const token *mention,
                              bool *stop) {
    right_side r = {.rule = "check_mark",
                    .ends = is_end(t, end),
                    .closes = letter_ends_sentence(at(t, end)),
                    .full_stop = at(t, end)->kind == TOKEN_STOP,
                    .aside_ends =
                        at(t, end)->kind == TOKEN_CLOSE && letter_ends_sentence(at(t, end + 1))};
    size_t i = end + (at(t, end)->kind == TOKEN_CLOSE);
    i = skip_contrast(t, skip_brackets(t, i));
    read_rest(t, end, &r);
    token_kind kind = (token_kind)at(t, i)->kind;
    *stop = kind == TOKEN_STOP;
    bool sign = kind == TOKEN_STOP || kind == TOKEN_COLON || kind == TOKEN_DASH;
    verb_search s = {.label = mention->framed || mention->bracket || sign};
    i += sign && at(t, i + 1)->kind != TOKEN_LINE;
    r.has_text = s.label && at(t, i)->kind == TOKEN_WORD &&
                 !token_is(at(t, i), WORD_BE | WORD_AUX) && !letter_ends_sentence(at(t, i + 1));
    if (is_mark(t, i, s.label))
        r.says = SAYS_RIGHT;
    for (size_t n = 0; n < 14 && r.says == SAYS_NOTHING; n++, i++) {
        const token *k = at(t, i);
        if ((k->kind == TOKEN_COMMA && n < GLOSS && is_light_comma(t, i, &s)) ||
            (k->kind == TOKEN_NUMBER && s.label))
            continue;
        if (k->kind != TOKEN_WORD)
            return r;
        if (token_is(k, WORD_BE)) {
            read_be(t, i, &s, &r);
            return r;
        }
        r.says = s.unknown ? SAYS_NOTHING : first_word(t, i, &s, &r);
        if (r.says != SAYS_NOTHING)
            return r;
        if (!s.unknown && letter_has_text(t, k, "as")) { /* "C as my answer" */
            r.rule = "chosen";
            read_predicate(t, i + 1, &r);
            return r;
        }
        if (!passes(t, i, &s))
            return r;
    }
    return r;
}

/* True if another option follows as an alternative and ends the sentence: "C is right or D." */
static bool has_alternative(const letter_tokens *t, size_t end, const token *mention) {
    size_t i = end;
    while (i < end + PREDICATE && at(t, i)->kind == TOKEN_WORD &&
           (!token_is(at(t, i), WORD_OR) || token_is(at(t, i), WORD_FILL | WORD_BE | WORD_IT)))
        i++;
    if (!is_word(at(t, i), WORD_OR))
        return false;
    for (i++; is_word(at(t, i), WORD_OPTION | WORD_FILL | WORD_MAY);)
        i++;
    const token *other = at(t, i);
    return other->kind == TOKEN_OPTION && other->letter != mention->letter &&
           letter_ends_sentence(at(t, i + 1));
}

right_side letter_right(const letter_tokens *t, size_t end, const token *mention) {
    bool stop;
    right_side r = read_clause(t, end, mention, &stop);
    if (stop && r.says == SAYS_WRONG)
        r.says = SAYS_NOTHING; /* the denial belongs to the next sentence: "C. It does not say" */
    if (r.says == SAYS_RIGHT && has_alternative(t, end, mention))
        r.says = SAYS_POSSIBLE;
    return r;
}
