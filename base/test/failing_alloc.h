/* failing_alloc.h - makes the n-th allocation of the process fail.
 *
 * The test program replaces malloc(), calloc(), realloc(), aligned_alloc() and posix_memalign(),
 * also for all libraries. Without glibc, or with the address or thread sanitizer, nothing ever
 * fails. failing_alloc.c, built as a shared object, also serves ci/alloc_fail.sh. */
#ifndef SNAPMLA_BASE_TEST_FAILING_ALLOC_H
#define SNAPMLA_BASE_TEST_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* From now on counts allocations, and the n-th one fails (1: the next one; 0: none). @all: all
 * allocations after the n-th fail as well. */
void failing_alloc_arm(size_t n, bool all);

/* Nothing fails from now on. Returns the number of allocations since failing_alloc_arm(). */
size_t failing_alloc_disarm(void);

/* False if nothing ever fails in this build. */
bool failing_alloc_works(void);

#endif
