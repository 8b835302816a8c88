/* Splits a response of arbitrary bytes. It must give the same body and the same end however it is
 * split. The first byte chooses the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the response in parts of @step bytes, each in memory of exactly that size. */
static void read_in_parts(http_answer *a, const uint8_t *bytes, size_t n, size_t step, buf *body) {
    for (size_t i = 0; i < n && a->state == ANSWER_OPEN; i += step) {
        size_t part = n - i < step ? n - i : step, kept;
        char *copy = malloc(part);
        if (!copy)
            abort();
        memcpy(copy, bytes + i, part);
        (void)http_answer_take(a, copy, part, &kept);
        if (kept > part || (kept && !a->status))
            abort();
        (void)buf_append(body, copy, kept);
        free(copy);
    }
    (void)http_answer_close(a);
}

static int is_same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    http_answer a = {0}, b = {0};
    buf whole = {0}, parts = {0};
    if (size < 2)
        return 0;
    read_in_parts(&a, data + 1, size - 1, size - 1, &whole);
    read_in_parts(&b, data + 1, size - 1, (size_t)data[0] % 16 + 1, &parts);
    if (a.state == ANSWER_OPEN || a.state != b.state || a.status != b.status ||
        whole.len != parts.len || memcmp(buf_str(&whole), buf_str(&parts), whole.len) != 0 ||
        !is_same(http_answer_header(&a, "content-type"), http_answer_header(&b, "content-type")))
        abort();
    buf_release(&whole);
    buf_release(&parts);
    http_answer_release(&a);
    http_answer_release(&b);
    return 0;
}
