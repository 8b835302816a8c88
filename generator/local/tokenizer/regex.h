/* regex.h - the regular expressions of a tokenizer.json, which are Oniguruma's (Ruby syntax), run by
 * PCRE2.
 *
 * A pattern is translated where the two differ (what \s, \w, \d match; {,n}; \v) and refused, by name,
 * where a translation would guess (class intersection, nested classes, \b, \h, POSIX classes, options
 * other than (?i)). So a tokenizer splits as its authors' library does, or does not load. Patterns are
 * hostile: a match that takes too many steps is an error, never a hang. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_REGEX_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct regex regex;           /* immutable: threads may share it */
typedef struct regex_work regex_work; /* one thread's memory for matching */

typedef struct {
    size_t start, end; /* bytes */
} regex_match;

/**
 * regex_compile - a pattern in Oniguruma's syntax
 *
 * @out:     caller owns it, release with regex_free()
 * @pattern: @n bytes of UTF-8
 *
 * SNAP_E_UNSUPPORTED naming what has no counterpart; SNAP_E_INPUT for what PCRE2 refuses.
 */
snap_status regex_compile(regex **out, const char *pattern, size_t n,
                          snap_err *err) SNAP_CHECK_RESULT;

/* The pattern that matches exactly these bytes. */
snap_status regex_compile_literal(regex **out, const char *s, size_t n,
                                  snap_err *err) SNAP_CHECK_RESULT;
void regex_free(regex *r); /* NULL is allowed */

regex_work *regex_work_new(void); /* NULL: out of memory */
void regex_work_free(regex_work *w);

/* The first match at or after @from in well-formed UTF-8; *found says whether there is one.
 * SNAP_E_INPUT when the pattern takes too many steps on this text. */
snap_status regex_find(const regex *r, regex_work *w, const char *s, size_t n, size_t from,
                       regex_match *match, bool *found, snap_err *err) SNAP_CHECK_RESULT;

#endif
