/* buf.h - a growable byte buffer with a size limit.
 *
 * It is used for input from outside and for generated text. The limit turns a hostile length into
 * an error instead of exhausting the machine's memory. A NUL, which `len` does not count, follows
 * the content, so `data` can be used as a C string if it is not NULL and holds text.
 *
 * A failed allocation is also noted as a fault (fault.h). So is a text that exceeds the default
 * limit, but not one that exceeds a limit that the caller has set. */
#ifndef SNAPMLA_BASE_BUF_H
#define SNAPMLA_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct {
    char *data; /* owned; NULL while the buffer has no memory */
    size_t len; /* bytes, without the NUL at the end */
    size_t cap;
    size_t limit;  /* largest len in bytes; 0 = BUF_DEFAULT_LIMIT */
    bool failed;   /* an append failed; stays set until buf_clear() or buf_release(). A writer also
                      sets it if it has no memory for what it was to append. */
    bool too_long; /* the append failed because of the limit, not because memory is exhausted */
} buf;

#define BUF_DEFAULT_LIMIT ((size_t)1 << 30)

/* An append returns false and sets `failed` if memory is exhausted or `len` would exceed the limit.
 * All later appends fail too, so a writer can append many times and call buf_check() once. */
bool buf_append(buf *b, const void *bytes, size_t n);
bool buf_puts(buf *b, const char *s);
bool buf_printf(buf *b, const char *fmt, ...) SNAP_PRINTF(2, 3);
bool buf_vprintf(buf *b, const char *fmt, va_list ap) SNAP_PRINTF(2, 0);

/* Returns SNAP_E_NOMEM if `failed` is set. The message names the content (@what) and says whether
 * it exceeds the limit or memory is exhausted. */
snap_status buf_check(const buf *b, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* The content as a C string: "" if the buffer is empty. Valid until the buffer changes. */
const char *buf_str(const buf *b);

void buf_clear(buf *b);   /* empties the buffer, keeps its memory */
void buf_release(buf *b); /* frees the memory and keeps `limit`; the struct can be used again */

/* Returns the content as a NUL-terminated string that the caller frees with free(), and leaves the
 * buffer empty. NULL if memory is exhausted or an append has failed; the buffer then keeps its
 * content. */
char *buf_steal(buf *b);

#endif
