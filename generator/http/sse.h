/* sse.h - server-sent events, parsed as the bytes come.
 *
 * Source: WHATWG HTML, "9.2.6 Interpreting an event stream". Lines end in LF, CR or CRLF, at any
 * split of the bytes; a byte-order mark is skipped; comments, ids, event names and retry times are
 * read past; the data lines of an event are joined by LF. One leniency, which servers need: an
 * event that the stream's end cuts short of its blank line still counts (sse_finish). */
#ifndef SNAPMLA_GENERATOR_HTTP_SSE_H
#define SNAPMLA_GENERATOR_HTTP_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SSE_EVENT_LIMIT = 4 << 20 }; /* bytes of one line, and of one event's data */

typedef struct {
    buf line; /* the unfinished line */
    buf data; /* data of the unfinished event */
    bool has_data;
    bool after_cr; /* an LF now belongs to the CR before it */
    bool begun;    /* the first line is over */
} sse;

/* Takes one event's data, NUL-terminated at @n; anything but SNAP_OK stops the parser. */
typedef snap_status (*sse_event_fn)(void *ctx, const char *data, size_t n, snap_err *err);

/* An empty parser: no allocation yet. */
sse sse_make(void);
void sse_clear(sse *p);   /* for the next stream; keeps the memory */
void sse_release(sse *p); /* frees */

/* Calls @fn for every event that @bytes complete. SNAP_E_NOMEM past SSE_EVENT_LIMIT; what
 * @fn returned. */
snap_status sse_feed(sse *p, const char *bytes, size_t n, sse_event_fn fn, void *ctx,
                     snap_err *err) SNAP_CHECK_RESULT;

/* The stream has ended: gives out the event that was under way, if any. */
snap_status sse_finish(sse *p, sse_event_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
