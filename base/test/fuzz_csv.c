/* Fuzzes the CSV reader with arbitrary bytes. The result must be rows or an error, and each field
 * ends with a NUL. */
#include <stdint.h>
#include <string.h>

#include "base/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static snap_status check_row(void *ctx, const csv_field *fields, size_t n, long line,
                             snap_err *err) {
    size_t *width = ctx;
    (void)err;
    if (line < 1 || n == 0 || (*width && *width != n))
        __builtin_trap();
    *width = n;
    for (size_t i = 0; i < n; i++)
        if (fields[i].s[fields[i].n] != '\0' || strlen(fields[i].s) > fields[i].n)
            __builtin_trap();
    return SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const columns[] = {"a"};
    size_t width = 0;
    snap_err err = {0};
    const char *text = (const char *)data;
    if (csv_each_row(text, size, "x", check_row, &width, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    width = 0;
    (void)!csv_each_record(text, size, "x", columns, 1, check_row, &width, NULL);
    return 0;
}
