/* staged.h - a wrapper that lets a backend with its own device memory take host pointers.
 *
 * A model that runs on the CPU keeps its queries, tables and results in host memory, while the
 * cache is in the backend's memory. If the host cannot access that memory, this wrapper stands in
 * front of the backend: each call copies its inputs to the device and its results back. So one
 * forward pass of the model serves every backend of mla.h. The cost is a copy of each call's inputs
 * and results; the cache is not copied. */
#ifndef SNAPMLA_KERNELS_STAGED_H
#define SNAPMLA_KERNELS_STAGED_H

#include "kernels/mla.h"

/**
 * staged_open - @inner itself if the host may access its memory, else a wrapper around it
 *
 * @out:   caller owns it, in place of @inner; NULL on failure
 * @inner: taken over, also on failure
 *
 * With the wrapper, the planes of a cache are still device memory (mla_alloc), and so is the
 * device side of mla_copy_in() and mla_copy_out(). The pointers of mla_step, mla_attn and
 * mla_fresh, and the rows given to mla_quant_q(), mla_append_kv() and mla_fetch_kv(), are host
 * pointers. The wrapper does not pass on mla_ceilings_probe_once(), mla_limits_measure() and the
 * functions of lab.h. SNAP_E_NOMEM.
 */
snap_status staged_open(mla_backend **out, mla_backend *inner, snap_err *err) SNAP_CHECK_RESULT;

#endif
