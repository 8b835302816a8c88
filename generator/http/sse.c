#include "generator/http/sse.h"

#include <string.h>

sse sse_make(void) {
    return (sse){.line.limit = SSE_EVENT_LIMIT, .data.limit = SSE_EVENT_LIMIT};
}

void sse_clear(sse *p) {
    buf_clear(&p->line);
    buf_clear(&p->data);
    p->has_data = p->after_cr = p->begun = p->at_event = false;
}

void sse_release(sse *p) {
    buf_release(&p->line);
    buf_release(&p->data);
    sse_clear(p);
}

bool sse_is_at_event(const sse *p) {
    return p->at_event;
}

static snap_status fits(const buf *b, snap_err *err) {
    if (!b->failed)
        return SNAP_OK;
    return err_set(err, SNAP_E_NOMEM, "an event of the stream is longer than %d bytes",
                   (int)SSE_EVENT_LIMIT);
}

static snap_status dispatch(sse *p, sse_event_fn fn, void *ctx, snap_err *err) {
    if (!p->has_data)
        return SNAP_OK;
    p->has_data = false;
    snap_status st = fn(ctx, buf_str(&p->data), p->data.len, err);
    buf_clear(&p->data);
    return st;
}

static snap_status take_data(sse *p, const char *value, size_t n, snap_err *err) {
    if (p->has_data)
        (void)buf_append(&p->data, "\n", 1);
    p->has_data = true;
    (void)buf_append(&p->data, value, n);
    return fits(&p->data, err);
}

/* Parses "field:value", "field: value" or "field". Only the field "data" is used. */
static snap_status take_field(sse *p, const char *line, size_t n, snap_err *err) {
    const char *colon = memchr(line, ':', n);
    size_t name = colon ? (size_t)(colon - line) : n;
    if (name != 4 || memcmp(line, "data", 4) != 0)
        return SNAP_OK;
    size_t skip = colon ? 5 : 4;
    if (skip < n && line[skip] == ' ')
        skip++;
    return take_data(p, line + skip, n - skip, err);
}

/* Handles a complete line of @n bytes. */
static snap_status use_line(sse *p, const char *line, size_t n, sse_event_fn fn, void *ctx,
                            snap_err *err) {
    if (!p->begun && n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3;
        n -= 3;
    }
    p->begun = true;
    p->at_event = !n && p->has_data;
    return n ? take_field(p, line, n, err) : dispatch(p, fn, ctx, err);
}

/* Ends the line that was collected in p->line. */
static snap_status end_line(sse *p, sse_event_fn fn, void *ctx, snap_err *err) {
    snap_status st = use_line(p, buf_str(&p->line), p->line.len, fn, ctx, err);
    buf_clear(&p->line);
    return st;
}

static size_t to_line_end(const char *bytes, size_t n) {
    const char *lf = memchr(bytes, '\n', n);
    size_t to = lf ? (size_t)(lf - bytes) : n;
    const char *cr = memchr(bytes, '\r', to);
    return cr ? (size_t)(cr - bytes) : to;
}

snap_status sse_feed(sse *p, const char *bytes, size_t n, sse_event_fn fn, void *ctx,
                     snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK;) {
        if (p->after_cr && bytes[i] == '\n')
            i++;
        p->after_cr = false;
        const char *line = bytes + i;
        size_t run = to_line_end(line, n - i);
        bool whole = !p->line.len && i + run < n; /* a line that is complete in the input is not
                                                     copied */
        if (!whole)
            (void)buf_append(&p->line, line, run);
        st = fits(&p->line, err);
        p->at_event = p->at_event && !run;
        i += run;
        if (i < n && st == SNAP_OK) {
            p->after_cr = bytes[i++] == '\r';
            st = whole ? use_line(p, line, run, fn, ctx, err) : end_line(p, fn, ctx, err);
        }
    }
    return st;
}

snap_status sse_finish(sse *p, sse_event_fn fn, void *ctx, snap_err *err) {
    snap_status st = p->line.len ? end_line(p, fn, ctx, err) : SNAP_OK;
    return st == SNAP_OK ? dispatch(p, fn, ctx, err) : st;
}
