/* words.h - counts words as IFEval's checker does. Texts are UTF-8. */
#ifndef SNAPMLA_EVALS_IFEVAL_WORDS_H
#define SNAPMLA_EVALS_IFEVAL_WORDS_H

#include "evals/ifeval/punkt.h"

/* The number of runs of letters, digits and "_". */
size_t words_count(span text);

/* The number of words with a capital and without small letters: "I", "U.S.", "WELL-KNOWN". "I'M"
 * counts as two. The words of a sentence are those of NLTK's NLTKWordTokenizer, and punkt_each()
 * finds the sentences. */
size_t words_count_capital(const punkt_params *p, span text);

#endif
