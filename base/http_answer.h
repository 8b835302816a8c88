/* http_answer.h - reads the response to one HTTP/1.1 request from the bytes of its connection.
 *
 * The bytes may be split anywhere. Informational responses (1xx) before the response are skipped.
 * The body is what Content-Length, a chunked Transfer-Encoding or the end of the connection
 * delimits (RFC 9112); extensions of chunks and trailers are skipped. No other transfer encoding is
 * read. Content-Encoding is left to the caller. */
#ifndef SNAPMLA_BASE_HTTP_ANSWER_H
#define SNAPMLA_BASE_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Largest size of the headers, with those of informational responses and the trailers, in bytes. */
enum { HTTP_HEADERS_MAX = 256 << 10 };

typedef enum {
    ANSWER_OPEN,      /* bytes are missing */
    ANSWER_COMPLETE,  /* the response is complete */
    ANSWER_BROKEN,    /* the connection ended too early, or the chunks are damaged */
    ANSWER_INVALID,   /* not HTTP/1.x, or in a form that is not read */
    ANSWER_TOO_LARGE, /* the headers exceed HTTP_HEADERS_MAX */
    ANSWER_NO_MEMORY,
} answer_state;

/* A zeroed struct is a reader that has taken no byte. */
typedef struct {
    buf head;   /* status line and headers; once complete, each line ends in a NUL */
    int status; /* 0 = the headers are not complete */
    answer_state state;
    const char *why; /* why the state is an error; NULL = it is not */
    bool begun;      /* a byte has come */
    bool keeps;      /* complete, and no byte follows: the connection can take another request */

    int step;             /* what the next byte is, for http_answer.c */
    size_t header_bytes;  /* counted against HTTP_HEADERS_MAX */
    size_t line_bytes;    /* of the current line of the headers, the trailers or a chunk's size */
    size_t head_line;     /* where the current line of the headers begins */
    int64_t left;         /* bytes of the body, or of the chunk, that are still to come */
    bool has_size;        /* the size of a chunk has a digit */
    bool has_length;      /* Content-Length came */
    bool chunked, closes; /* what the headers say */
} http_answer;

/* Prepares for another response; keeps the memory. */
void http_answer_clear(http_answer *a);
void http_answer_release(http_answer *a);

/* Takes the next @n bytes. Moves those of them that belong to the body to the front of @bytes and
 * sets *n_body to their number, also if the state is an error. The headers are complete before the
 * first byte of the body. Returns the new state, after which no more bytes are taken unless it is
 * ANSWER_OPEN. */
answer_state http_answer_take(http_answer *a, char *bytes, size_t n, size_t *n_body);

/* The connection has ended. */
answer_state http_answer_close(http_answer *a);

/* The value of the first header with this name; NULL = absent, or the headers are not complete.
 * @name matches in upper or lower case. */
const char *http_answer_header(const http_answer *a, const char *name);

#endif
