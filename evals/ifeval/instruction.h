/* instruction.h - instructions that a program can check (IFEval): 25 kinds.
 *
 * Zhou et al., "Instruction-Following Evaluation for Large Language Models" (arXiv 2311.07911).
 * Each verdict must agree with the authors' checker, except for the differences named below. This
 * includes the checker's peculiarities: keywords are regular expressions; a paragraph's first word
 * ends at white space and at . , ? ! ' "; JSON may be in a fence of ``` or ```json; a text without
 * letters counts as every language. words.h has words, punkt.h sentences and language.h languages.
 * Known differences: results that langdetect decides at random; a letter to count that is none of a
 * to z (the checker draws one at random instead); and, without the parameters of Punkt, some
 * sentence boundaries after abbreviations, initials and ellipses. */
#ifndef SNAPMLA_EVALS_IFEVAL_INSTRUCTION_H
#define SNAPMLA_EVALS_IFEVAL_INSTRUCTION_H

#include "base/err.h"
#include "base/json.h"
#include "evals/ifeval/language.h"
#include "evals/ifeval/punkt.h"

typedef struct instruction instruction;

/* The kind with that id ("punctuation:no_comma"); NULL if there is none. */
const instruction *instruction_find(const char *id);

/* Checks the arguments. SNAP_E_INPUT names the first argument that is missing or has a value that
 * is not permitted, such as an invalid regular expression. Unknown arguments are ignored; null
 * counts as absent. */
snap_status instruction_check(const instruction *i, const js *kwargs,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Data of this machine. Each may be NULL; language.h and punkt.h say what is used instead. */
typedef struct {
    const language_profiles *languages;
    const punkt_params *sentences;
} instruction_data;

/* True if a response, which must be UTF-8, follows the instruction. instruction_check() must have
 * accepted @kwargs. */
bool instruction_follows(const instruction *i, const js *kwargs, span response,
                         const instruction_data *data);

#endif
