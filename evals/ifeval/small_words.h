/* small_words.h - the language of a text by its script and by small words: where no profiles are. */
#ifndef SNAPMLA_EVALS_IFEVAL_SMALL_WORDS_H
#define SNAPMLA_EVALS_IFEVAL_SMALL_WORDS_H

#include "evals/ifeval/language.h"

bool small_words_detect(span text, char code[LANGUAGE_CODE]);

#endif
