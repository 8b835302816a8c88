/* Reads arbitrary bytes as a model.safetensors.index.json beside two shards. It must be refused
 * with a message, or the tensors that it names can be read. */
#include <stdint.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "generator/local/checkpoint/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const shards[] = {"model-00001-of-00002.safetensors",
                                     "model-00002-of-00002.safetensors"};

/* Copies the shards, which are also seeds of fuzz_safetensors, beside the index. */
static void make_shards(void) {
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        char path[120];
        buf bytes = {0};
        (void)snprintf(path, sizeof path, "generator/test/seeds/fuzz_safetensors/%s", shards[i]);
        if (fs_read(path, &bytes, NULL) != SNAP_OK)
            abort(); /* must run in the root of the repository */
        (void)fuzz_file(shards[i], bytes.data, bytes.len);
        buf_release(&bytes);
    }
}

/* Each tensor of the index is there, with its bytes. */
static void check(const checkpoint *c, const uint8_t *data, size_t size) {
    js *index = js_parse((const char *)data, size, "index", NULL);
    js *map = js_get_object(index, "weight_map");
    unsigned char sum = 0;
    for (void *it = js_first(map); it; it = js_next(map, it)) {
        const tensor *t = checkpoint_find(c, js_key(it));
        const unsigned char *bytes = t ? t->data : NULL;
        if (!t)
            abort();
        for (size_t i = 0; i < t->bytes; i++)
            sum ^= bytes[i];
    }
    __asm__ volatile("" : : "r"(sum)); /* the compiler must keep the loop */
    js_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    checkpoint *c;
    snap_err err = {0};
    if (!fuzz_folder[0])
        make_shards();
    (void)fuzz_file("model.safetensors.index.json", data, size);
    snap_status st = checkpoint_open(&c, fuzz_folder, &err);
    if (st == SNAP_OK ? !c : c || !err.text[0])
        abort();
    if (c)
        check(c, data, size);
    checkpoint_close(c);
    return 0;
}
