#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

/* Makes room for n more bytes and a NUL; false if that fails. The capacity at least doubles when it
 * grows, so appending N bytes one by one takes O(N) time. */
static bool reserve(buf *b, size_t n) {
    size_t limit = b->limit ? b->limit : BUF_DEFAULT_LIMIT;
    if (b->failed || n > limit || b->len > limit - n) {
        if (!b->limit && !b->failed) /* exceeding a limit that the caller has set is not a fault */
            fault_note(SNAP_E_NOMEM, "out of memory: a text does not fit in %zu bytes", limit);
        b->too_long |= !b->failed;
        b->failed = true;
        return false;
    }
    if (b->len + n + 1 <= b->cap)
        return true;
    size_t cap = b->cap < 128 ? 128 : b->cap * 2;
    if (cap < b->len + n + 1)
        cap = b->len + n + 1;
    char *p = fault_realloc(b->data, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

bool buf_append(buf *b, const void *bytes, size_t n) {
    if (!reserve(b, n))
        return false;
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return true;
}

bool buf_puts(buf *b, const char *s) {
    return buf_append(b, s, strlen(s));
}

bool buf_vprintf(buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    bool ok = n >= 0 && reserve(b, (size_t)n);
    if (ok) {
        (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return ok;
}

bool buf_printf(buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    bool ok = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return ok;
}

snap_status buf_check(const buf *b, const char *what, snap_err *err) {
    if (!b->failed)
        return SNAP_OK;
    if (!b->too_long)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %s", what);
    return err_set(err, SNAP_E_NOMEM, "%s does not fit in %zu bytes", what,
                   b->limit ? b->limit : BUF_DEFAULT_LIMIT);
}

const char *buf_str(const buf *b) {
    return b->data ? b->data : "";
}

void buf_clear(buf *b) {
    b->len = 0;
    b->failed = b->too_long = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_release(buf *b) {
    free(b->data);
    *b = (buf){.limit = b->limit};
}

char *buf_steal(buf *b) {
    if (!reserve(b, 0))
        return NULL;
    b->data[b->len] = '\0';
    char *s = b->data;
    *b = (buf){.limit = b->limit};
    return s;
}
