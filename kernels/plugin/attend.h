/* attend.h - the program's side of attention.h: makes a backend of a plugin that has one function.
 *
 * The backend stands on top of a built-in one, which owns the memory and does all other work: the
 * CPU backend for the device "host", the CUDA backend for "cuda". On the host, these checks guard
 * the program and the measurement:
 *
 *   bounds   After each call of attend(), the GUARD_BYTES on both sides of `out` and `lse` must be
 *            what they were. Every allocation has that many bytes or more of a known value before
 *            and after it, which are compared after the first GUARD_CALLS calls of a plan and by
 *            packed_check(). Pages without access lie before and after them.
 *   inputs   In the first GUARD_CALLS calls of a plan, the checksums of queries, cache, lengths and
 *            table must be the same before and after the call.
 *   time     A call that exceeds its limit is left with siglongjmp(). The plugin is not called
 *            again then, and no memory is freed that it might still use.
 *   crashes  A call that causes SIGSEGV, SIGBUS, SIGFPE or SIGILL in its own thread is left in the
 *            same way.
 *
 * A check that fails is the error SNAP_E_DEVICE of mla_run(). These checks find mistakes. They are
 * no sandbox: a plugin runs with the user's rights. */
#ifndef SNAPMLA_KERNELS_PLUGIN_ATTEND_H
#define SNAPMLA_KERNELS_PLUGIN_ATTEND_H

#include "kernels/plugin/attention.h"

/* Opens a backend for @plugin. The object at @path exports it, and its ABI number and name were
 * checked. SNAP_E_UNSUPPORTED: a member is missing or out of range, or this build has no CUDA.
 * SNAP_E_NOMEM. Also the errors of opening the built-in backend. */
snap_status attend_backend_open(mla_backend **out, const snapmla_attention *plugin,
                                const char *path, const mla_backend_options *opt,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Opens a backend for a plugin that @maker makes from the file @path (attention.h). The errors are
 * those of attend_backend_open() and of make(). */
snap_status attend_backend_make(mla_backend **out, const snapmla_attention *maker, const char *path,
                                const mla_backend_options *opt, snap_err *err) SNAP_CHECK_RESULT;

/* Opens the backend of a Python file, through the object python-arm.so. The environment variable
 * SNAPMLA_PYTHON_ARM is its path; without it, share_find() finds plugins/python-arm.so.
 * SNAP_E_UNSUPPORTED if it is missing; otherwise the errors of loading it and of
 * attend_backend_make(). */
snap_status python_backend_open(mla_backend **out, const char *file, const mla_backend_options *opt,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Whether a function of this header opened the backend. */
bool attend_is_backend(const mla_backend *be);

/* The built-in backend whose memory, clock and probes the backend @be uses, if a function of this
 * header opened it; @be owns the result. For any other backend, @be itself. */
mla_backend *attend_built_in(mla_backend *be);

/* ---- the checks on the host ---- */

enum { GUARD_BYTES = 256, GUARD_CALLS = 2, GUARD_RANGES = 2 };

/* The bytes around a result, before a call. */
typedef struct {
    const unsigned char *at; /* the result; NULL = none */
    size_t bytes;
    unsigned char before[GUARD_BYTES], after[GUARD_BYTES];
} guard_range;

void guard_range_note(guard_range *g, const void *at, size_t bytes);
bool guard_range_holds(const guard_range *g);

/* A checksum of @bytes bytes (any number), continued from @sum. */
uint64_t guard_sum(uint64_t sum, const void *at, size_t bytes);

/* Calls @fn(@ctx), but for at most @seconds. Returns SNAP_E_DEVICE if the call was ended by the
 * time limit or a crash; then @err says what the call did: "took more than 60 seconds and was
 * ended". After a crash, *address is the one that was accessed, or NULL if the system did not
 * report it; otherwise it does not change. SNAP_E_IO or SNAP_E_NOMEM: there is no timer, and @fn
 * did not run. */
snap_status guard_call(void (*fn)(void *ctx), void *ctx, double seconds, const void **address,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Stops this thread's timer, which guard_call() leaves running for the next call. Its signal would
 * interrupt an unrelated system call. Called outside of timed loops and before control returns to
 * code that does not call plugins. */
void guard_rest(void);

#endif
