/* letter_left.c - the words before a mention of an option. A comment that only quotes a text is an
 * example of the case that its line handles. */
#include <string.h>

#include "evals/letter_sides.h"

enum { REACH = 60, NEAR_MAX = 16 }; /* tokens that are read before a mention */

static const token *at(const letter_tokens *t, size_t i) {
    return letter_token_at(t, i);
}

static bool is_word(const token *k, word_class is) {
    return k->kind == TOKEN_WORD && token_is(k, is);
}

/* ---- lines that announce an answer ---- */

#define HEADING (WORD_ANSWER | WORD_RIGHT | WORD_FILL | WORD_OPTION | WORD_I)

/* True if the line before the line feed at @i only announces an answer: a heading or the start of a
 * sentence that ends with a verb or a colon. */
static bool line_announces(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (j && at(t, j - 1)->kind == TOKEN_LINE)
        j--;
    if (!j)
        return false;
    const token *k = &t->t[j - 1];
    if (k->kind == TOKEN_COLON || (is_word(k, WORD_BE) && !token_is(k, WORD_FILL | WORD_OPTION)))
        return true;
    bool answer = false;
    for (size_t n = 0; j && n < 6 && t->t[j - 1].kind != TOKEN_LINE; n++, j--) {
        k = &t->t[j - 1];
        if (k->kind == TOKEN_STOP || k->kind == TOKEN_SIGN || k->kind == TOKEN_DASH)
            continue;
        if (!is_word(k, HEADING))
            return false;
        answer = answer || token_is(k, WORD_ANSWER | WORD_OPTION);
    }
    return answer && (!j || t->t[j - 1].kind == TOKEN_LINE);
}

/* True if the mention at @first begins a sentence of its own: "C says that ..." */
static bool has_own_verb(const letter_tokens *t, size_t first) {
    return is_word(at(t, first + 1), WORD_CLAIM | WORD_BE | WORD_AUX | WORD_FIT);
}

/* True if the token at @i ends the sentence before the mention at @first. */
static bool is_boundary(const letter_tokens *t, size_t i, size_t first) {
    const token *k = &t->t[i];
    return letter_ends_sentence(k) &&
           !(k->kind == TOKEN_LINE && !has_own_verb(t, first) && line_announces(t, i));
}

/* ---- words between link and mention ---- */

#define NEAR_WORDS                                                                                 \
    (WORD_OPTION | WORD_RIGHT | WORD_ANSWER | WORD_FILL | WORD_SO | WORD_ONLY | WORD_MOST |        \
     WORD_AUX | WORD_MAY | WORD_YES | WORD_NOT | WORD_CASE | WORD_FALSE | WORD_BOTH)

/* True if the word "no" at the token @i answers a question and denies nothing: "no, C". */
static bool is_interjection(const letter_tokens *t, size_t i) {
    const token *k = at(t, i);
    return k->n == 2 && letter_has_text(t, k, "no") && at(t, i + 1)->kind != TOKEN_WORD &&
           at(t, i + 1)->kind != TOKEN_OPTION;
}

static link_kind link_of_word(const token *k, word_class near) {
    static const struct {
        word_class is;
        link_kind link;
    } links[] = {{WORD_LEAVE, LINK_LEAVE},
                 {WORD_CHOOSE, LINK_CHOOSE},
                 {WORD_POINT, LINK_POINT},
                 {WORD_THINK, LINK_THINK}};
    if (token_is(k, WORD_THAN))
        return LINK_THAN;
    if (token_is(k, WORD_EXCEPT))
        return LINK_EXCEPT;
    if (token_is(k, WORD_OUT))
        return LINK_OUT;
    if (token_is(k, WORD_BE) && !token_is(k, WORD_POINT))
        return LINK_BE;
    bool verb = token_is(k, WORD_CHOOSE) && !token_is(k, WORD_OPTION);
    if (token_is(k, WORD_ANSWER) && !verb)
        return LINK_NONE; /* a noun */
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (token_is(k, links[i].is))
            return links[i].link;
    if (token_is(k, WORD_FIT) && near & WORD_OPTION)
        return LINK_POINT; /* "this describes option C" */
    return token_is(k, WORD_STUDY) && !(near & WORD_ANSWER) ? LINK_STUDY : LINK_NONE;
}

/* True if the "but" at the token @i means "except": "all but C", "none of the options but C". */
static bool excludes(const letter_tokens *t, size_t i) {
    for (size_t n = 0; i && n < 7; n++, i--) {
        const token *k = &t->t[i - 1];
        if (!is_word(k, WORD_ALL | WORD_OPTION | WORD_FILL | WORD_RIGHT))
            return false;
        if (token_is(k, WORD_ALL) && !token_is(k, WORD_LEAVE))
            return true;
    }
    return false;
}

/* The link of a mention that no verb precedes. */
static link_kind link_of_near(const left_side *l) {
    if (l->near & WORD_ONLY && !(l->near & WORD_ANSWER && l->near & WORD_RIGHT))
        return LINK_START;
    if (l->near & WORD_ANSWER || (l->near & WORD_RIGHT && l->near & WORD_OPTION))
        return LINK_ANSWER;
    return l->near & (WORD_SO | WORD_YES) ? LINK_SO : LINK_START;
}

/* Skips "not A but" and "not A," before the token @i, where @i - 1 is the "but" or the comma.
 * Returns @i if there is no such thing. */
static size_t skip_rejected(const letter_tokens *t, size_t i) {
    size_t j = i - 1, options = 0;
    bool denied = false;
    for (; j && is_word(at(t, j - 1), WORD_NOT | WORD_BUT); j--)
        denied = denied || token_is(at(t, j - 1), WORD_NOT);
    for (size_t n = 0; j && n < 8; n++, j--) {
        const token *k = at(t, j - 1);
        if (is_word(k, WORD_NOT) && options)
            return j - 1;
        bool joint = k->kind == TOKEN_OPTION || k->kind == TOKEN_COMMA || k->kind == TOKEN_SLASH;
        if (!joint && !(is_word(k, WORD_OPTION | WORD_OR | WORD_FILL) && !token_is(k, WORD_BE)))
            break;
        options += k->kind == TOKEN_OPTION;
    }
    return denied && options ? j : i;
}

/* Reads the word before the token *@i. The search goes from the mention of an option to the left,
 * for the word that links it to the clause. Returns true when the search is over. */
static bool step_over_word(const letter_tokens *t, size_t *i, left_side *l) {
    const token *k = &t->t[*i - 1];
    l->link = link_of_word(k, l->near);
    if (l->link != LINK_NONE) {
        l->near |= k->is & (WORD_ONLY | WORD_MAY | WORD_IT);
        --*i;
        return true;
    }
    size_t rejected = token_is(k, WORD_BUT) ? skip_rejected(t, *i) : *i;
    if (rejected < *i) {
        l->near |= WORD_SO; /* "not A but C" concludes */
        *i = rejected;
        return false;
    }
    if (token_is(k, WORD_BUT) && excludes(t, *i - 1)) {
        l->link = LINK_EXCEPT;
        --*i;
        return true;
    }
    if (token_is(k, WORD_BUT | WORD_AND | WORD_WHY) && !token_is(k, WORD_FILL)) {
        const token *before = at(t, *i - 2);
        bool list = before->kind == TOKEN_NAME || token_is(before, WORD_ORDER);
        l->after_name =
            token_is(k, WORD_AND) && list && !(l->near & ~(WORD_FILL | WORD_KNOWN | WORD_AFTER));
        l->link = link_of_near(l);
        return true;
    }
    if (!token_is(k, NEAR_WORDS) && !letter_is_adverb(t, k)) {
        link_kind near = link_of_near(l);
        l->link = near == LINK_START && !(l->near & WORD_ONLY) ? LINK_NONE : near;
        l->unknown_subject = !k->is;
        return true;
    }
    bool denies = token_is(k, WORD_NOT) && !token_is(k, WORD_BE | WORD_ONLY);
    l->denied = l->denied || (denies && !is_interjection(t, *i - 1));
    l->governed = l->governed || (token_is(k, WORD_CASE) && !token_is(k, WORD_ONLY | WORD_WHY) &&
                                  l->near & WORD_OPTION && !(l->near & (WORD_RIGHT | WORD_SO)));
    l->near |= k->is;
    --*i;
    return false;
}

/* True if the comma before the token @i only sets off a word: "so, C", "i.e., C", "the third
 * option, C". In "based on this analysis, C is ..." it begins the clause of the mention @first. */
static bool is_light_comma(const letter_tokens *t, size_t i, size_t first) {
    const token *k = at(t, i - 2);
    bool clause = i == first && has_own_verb(t, first) && !token_is(k, WORD_SO | WORD_YES);
    if (k->kind != TOKEN_WORD || clause)
        return false;
    bool noun = token_is(k, WORD_OPTION | WORD_ANSWER) && !token_is(k, WORD_BOTH);
    return noun || token_is(k, WORD_SO | WORD_POINT | WORD_IT | WORD_BE | WORD_YES) ||
           letter_is_adverb(t, k);
}

/* Reads the sign (not a word) before the token *@i, on the way from the mention to its link. True
 * if the search ends. */
static bool step_over_sign(const letter_tokens *t, size_t *i, size_t first, left_side *l) {
    const token *k = &t->t[*i - 1];
    size_t before = *i;
    switch ((token_kind)k->kind) {
    case TOKEN_COLON:
    case TOKEN_EQUALS:
        l->link = LINK_COLON;
        --*i;
        return true;
    case TOKEN_ARROW:
        l->link = LINK_ARROW;
        --*i;
        return true;
    case TOKEN_DASH:
        l->link = LINK_START;
        if (is_word(at(t, *i - 2), WORD_ANSWER | WORD_RIGHT | WORD_OPTION)) {
            l->link = LINK_COLON;
            --*i;
        }
        return true;
    case TOKEN_LINE:
        *i -= !is_boundary(t, *i - 1, first);
        break;
    case TOKEN_COMMA:
        *i = skip_rejected(t, *i);
        *i -= *i == before && is_light_comma(t, *i, first);
        break;
    case TOKEN_OPEN:
        *i -= *i == first && at(t, first + 1)->kind == TOKEN_CLOSE;
        if (*i == before) {
            l->link = LINK_ASIDE;
            return true;
        }
        break;
    case TOKEN_YES:
    case TOKEN_NO:
        --*i;
        break;
    default:
        break;
    }
    if (*i < before)
        return false;
    bool glued = k->kind == TOKEN_NUMBER || k->kind == TOKEN_NAME || k->kind == TOKEN_OPTION ||
                 k->kind == TOKEN_SIGN;
    l->link = link_of_near(l);
    if (glued && !(l->near & (WORD_SO | WORD_ANSWER)))
        l->link = LINK_NONE;
    return true;
}

/* Finds the link before the mention at the token @first. */
static void find_link(const letter_tokens *t, size_t first, left_side *l) {
    size_t i = first;
    bool done = false;
    for (size_t n = 0; i && n < NEAR_MAX && !done; n++)
        done = t->t[i - 1].kind == TOKEN_WORD ? step_over_word(t, &i, l)
                                              : step_over_sign(t, &i, first, l);
    if (!done)
        l->link = link_of_near(l);
    l->at = i;
    const token *k = at(t, first - 1);
    l->inside = is_word(k, WORD_CASE) && !token_is(k, WORD_ONLY | WORD_WHY);
}

/* ---- the subject ---- */

/* Skips a parenthesis between commas before a verb: "the answer, based on this, is". */
static size_t skip_parenthesis(const letter_tokens *t, size_t i) {
    size_t j = i;
    while (j && is_word(at(t, j - 1), WORD_AUX | WORD_FILL | WORD_SO | WORD_NOT))
        j--;
    if (!j || at(t, j - 1)->kind != TOKEN_COMMA)
        return i;
    for (size_t k = j - 1, n = 0; k && n < 14 && !letter_ends_sentence(at(t, k - 1)); k--, n++)
        if (at(t, k - 1)->kind == TOKEN_COMMA)
            return k - 1;
    return i;
}

/* True if the subject ends before the sign @k. */
static bool sign_ends_subject(const token *k, const left_side *l) {
    if (k->kind != TOKEN_COMMA && k->kind != TOKEN_COLON && k->kind != TOKEN_ARROW)
        return false;
    bool chooses = l->link == LINK_CHOOSE || l->link == LINK_THINK;
    bool verb = l->link == LINK_BE || chooses;
    if (chooses && k->kind != TOKEN_COMMA)
        return true;
    bool named = l->subject & ~(WORD_FILL | WORD_AUX | WORD_KNOWN | WORD_SO) || l->unknown_subject;
    return named || (!verb && k->kind == TOKEN_COMMA);
}

/* True if the subject ends before the word @k. *content: there is a noun already. */
static bool word_ends_subject(const token *k, left_side *l, bool *content) {
    if (token_is(k, WORD_BUT | WORD_WHY | WORD_SO) && !token_is(k, WORD_FILL | WORD_ANSWER)) {
        l->subject |= k->is & (WORD_SO | WORD_BUT | WORD_WAIT);
        return true;
    }
    if (token_is(k, WORD_AND) && (l->subject & (WORD_ANSWER | WORD_IT | WORD_I)))
        return true;
    if (token_is(k, WORD_IT) && !*content && !token_is(k, WORD_RIGHT)) {
        l->subject |= k->is;
        return true; /* a pronoun is the whole subject: "under water it is" */
    }
    *content = *content || !token_is(k, WORD_FILL | WORD_AUX | WORD_SO);
    return false;
}

/* The token after the subject. A phrase between commas is skipped, unless the link is one that
 * stands at the beginning of a statement or after "answer" or "so". */
static size_t subject_end(const letter_tokens *t, const left_side *l) {
    bool verb = l->link != LINK_ANSWER && l->link != LINK_SO && l->link != LINK_START;
    return verb ? skip_parenthesis(t, l->at) : l->at;
}

/* Reads the subject: the words before the link, back to the start of the clause. */
static void read_subject(const letter_tokens *t, size_t first, left_side *l) {
    bool content = false;
    size_t i = subject_end(t, l);
    l->subject = is_word(at(t, l->at), WORD_IT) ? at(t, l->at)->is & WORD_IT : 0;
    for (size_t n = 0; i && n < REACH; n++, i--) {
        const token *k = &t->t[i - 1];
        if (k->kind == TOKEN_LINE && !l->subject && !is_boundary(t, i - 1, first))
            continue;
        if (letter_ends_sentence(k) || sign_ends_subject(k, l))
            return;
        l->subject_option =
            l->subject_option || k->kind == TOKEN_OPTION || (k->kind == TOKEN_NAME && k->letter);
        if (k->kind == TOKEN_NUMBER || k->kind == TOKEN_NAME)
            l->unknown_subject = true;
        if (k->kind != TOKEN_WORD || (l->link == LINK_COLON && token_is(k, WORD_BE) && !content))
            continue;
        if (word_ends_subject(k, l, &content))
            return;
        if (!k->is && !letter_is_adverb(t, k))
            l->unknown_subject = true;
        l->subject |= k->is;
        l->indefinite = k->n <= 2 && token_is(k, WORD_FILL) && (t->text.s[k->at] | 32) == 'a';
        l->prescribes = l->prescribes || letter_has_text(t, k, "should");
        l->cleft = letter_has_text(t, k, "what");
    }
}

/* ---- all words before a mention ---- */

typedef struct {
    bool inside;       /* still in the clause of the mention */
    bool that;         /* "that" comes between this word and the mention */
    bool others;       /* a WORD_OTHERS outside of the clause of the mention was read */
    size_t content;    /* words with a meaning of their own between this word and the link */
    const token *next; /* the next word with a meaning of its own; NULL: none yet */
} outer_state;

/* True if the sentence begins like "Were A the answer" and "Should the text be ironic". */
static bool is_inverted(const letter_tokens *t, size_t i) {
    const token *k = &t->t[i];
    return (i == 0 || letter_ends_sentence(at(t, i - 1))) &&
           (letter_has_text(t, k, "were") || letter_has_text(t, k, "should"));
}

static void read_condition(const letter_tokens *t, size_t i, const outer_state *s, left_side *l) {
    const token *k = &t->t[i];
    bool own = s->next && token_is(s->next, WORD_I); /* "if I had to choose" */
    bool thinks = is_word(at(t, i - 1), WORD_I) && token_is(k, WORD_THINK); /* "I suppose" */
    bool condition = token_is(k, WORD_IF) && !token_is(k, WORD_AUX | WORD_FILL) && !own && !thinks;
    l->conditional = l->conditional || condition || is_inverted(t, i);
}

/* Notes a negation at @i, as in "the answer is not C" or "I do not think that the answer is C", but
 * not in "what is not true is C". */
static void read_negation(const letter_tokens *t, size_t i, const outer_state *s, left_side *l) {
    const token *k = &t->t[i];
    if (!token_is(k, WORD_NOT) || token_is(k, WORD_TWIN) || is_interjection(t, i) ||
        (i > l->at && l->link != LINK_NONE))
        return;
    bool thinks = (s->next && token_is(s->next, WORD_THINK)) || s->that || token_is(k, WORD_THINK);
    l->denied = l->denied || thinks || s->content == 0;
}

/* Reads a word of the sentence. False if the words before it do not matter. */
static bool read_outer_word(const letter_tokens *t, size_t i, outer_state *s, left_side *l) {
    const token *k = &t->t[i];
    if (token_is(k, WORD_BUT | WORD_WHY) && !token_is(k, WORD_FILL | WORD_AND)) {
        l->outer |= s->inside ? k->is & WORD_FIRST : 0;
        s->inside = false;
    }
    if (token_is(k, WORD_SO) && !token_is(k, WORD_FILL))
        return false;
    read_condition(t, i, s, l);
    if (s->inside) {
        read_negation(t, i, s, l);
        bool light = token_is(k, WORD_FILL | WORD_AUX | WORD_BE | WORD_I | WORD_IT);
        s->content += i < l->at && !light;
        l->outer |= k->is;
        l->may = l->may || (token_is(k, WORD_MAY) && !token_is(k, WORD_FILL));
    }
    s->others = s->others || (!s->inside && token_is(k, WORD_OTHERS));
    if (s->others && token_is(k, WORD_CLAIM) && k->n == strlen("according to"))
        l->conditional = true;
    s->that = s->that || letter_has_text(t, k, "that");
    if (!token_is(k, WORD_AUX | WORD_FILL) || token_is(k, WORD_THINK))
        s->next = k;
    return true;
}

/* Reads the whole clause before the mention, and the conditions of its sentence. */
static void read_outer(const letter_tokens *t, size_t first, left_side *l) {
    outer_state s = {.inside = true};
    for (size_t i = first, n = 0; i && n < REACH; i--, n++) {
        const token *k = &t->t[i - 1];
        if (is_boundary(t, i - 1, first))
            return;
        if (k->kind == TOKEN_COMMA && i - 1 < l->at && s.inside)
            s.inside = is_word(at(t, i - 2), WORD_SO);
        if (k->kind != TOKEN_WORD)
            s.content += k->kind == TOKEN_NUMBER || k->kind == TOKEN_OPTION;
        else if (!read_outer_word(t, i - 1, &s, l))
            return;
    }
}

left_side letter_left(const letter_tokens *t, size_t first) {
    left_side l = {0};
    find_link(t, first, &l);
    read_subject(t, first, &l);
    read_outer(t, first, &l);
    for (size_t i = first, n = 0; i && n < REACH && !letter_ends_sentence(&t->t[i - 1]); i--, n++)
        l.sentence |= t->t[i - 1].is;
    return l;
}
