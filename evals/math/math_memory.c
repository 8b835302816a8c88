#include "evals/math/math_memory.h"

#include <gmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { kReserve = 1 << 20, kAlign = 16 };

static struct {
    pthread_mutex_t lock;
    size_t used, pieces; /* bytes given out; pieces that are in use */
    _Alignas(kAlign) unsigned char bytes[kReserve];
} reserve = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *from_reserve(size_t n) {
    size_t rounded = (n + kAlign - 1) / kAlign * kAlign;
    (void)pthread_mutex_lock(&reserve.lock);
    if (n > kReserve || rounded > kReserve - reserve.used)
        SNAP_BUG("a computation with GMP does not end although memory is exhausted");
    void *p = reserve.bytes + reserve.used;
    reserve.used += rounded;
    reserve.pieces++;
    (void)pthread_mutex_unlock(&reserve.lock);
    return p;
}

static bool in_reserve(const void *p) {
    const unsigned char *c = p;
    return c >= reserve.bytes && c < reserve.bytes + kReserve;
}

static void *allocate(size_t n) {
    void *p = fault_malloc(n);
    return p ? p : from_reserve(n);
}

/* The reserve is empty again when its last piece is released. */
static void release(void *p, size_t n) {
    (void)n;
    if (!in_reserve(p)) {
        free(p);
        return;
    }
    (void)pthread_mutex_lock(&reserve.lock);
    if (--reserve.pieces == 0)
        reserve.used = 0;
    (void)pthread_mutex_unlock(&reserve.lock);
}

static void *reallocate(void *p, size_t before, size_t n) {
    void *q = in_reserve(p) ? NULL : fault_realloc(p, n);
    if (q)
        return q;
    q = from_reserve(n);
    memcpy(q, p, before < n ? before : n);
    release(p, before);
    return q;
}

static void set_functions(void) {
    mp_set_memory_functions(allocate, reallocate, release);
}

void math_memory_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, set_functions);
}
