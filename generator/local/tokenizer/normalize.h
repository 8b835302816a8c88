/* normalize.h - the normaliser, which rewrites a text before it is split. It supports what
 * SentencePiece-like tokenizers need (a prefix, and replacements) and the normalisation forms of
 * Unicode. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_NORMALIZE_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_NORMALIZE_H

#include "base/buf.h"
#include "generator/local/tokenizer/forms.h"
#include "generator/local/tokenizer/regex.h"

enum { NORMALIZE_STEPS = 16 };

typedef struct {
    unicode_form form; /* FORM_NONE: the step is a replacement or a prefix */
    regex *re;         /* what is replaced, never the empty text; NULL: `with` is a prefix for texts
                          that are not empty */
    const char *with;  /* borrowed from the tokenizer's arena */
    size_t n;
} normalize_step;

typedef struct {
    normalize_step steps[NORMALIZE_STEPS];
    int n;
} normalizer;

/* Writes the rewritten @s to @out, which is cleared first. Without steps it is a copy. @spare is a
 * second buffer. The steps come from a file that may be hostile: SNAP_E_INPUT if one of them makes
 * more than 64 KiB plus 64 bytes for each byte of @s; SNAP_E_NOMEM; errors of regex_find(). */
snap_status normalize_text(const normalizer *nm, regex_work *w, const char *s, size_t n, buf *out,
                           buf *spare, snap_err *err) SNAP_CHECK_RESULT;

void normalizer_release(normalizer *nm);

#endif
