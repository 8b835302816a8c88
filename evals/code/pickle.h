/* pickle.h - reads a Python pickle that contains exactly one text.
 *
 * A pickle is a program for a stack machine that can call any function. LiveCodeBench stores its
 * private tests in pickles that push one text and stop. This reader accepts only the operations
 * that state the protocol and frame, push a text, memoise it and stop. It refuses all others and
 * any bytes after the end. */
#ifndef SNAPMLA_EVALS_CODE_PICKLE_H
#define SNAPMLA_EVALS_CODE_PICKLE_H

#include "base/err.h"
#include "evals/pattern.h"

/* Returns the text, borrowed from @bytes. SNAP_E_INPUT with @where and the offset of the byte. */
snap_status pickle_text(span bytes, span *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

#endif
