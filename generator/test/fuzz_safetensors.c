/* Reads arbitrary bytes as a safetensors file. It must give an error, or tensors that fill the file
 * after its header without gaps or overlaps. A file without tensors ends with its header. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "generator/local/checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the tensors begin: after a little-endian number of 8 bytes and a header of that length. */
static const uint8_t *after_header(const uint8_t *data) {
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | data[i];
    return data + 8 + n;
}

static void check(const safetensors *s, const uint8_t *data, size_t size) {
    const uint8_t *at = after_header(data);
    for (size_t i = 0; i < s->n; i++) {
        const tensor *t = &s->tensors[i];
        const uint8_t *begin = t->data;
        if (begin != at || t->bytes > size - (size_t)(at - data))
            abort();
        at = begin + t->bytes;
        float x;
        bool computes = t->dtype != DTYPE_OTHER && t->dtype != DTYPE_F8_E4M3;
        if (t->bytes && t->n_dims && computes)
            tensor_read_f32(t, NULL, 1, 0, 0, 1, &x);
    }
    if (at != data + size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    safetensors s;
    snap_err err = {0};
    if (safetensors_parse(&s, data, size, "fuzz", &err) == SNAP_OK)
        check(&s, data, size);
    else if (!err.text[0])
        abort();
    safetensors_close(&s);
    return 0;
}
