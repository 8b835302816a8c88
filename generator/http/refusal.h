/* refusal.h - what a server says when it does not answer, as one short line. */
#ifndef SNAPMLA_GENERATOR_HTTP_REFUSAL_H
#define SNAPMLA_GENERATOR_HTTP_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

/* Appends the words of an error object to @out, one line of at most 300 bytes, and returns true;
 * false where @object is none. Known are {"error": {"message": ...}}, {"error": "..."},
 * {"object": "error", "message": ...}, {"message": ...} and {"detail": ...} without "choices". */
bool refusal_words(js *object, buf *out);

/* Appends a line about an answer of @status (not 2xx): the status, the server's words from its
 * body of @n bytes, and what to do. @location: where a redirect points, or "". */
void refusal_describe(int status, const char *body, size_t n, const char *location, buf *out);

#endif
