/* staged.h - a backend with memory of its own, called with the host's pointers.
 *
 * A model on the processor keeps queries, tables and results in the host's memory and the cache where the backend
 * has it. Where the backend can't read the former, this one stands before it: what a call reads goes to the
 * device first, what it leaves comes back, so that one forward pass serves every backend of mla.h.
 * The price is a copy of the step's rows a call, not of the cache. */
#ifndef SNAPMLA_KERNELS_STAGED_H
#define SNAPMLA_KERNELS_STAGED_H

#include "kernels/mla.h"

/**
 * staged_open - @inner itself where the host may read its memory, else a backend before it
 *
 * @out:   caller owns it, in place of @inner; NULL on failure
 * @inner: taken over, also on failure
 *
 * Of what stands before another: planes of a cache are its memory (mla_alloc), every other pointer of a
 * step, of mla_quant_q(), mla_append_kv() and mla_fetch_kv() is the host's. It has no laboratory functions.
 * SNAP_E_NOMEM.
 */
snap_status staged_open(mla_backend **out, mla_backend *inner, snap_err *err) SNAP_CHECK_RESULT;

#endif
