/* pattern.h - regular expressions over bytes (PCRE2) that are safe on hostile text.
 *
 * A pattern of the program is a static object. It is compiled at its first use, and threads may
 * share it. Unless PATTERN_UTF is set, texts are bytes, so malformed UTF-8 is matched like other
 * bytes.
 *
 * "Not found" is only one of the reasons for which these functions return false or 0. Another is a
 * failure: memory is exhausted, or the match needs more than a million steps or more heap than
 * PCRE2 allows. A failure is noted as a fault (base/fault.h), so that it never becomes a verdict
 * about the text. The program's own patterns are written to need linear time. A pattern from a data
 * file or a task file may not be. */
#ifndef SNAPMLA_EVALS_PATTERN_H
#define SNAPMLA_EVALS_PATTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    PATTERN_UTF = 1, /* text is UTF-8 and classes are Unicode's; malformed text matches nothing */
    PATTERN_CASELESS = 2,
    PATTERN_MULTILINE = 4,
    PATTERN_LITERAL = 8, /* the regex is literal text */
    PATTERN_AT_START = 16,
    PATTERN_AT_END = 32,
    PATTERN_LONG = 64, /* for regexes of more than about 500 bytes: compiled in memory that is
                          reserved before (pattern_memory.h) */
};

typedef struct {
    const char *regex;
    unsigned flags;
    _Atomic(void *) code; /* compiled form, kept until pattern_release() or the end of the
                             process */
} pattern;
#define PATTERN(regex_text) ((pattern){.regex = (regex_text)})

/* Compiles a regex that a user or a file gave. False if it is not valid, or after a fault
 * (base/fault.h). The caller releases the pattern. */
bool pattern_compile(pattern *p);
void pattern_release(pattern *p);
int pattern_groups(const pattern *p); /* number of groups of a compiled pattern */

/* A piece of a text, borrowed. */
typedef struct {
    const char *s;
    size_t n;
} span;

enum { PATTERN_GROUPS = 4 };

/* Finds the first match at or after @from. @groups (may be NULL) gets the whole match and the first
 * three groups; a group that did not take part is {NULL, 0}. */
bool pattern_find(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]);

/* pattern_find() for a text that is known to be valid: PATTERN_UTF does not check it again. @from
 * must be at the start of a character. */
bool pattern_find_next(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]);

/* Finds the last of the matches, scanning from left to right without overlaps. A search of more
 * than 10 seconds is a failure. */
bool pattern_find_last(pattern *p, span text, span groups[PATTERN_GROUPS]);

/* Number of matches that do not overlap. */
size_t pattern_count(pattern *p, span text);

/* Replaces every match in the NUL-terminated text in a buffer of @cap bytes; "$1" inserts a group.
 * False, and the text is unchanged, if the result does not fit in @cap or 4096 bytes, if a text for
 * PATTERN_UTF is malformed, or after a fault. */
bool pattern_replace(pattern *p, char *text, size_t cap, const char *replacement);

#endif
