/* buf.h - a growable byte buffer with a ceiling.
 *
 * Everything that is read from outside or built as text goes through one of these: the ceiling
 * turns a hostile length into an error instead of an exhausted machine. The content is always
 * followed by a NUL that is not counted, so `data` is a C string where the content is text. */
#ifndef SNAPMLA_BASE_BUF_H
#define SNAPMLA_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct {
    char *data; /* owned; NULL while empty */
    size_t len; /* bytes, without the closing NUL */
    size_t cap;
    size_t limit; /* ceiling of len in bytes; 0 = BUF_DEFAULT_LIMIT */
    bool failed;  /* an append did not fit; sticky until buf_clear */
} buf;

#define BUF_DEFAULT_LIMIT ((size_t)1 << 30)

/* Appends return false, and set `failed`, when memory or the ceiling is exhausted: a writer may
 * append many times and check once with buf_check(). */
bool buf_append(buf *b, const void *bytes, size_t n);
bool buf_puts(buf *b, const char *s);
bool buf_printf(buf *b, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* SNAP_E_NOMEM if any append has failed since the last clear; @what names the content. */
snap_status buf_check(const buf *b, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* The content as a C string: "" while empty. Borrowed until the next append. */
const char *buf_str(const buf *b);

void buf_clear(buf *b);   /* empties, keeps the memory */
void buf_release(buf *b); /* frees; the struct is reusable */

/* Takes the content away as an owned NUL-terminated string (free()); NULL when out of memory. */
char *buf_steal(buf *b);

#endif
