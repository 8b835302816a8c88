/* extract.h - finds the answer that a response states.
 *
 * The functions are pure functions of the text, which may hold any bytes, and take time linear in
 * its length. What they find is a piece of the text (borrowed). An extraction also has the name of
 * the rule that found it. Whether the answer is right is decided by the grader (grade.h). */
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

/* What extract_boxed() found. A box is \boxed or \fbox with its content. */
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

/* The rest of the sentence or line after the last "final answer is" or "final answer:" (rule
 * "final_answer"), or else after the last "answer is" or "answer:" (rule "answer"). */
bool extract_stated(span text, extraction *out);

/* The last $...$ on a line, or \(...\) without macros (rule "inline_math"). */
bool extract_inline_math(span text, extraction *out);

/* The last $$...$$, $...$ on a line, \[...\] or \(...\), macros included (rule "formula"). */
bool extract_formula(span text, extraction *out);

/* The rest of the line after the last "####" (rule "hashes"). */
bool extract_hashes(span text, extraction *out);

/**
 * extract_letter - the option that a response chooses
 *
 * @last:    the last option's letter; the options are 'A'..@last
 * @guesses: also accept answers that are not declared: rules "called_correct" ("C is the correct
 *           answer"), "last_line", "only" ("only C fits"), "first_line", "bold", "parentheses", in
 *           this order
 *
 * Declared answers are in a box (with the rule of extract_boxed()), stated in English (rule
 * "answer": "Answer: C", "the correct option is **(C)**") or in another language (rule "label",
 * answer_labels.h), in a tag (rule "tag": "<answer>C</answer>") or in JSON (rule "json"). The one
 * that comes last wins. The answer is one byte, in upper or lower case; letters of some other
 * scripts stand for A to J, and the answer is then static text. The statements "A or B", "(A) and
 * (B)", "\boxed{A}, \boxed{B}" and "the answer is a matter of" choose no option. Nor do a list of
 * the options and words such as "not C" or "let us examine C", if the answer is not declared.
 * Letters in bold or in parentheses count if they all agree or if the last one is in the last
 * paragraph.
 */
bool extract_letter(span text, char last, bool guesses, extraction *out);

/* The option's letter if the answer is only that: "C", "(C)", "\text{C}", "C) the text of the
 * option". Sets out->answer but not out->rule. */
bool extract_bare_letter(span answer, char last, extraction *out);

/* The last number of the text, with commas and points between its digits and a minus sign (rule
 * "last_number"). */
bool extract_last_number(span text, extraction *out);

span span_trim(span s); /* without white space at both ends */

#endif
