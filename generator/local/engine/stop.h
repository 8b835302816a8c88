/* stop.h - strings that end an answer, searched in its text while it grows. They may begin and end
 * within tokens, so the text is searched, not the ids. Stop ids are handled by the engine. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_STOP_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_STOP_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct {
    const char *const *text; /* [n] borrowed; empty strings are ignored */
    int n;
} stop_strings;

/* Cuts @text before the first stop string in it and returns true; false if there is none. @seen:
 * this many of its bytes were searched before. */
bool stop_cut(const stop_strings *s, buf *text, size_t seen);

/* How many bytes at the start of @text [n] can't become part of a stop string, whatever follows.
 * These may be shown, if the text contains no stop string. */
size_t stop_settled(const stop_strings *s, const char *text, size_t n);

#endif
