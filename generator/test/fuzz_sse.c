/* Splits an event stream of arbitrary bytes. It must give the same events however it is split. The
 * first byte chooses the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "generator/http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static snap_status collect(void *ctx, const char *data, size_t n, snap_err *err) {
    (void)err;
    if (data[n] != '\0')
        abort();
    (void)buf_append(ctx, data, n);
    (void)buf_append(ctx, "|", 1);
    return SNAP_OK;
}

static snap_status parse(const char *bytes, size_t n, size_t step, buf *out) {
    sse p = sse_make();
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i += step)
        st = sse_feed(&p, bytes + i, n - i < step ? n - i : step, collect, out, NULL);
    if (st == SNAP_OK)
        st = sse_finish(&p, collect, out, NULL);
    sse_release(&p);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    buf whole = {0}, cut = {0};
    snap_status a = parse(bytes, size - 1, size - 1, &whole);
    snap_status b = parse(bytes, size - 1, (size_t)data[0] % 16 + 1, &cut);
    if (a != b || whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), cut.len) != 0)
        abort();
    buf_release(&whole);
    buf_release(&cut);
    return 0;
}
