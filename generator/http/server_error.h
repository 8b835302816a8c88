/* server_error.h - the error that a server reports, as one short line. */
#ifndef SNAPMLA_GENERATOR_HTTP_SERVER_ERROR_H
#define SNAPMLA_GENERATOR_HTTP_SERVER_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

/* Appends the message of an error object to @out, one line of about 300 bytes at most, and returns
 * true; false if @object is not an error. These forms are recognised: {"error": {"message": ...}},
 * {"error": ...}, and in objects without "choices" also {"object": "error", "message": ...},
 * {"message": ...} and {"detail": ...}. */
bool server_error_message(js *object, buf *out);

/* Appends a line about a response whose @status is not 2xx: the status, the server's message from
 * its body of @n bytes (not for a redirect), and for some statuses what to do. @location: the
 * target of a redirect, or "". */
void server_error_describe(int status, const char *body, size_t n, const char *location, buf *out);

#endif
