/* small_words.h - detects the language by script and by small words, for machines without language
 * profiles. */
#ifndef SNAPMLA_EVALS_IFEVAL_SMALL_WORDS_H
#define SNAPMLA_EVALS_IFEVAL_SMALL_WORDS_H

#include "evals/ifeval/language.h"

bool small_words_detect(span text, char code[LANGUAGE_CODE]);

#endif
