/* utf8.h - replaces malformed UTF-8 by U+FFFD, one for each maximal subpart (Unicode 3.9, table
 * 3-8). Python's errors="replace" and Rust's from_utf8_lossy do the same, so texts agree with
 * theirs. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UTF8_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UTF8_H

#include "base/buf.h"

/* Appends @s to @out, repaired. With @more, an incomplete sequence at the end of @s is not taken.
 * Returns the number of bytes taken: n, or up to 3 fewer with @more. */
size_t utf8_append_repaired(buf *out, const char *s, size_t n, bool more);

#endif
