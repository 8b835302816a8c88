/* pickle.h - the one text in a pickle that holds nothing else.
 *
 * A pickle is a program for a stack machine that can call anything; LiveCodeBench packs its private
 * tests into one that pushes a text and stops. This reads exactly that: the operations that say which
 * protocol and frame it is, that push a text, that remember it, and that stop. Every other one is
 * refused, and so is what stands behind the end. */
#ifndef SNAPMLA_EVALS_CODE_PICKLE_H
#define SNAPMLA_EVALS_CODE_PICKLE_H

#include "base/err.h"
#include "evals/pattern.h"

/* The text, borrowed from @bytes. SNAP_E_INPUT naming @where and the byte. */
snap_status pickle_text(span bytes, span *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

#endif
