/* language.h - in which language is a text?
 *
 * IFEval's own checker asks the Python package langdetect 1.0.9, which weighs groups of one to three letters
 * by their frequency in 55 languages (Shuyo, "Language Detection Library for Java", 2010), drawing groups at
 * random until it is sure. Here all groups of the text count once each time they stand there: what its
 * draws tend to, without the chance. The frequencies are read from the package's own files, which Debian
 * installs (python3-langdetect); nothing of Python runs. Without them the script of the letters
 * and the small words decide, for the 30 languages that IFEval names. */
#ifndef SNAPMLA_EVALS_IFEVAL_LANGUAGE_H
#define SNAPMLA_EVALS_IFEVAL_LANGUAGE_H

#include "base/err.h"
#include "evals/pattern.h"

enum { LANGUAGE_CODE = 8 }; /* bytes: "en", "zh-cn" */

typedef struct language_profiles language_profiles;

/* Reads a folder with a file a language: {"name", "freq": {group: count}, "n_words": [3]}. SNAP_E_IO,
 * SNAP_E_INPUT with file and reason. Release with language_close(). */
snap_status language_open(language_profiles **out, const char *folder,
                          snap_err *err) SNAP_CHECK_RESULT;
void language_close(language_profiles *p); /* NULL is allowed */

/* The profiles of this machine: of SNAPMLA_LANGDETECT, a folder, where that is set, else Debian's; read at
 * the first call, kept for the life of the process. NULL where there are none. */
const language_profiles *language_installed(void);

/* Whether @text, which is UTF-8, is in the language of that code; true where it has no letters to go by, as
 * IFEval's checker takes it. @p: NULL for scripts and small words. */
bool language_is(const language_profiles *p, span text, const char *code);

/* The language's code; false where there are no letters to go by. */
bool language_detect(const language_profiles *p, span text, char code[LANGUAGE_CODE]);

#endif
