#include "generator/local/random_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "generator/local/checkpoint/inventory.h"
#include "generator/local/tokenizer/tokenizer_parts.h"
#include "kernels/formats.h"

/* ---- weights ---- */

typedef struct {
    arena mem;
    tensor *v;
    size_t n, cap;
} tensors;

static snap_status add_random(void *ctx, const char *name, int64_t rows, int64_t cols,
                              snap_err *err) {
    tensors *t = ctx;
    size_t n = (size_t)rows * (size_t)(cols ? cols : 1);
    if (t->n == t->cap) {
        t->cap = 2 * t->cap + 64;
        tensor *more = realloc(t->v, t->cap * sizeof *more);
        if (!more)
            return err_set(err, SNAP_E_NOMEM, "out of memory for random weights");
        t->v = more;
    }
    const char *copy = arena_strdup(&t->mem, name);
    uint16_t *data = arena_alloc(&t->mem, n, sizeof *data);
    if (!copy || !data)
        return err_set(err, SNAP_E_NOMEM, "out of memory for random weights");
    rng r = rng_make(rng_stream_of(name), 0);
    bool bias = strstr(name, "bias") != NULL;
    float spread = cols ? sqrtf(3.0f / (float)cols) : bias ? 0.05f : 0.1f;
    float centre = cols || bias ? 0 : 1;
    for (size_t i = 0; i < n; i++)
        data[i] = bf16_from_f32(centre + spread * ((float)(rng_u32(&r) >> 8) * 0x1p-23f - 1.0f));
    t->v[t->n++] = (tensor){.name = copy,
                            .file = "random weights",
                            .dtype = DTYPE_BF16,
                            .n_dims = cols ? 2 : 1,
                            .shape = {rows, cols ? cols : 1, 1, 1},
                            .data = data,
                            .bytes = n * sizeof *data};
    return SNAP_OK;
}

snap_status random_checkpoint(checkpoint **out, const model_shape *shape, snap_err *err) {
    tensors t = {0};
    *out = NULL;
    snap_status st = inventory_each(shape, add_random, &t, err);
    if (st == SNAP_OK)
        return checkpoint_of(out, t.v, t.n, &t.mem, err);
    free(t.v);
    arena_release(&t.mem);
    return st;
}

/* ---- tokenizer ---- */

static const char kHead[] =
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":"
    "\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
    "\"trim_offsets\":true,\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"dropout\":null,"
    "\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
    "\"fuse_unk\":false,\"byte_fallback\":false,\"merges\":[],\"vocab\":";

snap_status random_tokenizer(tokenizer **out, int32_t n, snap_err *err) {
    snap_status st;
    buf text = {0}, name = {0};
    js *ids = js_new_object();
    bool ok = ids != NULL;
    *out = NULL;
    if (n < 256)
        TRY(err_set(err, SNAP_E_UNSUPPORTED,
                    "random weights need a vocabulary of at least 256 ids, one for each byte; it "
                    "has %d",
                    (int)n));
    for (int32_t id = 0; id < n && ok; id++) {
        buf_clear(&name);
        byte_alphabet_append(&name, id < 256 ? (unsigned char)id : ' ');
        if (id >= 256)
            (void)buf_printf(&name, "t%d", (int)id);
        ok = !name.failed && js_set_int(ids, buf_str(&name), id);
    }
    (void)buf_puts(&text, kHead);
    if (!ok)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a vocabulary of %d", (int)n));
    TRY(js_write(ids, JS_COMPACT, &text, err));
    (void)buf_puts(&text, "}}");
    TRY(buf_check(&text, "a tokenizer", err));
    TRY(tokenizer_parse(out, text.data, text.len, "the tokenizer of random weights", err));
cleanup:
    js_free(ids);
    buf_release(&text);
    buf_release(&name);
    return st;
}
