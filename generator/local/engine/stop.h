/* stop.h - strings that end an answer, found in its text while it grows. They may begin and end within tokens,
 * so text is searched, not ids; stop ids are the engine's. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_STOP_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_STOP_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct {
    const char *const *text; /* [n] borrowed; empty ones end nothing */
    int n;
} stop_strings;

/* Cuts @text before the first place where one of them begins, and says so. @seen: of its bytes so many were
 * searched before. */
bool stop_cut(const stop_strings *s, buf *text, size_t seen);

/* How many of the first @n bytes no stop string can take away any more, whatever follows: what may be shown
 * of a text that holds none of them. */
size_t stop_settled(const stop_strings *s, const char *text, size_t n);

#endif
