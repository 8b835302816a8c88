/* arena.h - a memory arena: many allocations that are freed together.
 *
 * Use one arena for the memory that lives as long as one object does, such as a data set, a
 * configuration or a result file. Memory is zeroed and 16-byte aligned. An arena is not
 * thread-safe: it has one owner. If memory is exhausted, a fault is noted as well (fault.h). */
#ifndef SNAPMLA_BASE_ARENA_H
#define SNAPMLA_BASE_ARENA_H

#include <stddef.h>

typedef struct arena_block arena_block;

typedef struct {
    arena_block *head; /* newest block; NULL if there is none */
} arena;

/* Returns NULL if count * size is too large for a size_t or memory is exhausted. */
void *arena_alloc(arena *a, size_t count, size_t size);

/* Copies a string, or the n bytes at @s. The copy ends with a NUL. NULL if memory is exhausted. */
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);

void arena_release(arena *a); /* frees everything; the struct can be used again */

#endif
