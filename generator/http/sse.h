/* sse.h - a parser for server-sent events that takes the bytes as they arrive.
 *
 * Source: WHATWG HTML, "9.2.6 Interpreting an event stream". Lines end in LF, CR or CRLF, and the
 * bytes may be split anywhere. A byte-order mark is skipped. Comments, ids, event names and retry
 * times are ignored. The data lines of one event are joined by LF. In one point the parser is more
 * lenient, because servers need it: an event without its closing blank line at the end of the
 * stream still counts (sse_finish). */
#ifndef SNAPMLA_GENERATOR_HTTP_SSE_H
#define SNAPMLA_GENERATOR_HTTP_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SSE_EVENT_LIMIT = 4 << 20 }; /* most bytes of one line, and of one event's data */

typedef struct {
    buf line; /* the unfinished line */
    buf data; /* data of the unfinished event */
    bool has_data;
    bool after_cr; /* an LF now would belong to the CR before it */
    bool begun;    /* the first line is complete */
    bool at_event; /* the last line ended an event, and no byte has come since */
} sse;

/* Takes one event's data, NUL-terminated at @n; anything but SNAP_OK stops the parser. */
typedef snap_status (*sse_event_fn)(void *ctx, const char *data, size_t n, snap_err *err);

/* An empty parser: no allocation yet. */
sse sse_make(void);
void sse_clear(sse *p);   /* prepares for the next stream; keeps the memory allocated */
void sse_release(sse *p); /* frees */

/* Calls @fn for every event that is complete after @bytes. SNAP_E_NOMEM past SSE_EVENT_LIMIT; any
 * error that @fn returned. */
snap_status sse_feed(sse *p, const char *bytes, size_t n, sse_event_fn fn, void *ctx,
                     snap_err *err) SNAP_CHECK_RESULT;

/* Whether the last byte ended an event. False after a comment or a second blank line. */
bool sse_is_at_event(const sse *p);

/* The stream has ended: calls @fn for an unfinished event, if there is one. */
snap_status sse_finish(sse *p, sse_event_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
