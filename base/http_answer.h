/* http_answer.h - reads the response to one HTTP/1.1 request from the bytes of its connection.
 *
 * The bytes may be split anywhere. Informational responses (1xx except 101) before the response are
 * skipped. Content-Length, a chunked Transfer-Encoding or the end of the connection delimits the
 * body (RFC 9112). Trailers and the extensions of chunks are skipped. Any other Transfer-Encoding
 * except "identity" is an error. The body is not decoded by its Content-Encoding. A response to
 * HEAD cannot be read: it has no body, whatever its headers say. */
#ifndef SNAPMLA_BASE_HTTP_ANSWER_H
#define SNAPMLA_BASE_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Largest size in bytes of all headers together, those of informational responses and the trailers
 * included. */
enum { HTTP_HEADERS_MAX = 256 << 10 };

typedef enum {
    ANSWER_OPEN,      /* bytes are missing */
    ANSWER_COMPLETE,  /* the response is complete */
    ANSWER_BROKEN,    /* the connection ended too early, or the chunks are damaged */
    ANSWER_INVALID,   /* not HTTP/1.0 or HTTP/1.1, or its headers are invalid or not supported */
    ANSWER_TOO_LARGE, /* the headers exceed HTTP_HEADERS_MAX */
    ANSWER_NO_MEMORY,
} answer_state;

/* A zeroed struct is a reader that has taken no byte. */
typedef struct {
    buf head;   /* status line and headers. Once complete, NULs replace the line ends */
    int status; /* 0 = the headers are not complete */
    answer_state state;
    const char *why; /* why the state is an error; NULL = it is not */
    bool begun;      /* a byte has come */
    bool keeps;      /* the connection can take another request: the response is complete, its
                        headers allow it, and no byte followed */

    int step;             /* what the next byte belongs to: an enumerator in http_answer.c */
    size_t header_bytes;  /* counted against HTTP_HEADERS_MAX */
    size_t line_bytes;    /* bytes so far of the current line: of the headers, the trailers or the
                             size of a chunk */
    size_t head_line;     /* where the current line of the headers begins */
    int64_t left;         /* bytes of the body, or of the chunk, that are still to come */
    bool has_size;        /* a digit of the size of the current chunk has come */
    bool has_length;      /* Content-Length came */
    bool chunked, closes; /* by the headers: the body has chunks; the connection closes after it */
} http_answer;

/* Prepares the reader for another response. Its memory stays allocated. */
void http_answer_clear(http_answer *a);
void http_answer_release(http_answer *a);

/* Reads the next @n bytes of the response, and returns the new state. Bytes of the body are moved
 * to the front of @bytes, without headers and sizes of chunks, and *n_body is their number, also if
 * the state is an error. If *n_body is above 0, the headers are complete. In any state but
 * ANSWER_OPEN, nothing is read. */
answer_state http_answer_take(http_answer *a, char *bytes, size_t n, size_t *n_body);

/* To be called when the connection has ended. Returns the final state. */
answer_state http_answer_close(http_answer *a);

/* The value of the first header with this name; NULL = absent, or the headers are not complete.
 * Upper and lower case of @name are equal. */
const char *http_answer_header(const http_answer *a, const char *name);

#endif
