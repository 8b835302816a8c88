/* Reads arbitrary bytes as a whole answer, as stream chunks and as an error response. Text must be
 * UTF-8 without NUL, a failure must have a message, and the description of an error response must
 * be one short line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/http/chat_answer.h"
#include "generator/http/server_error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const buf *b) {
    if (strlen(buf_str(b)) != b->len || !text_is_utf8(buf_str(b), b->len))
        abort();
}

static void check(snap_status st, const chat_answer *a, const snap_err *err) {
    if ((st == SNAP_OK) != (err->code == SNAP_OK) || (st != SNAP_OK && !err->text[0]))
        abort();
    check_text(&a->text);
    check_text(&a->reasoning);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    chat_answer a = chat_answer_make();
    snap_err err = {0};
    check(chat_answer_read(&a, bytes, size, &err), &a, &err);
    chat_answer_clear(&a);
    err = (snap_err){0};
    for (size_t i = 0; i < size;) { /* one chunk per line */
        const char *nl = memchr(bytes + i, '\n', size - i);
        size_t n = nl ? (size_t)(nl - bytes) - i : size - i;
        snap_status st = chat_answer_read_chunk(&a, bytes + i, n, &err);
        check(st, &a, &err);
        if (st != SNAP_OK)
            break;
        i += n + 1;
    }
    chat_answer_release(&a);
    buf line = {0};
    server_error_describe(500, bytes, size, "", &line);
    if (strchr(buf_str(&line), '\n') || !text_is_utf8(buf_str(&line), line.len) || line.len > 400)
        abort();
    buf_release(&line);
    return 0;
}
