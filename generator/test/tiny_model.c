#include "generator/test/tiny_model.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/test/temp_folder.h"
#include "generator/local/checkpoint/safetensors.h"
#include "kernels/formats.h"
#include "kernels/mla.h"

const char *const tiny_names[] = {"v2-lite",   "v2",  "v3",      "r1",       "kimi-k2",
                                  "moonlight", "glm", "longcat", "minicpm3", NULL};

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

/* The factor on row @row of a tensor of the fixture "minicpm3". It makes keys of the slowest RoPE
 * pairs, which lie half a vector apart, outliers of about 1e3. */
static float strength(const char *name, uint64_t row) {
    enum { RANK = 64, PAIRS = 16, FIRST = 12, FACTOR = 256 };
    bool strong = strstr(name, "kv_a_proj_with_mqa") && row >= RANK && row % PAIRS >= FIRST;
    return strong ? FACTOR : 1;
}

/* ---- tensors --------------------------------------------------------------------------------- */

enum { kBlock = 32 /* rows and columns of e4m3 weights that share a scale */ };

/* A tensor of a fixture: its line in tensors.txt (name, type, sizes), and its numbers in FP32.
 * take_share() reduces it to the part of one rank. */
typedef struct {
    const char *name, *type;
    uint64_t n, rows, cols;
    uint64_t sizes[4];
    int dims;
    float *x; /* [n] */
} numbers;

static numbers read_line(char *line, int vocab, tiny_flavour flavour) {
    numbers t = {.n = 1, .rows = 1};
    char *rest = NULL;
    t.name = strtok_r(line, " ", &rest);
    t.type = strtok_r(NULL, " ", &rest);
    float spread = strtof(strtok_r(NULL, " ", &rest), NULL),
          centre = strtof(strtok_r(NULL, " ", &rest), NULL);
    bool words = vocab && (strstr(t.name, "lm_head") || strstr(t.name, "embed_tokens"));
    for (char *text; (text = strtok_r(NULL, " ", &rest)); words = false) {
        t.rows = t.n;
        t.cols = t.sizes[t.dims++] = words ? (unsigned)vocab : strtoul(text, NULL, 10);
        t.n *= t.cols;
    }
    t.x = calloc(t.n, sizeof *t.x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t.x);
    uint64_t seed = rng_stream_of(t.name);
    for (uint64_t i = 0; i < t.n; i++) {
        float u = (float)(splitmix(seed + i) >> 40) * 0x1p-23f - 1.0f, x = centre + spread * u;
        t.x[i] = x * (flavour == TINY_STRONG_ROPE ? strength(t.name, i / t.cols) : 1);
    }
    return t;
}

/* Which version of a fixture is written: its vocabulary, its weights, and all of it (size 1) or the
 * share of one rank. */
typedef struct {
    int vocab; /* 0 = the fixture's */
    tiny_flavour flavour;
    int rank, size;
} version;

static bool is_one_of(const char *name, const char *const *parts) {
    while (*parts && !strstr(name, *parts))
        parts++;
    return *parts;
}

/* Reduces a tensor to the share of one rank: the rows of some heads or of part of an inner width,
 * or the columns of o_proj and down_proj that belong to them. */
static void take_share(numbers *t, const version *v) {
    static const char *const by_rows[] = {"q_proj",    "q_b_proj", "kv_b_proj",
                                          "gate_proj", "up_proj",  NULL},
                             *const by_columns[] = {"o_proj", "down_proj", NULL};
    uint64_t size = (uint64_t)v->size, rank = (uint64_t)v->rank, to = 0;
    bool rows = is_one_of(t->name, by_rows), columns = is_one_of(t->name, by_columns);
    if (size == 1 || (!rows && !columns))
        return;
    for (uint64_t i = 0; i < t->n; i++)
        if ((rows ? i / t->cols * size / t->rows : i % t->cols * size / t->cols) == rank)
            t->x[to++] = t->x[i];
    t->sizes[rows ? 0 : 1] /= size;
    t->rows = t->sizes[0];
    t->cols = t->sizes[1];
    t->n = to;
}

/* Adds an entry to the header, for @bytes of data. */
static void add_entry(buf *header, const char *name, const char *type, const uint64_t *sizes,
                      int dims, size_t start, size_t bytes) {
    (void)buf_printf(header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, type);
    for (int i = 0; i < dims; i++)
        (void)buf_printf(header, "%s%llu", i ? "," : "", (unsigned long long)sizes[i]);
    (void)buf_printf(header, "],\"data_offsets\":[%zu,%zu]}", start, start + bytes);
}

static void add_plain(const numbers *t, const char *type, buf *header, buf *data) {
    size_t start = data->len;
    bool bf16 = strcmp(type, "BF16") == 0;
    for (uint64_t i = 0; i < t->n; i++) {
        uint16_t half = bf16_from_f32(t->x[i]);
        (void)buf_append(data, bf16 ? (void *)&half : (void *)&t->x[i], bf16 ? 2 : 4);
    }
    add_entry(header, t->name, type, t->sizes, t->dims, start, data->len - start);
}

/* The block of a number. The scale of a block is that of its largest number. */
static uint64_t block_of(const numbers *t, uint64_t i) {
    uint64_t across = (t->cols + kBlock - 1) / kBlock;
    return i / t->cols / kBlock * across + i % t->cols / kBlock;
}

/* Writes e4m3 with one scale per block, or the same numbers with the scales applied. */
static void add_e4m3(numbers *t, tiny_flavour flavour, buf *header, buf *data) {
    uint64_t grid[2] = {(t->rows + kBlock - 1) / kBlock, (t->cols + kBlock - 1) / kBlock};
    float *scale = calloc(grid[0] * grid[1], sizeof *scale);
    char name[160];
    buf codes = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(scale);
    for (uint64_t i = 0; i < t->n; i++)
        scale[block_of(t, i)] = fmaxf(scale[block_of(t, i)], fabsf(t->x[i]) / E4M3_MAX);
    for (uint64_t i = 0; i < t->n; i++) {
        uint8_t code = e4m3_from_f32(t->x[i] / scale[block_of(t, i)]);
        (void)buf_append(&codes, &code, 1);
        t->x[i] = e4m3_to_f32(code) * scale[block_of(t, i)];
    }
    if (flavour == TINY_E4M3) {
        add_entry(header, t->name, "F8_E4M3", t->sizes, 2, data->len, codes.len);
        (void)buf_append(data, codes.data, codes.len);
        while (data->len % sizeof *scale)
            (void)buf_append(data, "", 1);
        (void)snprintf(name, sizeof name, "%s_scale_inv", t->name);
        size_t bytes = grid[0] * grid[1] * sizeof *scale;
        add_entry(header, name, "F32", grid, 2, data->len, bytes);
        (void)buf_append(data, scale, bytes);
    } else {
        add_plain(t, flavour == TINY_E4M3_AS_BF16 ? "BF16" : "F32", header, data);
    }
    buf_release(&codes);
    free(scale);
}

/* Appends a tensor's numbers to @data and its entry to @header. @line has the tensor's name, type,
 * spread, centre and sizes. An e4m3 tensor may be followed by a second tensor with its scales. */
static void add_tensor(char *line, const version *v, buf *header, buf *data) {
    numbers t = read_line(line, v->vocab, v->flavour);
    take_share(&t, v);
    if (v->flavour >= TINY_E4M3 && t.dims == 2 && strstr(t.name, "_proj"))
        add_e4m3(&t, v->flavour, header, data);
    else
        add_plain(&t, t.type, header, data);
    free(t.x);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_file(const char *dir, const char *name, const buf *b) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, b->data, b->len, NULL), SNAP_OK);
}

static void divide(js *config, const char *key, int by) {
    int64_t n = js_get_int(config, key, 0);
    if (n)
        CU_ASSERT_TRUE(js_set_int(config, key, n / by));
}

static void share_config(js *config, int size) {
    static const char *const keys[] = {"num_attention_heads",   "num_key_value_heads",
                                       "intermediate_size",     "ffn_hidden_size",
                                       "moe_intermediate_size", "expert_ffn_hidden_size"};
    int64_t head =
        js_get_int(config, "hidden_size", 0) / js_get_int(config, "num_attention_heads", 1);
    if (!js_get_int(config, "v_head_dim", 0)) /* MiniCPM3's config.json has no v_head_dim */
        CU_ASSERT_TRUE(js_set_int(config, "v_head_dim", head));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        divide(config, keys[i], size);
}

static void write_config(const char *dir, const char *name, const version *v) {
    char path[128];
    buf text = {0};
    read_fixture(name, "config.json", &text);
    js *config = js_parse(text.data, text.len, name, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    if (v->vocab)
        CU_ASSERT_TRUE(js_set_int(config, "vocab_size", v->vocab));
    if (v->size > 1)
        share_config(config, v->size);
    if (v->flavour == TINY_E4M3) {
        static const char quantised[] =
            "{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[32,32]}";
        CU_ASSERT_TRUE(js_set_new(config, "quantization_config",
                                  js_parse(quantised, strlen(quantised), "config", NULL)));
    }
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    CU_ASSERT_EQUAL_FATAL(js_write_file(config, path, NULL), SNAP_OK);
    js_free(config);
    buf_release(&text);
}

static void write_checkpoint(const char *dir, const char *name, const version *v) {
    buf text = {0}, header = {0}, data = {0}, file = {0};
    char *rest = NULL;
    write_config(dir, name, v);
    read_fixture(name, "tensors.txt", &text);
    (void)buf_puts(&header, "{\"__metadata__\":{}");
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        add_tensor(line, v, &header, &data);
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
    write_checkpoint(dir, name, &(version){.vocab = vocab, .size = 1});
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

void tiny_make(tiny_model *t) {
    *t = (tiny_model){0};
    temp_folder_open(t->dir, "tiny");
}

void tiny_read(tiny_model *t) {
    snap_err err = {0};
    snap_status st = model_shape_open(&t->shape, t->dir, &err);
    if (st == SNAP_OK)
        st = checkpoint_open(&t->files, t->dir, &err);
    if (st == SNAP_OK)
        st = weights_bind(&t->weights, &t->shape, t->files, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
}

static void open_version(tiny_model *t, const char *name, const version *v) {
    tiny_make(t);
    write_checkpoint(t->dir, name, v);
    tiny_read(t);
    read_reference(t, name);
    for (int i = 0; i < TINY_TOKENS; i++)
        t->tokens[i] = (int32_t)(splitmix((uint64_t)i) % (uint64_t)t->shape.vocab_size);
}

void tiny_open_as(tiny_model *t, const char *name, tiny_flavour flavour) {
    open_version(t, name, &(version){.flavour = flavour, .size = 1});
}

void tiny_open_share(tiny_model *t, const char *name, int rank, int size) {
    open_version(t, name, &(version){.rank = rank, .size = size});
}

void tiny_open(tiny_model *t, const char *name) {
    tiny_open_as(t, name, TINY_PLAIN);
}

void tiny_folder(char dir[64], const char *name) {
    char path[128];
    buf b = {0};
    temp_folder_open(dir, "tiny");
    tiny_write(dir, name, TINY_VOCAB);
    CU_ASSERT_EQUAL_FATAL(fs_read("generator/test/tokenizer/bytes/tokenizer.json", &b, NULL),
                          SNAP_OK);
    (void)snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, b.data, b.len, NULL), SNAP_OK);
    buf_release(&b);
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

void tiny_spoil(const char *dir, const char *name, int64_t first, int64_t n, float x) {
    char path[128];
    safetensors s;
    uint16_t half = bf16_from_f32(x);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CU_ASSERT_EQUAL_FATAL(safetensors_open(&s, path, NULL), SNAP_OK);
    size_t i = 0;
    while (i < s.n && strcmp(s.tensors[i].name, name) != 0)
        i++;
    CU_ASSERT_FATAL(i < s.n && s.tensors[i].dtype == DTYPE_BF16);
    CU_ASSERT_FATAL((first + n) * 2 <= (int64_t)s.tensors[i].bytes);
    int64_t at = (const char *)s.tensors[i].data - (const char *)s.map + 2 * first;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (int64_t j = 0; j < n; j++)
        CU_ASSERT_EQUAL(pwrite(fd, &half, sizeof half, at + 2 * j), (ssize_t)sizeof half);
    (void)close(fd);
    safetensors_close(&s);
}

void tiny_reopen(tiny_model *t) {
    weights_release(&t->weights);
    checkpoint_close(t->files);
    tiny_read(t);
}

bool tiny_on_cuda(void) {
    mla_backend *be = NULL;
    bool here = mla_backend_open(&be, "cuda", NULL, NULL) == SNAP_OK;
    mla_backend_close(be);
    return here;
}
