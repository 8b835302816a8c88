/* seccomp.h - a filter for the system calls of a judged program.
 *
 * The filter is a classic BPF program for the kernel, made by libseccomp. It is a second barrier in
 * addition to the name spaces: it also refuses calls whose effects the name spaces already confine
 * (mounts, tracing, other address families). Only the filter refuses what name spaces do not limit:
 *   - new processes, so that one address-space limit bounds all memory
 *   - memory outside the address space (for example memfd, System V, extended attributes)
 *   - io_uring
 * Threads are allowed.
 *
 * A process of its own makes the filter, because libseccomp 2.5.4 may crash or hang when an
 * allocation fails. */
#ifndef SNAPMLA_EVALS_CODE_SECCOMP_H
#define SNAPMLA_EVALS_CODE_SECCOMP_H

#include "base/buf.h"

/* Appends the filter. SNAP_E_NOMEM, also if the process crashes or needs more than 10 s;
 * SNAP_E_UNSUPPORTED if libseccomp refuses a rule or cannot write the filter; SNAP_E_IO. */
snap_status seccomp_filter(buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
