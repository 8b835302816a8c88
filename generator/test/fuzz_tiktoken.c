/* Reads arbitrary bytes as a tiktoken.model. It must give an error, or a tokenizer that encodes a
 * sample text and decodes the ids to the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/tokenizer/tokenizer_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const tokenizer *t) {
    static const char sample[] = "a ab'S  abc1234 \n\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80x";
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    buf back = {0};
    if (tok_encoder_create(&e, t, NULL) == SNAP_OK &&
        tok_encode(e, sample, sizeof sample - 1, TOK_PLAIN, &ids, NULL) == SNAP_OK &&
        tok_decode(t, ids.v, ids.n, false, &back, NULL) == SNAP_OK &&
        (back.len != sizeof sample - 1 || memcmp(back.data, sample, back.len) != 0))
        abort();
    buf_release(&back);
    tok_ids_release(&ids);
    tok_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    snap_err err = {0};
    tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return 0;
    t->unk = -1;
    if (tokenizer_read_tiktoken(t, (const char *)data, size, "fuzz", NULL, &err) == SNAP_OK)
        use(t);
    else if (!err.text[0])
        abort();
    tokenizer_free(t);
    return 0;
}
