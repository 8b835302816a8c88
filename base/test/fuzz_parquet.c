/* Reads random bytes as a Parquet file. It must be refused with a message, or give rows that are
 * objects and hold no more text than the limit allows. */
#include <stdint.h>

#include "base/parquet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { kBytes = 1 << 18 };

static size_t text_bytes(const js *v) {
    size_t n = js_str_len(v);
    for (size_t i = 0; i < js_len(v); i++)
        n += text_bytes(js_at(v, i));
    for (void *it = js_first(v); it; it = js_next(v, it))
        n += text_bytes(js_value(it));
    return n;
}

static snap_status check(void *ctx, js *row, long number, snap_err *err) {
    size_t *bytes = ctx;
    (void)err;
    *bytes += text_bytes(row);
    /* A malformed byte becomes U+FFFD, which has three bytes. */
    if (!js_is_object(row) || number < 1 || *bytes > 3 * (size_t)kBytes)
        __builtin_trap();
    return SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t bytes = 0;
    snap_err err = {0};
    snap_status st =
        parquet_each_row(data, size, "x", (parquet_limits){1 << 14, kBytes}, check, &bytes, &err);
    if ((st == SNAP_OK) != (err.text[0] == '\0'))
        __builtin_trap();
    return 0;
}
