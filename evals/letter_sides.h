/* letter_sides.h - the words before and after a mention of an option, as letter_clause() needs
 * them. */
#ifndef SNAPMLA_EVALS_LETTER_SIDES_H
#define SNAPMLA_EVALS_LETTER_SIDES_H

#include "evals/letter_token.h"

/* How a mention is tied to the words before it. A link without a comment is a word of the class
 * with the same name, such as WORD_BE for LINK_BE, or the sign in its name. */
typedef enum {
    LINK_NONE,  /* another word, a name, a number, a sign or another mention comes before it */
    LINK_START, /* the mention begins its clause */
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
    size_t at;           /* the token of the link, or the start of the clause */
    word_class near;     /* classes of the words between the link and the mention */
    word_class subject;  /* classes of the words before the link in its clause */
    word_class outer;    /* classes of the words before the mention in its clause */
    word_class sentence; /* classes of the words before the mention in its sentence */
    bool denied;
    bool conditional;     /* the sentence sets a condition */
    bool may;             /* "might", "perhaps" */
    bool subject_option;  /* the subject has another mention */
    bool unknown_subject; /* the subject has a word that the lexicon does not have */
    bool indefinite;      /* the subject begins with "a" */
    bool prescribes;      /* "one should" */
    bool cleft;           /* the subject begins with "what" */
    bool after_name;      /* a name and "and" come before it: "points X and C" */
    bool governed;        /* a preposition and a noun come before it: "for choice C" */
    bool inside;          /* a preposition comes before it: "the expression in C" */
} left_side;

typedef enum { SAYS_NOTHING, SAYS_WRONG, SAYS_POSSIBLE, SAYS_RIGHT } predicate;

typedef struct {
    predicate says;
    bool conditional;
    bool asks;
    bool confirmed;   /* the sentence asks, and "yes" follows */
    bool ends;        /* no further noun follows the mention */
    bool closes;      /* the sentence ends after the mention */
    bool full_stop;   /* a full stop comes after the mention */
    bool aside_ends;  /* a bracket and the end of the sentence come after the mention */
    bool has_text;    /* the option's text follows its label: "(D) no change" */
    bool strong;      /* the clause calls the option "the answer" or the like, not only "right" */
    word_class seen;  /* classes of the words of the predicate */
    const char *rule; /* static */
} right_side;

/* Reads the clause before the mention at the token @first. */
left_side letter_left(const letter_tokens *t, size_t first);

/* Reads the clause after the mention @mention, from the token @end on. */
right_side letter_right(const letter_tokens *t, size_t end, const token *mention);

/* The token at @i; a line feed outside of the text. */
const token *letter_token_at(const letter_tokens *t, size_t i);

/* True if the token has one of the classes. */
static inline bool token_is(const token *k, word_class is) {
    return (k->is & is) != 0;
}

bool letter_ends_sentence(const token *k);
bool letter_is_adverb(const letter_tokens *t, const token *k); /* an unknown word in "-ly" */
bool letter_has_text(const letter_tokens *t, const token *k, const char *word); /* ignores case */

/* The end of the mentions that are joined to the one at @i: "A, B and C", "A/B", "A or option B".
 * *letter: their letter, '\0' if they differ. */
size_t letter_group_end(const letter_tokens *t, size_t i, char *letter);

#endif
