/* arena.h - memory that is released all at once.
 *
 * An arena owns what lives as long as one thing does (a data set, a configuration, a result
 * file). Allocations are zeroed and 16-byte aligned. Not thread-safe: one owner. */
#ifndef SNAPMLA_BASE_ARENA_H
#define SNAPMLA_BASE_ARENA_H

#include <stddef.h>

typedef struct arena_block arena_block;

typedef struct {
    arena_block *head; /* newest block; NULL while nothing was allocated */
} arena;

/* NULL on overflow of count * size or when memory is exhausted. */
void *arena_alloc(arena *a, size_t count, size_t size);

/* Copies of a string, or of its first n bytes, NUL-terminated; NULL when memory is exhausted. */
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);

void arena_release(arena *a); /* frees everything; the struct is reusable */

#endif
