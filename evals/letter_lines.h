/* letter_lines.h - the lines of a response: lists of the options, and letters that stand without a
 * sentence. */
#ifndef SNAPMLA_EVALS_LETTER_LINES_H
#define SNAPMLA_EVALS_LETTER_LINES_H

#include "evals/letter_token.h"

/* True if the mention at the token @i labels its line, as in "B) text", and the line is one of
 * several in a row that have different labels, or the line before it announces that the options
 * follow. */
bool letter_in_list(const letter_tokens *t, size_t i);

/* The token of the letter with which the text begins, as in "C. Here is why ..."; SIZE_MAX if it
 * begins otherwise, or if its first line rejects the option or names others. */
size_t letter_first(const letter_tokens *t);

/* The token of the letter of which the last line consists; SIZE_MAX if there is none. */
size_t letter_final(const letter_tokens *t);

/* The token of the letter that the text gives without a sentence; SIZE_MAX if there is none. In
 * this order: the last line begins or ends with it, it is the only option with a check mark, the
 * first line begins with it and an empty line follows, it is the only one in bold or in
 * parentheses. *rule: which of them, static. */
size_t letter_without_words(const letter_tokens *t, const char **rule);

#endif
