/* Reads arbitrary bytes as a tokenizer.json. It must give an error, or a tokenizer whose decoded
 * texts are valid UTF-8, for the ids of whole texts and for single ids. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const tokenizer *t, const char *text, size_t n) {
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    buf whole = {0};
    if (tok_encoder_create(&e, t, NULL) == SNAP_OK &&
        tok_encode(e, text, n, TOK_SPECIALS, &ids, NULL) == SNAP_OK &&
        tok_decode(t, ids.v, ids.n, false, &whole, NULL) == SNAP_OK &&
        !text_is_utf8(buf_str(&whole), whole.len))
        abort();
    for (int32_t id = -1; id <= tokenizer_size(t) && id < 1000; id++) {
        buf one = {0};
        if (tok_decode(t, &id, 1, true, &one, NULL) == SNAP_OK &&
            !text_is_utf8(buf_str(&one), one.len))
            abort();
        buf_release(&one);
    }
    buf_release(&whole);
    tok_ids_release(&ids);
    tok_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char sample[] = "a ab  abc<s>1234 \n\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80\xFF\x80x";
    snap_err err = {0};
    tokenizer *t = NULL;
    const char *text = (const char *)data;
    snap_status st = tokenizer_parse(&t, text, size, "fuzz", &err);
    if (st != SNAP_OK && (t || !err.text[0]))
        abort();
    if (st == SNAP_OK) {
        use(t, sample, sizeof sample - 1);
        use(t, text, size < 4096 ? size : 4096);
    }
    tokenizer_free(t);
    return 0;
}
