#include "generator/test/tiny_model.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "kernels/formats.h"

const char *const tiny_names[] = {"v2-lite", "v2", "v3", "longcat", "minicpm3", NULL};

static uint64_t splitmix(uint64_t x) {
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void read_fixture(const char *name, const char *file, buf *out) {
    char path[128];
    snap_err err = {0};
    (void)snprintf(path, sizeof path, "generator/test/model/%s/%s", name, file);
    CU_ASSERT_EQUAL_FATAL(fs_read(path, out, &err), SNAP_OK);
}

/* What row @row of a tensor of the fixture "minicpm3" is multiplied by: keys of the slowest RoPE pairs,
 * which lie half apart, become outliers of up to 1e3. */
static float strength(const char *name, uint64_t row) {
    enum { RANK = 64, PAIRS = 16, FIRST = 12, FACTOR = 256 };
    bool strong = strstr(name, "kv_a_proj_with_mqa") && row >= RANK && row % PAIRS >= FIRST;
    return strong ? FACTOR : 1;
}

/* Appends a tensor's numbers to @data and its entry to @header; @line: name type spread centre sizes. */
static void add_tensor(char *line, int vocab, bool strong, buf *header, buf *data) {
    char *rest = NULL, *name = strtok_r(line, " ", &rest), *type = strtok_r(NULL, " ", &rest);
    float spread = strtof(strtok_r(NULL, " ", &rest), NULL),
          centre = strtof(strtok_r(NULL, " ", &rest), NULL);
    bool bf16 = strcmp(type, "BF16") == 0;
    bool words = vocab && (strstr(name, "lm_head") || strstr(name, "embed_tokens"));
    uint64_t seed = rng_stream_of(name), n = 1, width = 1;
    size_t start = data->len;
    (void)buf_printf(header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, type);
    for (char *text; (text = strtok_r(NULL, " ", &rest)); words = false) {
        uint64_t size = words ? (unsigned)vocab : strtoul(text, NULL, 10);
        (void)buf_printf(header, "%s%llu", n == 1 ? "" : ",", (unsigned long long)size);
        n *= size;
        width = size;
    }
    for (uint64_t i = 0; i < n; i++) {
        float u = (float)(splitmix(seed + i) >> 40) * 0x1p-23f - 1.0f, x = centre + spread * u;
        x *= strong ? strength(name, i / width) : 1;
        uint16_t half = bf16_from_f32(x);
        (void)buf_append(data, bf16 ? (void *)&half : (void *)&x, bf16 ? 2 : 4);
    }
    (void)buf_printf(header, "],\"data_offsets\":[%zu,%zu]}", start, data->len);
}

static void write_file(const char *dir, const char *name, const buf *b) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, b->data, b->len, NULL), SNAP_OK);
}

static void write_config(const char *dir, const char *name, int vocab) {
    char path[128];
    buf text = {0};
    read_fixture(name, "config.json", &text);
    js *config = js_parse(text.data, text.len, name, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    if (vocab)
        CU_ASSERT_TRUE(js_set_int(config, "vocab_size", vocab));
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    CU_ASSERT_EQUAL_FATAL(js_write_file(config, path, NULL), SNAP_OK);
    js_free(config);
    buf_release(&text);
}

static void write_checkpoint(const char *dir, const char *name, int vocab, bool strong) {
    buf text = {0}, header = {0}, data = {0}, file = {0};
    char *rest = NULL;
    write_config(dir, name, vocab);
    read_fixture(name, "tensors.txt", &text);
    (void)buf_puts(&header, "{\"__metadata__\":{}");
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        add_tensor(line, vocab, strong, &header, &data);
    (void)buf_puts(&header, "}");
    while (header.len % 8)
        (void)buf_puts(&header, " ");
    uint64_t length = header.len;
    (void)buf_append(&file, &length, sizeof length);
    (void)buf_append(&file, header.data, header.len);
    (void)buf_append(&file, data.data, data.len);
    write_file(dir, "model.safetensors", &file);
    buf_release(&text);
    buf_release(&header);
    buf_release(&data);
    buf_release(&file);
}

void tiny_write(const char *dir, const char *name, int vocab) {
    write_checkpoint(dir, name, vocab, false);
}

static void read_reference(tiny_model *t, const char *name) {
    buf b = {0};
    size_t n = (size_t)TINY_TOKENS * (size_t)t->shape.vocab_size;
    read_fixture(name, "reference.bin", &b);
    CU_ASSERT_FATAL(b.len >= n * 6);
    size_t experts = b.len - n * 6;
    t->per_token = (int)(experts / TINY_TOKENS);
    t->exact = calloc(n, sizeof *t->exact);
    t->rounded = calloc(n, sizeof *t->rounded);
    t->chosen = calloc(experts + 1, sizeof *t->chosen);
    CU_ASSERT_FATAL(t->exact && t->rounded && t->chosen);
    memcpy(t->exact, b.data, n * sizeof *t->exact);
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, b.data + n * 4 + 2 * i, sizeof half);
        t->rounded[i] = bf16_to_f32(half);
    }
    for (size_t i = 0; i < experts; i++)
        t->chosen[i] = (unsigned char)b.data[n * 6 + i];
    buf_release(&b);
}

static void open_fixture(tiny_model *t, const char *name, bool strong) {
    snap_err err = {0};
    *t = (tiny_model){.dir = "/tmp/snapmla-tiny-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(t->dir));
    write_checkpoint(t->dir, name, 0, strong);
    snap_status st = model_shape_open(&t->shape, t->dir, &err);
    if (st == SNAP_OK)
        st = checkpoint_open(&t->files, t->dir, &err);
    if (st == SNAP_OK)
        st = weights_bind(&t->weights, &t->shape, t->files, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "%s: %s\n", name, err.text);
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
    read_reference(t, name);
    for (int i = 0; i < TINY_TOKENS; i++)
        t->tokens[i] = (int32_t)(splitmix((uint64_t)i) % (uint64_t)t->shape.vocab_size);
}

void tiny_open(tiny_model *t, const char *name) {
    open_fixture(t, name, false);
}

void tiny_open_strong_rope(tiny_model *t) {
    open_fixture(t, "minicpm3", true);
}

void tiny_remove(const char *dir) {
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    for (int i = 0; i < 3; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

void tiny_close(tiny_model *t) {
    weights_release(&t->weights);
    checkpoint_close(t->files);
    free(t->exact);
    free(t->rounded);
    free(t->chosen);
    tiny_remove(t->dir);
}
