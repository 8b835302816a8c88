/* utf8.h - malformed UTF-8 becomes U+FFFD, one for each maximal subpart (Unicode 3.9, table 3-8): what
 * Python's errors="replace" and Rust's from_utf8_lossy do, so that texts and answers agree with theirs. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UTF8_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_UTF8_H

#include "base/buf.h"

/* Appends @s to @out, repaired. With @more, a sequence that the end of @s cuts is left for later.
 * Returns the bytes taken: n, or up to 3 fewer with @more. */
size_t utf8_append_repaired(buf *out, const char *s, size_t n, bool more);

#endif
