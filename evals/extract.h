/* extract.h - finds the answer that a response states.
 *
 * The functions are pure functions of the text, which may hold any bytes, and take time linear in
 * its length. What they find is a piece of the text (borrowed), except for letters, which are
 * static text. An extraction also has the name of the rule that found it. Whether the answer is
 * right is decided by the grader (grade.h). */
#ifndef SNAPMLA_EVALS_EXTRACT_H
#define SNAPMLA_EVALS_EXTRACT_H

#include "evals/pattern.h"

typedef struct {
    const char *rule; /* static name */
    span answer;      /* trimmed */
} extraction;

/**
 * extract_visible - the response without its reasoning
 *
 * Drops the text up to the last </think>. Also drops the text from a later <think>, which is never
 * closed, because a model that was cut off while thinking has not answered. Returns the rest.
 * *unfinished (@unfinished may be NULL) says whether there was such an open <think>.
 */
span extract_visible(span response, bool *unfinished);

/* What extract_boxed() found. A box is \boxed, \fbox or \framebox with its content. */
typedef enum {
    EXTRACT_NO_BOX,
    EXTRACT_BOX, /* rule "boxed"; "boxed_list" if boxes before the last one have other contents and
                    are joined by "and", "or", a comma, a semicolon or "\&", ignoring layout and "x
                    ="; then the answer spans them all */
    EXTRACT_EARLIER_BOX, /* the last box is not closed (a truncated response) but an earlier one is:
                            rule "boxed_earlier" */
    EXTRACT_OPEN_BOX,    /* there are boxes, but none is closed */
} extract_box;

/* Finds the last box. Braces nest; "\{" and "\}" are not counted. "\boxed 5" without braces extends
 * to the next "$" on its line (within 500 bytes), or else to the next white space. Empty boxes are
 * ignored, because models repeat "within \boxed{}". So is "\boxed" before prose. @out is set only
 * if a closed box is found. */
extract_box extract_boxed(span text, extraction *out);

/* Splits a "boxed_list" answer: stores the contents of its boxes, in order, in @parts; of more than
 * @cap boxes only the last @cap. Returns the number of boxes in it. */
size_t extract_list(span list, span *parts, size_t cap);

/* The last statement of an answer: the rest of the sentence or line after "final answer is" or
 * "final answer:" (rule "final_answer"), the content of <answer>...</answer> (rule "tag"), or the
 * JSON field "answer" (rule "answer_field"), whichever comes last. If there is none of them, what
 * follows "answer is", "answer:" or similar words, or stands below the heading "Answer" or in a
 * table under that name (rule "answer"). What follows the word for "answer" in another language
 * (rule "label", answer_labels.h) is taken instead if it comes later. */
bool extract_stated(span text, extraction *out);

/* The content of the last $$...$$, $...$ on a line, \[...\] or \(...\) (rule "formula"). */
bool extract_formula(span text, extraction *out);

/* The rest of the line after the last "####" (rule "hashes"). */
bool extract_hashes(span text, extraction *out);

/**
 * extract_letter - the option that a response chooses
 *
 * @last:    the last option's letter, at most 'J'; the options are 'A'..@last
 * @guesses: also accept answers that are not declared
 *
 * Each clause that mentions an option gets a verdict from its words (letter_clause.h): it declares
 * the option ("the answer is C", rules "answer" and "called_correct"), concludes it ("I'd go with
 * C", "only C fits"; rules "chosen", "points_to", "called_correct", "fits", "check_mark"), denies
 * it, or leaves it open (a question, a condition, the opinion of others, several options). A
 * mention is a letter, or "the third option". The words may be of some fifty languages.
 *
 * The last declaration counts, in words or in a box (with the rule of extract_boxed()). If the text
 * after it takes it back ("wait, that is wrong"), only a later statement counts. With @guesses, a
 * last line that is only a letter comes before declarations, and without a declaration the last
 * conclusion counts, unless conclusions about different options stand side by side. Without those,
 * a letter without a sentence counts (rules "last_line", "check_mark", "first_line", "marked"). A
 * list of the options is never searched for statements.
 *
 * If the text goes on with a further question (a line "Question: ..." or "Q: ..." after an empty
 * line), an answer before that line counts. One after it counts only if there is none before it.
 *
 * Of a long text only the end is searched, and its beginning if the end has no answer. The answer
 * is static text, one capital letter; letters of some other scripts stand for A to D.
 */
bool extract_letter(span text, char last, bool guesses, extraction *out);

/* The option's letter if the answer is only that: "C", "(C)", "\text{C}", "C) the text of the
 * option". Sets out->answer (static text, a capital letter) but not out->rule. */
bool extract_bare_letter(span answer, char last, extraction *out);

/* The last number of the text, with commas and points between its digits, a minus sign and an
 * exponent as in 6.02e23 (rule "last_number"). */
bool extract_last_number(span text, extraction *out);

span span_trim(span s); /* without white space at both ends */

#endif
