/* buf.h - a growable byte buffer with a size limit.
 *
 * All input from outside and all generated text goes through such a buffer. The limit turns a
 * hostile length into an error instead of exhausting the machine's memory. A NUL, which `len` does
 * not count, always follows the content, so `data` can be used as a C string if it holds text.
 *
 * A failed allocation is also noted as a fault (fault.h), and so is a text that exceeds the default
 * limit. */
#ifndef SNAPMLA_BASE_BUF_H
#define SNAPMLA_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct {
    char *data; /* owned; NULL while empty */
    size_t len; /* bytes, without the NUL at the end */
    size_t cap;
    size_t limit;   /* largest len in bytes; 0 = BUF_DEFAULT_LIMIT */
    bool failed;    /* an append did not fit; stays set until buf_clear() */
    bool no_memory; /* it failed because memory is exhausted, not because of the limit */
} buf;

#define BUF_DEFAULT_LIMIT ((size_t)1 << 30)

/* An append returns false and sets `failed` if memory is exhausted or the limit is reached. All
 * later appends fail too, so a writer can append many times and call buf_check() once. */
bool buf_append(buf *b, const void *bytes, size_t n);
bool buf_puts(buf *b, const char *s);
bool buf_printf(buf *b, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* Returns SNAP_E_NOMEM if any append has failed since the last buf_clear(). The message names
 * @what, the content, and says whether it exceeds the limit or memory is exhausted. */
snap_status buf_check(const buf *b, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* The content as a C string: "" if the buffer is empty. Valid until the next append. */
const char *buf_str(const buf *b);

void buf_clear(buf *b);   /* empties the buffer, keeps its memory */
void buf_release(buf *b); /* frees the memory; the struct can be used again */

/* Returns the content as a NUL-terminated string that the caller frees with free(), and leaves the
 * buffer empty. NULL if memory is exhausted or an append has failed. */
char *buf_steal(buf *b);

#endif
