/* answer.h - finds the answer to a mathematical question in a response. The graders for mathematics
 * and for integers use it with different flags.
 *
 * A reading is a piece of the text that may be the answer. A statement is what the text says in
 * words about the answer, as after "the answer is" (extract_stated()). */
#ifndef SNAPMLA_EVALS_ANSWER_H
#define SNAPMLA_EVALS_ANSWER_H

#include "evals/extract.h"
#include "evals/grade.h"

enum { ANSWER_READINGS = 8 };

enum {
    ANSWER_HASHES = 1, /* "#### 18" states the answer, unless there is a box */
    ANSWER_DIGITS = 2, /* a statement without a digit does not count */
};

typedef struct {
    extraction reading[ANSWER_READINGS]; /* the best one first; a later one counts if an earlier one
                                            cannot be parsed */
    int count;
    bool stated;     /* the text says something about an answer in words; there are no readings if
                        it only denies, supposes or takes back an answer */
    bool open_box;   /* the last \boxed is cut off */
    const char *why; /* the reason if there is no reading */
} found_answer;

/**
 * answer_find - the answer that a response gives
 *
 * @out:   is filled
 * @flags: ANSWER_HASHES, ANSWER_DIGITS
 *
 * If there is a box, its content is the only reading; if boxes are opened but none is closed, there
 * is none. Without a box (and without hashes, if ANSWER_HASHES is set), the readings are the last
 * statement (extract_stated()), the last formula in it, and its number if it has only one. A
 * statement that denies an answer ("not 5") has no readings, and nor has one that is only supposed
 * ("if n is even, the answer is 5"). Without a statement, the readings are the result in the last
 * sentence, the last formula and the last number of the text. The formula and the number count only
 * if the text ends with them or with a few more words. In this case there are no readings if the
 * last sentence is a question or states something that is not known, or if the response or its
 * reasoning was cut off. A text that ends within a formula or with an operator was cut off.
 *
 * If the text after a box takes it back ("wait, that is wrong"), or the text before it calls it a
 * draft ("my first result was"), the statement after it counts. If the response does not choose
 * between a box and another answer ("\boxed{2} or possibly \boxed{3}"), there are no readings. Of
 * "\boxed{2} and not \boxed{3}" the first box counts.
 */
void answer_find(found_answer *out, grade_input in, unsigned flags);

/* Removes punctuation of the sentence, Markdown characters and check marks around an answer. */
span answer_bare(span s);

/* Also removes words that are no part of the answer: "therefore 5", "5, which is prime", "5 (by
 * symmetry)". */
span answer_core(span s);

#endif
