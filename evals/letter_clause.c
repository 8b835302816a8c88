/* letter_clause.c - the clause around a mention of an option. A comment that only quotes a text is
 * an example of the case that its line handles. */
#include "evals/letter_clause.h"

#include <string.h>
#include <strings.h>

#include "evals/letter_sides.h"

enum { REACH = 60, GROUP_MAX = 16, JOINT_MAX = 6 };

/* ---- what the two sides share ---- */

const token *letter_token_at(const letter_tokens *t, size_t i) {
    static const token line = {.kind = TOKEN_LINE};
    return i < t->n ? &t->t[i] : &line;
}

static const token *at(const letter_tokens *t, size_t i) {
    return letter_token_at(t, i);
}

bool letter_ends_sentence(const token *k) {
    return k->kind == TOKEN_STOP || k->kind == TOKEN_ASK || k->kind == TOKEN_LINE ||
           k->kind == TOKEN_SEMICOLON;
}

bool letter_is_adverb(const letter_tokens *t, const token *k) {
    return k->kind == TOKEN_WORD && !k->is && k->n > 4 &&
           memcmp(t->text.s + k->at + k->n - 2, "ly", 2) == 0;
}

bool letter_has_text(const letter_tokens *t, const token *k, const char *word) {
    return k->kind == TOKEN_WORD && k->n == strlen(word) &&
           strncasecmp(t->text.s + k->at, word, k->n) == 0;
}

static bool is_word(const token *k, word_class is) {
    return k->kind == TOKEN_WORD && token_is(k, is);
}

/* ---- joined mentions ---- */

/* What stands between two mentions: a comma, "or" or "and" (word), "option" (noun), a dash. */
typedef struct {
    bool comma, word, noun, dash;
} joint;

/* Reads the joint that begins at @i. Returns its end. */
static size_t read_joint(const letter_tokens *t, size_t i, joint *j) {
    size_t k = i;
    while (k < i + JOINT_MAX && at(t, k)->kind == TOKEN_CLOSE)
        k++;
    for (size_t from = k; k < i + JOINT_MAX; k++) {
        const token *x = at(t, k);
        bool noun = is_word(x, WORD_OPTION) && !token_is(x, WORD_CHOOSE);
        bool light =
            j->word && is_word(x, WORD_FILL) && x->n <= 4 && !token_is(x, WORD_SO | WORD_NOT);
        j->dash = j->dash || (x->kind == TOKEN_DASH && k == from);
        if (x->kind == TOKEN_COMMA || x->kind == TOKEN_SEMICOLON)
            j->comma = true;
        else if (x->kind == TOKEN_SLASH || is_word(x, WORD_OR | WORD_AND) ||
                 (x->kind == TOKEN_DASH && k == from))
            j->word = true;
        else if (x->kind != TOKEN_OPEN && !light &&
                 !((noun || is_word(x, WORD_MAY)) && (j->word || j->comma)))
            break;
        j->noun = j->noun || noun;
    }
    return k;
}

size_t letter_group_end(const letter_tokens *t, size_t i, char *letter) {
    size_t end = i + 1;
    bool stated = i && (is_word(at(t, i - 1), WORD_BE) || at(t, i - 1)->kind == TOKEN_COLON);
    *letter = t->t[i].letter;
    for (size_t n = 0; n < GROUP_MAX; n++) {
        joint j = {0};
        size_t next = read_joint(t, end, &j);
        bool other = j.noun && end > i + 1; /* D is not joined in: both A and C, option D */
        bool subject = is_word(at(t, next + 1), WORD_BE | WORD_FIT | WORD_AUX) &&
                       !token_is(at(t, next + 1), WORD_OPTION); /* "A, B is correct" */
        if (at(t, next)->kind != TOKEN_OPTION || !(j.word || j.comma) ||
            (!j.word && (other || subject)) || (j.dash && stated && subject))
            return end;
        if (t->t[next].letter != *letter)
            *letter = '\0';
        end = next + 1;
    }
    return end;
}

/* ---- what a clause says about an option ---- */

/* True if the clause of the mention at @first begins with a circumstance: "for metals ...". */
static bool has_circumstance(const letter_tokens *t, size_t first) {
    size_t commas = 0;
    for (size_t i = first, n = 0; i && n < REACH; i--, n++) {
        const token *k = &t->t[i - 1], *before = at(t, i - 2);
        if (letter_ends_sentence(k) || (k->kind == TOKEN_COMMA && ++commas > 1))
            return false;
        bool starts = i == 1 || letter_ends_sentence(before) || before->kind == TOKEN_COMMA ||
                      before->kind == TOKEN_COLON || is_word(before, WORD_AND | WORD_BUT);
        if (starts && is_word(k, WORD_CASE | WORD_IF))
            return true;
        if (is_word(k, WORD_BUT | WORD_SO) && !token_is(k, WORD_FILL))
            return false;
    }
    return false;
}

/* True if a subject with the words @s calls the mention after its verb wrong: "no option is", "the
 * wrong choice is". */
static bool subject_denies(const left_side *l, word_class s) {
    if (l->link == LINK_ARROW)
        return false; /* what comes before the arrow is a reason */
    return (s & WORD_ALL && s & WORD_NOT) || (s & WORD_FALSE && l->indefinite) ||
           (s & WORD_WRONG && !(s & (WORD_FALSE | WORD_NOT)));
}

/* What a subject that names an answer or an option says about the mention after its verb. */
static clause_verdict of_subject(const left_side *l, word_class s, const char **rule) {
    bool option = s & WORD_OPTION;
    *rule = "answer";
    if (subject_denies(l, s))
        return CLAUSE_DENIES;
    if (s & WORD_ANSWER || (option && s & WORD_RIGHT && !(s & WORD_FALSE)))
        return CLAUSE_DECLARES;
    *rule = "called_correct";
    if (s & (WORD_RIGHT | WORD_MOST | WORD_EXCEPT) || (s & WORD_FALSE && l->link != LINK_ARROW))
        return CLAUSE_DECLARES;
    if (s & WORD_NOT && s & (WORD_IT | WORD_OPTION))
        return CLAUSE_DECLARES; /* "what is not true is" */
    if (option && s & WORD_IT && l->link == LINK_BE)
        return CLAUSE_DECLARES; /* "the option that ... is" */
    *rule = "points_to";
    if (s & WORD_LEAVE || l->cleft || (s & WORD_CHOOSE && l->link == LINK_COLON))
        return CLAUSE_CONCLUDES;
    return CLAUSE_SILENT;
}

/* True if the subject shows that the mention is a result: "so it is C", "thus the compound is
 * C". */
static bool is_result(const left_side *l, const right_side *r) {
    word_class s = l->subject;
    bool plain =
        !(s & ~(WORD_FILL | WORD_AUX | WORD_KNOWN | WORD_SO | WORD_THINK | WORD_I | WORD_CHOOSE));
    bool corrects = s & WORD_WAIT && s & WORD_BUT; /* "correction: C" */
    if (l->link != LINK_BE)
        return corrects || (s | l->near) & WORD_SO;
    if (!l->unknown_subject)
        return s & (WORD_IT | WORD_SO) || plain;
    return s & WORD_SO && r->closes && !l->indefinite;
}

/* The verdict about a mention after a verb or a sign: "the answer is C", "16 => C". */
static clause_verdict of_copula(const left_side *l, const right_side *r, bool framed,
                                const char **rule) {
    word_class s = l->subject;
    if (s & WORD_BOTH && s & WORD_OPTION && !(s & (WORD_ANSWER | WORD_RIGHT | WORD_ALL)))
        return CLAUSE_SILENT; /* "the options are" */
    bool all = s & WORD_STUDY && s & (WORD_ALL | WORD_OPTION);
    if (l->link == LINK_COLON && all && !r->closes && !subject_denies(l, s))
        return CLAUSE_SILENT; /* "let me check each candidate: C gives ..." */
    clause_verdict v = of_subject(l, s, rule);
    if (v != CLAUSE_SILENT)
        return v;
    if (l->near & (WORD_ANSWER | WORD_RIGHT) && (s & WORD_IT || !l->unknown_subject))
        return CLAUSE_CONCLUDES;
    if (l->subject_option || !(r->ends || framed))
        return CLAUSE_SILENT;
    if (l->link != LINK_BE && l->unknown_subject)
        return l->link == LINK_ARROW && r->ends ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    bool named = (s | l->near) & WORD_OPTION;
    return named || is_result(l, r) ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
}

/* The verdict about the C of "All except C can be ruled out" or "nothing but C fits". */
static clause_verdict of_exception(const left_side *l, const right_side *r) {
    bool out = l->sentence & (WORD_OUT | WORD_WRONG) || r->says == SAYS_WRONG;
    if (!(l->subject & WORD_ALL))
        return CLAUSE_SILENT;
    if (l->subject & WORD_NOT)
        return r->says == SAYS_RIGHT ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
    return out ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
}

/* True if the verb at @i states a purpose at the beginning of a sentence: "To choose C, we need
 * ...". */
static bool is_purpose(const letter_tokens *t, size_t i) {
    return i && letter_has_text(t, at(t, i - 1), "to") &&
           (i == 1 || letter_ends_sentence(at(t, i - 2)));
}

/* True if the tokens from @i on call the mention before them right: "I consider C the best". */
static bool is_complement(const letter_tokens *t, size_t i) {
    for (size_t n = 0; n < 5; n++, i++) {
        if (is_word(at(t, i), WORD_RIGHT | WORD_ANSWER) && !token_is(at(t, i), WORD_FILL))
            return true;
        if (is_word(at(t, i), WORD_MOST) && !token_is(at(t, i), WORD_ONLY))
            return true;
        if (!is_word(at(t, i), WORD_FILL))
            return false;
    }
    return false;
}

/* True if the mention with its noun is a whole sentence: "Option C." */
static bool is_whole_sentence(const letter_tokens *t, const left_side *l, const right_side *r) {
    return l->near & WORD_OPTION && !(l->near & ~(WORD_OPTION | WORD_ANSWER | WORD_KNOWN)) &&
           r->full_stop && (l->at == 0 || letter_ends_sentence(at(t, l->at - 1)));
}

/* True if the mention stands in brackets at the end of a sentence: "sarcoidosis (option C)." */
static bool is_final_aside(const letter_tokens *t, const left_side *l, const right_side *r) {
    return l->near & WORD_OPTION && r->aside_ends && l->at > 1 &&
           at(t, l->at - 2)->kind != TOKEN_LINE &&
           !(l->sentence & (WORD_OUT | WORD_WRONG | WORD_NOT | WORD_OR | WORD_AND | WORD_FIRST));
}

static clause_verdict of_link(const letter_tokens *t, const left_side *l, const right_side *r,
                              bool framed, const char **rule) {
    bool ends = r->ends || framed, says = false;
    const token *verb = at(t, l->at);
    bool gerund = verb->kind == TOKEN_WORD && verb->n > 4 &&
                  memcmp(t->text.s + verb->at + verb->n - 3, "ing", 3) == 0;
    *rule = "points_to";
    switch (l->link) {
    case LINK_BE:
    case LINK_COLON:
    case LINK_ARROW:
        return of_copula(l, r, framed, rule);
    case LINK_ANSWER:
        *rule = "answer";
        says = ends && (!l->unknown_subject || r->closes) && !l->governed;
        break;
    case LINK_CHOOSE:
        *rule = "chosen";
        says = !(token_is(verb, WORD_STUDY) && !(l->subject & WORD_I)) &&
               (l->subject & WORD_I || l->prescribes ||
                (!l->unknown_subject && (!gerund || r->closes))) &&
               !l->subject_option && !(is_purpose(t, l->at) && !r->closes);
        break;
    case LINK_THINK:
        *rule = "chosen";
        says = ends && l->subject & WORD_I;
        break;
    case LINK_POINT:
        says = ends && !l->subject_option;
        break;
    case LINK_LEAVE:
        says = ends;
        break;
    case LINK_SO:
        says = ends && !l->unknown_subject;
        break;
    case LINK_EXCEPT:
        return of_exception(l, r);
    case LINK_THAN:
    case LINK_OUT:
        return CLAUSE_DENIES;
    case LINK_ASIDE:
        says = is_final_aside(t, l, r);
        break;
    case LINK_START:
        *rule = l->near & WORD_ONLY ? "fits" : "answer";
        says = l->near & WORD_ONLY ? r->says != SAYS_WRONG : is_whole_sentence(t, l, r);
        break;
    default:
        *rule = "fits";
        break;
    }
    return says ? CLAUSE_CONCLUDES : CLAUSE_SILENT;
}

/* True if the words after the mention call it right although no verb follows: "also ist C richtig",
 * "I consider C the best", "ich würde C wählen". */
static bool is_called_right(const letter_tokens *t, size_t end, const left_side *l) {
    const token *next = at(t, end);
    bool judges = l->subject & WORD_I && (l->link == LINK_STUDY || l->link == LINK_THINK);
    bool chooses = l->outer & WORD_I && l->link != LINK_CHOOSE && is_word(next, WORD_CHOOSE) &&
                   !token_is(next, WORD_ANSWER);
    bool inverted = l->link == LINK_BE && is_word(next, WORD_RIGHT) && !token_is(next, WORD_FILL);
    return inverted || chooses || (judges && is_complement(t, end));
}

/* True if a mention is too weak for the verdict @v: a small letter, one of another script, or one
 * before an unknown word, as in "B cells". */
static bool is_weak(const letter_tokens *t, size_t end, const left_side *l, const right_side *r,
                    clause_verdict v) {
    const token *mention = &t->t[end - 1], *next = at(t, end);
    bool verb = l->near & WORD_ONLY && next->kind == TOKEN_WORD &&
                t->text.s[next->at + next->n - 1] == 's'; /* "only C rises" */
    if (mention->before_word && r->says != SAYS_RIGHT && !verb)
        return true;
    bool chosen = l->link == LINK_CHOOSE || mention->framed;
    return (mention->small || mention->native) && v != CLAUSE_DECLARES &&
           !(v == CLAUSE_CONCLUDES && chosen);
}

/* Adds what the words after the mention say to the verdict of those before it. */
static clause_verdict with_right(const letter_tokens *t, clause *c, const left_side *l,
                                 const right_side *r, clause_verdict v) {
    const token *mention = &t->t[c->end - 1];
    if (v != CLAUSE_DENIES && is_weak(t, c->end, l, r, v))
        v = CLAUSE_SILENT;
    if (v != CLAUSE_SILENT)
        return v;
    bool called = is_called_right(t, c->end, l);
    bool right = r->says == SAYS_RIGHT && l->link != LINK_STUDY && (!l->inside || r->strong) &&
                 (mention->kind == TOKEN_OPTION || r->strong);
    bool stated = letter_has_text(t, at(t, c->first - 1), "what") && l->sentence & WORD_BE &&
                  is_word(at(t, c->end), WORD_CLAIM); /* "this is what C states" */
    bool confirmed = r->confirmed && (mention->framed || mention->bracket || r->closes);
    if (called || right || confirmed || stated) {
        c->rule = called ? "called_correct" : right ? r->rule : "points_to"; /* "Is it C? Yes." */
        return CLAUSE_CONCLUDES;
    }
    return v;
}

#define OPENING  (WORD_OTHERS | WORD_ASK | WORD_TWIN | WORD_FIRST)
#define WEIGHING (WORD_SO | WORD_BUT | WORD_ONLY | WORD_LEAVE | WORD_I | WORD_ANSWER)

/* True if the sentence only asks, supposes, quotes or doubts. */
static bool is_open(const letter_tokens *t, const clause *c, const left_side *l,
                    const right_side *r) {
    word_class outer = l->outer | l->near;
    if (r->confirmed)
        outer &= ~WORD_ASK;
    if (l->prescribes && l->link == LINK_CHOOSE)
        outer &= ~WORD_OTHERS; /* "the student should choose C" */
    bool would = l->sentence & WORD_IF && letter_has_text(t, at(t, c->end), "would");
    return l->conditional || would || r->conditional || r->asks || r->says == SAYS_POSSIBLE ||
           l->may || outer & OPENING || l->after_name || !c->letter;
}

/* True if the clause concludes or compares options. */
static bool weighs(const letter_tokens *t, const left_side *l, const right_side *r) {
    if (l->link == LINK_CHOOSE)
        return !token_is(at(t, l->at), WORD_STUDY); /* not "we keep C" */
    return (l->outer | l->near | l->subject | r->seen) & WEIGHING || l->link == LINK_ARROW ||
           (l->link == LINK_BE && l->subject & WORD_IT);
}

clause letter_clause(const letter_tokens *t, size_t i) {
    clause c = {.first = i};
    c.end = letter_group_end(t, i, &c.letter);
    const token *mention = &t->t[c.end - 1];
    left_side l = letter_left(t, i);
    right_side r = letter_right(t, c.end, mention);
    bool framed = mention->framed || mention->bracket || mention->ordinal;
    clause_verdict v =
        mention->kind == TOKEN_OPTION ? of_link(t, &l, &r, framed, &c.rule) : CLAUSE_SILENT;
    v = with_right(t, &c, &l, &r, v);
    c.weighs = weighs(t, &l, &r);
    c.verdict = v;
    if (v < CLAUSE_CONCLUDES)
        return c;
    c.circumstance = has_circumstance(t, i);
    /* the text of an option that is declared denies nothing: "the answer is (D) no change" */
    if (r.has_text && r.says != SAYS_RIGHT && (v == CLAUSE_DECLARES || l.link == LINK_CHOOSE))
        r.says = SAYS_NOTHING;
    if ((l.denied || r.says == SAYS_WRONG) && l.link != LINK_EXCEPT)
        c.verdict = CLAUSE_DENIES;
    else if (is_open(t, &c, &l, &r))
        c.verdict = CLAUSE_OPEN;
    return c;
}
