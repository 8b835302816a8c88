#include "base/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    fault_mark n;
    snap_err last;
} noted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static snap_err first; /* of the process; code SNAP_OK = none */

void fault_note(snap_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(noted.last.text, sizeof noted.last.text, fmt, ap);
    va_end(ap);
    noted.last.code = code;
    noted.n++;
    (void)pthread_mutex_lock(&lock);
    if (first.code == SNAP_OK)
        first = noted.last;
    (void)pthread_mutex_unlock(&lock);
}

snap_status fault_of_dlopen(const char *message) {
    /* glibc gives the second text without the reason, which can only be memory. */
    if (!strstr(message, strerror(ENOMEM)) &&
        !strstr(message, "cannot create shared object descriptor"))
        return SNAP_E_UNSUPPORTED;
    fault_note(SNAP_E_NOMEM, "out of memory while a library was loaded: %s", message);
    return SNAP_E_NOMEM;
}

fault_mark fault_begin(void) {
    return noted.n;
}

bool fault_since(fault_mark before) {
    return noted.n != before;
}

/* The result of a scope in which @fault was noted. */
static snap_status replace(const snap_err *fault, snap_err *err) {
    if (err && err->code != SNAP_E_NOMEM)
        *err = *fault;
    return err ? err->code : fault->code;
}

snap_status fault_result(fault_mark before, snap_status st, snap_err *err) {
    return noted.n == before ? st : replace(&noted.last, err);
}

snap_status fault_of_process(snap_status st, snap_err *err) {
    (void)pthread_mutex_lock(&lock);
    const snap_err fault = first;
    (void)pthread_mutex_unlock(&lock);
    return fault.code == SNAP_OK ? st : replace(&fault, err);
}

void fault_forget(void) {
    (void)pthread_mutex_lock(&lock);
    first = (snap_err){0};
    (void)pthread_mutex_unlock(&lock);
}

void *fault_malloc(size_t n) {
    return malloc(n ? n : 1);
}

void *fault_calloc(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1);
}

void *fault_realloc(void *p, size_t n) {
    return realloc(p, n ? n : 1);
}
