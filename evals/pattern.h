/* pattern.h - regular expressions over bytes (PCRE2), safe on hostile text.
 *
 * A pattern is a static object, compiled at its first use; threads may share it. Texts are
 * bytes, not UTF-8, so malformed text and NULs are matched like any other. A match that exceeds
 * kMatchLimit steps counts as no match: patterns here are written to be linear. */
#ifndef SNAPMLA_EVALS_PATTERN_H
#define SNAPMLA_EVALS_PATTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    PATTERN_UTF = 1, /* the text is UTF-8, classes are Unicode's; other text matches nothing */
    PATTERN_CASELESS = 2,
    PATTERN_MULTILINE = 4,
    PATTERN_LITERAL = 8, /* the regex is the text itself */
    PATTERN_AT_START = 16,
    PATTERN_AT_END = 32,
};

typedef struct {
    const char *regex;
    unsigned flags;
    _Atomic(void *) code; /* compiled form, kept for the life of the process */
} pattern;
#define PATTERN(regex_text) ((pattern){.regex = (regex_text)})

/* For a regex that is not the program's own: false where it is none. Release it. */
bool pattern_compile(pattern *p);
void pattern_release(pattern *p);

/* A piece of a text: borrowed. */
typedef struct {
    const char *s;
    size_t n;
} span;

enum { PATTERN_GROUPS = 4 };

/* The first match at or after @from. @groups (may be NULL): the whole match and the groups;
 * {NULL, 0} for those that took no part. */
bool pattern_find(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]);

/* The same for a text that has been matched, or checked, before: PATTERN_UTF need not look at all of it
 * again. @from is where a character begins. */
bool pattern_find_next(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]);

/* The last of the matches found from left to right. */
bool pattern_find_last(pattern *p, span text, span groups[PATTERN_GROUPS]);

/* How many matches there are, none overlapping another. */
size_t pattern_count(pattern *p, span text);

/* Replaces every match ("$1" names a group) in the NUL-terminated text of a buffer of @cap bytes.
 * False, and the text unchanged, when the result does not fit. */
bool pattern_replace(pattern *p, char *text, size_t cap, const char *replacement);

#endif
