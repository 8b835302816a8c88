/* letter_clause.h - what the clause around a mention of an option says about it. An option is one
 * of the answers of a multiple-choice question. A mention is a letter, or words such as "the third
 * option". */
#ifndef SNAPMLA_EVALS_LETTER_CLAUSE_H
#define SNAPMLA_EVALS_LETTER_CLAUSE_H

#include "evals/letter_token.h"

typedef enum {
    CLAUSE_SILENT,    /* the clause does not say whether the option is the answer */
    CLAUSE_DENIES,    /* the clause says that the option is wrong */
    CLAUSE_OPEN,      /* the clause asks, supposes, quotes, or names several options */
    CLAUSE_CONCLUDES, /* the clause concludes that the option is the answer: "only C fits" */
    CLAUSE_DECLARES   /* the clause says which option is the answer: "the answer is C" */
} clause_verdict;

typedef struct {
    clause_verdict verdict;
    size_t first, end; /* the mention's tokens are first .. end - 1. It has several options if these
                          are joined, as in "A or B" */
    char letter;       /* '\0' if different letters are joined */
    bool weighs;       /* the clause compares with other options or concludes: "so", "only", "I
                          choose" */
    bool circumstance; /* the clause begins with a circumstance, "for metals ...", and would
                          conclude or declare if it did not deny the option or leave it open */
    const char *rule;  /* static; how the clause concludes or declares. It is also set if only a
                          denial or an open question prevents that */
} clause;

/* Reads the clause around the mention that begins at the token @i. */
clause letter_clause(const letter_tokens *t, size_t i);

#endif
