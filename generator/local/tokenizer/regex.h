/* regex.h - the regular expressions of a tokenizer.json. Their syntax is that of Oniguruma (Ruby);
 * PCRE2 runs them.
 *
 * Known differences between the two are translated (for example what \s, \w, \d match; {,n}; \v).
 * Where a translation would be a guess, the pattern is refused with an error that names the
 * construct (such as class intersection, nested and POSIX classes, named groups, \b, \h, options
 * other than (?i)). Patterns are hostile input: a match that takes too many steps is an error. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_REGEX_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct regex regex;           /* immutable: threads may share it */
typedef struct regex_work regex_work; /* working memory of one thread */

typedef struct {
    size_t start, end; /* bytes */
} regex_match;

/**
 * regex_compile - compile a pattern in Oniguruma's syntax
 *
 * @out:     caller owns it, release with regex_free()
 * @pattern: @n bytes of UTF-8
 *
 * SNAP_E_UNSUPPORTED, naming the construct that has no counterpart; SNAP_E_INPUT if the pattern is
 * too long or PCRE2 rejects it; SNAP_E_NOMEM. */
snap_status regex_compile(regex **out, const char *pattern, size_t n,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Compiles a pattern that matches exactly these bytes. */
snap_status regex_compile_literal(regex **out, const char *s, size_t n,
                                  snap_err *err) SNAP_CHECK_RESULT;
void regex_free(regex *r); /* NULL is allowed */

/* Whether the pattern might match the empty text. */
bool regex_may_be_empty(const regex *r);

regex_work *regex_work_new(void); /* NULL: out of memory */
void regex_work_free(regex_work *w);

/* Finds the first match at or after @from in well-formed UTF-8; *found says whether there is one.
 * SNAP_E_INPUT if the match takes too many steps; SNAP_E_NOMEM. */
snap_status regex_find(const regex *r, regex_work *w, const char *s, size_t n, size_t from,
                       regex_match *match, bool *found, snap_err *err) SNAP_CHECK_RESULT;

#endif
