/* Reads arbitrary bytes as a requests.jsonl. It must be refused with a message, or its requests can
 * be written and read back. */
#include <stdint.h>
#include <string.h>

#include "harness/serving/request_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    request_list list = {0}, again = {0};
    snap_err err = {0};
    buf text = {0};
    snap_status st = request_lines_parse((const char *)data, size, "requests", &list, &err);
    if ((st == SNAP_OK) != (err.code == SNAP_OK) || (st != SNAP_OK && !err.text[0]))
        __builtin_trap();
    for (size_t i = 0; i < list.n && st == SNAP_OK; i++)
        request_line_append(&list.at[i], &text);
    if (st == SNAP_OK &&
        (request_lines_parse(buf_str(&text), text.len, "written", &again, NULL) != SNAP_OK ||
         again.n != list.n))
        __builtin_trap();
    request_list_release(&list);
    request_list_release(&again);
    buf_release(&text);
    return 0;
}
