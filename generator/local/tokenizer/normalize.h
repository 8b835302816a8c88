/* normalize.h - the normaliser: rewrites a text before it is cut. What SentencePiece-like tokenizers
 * need: a text put in front, and replacements; and Unicode's forms. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_NORMALIZE_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_NORMALIZE_H

#include "base/buf.h"
#include "generator/local/tokenizer/forms.h"
#include "generator/local/tokenizer/regex.h"

enum { NORMALIZE_STEPS = 16 };

typedef struct {
    unicode_form form; /* FORM_NONE: one of the others */
    regex *re; /* what is replaced; NULL: `with` is put in front of a text that is not empty */
    const char *with; /* borrowed from the tokenizer's arena */
    size_t n;
} normalize_step;

typedef struct {
    normalize_step steps[NORMALIZE_STEPS];
    int n;
} normalizer;

/* Rewrites @s into @out (cleared first), @spare being a second buffer; without steps a copy. */
snap_status normalize_text(const normalizer *nm, regex_work *w, const char *s, size_t n, buf *out,
                           buf *spare, snap_err *err) SNAP_CHECK_RESULT;

void normalizer_release(normalizer *nm);

#endif
