/* Any bytes as an archive: a member within the ceiling or an error that says something. */
#include <stdint.h>

#include "base/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    buf out = {.limit = 1 << 20};
    snap_err err = {0};
    if (zip_member_read(data, size, "x.zip", "a.csv", "secret", &out, &err) != SNAP_OK &&
        (!err.text[0] || out.len))
        __builtin_trap();
    buf_release(&out);
    return 0;
}
