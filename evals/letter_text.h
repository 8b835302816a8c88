/* letter_text.h - a response in the plain form in which extract_letter() searches.
 *
 * Models write the same statement with different layout: "**Answer:** (C)", "$\text{C}$",
 * "<answer>C</answer>", {"answer": "C"}. The plain form has none of it:
 *   - white space is one space, one line feed or, for empty lines, two line feeds
 *   - list markers, the signs of headings, emphasis, common LaTeX macros, quotes and braces are
 *     left out
 *   - a letter between two marks of emphasis is written "(C)", and between other marks "[C]"
 *   - "<answer>" and "[ANSWER]" become "answer: " at the start of a line
 *   - struck text ("~~C~~") is left out, and each field of a JSON object begins a line
 *   - mathematical and full-width letters and common full-width punctuation become ASCII; letters
 *     in a circle, a square or parentheses become "(C)"
 *   - arrows become "=>", check marks LETTER_YES and crosses LETTER_NO */
#ifndef SNAPMLA_EVALS_LETTER_TEXT_H
#define SNAPMLA_EVALS_LETTER_TEXT_H

#include "base/buf.h"
#include "evals/pattern.h"

#define LETTER_YES "\x01"
#define LETTER_NO  "\x02"

/* Appends the plain form of @text. @at is a place in @text, or NULL. Returns the length that @out
 * has when the conversion reaches @at; 0 if @at is NULL. A failed allocation is noted as a
 * fault. */
size_t letter_text(span text, const char *at, buf *out);

#endif
