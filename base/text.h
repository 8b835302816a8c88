/* text.h - strings: strict numbers, UTF-8, escaping. */
#ifndef SNAPMLA_BASE_TEXT_H
#define SNAPMLA_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Whole-string numbers: no leading or trailing characters, no overflow, finite. */
bool text_to_int(const char *s, int64_t *out);
bool text_to_double(const char *s, double *out);

bool text_is_blank(const char *s, size_t n); /* only spaces, tabs, CR, LF */
bool text_starts(const char *s, const char *prefix);
bool text_ends(const char *s, const char *suffix);
bool text_equal(const char *a, const char *b); /* NULL equals NULL only */

/* Bytes of the UTF-8 sequence at s (1..4), 0 where none is well-formed (RFC 3629). */
size_t text_utf8_len(const char *s, size_t n);
bool text_is_utf8(const char *s, size_t n);

/* Appends s with every malformed byte replaced by U+FFFD. */
void text_append_utf8_lossy(buf *out, const char *s, size_t n);

/* Appends s with every NUL byte replaced by U+FFFD: what a C string can carry. */
void text_append_without_nul(buf *out, const char *s, size_t n);

/* Appends s with & < > " ' escaped; what XML 1.0 forbids (control characters, U+FFFE, U+FFFF, bytes
 * that are no UTF-8) becomes U+FFFD. */
void text_append_xml(buf *out, const char *s);

/* Splits "a,b,c" (no empty parts allowed): calls fn for each part, NUL-terminated in a scratch copy.
 * SNAP_E_USAGE naming @what for an empty part. */
typedef snap_status (*text_part_fn)(void *ctx, const char *part, snap_err *err);
snap_status text_split(const char *list, char separator, const char *what, text_part_fn fn,
                       void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
