/* words.h - counts sentences and words as IFEval's checker does.
 *
 * Sentences: the algorithm of NLTK's Punkt (Kiss and Strunk, "Unsupervised Multilingual Sentence
 * Boundary Detection", 2006), with lists of this project in place of its trained English
 * parameters. Words in capitals: the rules of NLTK's NLTKWordTokenizer. Texts are UTF-8. */
#ifndef SNAPMLA_EVALS_IFEVAL_WORDS_H
#define SNAPMLA_EVALS_IFEVAL_WORDS_H

#include "evals/pattern.h"

/* Called for each sentence in order. No sentence is empty, so an empty text has none. */
typedef void (*sentence_fn)(void *ctx, span sentence);
void sentences_each(span text, sentence_fn fn, void *ctx);

size_t sentences_count(span text);

/* The number of runs of letters, digits and "_". */
size_t words_count(span text);

/* The number of words with a capital and without small letters: "I", "U.S.", "WELL-KNOWN". "I'M"
 * counts as two. */
size_t words_count_capital(span text);

#endif
