#include "base/http_answer.h"

#include <string.h>
#include <strings.h>

enum { kSizeLineMax = 16 << 10 }; /* longest line with the size of a chunk, in bytes */

/* What the next byte belongs to. A zeroed reader begins with kHead. */
enum { kHead, kLength, kUntilClose, kSize, kExtension, kChunk, kChunkEnd, kTrailer };

void http_answer_clear(http_answer *a) {
    buf head = a->head;
    buf_clear(&head);
    *a = (http_answer){.head = head};
}

void http_answer_release(http_answer *a) {
    buf_release(&a->head);
}

static answer_state fail(http_answer *a, answer_state state, const char *why) {
    a->why = why;
    a->keeps = false;
    return a->state = state;
}

static answer_state complete(http_answer *a) {
    a->keeps = !a->closes;
    return a->state = ANSWER_COMPLETE;
}

/* ---- headers ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Whether a list such as "keep-alive, Upgrade" has the element @token. */
static bool has_token(const char *list, const char *token) {
    size_t n = strlen(token);
    for (const char *at = list; *at;) {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, ",");
        const char *next = at + len;
        while (len && is_blank(at[len - 1]))
            len--;
        if (len == n && strncasecmp(at, token, n) == 0)
            return true;
        at = next;
    }
    return false;
}

/* Sets *to to the value of a header line. False if the header does not have this name. */
static bool is_named(const char *line, const char *name, const char **to) {
    size_t n = strlen(name);
    if (strncasecmp(line, name, n) != 0)
        return false;
    line += n + strspn(line + n, " \t");
    if (*line != ':')
        return false;
    *to = line + 1 + strspn(line + 1, " \t");
    return true;
}

const char *http_answer_header(const http_answer *a, const char *name) {
    const char *value, *end = buf_str(&a->head) + a->head.len;
    if (!a->status)
        return NULL;
    for (const char *line = buf_str(&a->head); line < end; line += strlen(line) + 1)
        if (is_named(line, name, &value))
            return value;
    return NULL;
}

static bool read_length(const char *text, int64_t *out) {
    int64_t n = 0;
    if (!*text)
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (n > (INT64_MAX - 9) / 10)
            return false;
        n = 10 * n + (*text - '0');
    }
    *out = n;
    return !*text;
}

static answer_state take_length(http_answer *a, const char *value) {
    int64_t n = 0;
    if (!read_length(value, &n) || (a->has_length && n != a->left))
        return fail(a, ANSWER_INVALID, "the server sent an invalid Content-Length");
    a->has_length = true;
    a->left = n;
    return ANSWER_OPEN;
}

static answer_state take_header(http_answer *a, const char *line) {
    const char *value;
    if (is_blank(*line)) /* the continuation of a header, an obsolete form */
        return ANSWER_OPEN;
    if (!strchr(line, ':'))
        return fail(a, ANSWER_INVALID, "the server sent a header without a colon");
    if (is_named(line, "Content-Length", &value))
        return take_length(a, value);
    if (is_named(line, "Transfer-Encoding", &value)) {
        bool chunked = strcasecmp(value, "chunked") == 0;
        a->chunked = a->chunked || chunked;
        if (!chunked && strcasecmp(value, "identity") != 0)
            return fail(a, ANSWER_INVALID, "the server sent an unknown Transfer-Encoding");
    }
    if (is_named(line, "Connection", &value)) {
        if (has_token(value, "close"))
            a->closes = true;
        else if (has_token(value, "keep-alive"))
            a->closes = false;
    }
    return ANSWER_OPEN;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads "HTTP/1.1 200 OK". Connections of HTTP/1.0 end with the response unless a header says
 * otherwise. */
static answer_state take_status(http_answer *a, const char *line) {
    bool is_http = strncmp(line, "HTTP/1.0 ", 9) == 0 || strncmp(line, "HTTP/1.1 ", 9) == 0;
    const char *at = is_http ? line + 9 : line;
    if (!is_http || at[0] < '1' || at[0] > '9' || !is_digit(at[1]) || !is_digit(at[2]) ||
        is_digit(at[3]))
        return fail(a, ANSWER_INVALID, "the server does not speak HTTP/1.1");
    a->status = 100 * (at[0] - '0') + 10 * (at[1] - '0') + (at[2] - '0');
    a->closes = line[7] == '0';
    return ANSWER_OPEN;
}

/* Decides how the body is delimited. */
static answer_state begin_body(http_answer *a) {
    if (a->status < 200 && a->status != 101) { /* another response follows */
        buf_clear(&a->head);
        a->status = 0;
        a->head_line = 0;
        a->has_length = a->chunked = false;
        return a->state;
    }
    if (a->status == 204 || a->status == 304)
        return complete(a);
    if (a->chunked) {
        a->left = 0;
        a->step = kSize;
    } else if (a->has_length) {
        a->step = kLength;
        return a->left ? ANSWER_OPEN : complete(a);
    } else {
        a->step = kUntilClose;
        a->closes = true;
    }
    return ANSWER_OPEN;
}

/* The blank line after the headers has come: reads them. */
static answer_state read_head(http_answer *a) {
    char *line = a->head.data, *end = line + a->head.len;
    if (memchr(line, '\0', a->head.len))
        return fail(a, ANSWER_INVALID, "the server sent a header with a NUL");
    for (bool first = true; line < end && a->state == ANSWER_OPEN; first = false) {
        char *lf = memchr(line, '\n', (size_t)(end - line)), *last = lf;
        while (last > line && (last[-1] == '\r' || is_blank(last[-1])))
            last--;
        memset(last, '\0', (size_t)(lf - last) + 1);
        if (first)
            (void)take_status(a, line);
        else if (last > line)
            (void)take_header(a, line);
        line = lf + 1;
    }
    return a->state == ANSWER_OPEN ? begin_body(a) : a->state;
}

static answer_state too_large(http_answer *a) {
    return fail(a, ANSWER_TOO_LARGE, "the headers of the response are too large");
}

/* Reads on in the headers of the response, up to the next end of a line or of the @n bytes. Returns
 * how many bytes it has read. */
static size_t take_head(http_answer *a, const char *bytes, size_t n) {
    static const char kBegin[] = "HTTP/";
    const char *lf = memchr(bytes, '\n', n);
    size_t used = lf ? (size_t)(lf - bytes) + 1 : n;
    a->header_bytes += used;
    if (a->header_bytes > HTTP_HEADERS_MAX) {
        (void)too_large(a);
        return used;
    }
    if (!buf_append(&a->head, bytes, used)) {
        (void)fail(a, ANSWER_NO_MEMORY, "out of memory for the headers of the response");
        return used;
    }
    size_t begun = a->head.len < sizeof kBegin - 1 ? a->head.len : sizeof kBegin - 1;
    if (memcmp(a->head.data, kBegin, begun) != 0)
        (void)fail(a, ANSWER_INVALID, "the server does not speak HTTP/1.1");
    else if (lf) {
        const char *line = a->head.data + a->head_line;
        bool blank = *line == '\n' || (line[0] == '\r' && line[1] == '\n');
        a->head_line = a->head.len;
        if (blank)
            (void)read_head(a);
    }
    return used;
}

/* ---- chunks ---- */

static int hex_digit(char c) {
    if (is_digit(c))
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static answer_state damaged(http_answer *a) {
    return fail(a, ANSWER_BROKEN, "the chunks of the response are damaged");
}

/* Called at the end of the line that gives the size of a chunk. Begins the chunk, or the trailers
 * if the size is 0. */
static answer_state begin_chunk(http_answer *a) {
    if (!a->has_size)
        return damaged(a);
    a->step = a->left ? kChunk : kTrailer;
    a->line_bytes = 0;
    a->has_size = false;
    return ANSWER_OPEN;
}

static answer_state take_size(http_answer *a, char c) {
    int digit = a->step == kSize ? hex_digit(c) : -1;
    if (++a->line_bytes > kSizeLineMax || (digit >= 0 && a->left > INT64_MAX >> 5))
        return damaged(a);
    if (c == '\n')
        return begin_chunk(a);
    if (digit < 0) {
        bool ends = a->step == kExtension || c == ';' || c == '\r' || is_blank(c);
        a->step = kExtension;
        return a->has_size && ends ? ANSWER_OPEN : damaged(a);
    }
    a->has_size = true;
    a->left = 16 * a->left + digit;
    return ANSWER_OPEN;
}

/* Takes the line end after a chunk: LF or CRLF. */
static answer_state take_chunk_end(http_answer *a, char c) {
    if (c == '\r' && !a->line_bytes++)
        return ANSWER_OPEN;
    if (c != '\n')
        return damaged(a);
    a->line_bytes = 0;
    a->step = kSize;
    return ANSWER_OPEN;
}

/* Takes a byte of the trailers, which a blank line ends. */
static answer_state take_trailer(http_answer *a, char c) {
    if (++a->header_bytes > HTTP_HEADERS_MAX)
        return too_large(a);
    if (c == '\n' && !a->line_bytes)
        return complete(a);
    a->line_bytes = c == '\n' ? 0 : a->line_bytes + (c != '\r');
    return ANSWER_OPEN;
}

static void take_frame(http_answer *a, char c) {
    if (a->step == kChunkEnd)
        (void)take_chunk_end(a, c);
    else if (a->step == kTrailer)
        (void)take_trailer(a, c);
    else
        (void)take_size(a, c);
}

/* Moves the next bytes of the body to @to. Returns their number. */
static size_t take_data(http_answer *a, char *to, const char *bytes, size_t n) {
    if (a->step != kUntilClose && (int64_t)n > a->left)
        n = (size_t)a->left;
    if (to != bytes)
        memmove(to, bytes, n);
    if (a->step == kUntilClose)
        return n;
    a->left -= (int64_t)n;
    if (!a->left && a->step == kLength)
        (void)complete(a);
    else if (!a->left)
        a->step = kChunkEnd;
    return n;
}

/* ---- taking the bytes of a response ---- */

answer_state http_answer_take(http_answer *a, char *bytes, size_t n, size_t *n_body) {
    size_t i = 0, kept = 0;
    a->begun = a->begun || n;
    while (i < n && a->state == ANSWER_OPEN) {
        if (a->step == kHead) {
            i += take_head(a, bytes + i, n - i);
        } else if (a->step == kLength || a->step == kUntilClose || a->step == kChunk) {
            size_t moved = take_data(a, bytes + kept, bytes + i, n - i);
            i += moved;
            kept += moved;
        } else {
            take_frame(a, bytes[i++]);
        }
    }
    a->keeps = a->keeps && i == n;
    *n_body = kept;
    return a->state;
}

answer_state http_answer_close(http_answer *a) {
    if (a->state != ANSWER_OPEN)
        return a->state;
    if (a->step == kUntilClose)
        return complete(a);
    return fail(a, ANSWER_BROKEN,
                a->begun ? "the connection ended before the response was complete"
                         : "the server closed the connection without a response");
}
