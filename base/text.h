/* text.h - strings: strict numbers, comparisons, UTF-8, escaping, splitting. */
#ifndef SNAPMLA_BASE_TEXT_H
#define SNAPMLA_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Converts a whole string to a number. False if it has other characters before or after the number,
 * even white space, if it overflows or is not finite. text_to_int() accepts a leading "-"
 * but not "+". */
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

/* The code point of a well-formed UTF-8 sequence of @n bytes. */
uint32_t text_code_point(const char *s, size_t n);

/* True for characters that change what a terminal shows elsewhere: control characters (C0, DEL,
 * C1), line and paragraph separators (U+2028, U+2029), and characters that change the direction of
 * writing (Unicode's Bidi_Control). */
bool text_is_harmful(uint32_t code_point);

/* Shows a text from outside, for example a name in a file, as printable UTF-8 on one line. These
 * are written as escapes: harmful characters (\n, \t, \u001b), malformed UTF-8 (\xff), and the
 * first character of what a CI system would take as a command to itself: "::" at the start, even
 * after spaces or characters outside ASCII, and "##[" or "##word[" anywhere. Other text stays as it
 * is. Showing a shown text again changes nothing.
 *
 * text_show() writes to @out, of @size > 0 bytes, and cuts between characters. Returns the length.
 * text_append_shown_json() is for JSON: lines stay, and the escapes are those of JSON, so a reader
 * gets the same value. */
size_t text_show(char *out, size_t size, const char *s);
void text_append_shown(buf *out, const char *s);
void text_append_shown_printf(buf *out, const char *fmt, ...) SNAP_PRINTF(2, 3);
void text_append_shown_json(buf *out, const char *s);

/* Splits a list such as "a,b,c" and calls fn for each part, a NUL-terminated copy that is valid
 * during the call. An empty part is SNAP_E_USAGE; the message has @what. An error ends the
 * splitting. */
typedef snap_status (*text_part_fn)(void *ctx, const char *part, snap_err *err);
snap_status text_split(const char *list, char separator, const char *what, text_part_fn fn,
                       void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
