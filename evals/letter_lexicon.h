/* letter_lexicon.h - the entries of the lexicon of letter_words.h. */
#ifndef SNAPMLA_EVALS_LETTER_LEXICON_H
#define SNAPMLA_EVALS_LETTER_LEXICON_H

#include <stddef.h>

#include "evals/letter_words.h"

/* Entries with the same classes, separated by "|". An entry may have several words. A word may be
 * in several lists. */
typedef struct {
    word_class is;
    const char *entries;
} word_list;

extern const word_list letter_english[];
extern const size_t letter_n_english;
extern const word_list letter_foreign[];
extern const size_t letter_n_foreign;

#endif
