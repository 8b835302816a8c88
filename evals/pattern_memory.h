/* pattern_memory.h - memory for compiling one long regular expression.
 *
 * PCRE2 10.42 crashes if an allocation fails while it makes machine code for a long pattern. So the
 * memory for such a pattern is mapped as a whole before, and allocations are taken from it. */
#ifndef SNAPMLA_EVALS_PATTERN_MEMORY_H
#define SNAPMLA_EVALS_PATTERN_MEMORY_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A context for pcre2_compile(). The caller releases it with pcre2_compile_context_free(); the
 * memory stays until the compiled pattern is freed, too. NULL if the memory cannot be mapped. */
pcre2_compile_context *pattern_memory(void);

#endif
