/* fault.h - failures inside functions that have no error result.
 *
 * Many functions answer a yes-or-no question: does this pattern match, is there an answer, are two
 * values equal? When memory runs out inside one of them, or a library fails, its "no" means nothing
 * and must not become a verdict. Such a function notes a fault for its thread and returns any
 * value. A function above it that has a snap_err checks for faults and then fails:
 *
 *     fault_mark before = fault_begin();
 *     bool found = pattern_find(&p, text, 0, groups);
 *     return fault_result(before, SNAP_OK, err);
 *
 * Scopes may be nested. The callers between the two functions need not pass the fault on.
 *
 * The programs are linked so that each call of malloc(), calloc(), realloc(), strdup(), strndup(),
 * fopen(), fdopen() or scandir() in this project's code goes through a function of fault_wrap.c,
 * which notes a failed allocation (WRAPPED in the Makefile). jansson, libcurl, OpenSSL, GMP and
 * MPFR get such functions as their allocators; PCRE2, libzip, zlib and libzstd report a failure in
 * their results. Backend memory (mla_alloc() in mla.h) is not included: a shape for which it does
 * not suffice is left out of a sweep.
 *
 * Other functions of libc that allocate are not wrapped, and each of their callers checks the
 * result: getline(), vasprintf() and realpath(), because the C library's headers replace these
 * calls by calls of other functions, which depend on the optimisation; fmemopen(); aligned_alloc(),
 * because it also allocates backend memory; and getaddrinfo(), mmap() and pthread_create(), which
 * fail for reasons besides memory.
 *
 * After a fault of any thread, fs_write_atomic() and fs_log_append() fail, and so does the program,
 * with exit code 3. */
#ifndef SNAPMLA_BASE_FAULT_H
#define SNAPMLA_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef size_t fault_mark; /* the number of faults that this thread has noted so far */

/* Notes a fault of this thread. @code must not be SNAP_OK. */
void fault_note(snap_status code, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* The status of a library that dlopen() did not load. @message: from dlerror(). SNAP_E_NOMEM if it
 * names lack of memory, which says nothing about the library and is noted as a fault; otherwise
 * SNAP_E_UNSUPPORTED. */
snap_status fault_of_dlopen(const char *message);

/* Begins a scope. Pass the mark to fault_since() or fault_result(). */
fault_mark fault_begin(void);

/* True if this thread has noted a fault since fault_begin() returned the mark @before. */
bool fault_since(fault_mark before);

/**
 * fault_result - the result of a scope
 *
 * @before: from fault_begin()
 * @st:     the result if there was no fault
 *
 * If there was a fault, returns the code of the last one and replaces @err by its message: an error
 * of the scope, such as "cannot be parsed", is then only a consequence. If @err already holds
 * SNAP_E_NOMEM, it stays and SNAP_E_NOMEM is returned, because its message says more.
 */
snap_status fault_result(fault_mark before, snap_status st, snap_err *err) SNAP_CHECK_RESULT;

/* Like fault_result(), but for the faults of all threads: it returns the first fault since the
 * process began. */
snap_status fault_of_process(snap_status st, snap_err *err) SNAP_CHECK_RESULT;

/* Forgets the faults of the process, but not those of a scope. Only for tests, which go on after a
 * fault. */
void fault_forget(void);

/* malloc(), calloc() and realloc() for a size that may be 0, which is not a failure. free() frees
 * the memory. */
void *fault_malloc(size_t n);
void *fault_calloc(size_t count, size_t size);
void *fault_realloc(void *p, size_t n);

#endif
