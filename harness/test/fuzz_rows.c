/* Reads random bytes as a page of the Hugging Face rows API. It is refused with a message, or gives
 * one JSON object per line, as many as the page's row count says. */
#include <stdint.h>

#include "base/json.h"
#include "base/test/fuzz_tree.h"
#include "harness/fetch/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static snap_status count_line(void *ctx, js *object, long line, snap_err *err) {
    int64_t *n = ctx;
    (void)object, (void)line, (void)err;
    ++*n;
    return SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    int64_t count = -1, total = -1, lines = 0;
    snap_err err = {0};
    buf page = {0}, whole = {0};
    snap_status st = rows_page_to_lines(text, size, "page", &page, &count, &total, &err);
    if (st != SNAP_OK && !err.text[0])
        __builtin_trap();
    if (st == SNAP_OK &&
        (js_each_line(buf_str(&page), page.len, "rows", count_line, &lines, NULL) != SNAP_OK ||
         lines != count || count < 1 || total < count))
        __builtin_trap();
    bool complete = rows_to_lines(text, size, "page", &whole, NULL) == SNAP_OK;
    if (complete != (st == SNAP_OK && count == total))
        __builtin_trap();
    buf_release(&page);
    buf_release(&whole);
    return 0;
}
