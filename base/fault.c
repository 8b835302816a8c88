#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct {
    fault_mark n;
    snap_err last;
} noted;

void fault_note(snap_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(noted.last.text, sizeof noted.last.text, fmt, ap);
    va_end(ap);
    noted.last.code = code;
    noted.n++;
}

fault_mark fault_begin(void) {
    return noted.n;
}

bool fault_since(fault_mark before) {
    return noted.n != before;
}

snap_status fault_result(fault_mark before, snap_status st, snap_err *err) {
    if (noted.n == before)
        return st;
    if (err && err->code != SNAP_E_NOMEM)
        *err = noted.last;
    return err ? err->code : noted.last.code;
}

static void *noted_if_null(void *p, size_t n) {
    if (!p)
        fault_note(SNAP_E_NOMEM, "out of memory for %zu bytes", n);
    return p;
}

void *fault_malloc(size_t n) {
    return noted_if_null(malloc(n ? n : 1), n);
}

void *fault_calloc(size_t count, size_t size) {
    return noted_if_null(calloc(count ? count : 1, size ? size : 1), count * size);
}

void *fault_realloc(void *p, size_t n) {
    return noted_if_null(realloc(p, n ? n : 1), n);
}
