/* seccomp.h - which system calls a judged program may make.
 *
 * A classic BPF program as the kernel takes it. It is one more wall behind the namespaces: what a
 * namespace contains already is refused once more (mounts, tracing, other address families), and what
 * namespaces do not bound is refused here alone: new processes, so that one address space limit
 * bounds all memory; memory that no address space shows (memfd, System V); io_uring. Threads are
 * allowed. */
#ifndef SNAPMLA_EVALS_CODE_SECCOMP_H
#define SNAPMLA_EVALS_CODE_SECCOMP_H

#include "base/buf.h"

/* Appends the filter. SNAP_E_NOMEM; SNAP_E_UNSUPPORTED on an architecture we have no filter for. */
snap_status seccomp_filter(buf *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
