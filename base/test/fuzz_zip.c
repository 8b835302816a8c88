/* Fuzzes the ZIP reader with arbitrary bytes. The result must be members within the limit, or an
 * error with a message. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static snap_status look(void *ctx, const char *member, const buf *content, snap_err *err) {
    size_t *bytes = ctx;
    (void)err;
    *bytes += content->len;
    bool climbs = strncmp(member, "../", 3) == 0 || strstr(member, "/../"); /* not "a../b" */
    if (!member[0] || member[0] == '/' || climbs || *bytes > 1 << 20)
        __builtin_trap();
    return SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t bytes = 0;
    buf out = {.limit = 1 << 20};
    snap_err err = {0};
    if (zip_member_read(data, size, "x.zip", "a.csv", "secret", &out, &err) != SNAP_OK &&
        (!err.text[0] || out.len))
        __builtin_trap();
    buf_release(&out);
    err = (snap_err){0};
    if (zip_each_member(data, size, "x.zip", (zip_limits){8, 1 << 20}, look, &bytes, &err) !=
            SNAP_OK &&
        !err.text[0])
        __builtin_trap();
    return 0;
}
