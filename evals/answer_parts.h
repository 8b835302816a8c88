/* answer_parts.h - declarations that the files of answer_find() share. answer.h says what a reading
 * and a statement are. */
#ifndef SNAPMLA_EVALS_ANSWER_PARTS_H
#define SNAPMLA_EVALS_ANSWER_PARTS_H

#include "evals/answer.h"

/* The last @most bytes. */
static inline span span_tail(span s, size_t most) {
    return s.n > most ? (span){s.s + s.n - most, most} : s;
}

/* The text from @at on. */
static inline span span_from(span text, const char *at) {
    return (span){at, (size_t)(text.s + text.n - at)};
}

/* Adds a reading if it is not empty and there is room. */
void answer_add(found_answer *a, const char *rule, span s);

/* True if the text has a digit or a number word such as "twelve" or "forty". */
bool answer_has_number(span s);

/* The only number of a statement, if it has one and the characters around it are no part of an
 * expression. */
bool answer_only_number(span s, extraction *x);

/* True if the text says that the writer does not know which of several answers is right. */
bool answer_is_doubt(span s);

/* True if the response does not choose between a box and another answer: "\boxed{2} or possibly
 * \boxed{3}". */
bool answer_is_undecided(span text, const extraction *box);

/* True if the text ends with a parameter or a constant: "x = n\pi, where n is any integer". */
bool answer_names_parameter(span s);

/* The text without a bracket at its end that gives the value again or explains it: "72 km/h (20
 * m/s)", "2 (= 4/2)". */
span answer_without_bracket(span s);

/* What the sentence of a value says about it. */
typedef enum {
    ANSWER_ASSERTED,
    ANSWER_DENIED,    /* "not 5", "5 is wrong", "a multiple of 5" */
    ANSWER_OF_OTHERS, /* "a common wrong answer is 5", "if n were even, the answer would be 5" */
} answer_context;

/* Reads the words before and after @value in its sentence of @text. */
answer_context answer_context_of(span text, span value);

/* What the text says about a box. */
typedef enum {
    ANSWER_KEPT,
    ANSWER_REVISED,   /* the box is taken back, and another answer is stated */
    ANSWER_RETRACTED, /* the box is taken back, and no other answer is stated in words */
} answer_revision;

/* Finds out whether the text after a box takes it back. @x gets the other answer; it is valid only
 * for ANSWER_REVISED. @after gets the text that begins where the box is taken back; it is not valid
 * for ANSWER_KEPT. */
answer_revision answer_revise(span text, const extraction *box, extraction *x, span *after);

/* answer_revise() for a statement in words: "the answer is 5. No, that is wrong." */
answer_revision answer_revise_stated(span text, const extraction *stated, extraction *x,
                                     span *after);

/* The 24 of "not 25, it is 24"; the whole text if it has no such contrast. */
span answer_without_contrast(span s);

/* The text without the closing words after the answer: sentences such as "I hope this helps!", a
 * last sentence in brackets, the end of a code block, what its last sentence says the answer is
 * not, and a rounded value, a repeated amount or a reason. *asserted is set if a sentence says that
 * the answer is before it. */
span answer_without_closing(span text, bool *asserted);

/* The text without the words at its end that give a second amount or a time, after the amount that
 * was asked for: "earns $40 in 5 hours", "has 26 cards, while Lee has 14". */
span answer_without_second_amount(span text);

/* The last sentence of the last line, without signs before it; of "5 is tempting, but it is 6" the
 * last clause. */
span answer_last_sentence(span text);

/* The clause of a sentence that gives the result: what follows words such as ", so", a reason or an
 * arrow, without ", which ..." or a last bracket in words. */
span answer_main_clause(span sentence);

/* The formula in plain text with which a sentence ends: "2 and 1" of "It's 2 and 1." Empty if
 * there is none. */
span answer_plain_suffix(span sentence);

/* True if the words before a number limit or deny it: "more than 24". */
bool answer_is_limited(span before);

/* True if nothing but punctuation follows the answer. */
bool answer_is_end(span text, const extraction *x);

/* Adds the last **bold** or `code` text of the sentence if it ends the sentence, or if the words
 * after it only compare or locate it. */
void answer_add_marked(found_answer *a, span text, span sentence);

/* Adds the bold text of "Hence the fastest is **Eve**, and the slowest is Dan." */
void answer_add_marked_clause(found_answer *a, span sentence);

/* Adds the name in "Maria is the oldest of the three." and "So Maria would earn the most." */
void answer_add_name(found_answer *a, span sentence);

/* Adds what the sentence gives in certain phrases: "4 of the 10 numbers", "k must be at least 4".
 * @words: also "False" of "False, because ...". */
void answer_add_phrases(found_answer *a, span sentence, bool words);

/* Adds a number of the text, and before it the number with the unit that follows it. The number of
 * "1.45 million" includes the second word. */
void answer_add_number(found_answer *a, span text, const extraction *number);

/* Adds the result of a derivation with which the text ends: "\begin{align*} x &= 1 + 3 \\ &= 4.
 * \end{align*}". */
void answer_add_aligned(found_answer *a, span text);

/* True if the sentence calculates a number, as "If each costs $4, they pay 3 * $4 = $12." */
bool answer_is_calculation(span sentence);

/* Adds the result of a calculation in the sentence: the 18 of "He sells 24 - 6 = 18 of the 24
 * pens." */
void answer_add_result(found_answer *a, span text, span sentence);

/* Adds the amount that a sentence with several amounts states: the 12 of "12 of the 17 apples are
 * left". Adds nothing if two of them could be the answer. @shortened: words after the amount were
 * removed from the text, so that one amount in the sentence is enough. */
void answer_add_amount(found_answer *a, span text, span sentence, bool shortened);

/* Adds the only number word of a sentence without digits and formulas: "She has ten apples." */
void answer_add_spelled(found_answer *a, span sentence);

/* Adds the property that the sentence states: the odd of "$f(x) = x^3$ is odd.", the blue of "Bead
 * 7 is blue." */
void answer_add_class(found_answer *a, span sentence);

/* Adds the "No" of a text that begins with "No." */
void answer_add_reply(found_answer *a, span text);

/* In a sentence about odds, gives each reading that is a ratio the rule "odds": the odds 1 : 2 are
 * not the number 1/2. */
void answer_mark_odds(found_answer *a, span sentence);

/* Adds the lines at the end of the text if each gives a value to a name: "x = 2", "- Mean: 12". */
void answer_add_lines(found_answer *a, span text);

/* Adds the values in bold with which the sentence ends: "**2** and **3**." */
void answer_add_marked_list(found_answer *a, span text, span sentence);

/* Adds answers that are not declared: what the last sentence of @text states, and the last formula
 * and the last number. @flags: as for answer_find(). */
void answer_guess(found_answer *a, span text, unsigned flags);

#endif
