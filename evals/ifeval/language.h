/* language.h - detects the language of a text.
 *
 * IFEval's checker uses the Python package langdetect 1.0.9. It rates groups of one to three
 * letters by their frequency in 55 languages (Shuyo, "Language Detection Library for Java", 2010)
 * and draws groups of the text at random. This implementation uses all groups of the text, each as
 * often as it occurs, which is the limit of many such draws. The frequencies are read from the
 * package's own files, which Debian installs (python3-langdetect). No Python code runs. Without
 * these files, the script of the letters and the small words decide among 39 languages, which
 * include the 30 that IFEval names. */
#ifndef SNAPMLA_EVALS_IFEVAL_LANGUAGE_H
#define SNAPMLA_EVALS_IFEVAL_LANGUAGE_H

#include "base/err.h"
#include "evals/pattern.h"

enum { LANGUAGE_CODE = 8 }; /* bytes: "en", "zh-cn" */

typedef struct language_profiles language_profiles;

/* Reads a folder with one file per language: {"name", "freq": {group: count}, "n_words": [3]}.
 * SNAP_E_IO if the folder cannot be read; SNAP_E_INPUT if a file is malformed or cannot be
 * read, or if there are no groups; SNAP_E_NOMEM. Release with language_close(). */
snap_status language_open(language_profiles **out, const char *folder,
                          snap_err *err) SNAP_CHECK_RESULT;
void language_close(language_profiles *p); /* NULL is allowed */

/* The language profiles of this machine: from the folder SNAPMLA_LANGDETECT if that is set, else
 * Debian's. Read at the first call and kept until the process ends. NULL if the variable is not set
 * and Debian's folder does not exist. A folder that cannot be read, or that holds a malformed file,
 * is a fault (base/fault.h) whose message names it: without the profiles, a text could get another
 * verdict. After a fault the result is NULL, and the next call tries again. */
const language_profiles *language_installed(void);

/* True if @text, which must be UTF-8, is in the language with that code, or if no language is
 * detected, for example because it has no letters (as in IFEval's checker). @p: NULL to use scripts
 * and small words. */
bool language_is(const language_profiles *p, span text, const char *code);

#endif
