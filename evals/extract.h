/* extract.h - what does a response claim the answer is?
 *
 * Everything here is a pure function of the response's bytes, which may be anything: the work is
 * linear in their number. What is found is a piece of the response (borrowed) with the name of the
 * rule that found it; whether it is right is the grader's question (grade.h). */
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
 * Text up to the last </think> is dropped, and text from a <think> that is never closed: a model
 * that was cut off while thinking has not answered. Returns the rest; *unfinished (may be NULL)
 * says whether such an open <think> was met.
 */
span extract_visible(span response, bool *unfinished);

/* Content of the last \boxed or \fbox. */
typedef enum {
    EXTRACT_NO_BOX,
    EXTRACT_BOX,         /* rule "boxed"; "boxed_list" where several that differ are joined by
                            "and", "or" or a comma, layout and "x =" aside: the answer runs from
                            the first to the last */
    EXTRACT_EARLIER_BOX, /* the last box never closes (a truncated response), the one before it
                            does: rule "boxed_earlier" */
    EXTRACT_OPEN_BOX,    /* no box closes */
} extract_box;

/* Braces nest; "\{" and "\}" don't count; "\boxed 5" runs to the next "$" on its line, else to
 * the next white space; an empty box is none (models repeat "within \boxed{}"). */
extract_box extract_boxed(span text, extraction *out);

/* The boxes of a "boxed_list" in their order: the contents of the first @cap of @list, which is from
 * the first box to the last. Returns how many boxes it has, 0 where it is no list. */
size_t extract_list(span list, span *parts, size_t cap);

/* The rest of the sentence or line after the last "final answer is" or "final answer:" (rule
 * "final_answer"), else after the last "answer is" or "answer:" (rule "answer"). */
bool extract_stated(span text, extraction *out);

/* The last $...$ on a line, or \(...\) without macros (rule "inline_math"). */
bool extract_inline_math(span text, extraction *out);

/* The last $$...$$, $...$ on a line, \[...\] or \(...\), macros included (rule "formula"). */
bool extract_formula(span text, extraction *out);

/* What stands behind the last "####" on its line (rule "hashes"). */
bool extract_hashes(span text, extraction *out);

/**
 * extract_letter - which option a response chooses
 *
 * @last:    the last option's letter; options are 'A'..@last
 * @guesses: also take what was not declared: rules "last_line", "bold", "parentheses"
 *
 * Declared: "boxed", "answer" ("Answer: C", "the correct option is **(C)**"), whichever comes later.
 * The answer is one byte, capital or small. "A or B" is no choice, "the answer is a matter of" is
 * none either. Letters in bold or in parentheses count when they agree or stand in the last
 * paragraph.
 */
bool extract_letter(span text, char last, bool guesses, extraction *out);

/* The letter that a bare answer is: "C", "(C)", "\text{C}", "C) the text of the option". */
bool extract_bare_letter(span answer, char last, extraction *out);

/* The last number of the text, thousands commas and a sign included (rule "last_number"). */
bool extract_last_number(span text, extraction *out);

span span_trim(span s); /* without white space at both ends */

#endif
