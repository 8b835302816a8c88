/* letter_rules.h - the statements with which responses choose an option, as patterns for the plain
 * form of a response (letter_text.h). The first group that takes part in a match is the letter. */
#ifndef SNAPMLA_EVALS_LETTER_RULES_H
#define SNAPMLA_EVALS_LETTER_RULES_H

#include "evals/answer_labels.h"
#include "evals/pattern.h"

/* SECOND is a second letter with the words before it. SINGLE, after a letter, does not match before
 * a second one, as in "A or B" and "(A), (B)". */
#define SECOND                                                                                     \
    "(?:(?:also|option|choice|perhaps|maybe|possibly|by) ){0,2}[(\\[]?(?!I"                        \
    " [a-z])[A-J](?![A-Za-z0-9'])"
#define SINGLE                                                                                     \
    "(?![)\\]]?\\s?(?:/|&|\\\\&|and/or|or|and|nor|vs\\.?|versus"                                   \
    "|" ANSWER_OR_AND ")\\s?" SECOND ")"                                                           \
    "(?![)\\]]?\\s?[,;]\\s?" SECOND                                                                \
    "[)\\]]?(?! (?:is|was|has|would|can|does|gives|fails|could)\\b))"

typedef struct {
    const char *rule; /* its name */
    bool excludes;    /* it excludes the other options: "all except C can be ruled out" */
    pattern pattern;
} letter_rule;

/* Statements that say which option is the answer. */
extern letter_rule letter_declarations[];
extern const size_t letter_n_declarations;

/* Statements from which the chosen option follows. */
extern letter_rule letter_conclusions[];
extern const size_t letter_n_conclusions;

#endif
