/* Compares the quick parser of stream chunks with the full parser. If the quick parser accepts a
 * chunk, the full parser must accept it, too, and find the same text. The input is one chunk, or
 * two with a NUL between them; then the second one is parsed after the first. */
#include <stdint.h>
#include <string.h>

#include "generator/http/chat_answer.h"
#include "generator/http/chat_piece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const buf *a, const buf *b) {
    return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    chat_piece piece;
    chat_frame frame = {0};
    const char *text = (const char *)data, *second = memchr(text, '\0', size);
    if (second) {
        (void)chat_frame_find(&frame, text, (size_t)(second - text), &piece);
        size -= (size_t)(second + 1 - text);
        text = second + 1;
    }
    bool found = chat_frame_find(&frame, text, size, &piece);
    chat_frame_release(&frame);
    if (!found)
        return 0;
    buf content = {0}, reasoning = {0};
    chat_answer a = chat_answer_make();
    chat_piece_append(&content, piece.content);
    chat_piece_append(&reasoning, piece.reasoning);
    if (chat_answer_read_chunk(&a, text, size, NULL) != SNAP_OK || a.repaired ||
        chat_answer_complete(&a) || !same(&content, &a.text) || !same(&reasoning, &a.reasoning))
        __builtin_trap();
    chat_answer_release(&a);
    buf_release(&content);
    buf_release(&reasoning);
    return 0;
}
