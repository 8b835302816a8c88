#include "evals/letter_clause.h"

#include <string.h>
#include <strings.h>

enum { REACH = 60, NEAR_MAX = 16 }; /* tokens that are read before and after a mention */

#define IS(t, c) (((t)->is & (c)) != 0)

/* How a mention is tied to the words before it. */
typedef enum {
    LINK_NONE,  /* an unknown word comes before it */
    LINK_START, /* it begins its clause */
    LINK_SO,
    LINK_BE,
    LINK_COLON,
    LINK_ARROW,
    LINK_ANSWER, /* "answer C" */
    LINK_CHOOSE,
    LINK_THINK,
    LINK_POINT,
    LINK_LEAVE,
    LINK_OUT,
    LINK_STUDY,
    LINK_EXCEPT,
    LINK_THAN,
    LINK_ASIDE /* in brackets */
} link_kind;

typedef struct {
    link_kind link;
    word_class near;     /* words between the link and the mention */
    word_class subject;  /* words before the link in its clause */
    word_class outer;    /* the words of the clause before the mention */
    word_class sentence; /* all words of the sentence before the mention */
    bool denied;
    bool conditional;    /* the sentence sets a condition */
    bool subject_option; /* the subject has another mention */
    bool unknown_subject;
    bool indefinite; /* the subject begins with "a" */
    bool joined;     /* a name and "and" come before it: "points X and C" */
    bool may;        /* "might", "perhaps" */
} left_side;

typedef struct {
    clause_verdict verdict; /* DENIES, CONCLUDES, DECLARES or SILENT */
    bool conditional, asks, ends;
    bool closes; /* the sentence ends after the mention */
    bool open;   /* the predicate only calls it possible */
    const char *rule;
    word_class seen;
} right_side;

/* ---- tokens ---- */

static const token *at(const letter_tokens *t, size_t i) {
    static const token line = {.kind = TOKEN_LINE};
    return i < t->n ? &t->t[i] : &line;
}

static bool ends_sentence(const token *k) {
    return k->kind == TOKEN_STOP || k->kind == TOKEN_ASK || k->kind == TOKEN_LINE ||
           k->kind == TOKEN_SEMICOLON;
}

static bool is_adverb(const letter_tokens *t, const token *k) {
    return k->kind == TOKEN_WORD && !k->is && k->n > 4 &&
           memcmp(t->text.s + k->at + k->n - 2, "ly", 2) == 0;
}

/* ---- joined mentions ---- */

/* True if the words from @i on continue as a clause with the mention before them as its subject:
 * "A, B is correct". */
static bool begins_predicate(const letter_tokens *t, size_t i) {
    const token *k = at(t, i);
    return k->kind == TOKEN_WORD && IS(k, WORD_BE | WORD_FIT | WORD_AUX) && !IS(k, WORD_OPTION);
}

/* The end of the mentions that are joined to the one at @i: "A, B and C", "A/B", "A or option B".
 * *letter: their letter, '\0' if they differ. */
static size_t group_end(const letter_tokens *t, size_t i, char *letter) {
    size_t end = i + 1;
    *letter = t->t[i].letter;
    for (size_t n = 0; n < NEAR_MAX; n++) {
        size_t j = end;
        bool comma = false, word = false, noun = false;
        while (at(t, j)->kind == TOKEN_CLOSE)
            j++;
        for (; j < end + 6; j++) {
            const token *k = at(t, j);
            if (k->kind == TOKEN_COMMA || k->kind == TOKEN_SEMICOLON)
                comma = true;
            else if (k->kind == TOKEN_DASH && j == end)
                word = true;
            else if (k->kind == TOKEN_SLASH || (k->kind == TOKEN_WORD && IS(k, WORD_OR | WORD_AND)))
                word = true;
            else if (!(k->kind == TOKEN_OPEN ||
                       (k->kind == TOKEN_WORD && IS(k, WORD_OPTION | WORD_MAY) &&
                        (word || comma)) ||
                       (word && k->kind == TOKEN_WORD && k->n <= 4 && IS(k, WORD_FILL) &&
                        !IS(k, WORD_SO | WORD_NOT))))
                break;
            noun = noun || (k->kind == TOKEN_WORD && IS(k, WORD_OPTION));
        }
        if (!word && noun && end > i + 1)
            return end; /* "both A and C", option D */
        if (at(t, j)->kind != TOKEN_OPTION || !(word || comma) ||
            (!word && begins_predicate(t, j + 1)))
            return end;
        if (t->t[j].letter != *letter)
            *letter = '\0';
        end = j + 1;
    }
    return end;
}

/* ---- before the mention ---- */

/* True if the line before the line feed at @i only announces an answer: a heading or the start of a
 * sentence that ends with a verb or a colon. */
static bool line_announces(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (j && at(t, j - 1)->kind == TOKEN_LINE)
        j--;
    if (!j)
        return false;
    const token *k = &t->t[j - 1];
    if (k->kind == TOKEN_COLON ||
        (k->kind == TOKEN_WORD && IS(k, WORD_BE) && !IS(k, WORD_FILL | WORD_OPTION)))
        return true;
    bool answer = false;
    for (size_t n = 0; j && n < 6; n++, j--) {
        k = &t->t[j - 1];
        if (k->kind == TOKEN_LINE)
            break;
        if (k->kind == TOKEN_STOP || k->kind == TOKEN_SIGN || k->kind == TOKEN_COLON ||
            k->kind == TOKEN_DASH)
            continue;
        if (k->kind != TOKEN_WORD ||
            !IS(k, WORD_ANSWER | WORD_RIGHT | WORD_FILL | WORD_OPTION | WORD_I))
            return false;
        answer = answer || IS(k, WORD_ANSWER) || IS(k, WORD_OPTION);
    }
    return answer && (!j || at(t, j - 1)->kind == TOKEN_LINE);
}

#define NEAR_WORDS                                                                                 \
    (WORD_OPTION | WORD_RIGHT | WORD_ANSWER | WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST |        \
     WORD_AUX | WORD_MAY | WORD_YES | WORD_NOT | WORD_CASE | WORD_FALSE | WORD_BOTH)

/* Classifies a word between the mention and its link. False if it is no such word. */
static bool near_word(const token *k, left_side *l) {
    if (IS(k, WORD_NOT | WORD_TWIN) && !IS(k, WORD_BE | WORD_THAN))
        l->denied = l->denied || (IS(k, WORD_NOT) && !IS(k, WORD_ONLY));
    l->near |= k->is;
    return IS(k, NEAR_WORDS);
}

static link_kind link_of_word(const token *k, word_class near) {
    if (IS(k, WORD_THAN))
        return LINK_THAN;
    if (IS(k, WORD_EXCEPT))
        return LINK_EXCEPT;
    if (IS(k, WORD_OUT))
        return LINK_OUT;
    if (IS(k, WORD_BE) && !IS(k, WORD_POINT))
        return LINK_BE;
    if (IS(k, WORD_ANSWER) && !(IS(k, WORD_CHOOSE) && !IS(k, WORD_OPTION)))
        return LINK_NONE; /* a noun: goes on */
    if (IS(k, WORD_LEAVE))
        return LINK_LEAVE;
    if (IS(k, WORD_CHOOSE))
        return LINK_CHOOSE;
    if (IS(k, WORD_POINT))
        return LINK_POINT;
    if (IS(k, WORD_THINK))
        return LINK_THINK;
    if (IS(k, WORD_STUDY) && !(near & WORD_ANSWER))
        return LINK_STUDY;
    return LINK_NONE;
}

/* True if the "but" at the token @i means "except": "all but C", "none of the options but C". */
static bool excludes(const letter_tokens *t, size_t i) {
    for (size_t n = 0; i && n < 7; n++, i--) {
        const token *k = &t->t[i - 1];
        if (k->kind != TOKEN_WORD || (!IS(k, WORD_ALL | WORD_OPTION | WORD_FILL | WORD_RIGHT)))
            return false;
        if (IS(k, WORD_ALL) && !IS(k, WORD_LEAVE))
            return true;
    }
    return false;
}

/* The kind of a mention that no verb precedes. */
static link_kind link_of_near(const left_side *l) {
    if (l->near & WORD_ANSWER || (l->near & WORD_RIGHT && l->near & WORD_OPTION))
        return LINK_ANSWER;
    return l->near & WORD_SO ? LINK_SO : LINK_START;
}

/* Skips "not A but", "not A," before the token @i, where @i - 1 is the "but" or the comma. Returns
 * @i if there is no such thing. */
static size_t skip_rejected(const letter_tokens *t, size_t i) {
    size_t j = i - 1;
    bool denied = false;
    while (j && at(t, j - 1)->kind == TOKEN_WORD && IS(at(t, j - 1), WORD_NOT | WORD_BUT)) {
        denied = denied || IS(at(t, j - 1), WORD_NOT);
        j--;
    }
    size_t options = 0;
    for (size_t n = 0; j && n < 8; n++, j--) {
        const token *k = at(t, j - 1);
        if (k->kind == TOKEN_WORD && IS(k, WORD_NOT) && options)
            return j - 1;
        if (k->kind != TOKEN_OPTION && k->kind != TOKEN_COMMA && k->kind != TOKEN_SLASH &&
            !(k->kind == TOKEN_WORD && IS(k, WORD_OPTION | WORD_OR | WORD_FILL) && !IS(k, WORD_BE)))
            break;
        options += k->kind == TOKEN_OPTION;
    }
    return denied && options ? j : i;
}

/* Finds the link before the token @first. Returns the place of its token, or the start of the
 * clause. */
static size_t find_link(const letter_tokens *t, size_t first, left_side *l) {
    size_t i = first;
    for (size_t n = 0; i && n < NEAR_MAX; n++) {
        const token *k = &t->t[i - 1];
        link_kind link = LINK_NONE;
        switch ((token_kind)k->kind) {
        case TOKEN_WORD:
            link = link_of_word(k, l->near);
            if (link != LINK_NONE) {
                l->near |=
                    IS(k, WORD_ONLY | WORD_MAY) ? k->is & (WORD_ONLY | WORD_MAY | WORD_IT) : 0;
                l->link = link;
                return i - 1;
            }
            if (IS(k, WORD_BUT) && skip_rejected(t, i) < i) {
                i = skip_rejected(t, i) + 1;
                break;
            }
            if (IS(k, WORD_BUT) && excludes(t, i - 1)) {
                l->link = LINK_EXCEPT;
                return i - 1;
            }
            if (IS(k, WORD_BUT | WORD_AND | WORD_WHY) && !IS(k, WORD_FILL)) {
                l->joined =
                    IS(k, WORD_AND) && i > 1 && at(t, i - 2)->kind == TOKEN_NAME && !l->near;
                l->link = link_of_near(l);
                return i;
            }
            if (!near_word(k, l) && !is_adverb(t, k)) {
                l->link = link_of_near(l) == LINK_START ? LINK_NONE : link_of_near(l);
                l->unknown_subject = !k->is;
                return i;
            }
            break;
        case TOKEN_COLON:
        case TOKEN_EQUALS:
            l->link = LINK_COLON;
            return i - 1;
        case TOKEN_ARROW:
            l->link = LINK_ARROW;
            return i - 1;
        case TOKEN_DASH:
            if (i > 1 && IS(&t->t[i - 2], WORD_ANSWER | WORD_RIGHT | WORD_OPTION)) {
                l->link = LINK_COLON;
                return i - 1;
            }
            l->link = LINK_START;
            return i;
        case TOKEN_LINE:
            if (!line_announces(t, i - 1))
                goto start;
            break;
        case TOKEN_COMMA:
            if (skip_rejected(t, i) < i) {
                i = skip_rejected(t, i) + 1;
                break;
            }
            if (i > 1 && at(t, i - 2)->kind == TOKEN_WORD &&
                (IS(at(t, i - 2), WORD_SO | WORD_POINT | WORD_IT | WORD_BE) ||
                 is_adverb(t, at(t, i - 2))))
                break;
            goto start;
        case TOKEN_OPEN:
            if (i == first && at(t, first + 1)->kind == TOKEN_CLOSE)
                break;
            l->link = LINK_ASIDE;
            return i;
        case TOKEN_YES:
        case TOKEN_NO:
            break;
        default:
            goto start;
        }
        i--;
    }
start:
    l->link = link_of_near(l);
    if (i && (at(t, i - 1)->kind == TOKEN_NUMBER || at(t, i - 1)->kind == TOKEN_NAME ||
              at(t, i - 1)->kind == TOKEN_OPTION || at(t, i - 1)->kind == TOKEN_SIGN))
        l->link = l->near & (WORD_SO | WORD_ANSWER) ? l->link : LINK_NONE;
    return i;
}

/* Skips a parenthesis between commas before a verb: "the answer, based on this, is". */
static size_t skip_parenthesis(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (j && at(t, j - 1)->kind == TOKEN_WORD &&
           IS(at(t, j - 1), WORD_AUX | WORD_FILL | WORD_SO | WORD_NOT))
        j--;
    if (!j || at(t, j - 1)->kind != TOKEN_COMMA)
        return i;
    for (size_t k = j - 1, n = 0; k && n < 14 && !ends_sentence(at(t, k - 1)); k--, n++)
        if (at(t, k - 1)->kind == TOKEN_COMMA)
            return k - 1;
    return i;
}

/* Reads the subject: the words before the link at @i, back to the start of the clause. */
static void read_subject(const letter_tokens *t, size_t i, left_side *l) {
    bool content = false;
    l->subject = i < t->n && t->t[i].kind == TOKEN_WORD ? t->t[i].is & WORD_IT : 0;
    i = skip_parenthesis(t, i);
    for (size_t n = 0; i && n < REACH; n++, i--) {
        const token *k = &t->t[i - 1];
        if (ends_sentence(k)) {
            if (k->kind == TOKEN_LINE && !l->subject && line_announces(t, i - 1))
                continue;
            break;
        }
        if (k->kind == TOKEN_COMMA || k->kind == TOKEN_COLON || k->kind == TOKEN_ARROW) {
            if (l->link != LINK_BE && l->link != LINK_CHOOSE && l->link != LINK_THINK &&
                k->kind == TOKEN_COMMA)
                break;
            if (l->subject & ~(WORD_FILL | WORD_AUX | WORD_KNOWN | WORD_SO) || l->unknown_subject)
                break;
            continue;
        }
        if (k->kind == TOKEN_OPTION || (k->kind == TOKEN_NAME && k->letter))
            l->subject_option = true;
        if (k->kind == TOKEN_NUMBER || k->kind == TOKEN_NAME)
            l->unknown_subject = true;
        if (k->kind != TOKEN_WORD || (l->link == LINK_COLON && IS(k, WORD_BE) && !content))
            continue;
        if (IS(k, WORD_BUT | WORD_WHY | WORD_SO) && !IS(k, WORD_FILL | WORD_ANSWER)) {
            l->subject |= k->is & (WORD_SO | WORD_BUT);
            break;
        }
        if (IS(k, WORD_AND) && (l->subject & (WORD_ANSWER | WORD_IT | WORD_I)))
            break;
        if (IS(k, WORD_IT) && !content && !IS(k, WORD_RIGHT)) {
            l->subject |= k->is;
            break; /* a pronoun is the whole subject: "under water it is" */
        }
        content = content || !IS(k, WORD_FILL | WORD_AUX | WORD_SO);
        if (!k->is && !is_adverb(t, k))
            l->unknown_subject = true;
        l->subject |= k->is;
        l->indefinite = k->n <= 2 && IS(k, WORD_FILL) && (t->text.s[k->at] | 32) == 'a';
    }
}

/* True for the first word of "Were A the answer" and "Should the text be ironic". */
static bool is_inverted(const letter_tokens *t, const token *k) {
    const char *s = t->text.s + k->at;
    return (k->n == 4 && strncasecmp(s, "were", 4) == 0) ||
           (k->n == 6 && strncasecmp(s, "should", 6) == 0);
}

/* True if the clause of the mention at @first begins with a circumstance: "for metals ...". */
static bool has_circumstance(const letter_tokens *t, size_t first) {
    size_t commas = 0;
    for (size_t i = first, n = 0; i && n < REACH; i--, n++) {
        const token *k = &t->t[i - 1], *before = at(t, i - 2);
        if (ends_sentence(k) || (k->kind == TOKEN_COMMA && ++commas > 1))
            return false;
        bool starts = i == 1 || ends_sentence(before) || before->kind == TOKEN_COMMA ||
                      before->kind == TOKEN_COLON ||
                      (before->kind == TOKEN_WORD && IS(before, WORD_AND | WORD_BUT));
        if (starts && k->kind == TOKEN_WORD && IS(k, WORD_CASE | WORD_IF))
            return true;
        if (k->kind == TOKEN_WORD && IS(k, WORD_BUT | WORD_SO) && !IS(k, WORD_FILL))
            return false;
    }
    return false;
}

/* Reads the whole clause before the mention, and the conditions of its sentence. */
static void read_outer(const letter_tokens *t, size_t first, size_t link, left_side *l) {
    bool inside = true, be = false, that = false, others = false;
    size_t content = 0;
    const token *after = NULL;
    for (size_t i = first, n = 0; i && n < REACH; i--, n++) {
        const token *k = &t->t[i - 1];
        if (ends_sentence(k) && !(k->kind == TOKEN_LINE && line_announces(t, i - 1)))
            return;
        const token *before = at(t, i - 2);
        if (k->kind == TOKEN_WORD && (i == 1 || ends_sentence(before)) && is_inverted(t, k))
            l->conditional = true;
        if (k->kind == TOKEN_COMMA && !(i - 1 >= link) && inside) {
            inside = i > 1 && IS(at(t, i - 2), WORD_SO);
        }
        if (k->kind != TOKEN_WORD) {
            content += k->kind == TOKEN_NUMBER || k->kind == TOKEN_OPTION;
            continue;
        }
        if (IS(k, WORD_BUT | WORD_WHY) && !IS(k, WORD_FILL | WORD_AND)) {
            l->outer |= inside ? k->is & WORD_FIRST : 0;
            inside = false;
        }
        if (IS(k, WORD_SO) && !IS(k, WORD_FILL))
            return;
        bool supposed = i > 1 && at(t, i - 2)->kind == TOKEN_WORD && IS(at(t, i - 2), WORD_I) &&
                        IS(k, WORD_THINK);
        if (IS(k, WORD_IF) && !IS(k, WORD_AUX | WORD_FILL) && !(after && IS(after, WORD_I)) &&
            !supposed)
            l->conditional = true;
        const token *next = after;
        if (!IS(k, WORD_AUX | WORD_FILL) || IS(k, WORD_THINK))
            after = k;
        if (!inside) {
            others = others || IS(k, WORD_OTHERS);
            if (others && IS(k, WORD_CLAIM) && k->n == 12)
                l->conditional = true; /* "according to some, ..." */
            continue;
        }
        bool link_verb = i - 1 == link;
        if (IS(k, WORD_NOT) && !IS(k, WORD_TWIN) && !(i - 1 > link && l->link != LINK_NONE)) {
            bool thinks = next && IS(next, WORD_THINK);
            if (content == 0 || thinks || that || IS(k, WORD_THINK))
                l->denied = l->denied || !(be && content && !thinks && !that && !IS(k, WORD_THINK));
        }
        if (i - 1 < link && !IS(k, WORD_FILL | WORD_AUX | WORD_BE | WORD_I | WORD_IT))
            content++;
        be = be || (IS(k, WORD_BE) && !link_verb);
        that = k->n == 4 && memcmp(t->text.s + k->at, "that", 4) == 0;
        l->outer |= k->is;
        l->may = l->may || (IS(k, WORD_MAY) && !IS(k, WORD_FILL));
    }
}

/* ---- after the mention ---- */

/* Skips a text in brackets. */
static size_t skip_brackets(const letter_tokens *t, size_t i) {
    if (at(t, i)->kind != TOKEN_OPEN)
        return i;
    for (size_t j = i + 1; j < i + 16 && at(t, j)->kind != TOKEN_LINE; j++)
        if (at(t, j)->kind == TOKEN_CLOSE)
            return j + 1;
    return i;
}

/* Skips ", rather than B," and "and not B". */
static size_t skip_contrast(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (at(t, j)->kind == TOKEN_COMMA ||
           (at(t, j)->kind == TOKEN_WORD && IS(at(t, j), WORD_AND | WORD_BUT) &&
            !IS(at(t, j), WORD_BE)))
        j++;
    if (at(t, j)->kind != TOKEN_WORD || !IS(at(t, j), WORD_NOT | WORD_THAN))
        return i;
    j++;
    while (at(t, j)->kind == TOKEN_WORD && IS(at(t, j), WORD_OPTION | WORD_FILL))
        j++;
    if (at(t, j)->kind != TOKEN_OPTION)
        return i;
    char letter;
    j = group_end(t, j, &letter);
    j += at(t, j)->kind == TOKEN_COMMA;
    return j;
}

/* True if the tokens from @i on end the statement, so that the mention is no part of a name. */
static bool is_end(const letter_tokens *t, size_t i) {
    const token *k = at(t, i);
    if (k->kind != TOKEN_WORD)
        return k->kind != TOKEN_NUMBER && k->kind != TOKEN_EQUALS && k->kind != TOKEN_NAME &&
               k->kind != TOKEN_ARROW && k->kind != TOKEN_SIGN && k->kind != TOKEN_OPTION;
    unsigned char c = (unsigned char)t->text.s[k->at];
    if (IS(k, WORD_AND))
        return IS(at(t, i + 1), WORD_CASE | WORD_IT | WORD_SO | WORD_NOT | WORD_AUX);
    return c >= 0x80 || c == '\'' ||
           IS(k, WORD_OPTION | WORD_WHY | WORD_THAN | WORD_NOT | WORD_SO | WORD_BUT | WORD_END |
                     WORD_FILL | WORD_ONLY);
}

/* Looks for conditions and a question mark in the rest of the sentence. */
static void read_rest(const letter_tokens *t, size_t i, right_side *r) {
    bool comma = false;
    for (size_t j = i; j < i + REACH; j++) {
        const token *k = at(t, j);
        if (k->kind == TOKEN_ASK) {
            r->asks = true;
            return;
        }
        if (ends_sentence(k)) {
            for (size_t m = j + 1; k->kind == TOKEN_SEMICOLON && m < j + 3; m++)
                if (at(t, m)->kind == TOKEN_WORD && IS(at(t, m), WORD_IF) &&
                    !IS(at(t, m), WORD_AUX | WORD_FILL))
                    r->conditional = true;
            return;
        }
        comma = comma || k->kind == TOKEN_COMMA || k->kind == TOKEN_OPEN || k->kind == TOKEN_DASH ||
                (k->kind == TOKEN_WORD && IS(k, WORD_WHY | WORD_BUT) && !IS(k, WORD_CASE));
        if (k->kind == TOKEN_WORD && IS(k, WORD_IF) && !IS(k, WORD_AUX | WORD_FILL) &&
            (!comma || (j && at(t, j - 1)->kind == TOKEN_COMMA)))
            r->conditional = true;
    }
}

/* Reads the predicate from @i on, after a verb such as "is". */
static void read_predicate(const letter_tokens *t, size_t i, right_side *r) {
    word_class seen = 0;
    size_t unknown = 0;
    for (size_t n = 0; n < 12; n++, i++) {
        const token *k = at(t, i);
        if (k->kind == TOKEN_COMMA && n && at(t, i + 1)->kind == TOKEN_WORD &&
            IS(at(t, i + 1), WORD_SO | WORD_FILL))
            continue;
        if (k->kind != TOKEN_WORD && k->kind != TOKEN_OPTION)
            break;
        if (k->kind == TOKEN_OPTION)
            return;
        if (IS(k, WORD_BUT | WORD_WHY) && !IS(k, WORD_FILL | WORD_ANSWER))
            break;
        if (IS(k, WORD_NOT) && !IS(k, WORD_FILL)) {
            const token *next = at(t, i + 1);
            if (next->kind == TOKEN_WORD && IS(next, WORD_ONLY))
                continue;
            if (!(next->kind == TOKEN_WORD && IS(next, WORD_WRONG | WORD_FALSE)))
                r->verdict = CLAUSE_DENIES;
            return;
        }
        if (k->n == 5 && strncasecmp(t->text.s + k->at, "least", 5) == 0)
            return;
        bool right = IS(k, WORD_RIGHT);
        bool the_option = IS(k, WORD_OPTION) && n && at(t, i - 1)->n == 3 &&
                          at(t, i + 1)->kind == TOKEN_WORD && IS(at(t, i + 1), WORD_IT);
        bool adjective = right && !IS(k, WORD_ANSWER | WORD_OPTION);
        const token *next = at(t, i + 1);
        if (IS(k, WORD_FALSE | WORD_WRONG | WORD_OUT) && !right && !(seen & WORD_RIGHT)) {
            bool noun = next->kind == TOKEN_WORD && IS(next, WORD_OPTION | WORD_IT);
            if (IS(k, WORD_FALSE) && noun && seen & WORD_FILL) {
                r->verdict = CLAUSE_CONCLUDES;
                r->rule = "called_correct";
                break;
            }
            r->verdict = CLAUSE_DENIES;
            return;
        }
        if (IS(k, WORD_MAY) && !(seen & (WORD_ONLY | WORD_MOST))) {
            r->open = true;
            return;
        }
        bool limited = adjective && next->kind == TOKEN_WORD && IS(next, WORD_IF | WORD_CASE) &&
                       !IS(next, WORD_WHY);
        limited =
            limited || (adjective && next->kind == TOKEN_WORD &&
                        ((next->n == 5 && !memcmp(t->text.s + next->at, "about", 5)) ||
                         (next->n == 4 && !memcmp(t->text.s + next->at, "that", 4) && k->n >= 5 &&
                          k->n <= 7 && !(seen & WORD_MOST) && IS(k, WORD_RIGHT) &&
                          (t->text.s[k->at] == 'r' || t->text.s[k->at] == 'c'))));
        if (limited)
            return;
        bool most = (seen & WORD_MOST) && !IS(k, WORD_MOST) &&
                    (IS(k, WORD_OPTION | WORD_ANSWER | WORD_MAY | WORD_LEAVE | WORD_IT) ||
                     (!(seen & WORD_ONLY) && k->n > 3));
        if (right || the_option || IS(k, WORD_ANSWER | WORD_LEAVE) || most ||
            (IS(k, WORD_CHOOSE) && k->n > 4 && !memcmp(t->text.s + k->at + k->n - 2, "ed", 2)) ||
            (seen && IS(k, WORD_I)) ||
            (IS(k, WORD_IT) && !IS(k, WORD_FILL) &&
             (k->n == 4 ? !memcmp(t->text.s + k->at, "what", 4)
                        : k->n == 2 && !seen && ends_sentence(next)))) {
            r->verdict = CLAUSE_CONCLUDES;
            r->rule = "called_correct";
            r->seen |= seen | k->is;
            break;
        }
        if (!IS(k, WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST | WORD_AUX | WORD_OPTION | WORD_BE |
                       WORD_IT | WORD_YES | WORD_POINT | WORD_I) &&
            !is_adverb(t, k) && ++unknown > (seen & WORD_MOST ? 1U : 0U))
            return;
        if (IS(k, WORD_POINT) && seen & (WORD_MOST | WORD_ONLY)) {
            r->verdict = CLAUSE_CONCLUDES;
            r->rule = "called_correct";
            break;
        }
        seen |= k->is;
    }
    r->seen |= seen;
}

static void read_right(const letter_tokens *t, size_t end, const token *mention, right_side *r) {
    size_t i = end, unknown = 0;
    bool aux = false;
    r->ends = is_end(t, i);
    r->closes = ends_sentence(at(t, i));
    if (at(t, i)->kind == TOKEN_CLOSE)
        i++;
    i = skip_brackets(t, i);
    i = skip_contrast(t, i);
    read_rest(t, end, r);
    bool label = mention->framed || mention->bracket || at(t, i)->kind == TOKEN_STOP ||
                 at(t, i)->kind == TOKEN_COLON || at(t, i)->kind == TOKEN_DASH;
    if (label &&
        (at(t, i)->kind == TOKEN_STOP || at(t, i)->kind == TOKEN_COLON ||
         at(t, i)->kind == TOKEN_DASH) &&
        at(t, i + 1)->kind != TOKEN_LINE)
        i++;
    for (size_t n = 0; n < 14; n++, i++) {
        const token *k = at(t, i);
        if (k->kind == TOKEN_COMMA && n < 8 &&
            (aux || (at(t, i + 1)->kind == TOKEN_WORD &&
                     IS(at(t, i + 1), WORD_SO | WORD_BE | WORD_AUX | WORD_FIT))))
            continue;
        if (k->kind == TOKEN_NUMBER && label)
            continue;
        if (k->kind != TOKEN_WORD)
            return;
        bool first = i == end || unknown == 0;
        if (IS(k, WORD_BE) && IS(k, WORD_NOT)) {
            r->verdict = CLAUSE_DENIES;
            return;
        }
        if (IS(k, WORD_IT) && first && k->n == 2 && IS(at(t, i + 1), WORD_BE) &&
            ends_sentence(at(t, i + 2))) {
            r->verdict = CLAUSE_CONCLUDES; /* "C it is" */
            r->rule = "points_to";
            return;
        }
        if (IS(k, WORD_BE)) {
            if (IS(k, WORD_LEAVE)) { /* "remains" */
                r->verdict = CLAUSE_CONCLUDES;
                r->rule = "fits";
            }
            read_predicate(t, i + 1, r);
            r->open = r->open || (IS(k, WORD_MAY) && r->verdict == CLAUSE_CONCLUDES);
            return;
        }
        if (IS(k, WORD_NOT | WORD_WRONG | WORD_OUT) && first && !IS(k, WORD_FILL)) {
            const token *next = at(t, i + 1);
            bool contrast =
                IS(k, WORD_NOT) && !aux &&
                (next->kind == TOKEN_OPTION || (next->kind == TOKEN_WORD && IS(next, WORD_OPTION)));
            if (!contrast)
                r->verdict = CLAUSE_DENIES;
            return;
        }
        if (first && IS(k, WORD_MAY)) {
            r->open = true;
            return;
        }
        if (first && IS(k, WORD_FIT) && IS(at(t, i + 1), WORD_MAY)) {
            r->open = true;
            return;
        }
        if (first && IS(k, WORD_FIT) && !(IS(k, WORD_OPTION))) {
            r->verdict = CLAUSE_CONCLUDES;
            r->rule = "fits";
            r->seen |= k->is;
            return;
        }
        if (first && IS(k, WORD_LEAVE)) {
            r->verdict = CLAUSE_CONCLUDES;
            r->rule = "fits";
            return;
        }
        if (first && !IS(k, WORD_FILL | WORD_AUX) && IS(k, WORD_RIGHT | WORD_ANSWER) &&
            (unsigned char)t->text.s[k->at] >= 0x80) {
            r->verdict = CLAUSE_CONCLUDES;
            r->rule = "called_correct";
            return;
        }
        if (first && k->n == 2 && !memcmp(t->text.s + k->at, "as", 2)) {
            read_predicate(t, i + 1, r);
            return;
        }
        if (IS(k, WORD_AUX)) {
            aux = true;
            continue;
        }
        if (!k->is && !is_adverb(t, k))
            unknown++;
        if (!IS(k,
                WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST | WORD_RIGHT | WORD_OPTION | WORD_IT) &&
            !is_adverb(t, k) && !(label && unknown < 9))
            return;
        if (!k->is && !label && !is_adverb(t, k))
            return;
    }
}

/* ---- the verdict ---- */

static clause_verdict of_copula(const left_side *l, const right_side *r, bool framed,
                                const char **rule) {
    word_class s = l->subject, all = s | l->near;
    bool named = s & WORD_OPTION || l->near & WORD_OPTION;
    *rule = "answer";
    if ((s & WORD_ALL && s & WORD_NOT) || (s & WORD_FALSE && l->indefinite))
        return CLAUSE_DENIES;
    if (s & WORD_BOTH && l->link == LINK_COLON && !(s & (WORD_ANSWER | WORD_RIGHT)))
        return CLAUSE_SILENT;
    if (s & WORD_WRONG && !(s & WORD_FALSE) && !(s & WORD_NOT))
        return CLAUSE_DENIES;
    if (s & WORD_ANSWER || (s & WORD_OPTION && s & WORD_RIGHT && !(s & WORD_FALSE)))
        return CLAUSE_DECLARES;
    *rule = "called_correct";
    if (s & (WORD_FALSE | WORD_RIGHT | WORD_MOST | WORD_EXCEPT) ||
        (s & WORD_NOT && s & (WORD_IT | WORD_OPTION)))
        return CLAUSE_DECLARES;
    if (s & WORD_LEAVE)
        return CLAUSE_CONCLUDES;
    if (l->near & (WORD_ANSWER | WORD_RIGHT) && (s & WORD_IT || !l->unknown_subject)) {
        *rule = "points_to";
        return CLAUSE_CONCLUDES;
    }
    *rule = "points_to";
    if (l->link != LINK_BE && l->unknown_subject)
        return l->link == LINK_ARROW && r->ends && !l->subject_option ? CLAUSE_CONCLUDES
                                                                      : CLAUSE_SILENT;
    if (!(r->ends || framed) || l->subject_option)
        return CLAUSE_SILENT;
    if (named && (l->near & WORD_OPTION || s & WORD_OPTION))
        return CLAUSE_CONCLUDES;
    if (l->link == LINK_BE && !l->unknown_subject &&
        (s & (WORD_IT | WORD_SO) || !(s & ~(WORD_FILL | WORD_AUX | WORD_KNOWN))))
        return CLAUSE_CONCLUDES;
    if (l->link != LINK_BE && all & WORD_SO)
        return CLAUSE_CONCLUDES;
    return CLAUSE_SILENT;
}

/* True if the subject of a verb is the writer or the reader, or there is none. */
static bool is_own(const left_side *l) {
    return l->subject & WORD_I || !l->unknown_subject;
}

/* "All except C can be ruled out", "nothing but C fits". */
static clause_verdict except(const left_side *l, const right_side *r) {
    bool out = l->sentence & (WORD_OUT | WORD_WRONG) || r->verdict == CLAUSE_DENIES;
    if (l->subject & WORD_NOT && l->subject & WORD_ALL)
        return r->verdict == CLAUSE_CONCLUDES ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    return out && l->subject & WORD_ALL ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
}

static clause_verdict of_link(const left_side *l, const right_side *r, bool framed,
                              const char **rule) {
    bool ends = r->ends || framed;
    switch (l->link) {
    case LINK_BE:
    case LINK_COLON:
    case LINK_ARROW:
        return of_copula(l, r, framed, rule);
    case LINK_ANSWER:
        *rule = "answer";
        return ends && (!l->unknown_subject || r->closes) ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_CHOOSE:
        *rule = "chosen";
        return is_own(l) && !l->subject_option ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_THINK:
        *rule = "chosen";
        return ends && l->subject & WORD_I ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_POINT:
        *rule = "points_to";
        return ends && !l->subject_option ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_LEAVE:
        *rule = "points_to";
        return ends ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_SO:
        *rule = "points_to";
        return ends && !l->unknown_subject ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    case LINK_EXCEPT:
        *rule = "points_to";
        return except(l, r);
    case LINK_THAN:
    case LINK_OUT:
        return CLAUSE_DENIES;
    default:
        *rule = "fits";
        return l->near & WORD_ONLY && l->link == LINK_START && r->verdict != CLAUSE_DENIES
                   ? CLAUSE_CONCLUDES
                   : CLAUSE_SILENT;
    }
}

static word_class words_of_sentence(const letter_tokens *t, size_t i) {
    word_class all = 0;
    for (size_t n = 0; i && n < REACH && !ends_sentence(&t->t[i - 1]); i--, n++)
        all |= t->t[i - 1].is;
    return all;
}

clause letter_clause(const letter_tokens *t, size_t i) {
    clause c = {.first = i};
    c.end = group_end(t, i, &c.letter);
    const token *mention = &t->t[c.end - 1];
    left_side l = {.sentence = words_of_sentence(t, i)};
    right_side r = {0};
    size_t link = find_link(t, i, &l);
    read_subject(t, link, &l);
    read_outer(t, i, link, &l);
    read_right(t, c.end, mention, &r);
    const char *rule = NULL;
    bool framed = (mention->framed || mention->bracket || mention->ordinal);
    clause_verdict v = of_link(&l, &r, framed, &rule);
    if (mention->before_word && !(r.verdict == CLAUSE_CONCLUDES))
        v = v == CLAUSE_DENIES ? v : CLAUSE_SILENT;
    if ((mention->small || mention->native) &&
        !(v == CLAUSE_DECLARES || (v == CLAUSE_CONCLUDES && l.link == LINK_CHOOSE) ||
          (mention->framed && v == CLAUSE_CONCLUDES)))
        v = v == CLAUSE_DENIES ? v : CLAUSE_SILENT;
    const token *next = at(t, c.end); /* "also ist C richtig" */
    if (l.link == LINK_BE && v < CLAUSE_CONCLUDES && next->kind == TOKEN_WORD &&
        IS(next, WORD_RIGHT) && !IS(next, WORD_FILL)) {
        v = CLAUSE_CONCLUDES;
        rule = "called_correct";
    }
    if (r.verdict == CLAUSE_CONCLUDES && v < CLAUSE_CONCLUDES && v != CLAUSE_DENIES &&
        l.link != LINK_STUDY) {
        v = CLAUSE_CONCLUDES;
        rule = r.rule;
    }
    c.rule = rule;
    c.weighs = (l.outer | l.near | l.subject | r.seen) &
                   (WORD_SO | WORD_BUT | WORD_ONLY | WORD_LEAVE | WORD_I | WORD_ANSWER) ||
               l.link == LINK_CHOOSE;
    if (l.link == LINK_CHOOSE && IS(at(t, link), WORD_STUDY))
        c.weighs = false;
    word_class outer = l.outer | l.near;
    c.circumstance = v >= CLAUSE_CONCLUDES && has_circumstance(t, i);
    bool excepts = l.link == LINK_EXCEPT;
    if (v >= CLAUSE_CONCLUDES && !excepts && (l.denied || r.verdict == CLAUSE_DENIES))
        v = CLAUSE_DENIES;
    bool open = l.conditional || r.conditional || r.asks || r.open ||
                outer & (WORD_OTHERS | WORD_ASK | WORD_TWIN | WORD_FIRST) || l.may ||
                c.letter == '\0' || (l.joined && c.letter);
    if (v >= CLAUSE_CONCLUDES && open)
        v = CLAUSE_OPEN;
    c.verdict = v;
    return c;
}
