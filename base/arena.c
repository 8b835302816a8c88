#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { kBlockBytes = 64 << 10, kAlign = 16 };

struct arena_block {
    arena_block *next;
    size_t used, size;
    _Alignas(kAlign) unsigned char bytes[];
};

static arena_block *block_new(arena *a, size_t need) {
    size_t size = need > kBlockBytes ? need : kBlockBytes;
    if (size > SIZE_MAX - sizeof(arena_block))
        return NULL;
    arena_block *b = fault_calloc(1, sizeof *b + size);
    if (!b)
        return NULL;
    b->size = size;
    b->next = a->head;
    a->head = b;
    return b;
}

void *arena_alloc(arena *a, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - kAlign)
        return NULL;
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    arena_block *b = a->head;
    if (!b || bytes > b->size - b->used)
        b = block_new(a, bytes);
    if (!b)
        return NULL;
    void *p = b->bytes + b->used;
    b->used += bytes;
    return p;
}

char *arena_strndup(arena *a, const char *s, size_t n) {
    char *p = n < SIZE_MAX ? arena_alloc(a, n + 1, 1) : NULL;
    if (p)
        memcpy(p, s, n);
    return p;
}

char *arena_strdup(arena *a, const char *s) {
    return arena_strndup(a, s, strlen(s));
}

void arena_release(arena *a) {
    while (a->head) {
        arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
}
