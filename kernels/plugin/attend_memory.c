/* attend_memory.c - the memory of a plugin with one function. Each allocation lies between bytes of
 * a known value and, on the host, between pages that nobody may read or write:
 *
 *   pages without access | GUARD_BYTES | the memory | bytes up to the next page | pages without
 *   access */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/plugin/attend_inside.h"

/* kGuard: bytes without access, a multiple of a page. kByte: the known value around the memory. */
enum { kGuard = 1 << 16, kByte = 0xa5 };

struct attend_block {
    attend_block *next;
    void *base;        /* the memory that the inner backend has allocated */
    unsigned char *at; /* the memory */
    size_t bytes;
    size_t after;            /* bytes of the known value after the memory */
    unsigned char *pages[2]; /* host: where the pages without access begin */
};

/* A plugin that was stopped may have threads that still write, so its memory stays until the
 * program ends. This list keeps it reachable, so that it is no leak. */
static attend_block *kept;

static unsigned char *up(unsigned char *at) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return at + (page - (uintptr_t)at % page) % page;
}

/* The bytes that the inner backend must give. */
static size_t whole_size(const attend_backend *a, size_t bytes) {
    size_t pages = a->host ? 2 * ((size_t)kGuard + (size_t)sysconf(_SC_PAGESIZE)) : 0;
    return bytes + 2 * (size_t)GUARD_BYTES + pages;
}

static void place(const attend_backend *a, attend_block *b) {
    unsigned char *base = b->base;
    if (!a->host) {
        b->at = base + GUARD_BYTES;
        b->after = GUARD_BYTES;
        return;
    }
    b->pages[0] = up(base);
    b->at = b->pages[0] + kGuard + GUARD_BYTES;
    b->pages[1] = up(b->at + b->bytes + GUARD_BYTES);
    b->after = (size_t)(b->pages[1] - b->at) - b->bytes;
}

/* A system that cannot protect the pages leaves only the bytes of a known value. */
static void protect(const attend_block *b, int access) {
    for (int i = 0; i < 2 && b->pages[i]; i++)
        (void)mprotect(b->pages[i], kGuard, access);
}

void *attend_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    attend_backend *a = attend_of(be);
    attend_block *b = calloc(1, sizeof *b);
    if (!b || bytes > PTRDIFF_MAX / 2) {
        free(b);
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for %zu bytes", bytes);
        return NULL;
    }
    b->bytes = bytes;
    b->base = mla_alloc(a->inner, whole_size(a, bytes), err);
    if (b->base)
        place(a, b);
    if (!b->base || lab_fill(a->inner, b->at - GUARD_BYTES, kByte, GUARD_BYTES, err) != SNAP_OK ||
        lab_fill(a->inner, b->at + bytes, kByte, b->after, err) != SNAP_OK) {
        if (b->base)
            mla_free(a->inner, b->base);
        free(b);
        return NULL;
    }
    protect(b, PROT_NONE);
    b->next = a->blocks;
    a->blocks = b;
    return b->at;
}

void attend_free(mla_backend *be, void *device) {
    attend_backend *a = attend_of(be);
    attend_block **link = &a->blocks;
    while (*link && (*link)->at != device)
        link = &(*link)->next;
    attend_block *b = *link;
    if (!b)
        SNAP_BUG("memory of another backend is released");
    *link = b->next;
    protect(b, PROT_READ | PROT_WRITE);
    if (a->stopped) {
        b->next = kept;
        kept = b;
        return;
    }
    mla_free(a->inner, b->base);
    free(b);
}

/* ---- checks of the bytes around memory ---- */

/* Whether @n bytes of memory have the known value. */
static snap_status holds(const attend_backend *a, const unsigned char *at, size_t n, bool *yes,
                         snap_err *err) {
    unsigned char bytes[1024];
    *yes = true;
    for (size_t i = 0; i < n && *yes; i += sizeof bytes) {
        size_t part = n - i < sizeof bytes ? n - i : sizeof bytes;
        snap_status st = mla_copy_out(a->inner, bytes, at + i, part, err);
        if (st != SNAP_OK)
            return st;
        for (size_t k = 0; k < part; k++)
            *yes &= bytes[k] == kByte;
    }
    return SNAP_OK;
}

snap_status attend_check_memory(const attend_backend *a, snap_err *err) {
    for (const attend_block *b = a->blocks; b; b = b->next) {
        bool before, after;
        snap_status st = holds(a, b->at - GUARD_BYTES, GUARD_BYTES, &before, err);
        if (st == SNAP_OK)
            st = holds(a, b->at + b->bytes, b->after, &after, err);
        if (st != SNAP_OK)
            return st;
        if (!before || !after)
            return err_set(err, SNAP_E_DEVICE,
                           "plugin %s: attend() wrote %s a buffer of %zu bytes that it was given",
                           a->plugin->name, before ? "after" : "before", b->bytes);
    }
    return SNAP_OK;
}

bool attend_describe_address(const attend_backend *a, const void *address, char *out, size_t size) {
    const unsigned char *at = address;
    for (const attend_block *b = a->blocks; b; b = b->next)
        for (int i = 0; i < 2 && b->pages[i]; i++)
            if (at >= b->pages[i] && at < b->pages[i] + kGuard) {
                (void)snprintf(out, size, "%zu bytes %s a buffer of %zu bytes that it was given",
                               (size_t)(i ? at - (b->at + b->bytes) + 1 : b->at - at),
                               i ? "after the end of" : "before", b->bytes);
                return true;
            }
    return false;
}
