/* instruction.h - instructions whose following can be checked (IFEval): 25 kinds.
 *
 * Zhou et al., "Instruction-Following Evaluation for Large Language Models" (arXiv 2311.07911). Each verdict is
 * to be that of its authors' checker, whose odd corners are kept: keywords are regular expressions; a
 * paragraph's first word ends at . , ? ! ' "; JSON may stand in a fence of ``` or ```json; a text without
 * letters is in every language. Sentences and words: words.h. Languages: language.h. Known to differ: a
 * sentence boundary behind rare abbreviations and names, and what langdetect leaves to chance. */
#ifndef SNAPMLA_EVALS_IFEVAL_INSTRUCTION_H
#define SNAPMLA_EVALS_IFEVAL_INSTRUCTION_H

#include "base/err.h"
#include "base/json.h"
#include "evals/ifeval/language.h"

typedef struct instruction instruction;

/* The kind of that id ("punctuation:no_comma"); NULL where there is none. */
const instruction *instruction_find(const char *id);

/* SNAP_E_INPUT naming the argument that is missing, of another type, or no regular expression. Arguments that
 * the kind does not have are ignored, null is absent. */
snap_status instruction_check(const instruction *i, const js *kwargs,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Whether a response, which is UTF-8, follows it. @kwargs has passed instruction_check(). */
bool instruction_follows(const instruction *i, const js *kwargs, span response,
                         const language_profiles *languages);

#endif
