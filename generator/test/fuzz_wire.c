/* Receives arbitrary bytes on a connection between ranks. They must give the same messages however
 * they are split. The first byte chooses the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "generator/local/ranks/wire.h"

enum { kMost = 200, kBytes = 16384 /* fit into the buffer of a socket */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends the messages that have arrived. */
static wire_result take(wire *w, buf *out) {
    wire_message m;
    wire_result got;
    while ((got = wire_next(w, &m)) == WIRE_MESSAGE) {
        if (m.n > kMost || m.type < WIRE_HELLO || m.type >= WIRE_TYPES)
            abort();
        (void)buf_printf(out, "%d %zu:", (int)m.type, m.n);
        (void)buf_append(out, m.bytes, m.n);
    }
    return got;
}

static wire_result receive(const uint8_t *bytes, size_t n, size_t step, buf *out) {
    int ends[2];
    wire_result got = WIRE_NOTHING;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    wire w = wire_of(ends[0], kMost, 1);
    for (size_t i = 0; i < n && got == WIRE_NOTHING; i += step) {
        size_t k = n - i < step ? n - i : step;
        if (send(ends[1], bytes + i, k, MSG_NOSIGNAL) != (ssize_t)k)
            abort();
        /* wire_read() stops at the longest message, so one send may need several reads. */
        for (size_t before = SIZE_MAX; before != w.n && got == WIRE_NOTHING;) {
            before = w.n - w.taken;
            if (!wire_read(&w))
                abort();
            got = take(&w, out);
        }
    }
    wire_close(&w);
    (void)close(ends[1]);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > kBytes)
        return 0;
    buf whole = {0}, cut = {0};
    wire_result a = receive(data + 1, size - 1, size - 1, &whole);
    wire_result b = receive(data + 1, size - 1, (size_t)data[0] % 40 + 1, &cut);
    if (a != b || whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), cut.len) != 0)
        abort();
    buf_release(&whole);
    buf_release(&cut);
    return 0;
}
