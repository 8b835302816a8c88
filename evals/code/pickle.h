/* pickle.h - reads a Python pickle that contains exactly one string.
 *
 * A pickle is a program for a stack machine that can call any function. LiveCodeBench stores its
 * private tests in pickles that push one string and stop. This reader accepts only the operations
 * that announce the protocol and a frame, push a string, memoise it and stop. It refuses all other
 * operations and any bytes after the last one. */
#ifndef SNAPMLA_EVALS_CODE_PICKLE_H
#define SNAPMLA_EVALS_CODE_PICKLE_H

#include "base/err.h"
#include "evals/pattern.h"

/* Sets *out to the string, borrowed from @bytes. Error: SNAP_E_INPUT with @where and, if an
 * operation is refused, its offset. */
snap_status pickle_text(span bytes, span *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

#endif
