/* forms.h - the normalisation forms of Unicode (UAX 15). They need a build with utf8proc. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_FORMS_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_FORMS_H

#include <stdbool.h>

#include "base/buf.h"

typedef enum { FORM_NONE, FORM_NFC, FORM_NFD, FORM_NFKC, FORM_NFKD } unicode_form;

/* Parses "NFC", "NFD", "NFKC" or "NFKD"; FORM_NONE for any other name. */
unicode_form form_parse(const char *name);

bool form_available(void);

/* Appends well-formed UTF-8 in a form. SNAP_E_UNSUPPORTED if this build has no utf8proc;
 * SNAP_E_NOMEM. */
snap_status form_apply(unicode_form form, const char *s, size_t n, buf *out,
                       snap_err *err) SNAP_CHECK_RESULT;

#endif
