/* text.h - strings: strict numbers, comparisons, UTF-8, escaping, splitting. */
#ifndef SNAPMLA_BASE_TEXT_H
#define SNAPMLA_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Converts a whole string to a number. False if it has other characters before or after the number,
 * even white space, if it overflows or is not finite. text_to_int() accepts "-" but not "+". */
bool text_to_int(const char *s, int64_t *out);
bool text_to_double(const char *s, double *out);

bool text_is_blank(const char *s, size_t n); /* only spaces, tabs, CR, LF, or n = 0 */
bool text_starts(const char *s, const char *prefix);
bool text_ends(const char *s, const char *suffix);
bool text_equal(const char *a, const char *b); /* NULL equals only NULL */

/* Length in bytes (1..4) of the UTF-8 sequence at s; 0 if it is not well-formed (RFC 3629). */
size_t text_utf8_len(const char *s, size_t n);
bool text_is_utf8(const char *s, size_t n);

/* Appends s. U+FFFD replaces each malformed byte. */
void text_append_utf8_lossy(buf *out, const char *s, size_t n);

/* Appends s. U+FFFD replaces each NUL byte, so the result is a C string. */
void text_append_without_nul(buf *out, const char *s, size_t n);

/* Appends s with & < > " ' escaped. U+FFFD replaces what XML 1.0 forbids: control characters below
 * U+0020 other than tab, CR and LF; U+FFFE, U+FFFF; each byte of malformed UTF-8. */
void text_append_xml(buf *out, const char *s);

/* Splits a list such as "a,b,c" and calls fn for each part, a NUL-terminated copy that is valid
 * during the call. An empty part is SNAP_E_USAGE; the message has @what. An error ends the
 * splitting. */
typedef snap_status (*text_part_fn)(void *ctx, const char *part, snap_err *err);
snap_status text_split(const char *list, char separator, const char *what, text_part_fn fn,
                       void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
