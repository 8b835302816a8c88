/* letter_context.h - reads the text around a letter: whether its line is one of a list of the
 * options, and whether the sentence takes a statement back. All texts have the plain form of
 * letter_text.h. */
#ifndef SNAPMLA_EVALS_LETTER_CONTEXT_H
#define SNAPMLA_EVALS_LETTER_CONTEXT_H

#include "evals/pattern.h"

enum { LETTER_SENTENCE = 300 }; /* bytes of a sentence that are read before and after a letter */

typedef struct {
    span text;
    char last; /* the last option's letter */
} letter_paper;

/* A letter that the text chooses. */
typedef struct {
    size_t at; /* its place in the text, from 1; 0: none */
    char letter;
} letter_choice;

/* The option that a matched letter stands for, as a capital; '\0' if it stands for none. */
char letter_option(span s, char last);

/* The choice of a match in @p->text: the first of its groups that took part. */
letter_choice letter_of_match(const letter_paper *p, const span groups[PATTERN_GROUPS]);

/* The line around @at. */
span letter_line(span text, size_t at);

/* The option with which a line begins, as in "B) text" or "(B)"; '\0' if it begins otherwise. */
char letter_label(span line, char last);

/* True if @at is near the start of a line, and the line is one of several in a row that begin with
 * different options, or the line before it announces that the options follow. */
bool letter_in_list(const letter_paper *p, size_t at);

/* The sentence before @at, without what comes before the last "but". */
span letter_sentence(span text, size_t at);

/* True if the words around a match do not let it choose its letter. @match: where the statement
 * begins; @c: its letter; @excludes: the statement excludes the other options ("all except C"), so
 * words just before and after the letter deny only those. */
bool letter_is_refuted(const letter_paper *p, size_t match, letter_choice c, bool excludes);

/* True if the text after a statement takes it back and does not confirm it. */
bool letter_is_revoked(span rest);

/* True if the text after a statement says that several of the options named are answers. */
bool letter_is_joined(span rest);

/* True if the letter belongs to one of two conditions in a row that lead to different letters: "If
 * x, it is A; if y, it is B". */
bool letter_is_alternative(const letter_paper *p, letter_choice c);

/* True if the sentence of a letter weighs it against others, as in "So C is correct". */
bool letter_concludes(const letter_paper *p, letter_choice c);

#endif
