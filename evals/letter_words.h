/* letter_words.h - the lexicon with which extract_letter() reads the words around a letter.
 *
 * A word belongs to one or more classes, such as "names the answer" or "denies". An entry may have
 * several words ("rule out") and comes from English or one of more than 40 other languages. */
#ifndef SNAPMLA_EVALS_LETTER_WORDS_H
#define SNAPMLA_EVALS_LETTER_WORDS_H

#include <stdint.h>

#include "evals/pattern.h"

typedef uint64_t word_class; /* a set of the bits below */

#define WORD_BIT(i)     ((word_class)1 << (i))
#define WORD_ANSWER     WORD_BIT(0)  /* names the answer: "answer", "conclusion" */
#define WORD_OPTION     WORD_BIT(1)  /* names an option: "option", "choice", "statement" */
#define WORD_RIGHT      WORD_BIT(2)  /* "correct", "best", "closest" */
#define WORD_FALSE      WORD_BIT(3)  /* a question may ask for such an option: "incorrect" */
#define WORD_WRONG      WORD_BIT(4)  /* "wrong", "impossible", "fails" */
#define WORD_MOST       WORD_BIT(5)  /* "most", "more", and words that single out: "only" */
#define WORD_CHOOSE     WORD_BIT(6)  /* "choose", "go with" */
#define WORD_THINK      WORD_BIT(7)  /* "think", "believe", "sure" */
#define WORD_POINT      WORD_BIT(8)  /* "corresponds to", "matches" */
#define WORD_FIT        WORD_BIT(9)  /* what a right option does: "fits", "holds", "wins" */
#define WORD_LEAVE      WORD_BIT(10) /* "leaves", "remains" */
#define WORD_BE         WORD_BIT(11) /* "is", "seems" */
#define WORD_AUX        WORD_BIT(12) /* "would", "must", "has" */
#define WORD_SO         WORD_BIT(13) /* "therefore" */
#define WORD_NOT        WORD_BIT(14)
#define WORD_OUT        WORD_BIT(15) /* "rule out", "eliminate" */
#define WORD_IF         WORD_BIT(16) /* "if", "unless", "suppose" */
#define WORD_MAY        WORD_BIT(17) /* "might", "perhaps" */
#define WORD_OR         WORD_BIT(18)
#define WORD_AND        WORD_BIT(19)
#define WORD_BUT        WORD_BIT(20) /* "but", "however" */
#define WORD_OTHERS     WORD_BIT(21) /* other people than the writer, or mistakes */
#define WORD_EXCEPT     WORD_BIT(22)
#define WORD_ONLY       WORD_BIT(23)
#define WORD_IT         WORD_BIT(24) /* "it", "this", "which" */
#define WORD_I          WORD_BIT(25) /* "I", "we" */
#define WORD_FIRST      WORD_BIT(26) /* "initially": what follows may be given up later */
#define WORD_WAIT       WORD_BIT(27) /* takes something back: "wait", "oops" */
#define WORD_YES        WORD_BIT(28) /* confirms: "yes", "indeed", "checks out" */
#define WORD_STUDY      WORD_BIT(29) /* "examine", "consider" */
#define WORD_WHY        WORD_BIT(30) /* "because", "since" */
#define WORD_FILL       WORD_BIT(31) /* articles, adverbs, prepositions */
#define WORD_ALL        WORD_BIT(32) /* "all", "every", "none" */
#define WORD_CASE       WORD_BIT(33) /* begins a circumstance: "for", "with", "under" */
#define WORD_ASK        WORD_BIT(34) /* "why", "how", "whether" */
#define WORD_BOTH       WORD_BIT(35) /* "both", "several" */
#define WORD_THING      WORD_BIT(36) /* a letter after it is no option: "step", "vitamin" */
#define WORD_THAN       WORD_BIT(37) /* the option after it is not the answer: "than", "unlike" */
#define WORD_CLAIM      WORD_BIT(38) /* what an option or a person does: "says", "claims" */
#define WORD_END        WORD_BIT(39) /* a final particle: "desu", "it is" */
#define WORD_TWIN       WORD_BIT(40) /* "between", "either", "neither" */
#define WORD_ORDER      WORD_BIT(41) /* "first", "second": with WORD_RANK(n) */
#define WORD_RANK_SHIFT 42           /* four bits: the number of an ordinal, 1 to 10 */
#define WORD_KNOWN      WORD_BIT(46) /* the lexicon has the word */
#define WORD_AFTER      WORD_BIT(47) /* after it, "A" may be an option and no article: "A best" */

/* Reads the longest entry at the start of @text, ignoring the case of ASCII, Latin-1 and Cyrillic
 * letters. Entries end at the end of a word, except in scripts without spaces. *is gets the classes
 * of the entry. Returns its length in bytes; 0 if there is none. */
size_t letter_word(span text, word_class *is);

#endif
