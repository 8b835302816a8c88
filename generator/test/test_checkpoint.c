#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/checkpoint/inventory.h"
#include "generator/local/checkpoint/safetensors.h"

#define FOLDER "generator/test/checkpoint"

/* ---- files written by the library safetensors ---- */

enum { kFixtureBlock = 4, kMost = 100 };

static void check_numbers(const checkpoint *c, const char *name, const js *want) {
    const tensor *t = checkpoint_find(c, name), *scale = NULL;
    const js *shape = js_get_array(want, "shape"), *values = js_get_array(want, "values");
    float got[kMost];
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_EQUAL(t->n_dims, js_len(shape));
    for (int i = 0; i < t->n_dims; i++)
        CU_ASSERT_EQUAL(t->shape[i], js_int(js_at(shape, (size_t)i)));
    if (t->dtype == DTYPE_F8_E4M3)
        scale = checkpoint_find(c, "fp8.weight_scale_inv");
    int64_t cols = t->n_dims == 1 ? t->shape[0] : t->shape[1];
    for (size_t at = 0; at < js_len(values); at += (size_t)cols)
        tensor_read_f32(t, scale, kFixtureBlock, (int64_t)at / cols, 0, cols, got + at);
    for (size_t i = 0; i < js_len(values); i++)
        CU_ASSERT_EQUAL(got[i], (float)js_num(js_at(values, i)));
    if (cols > 3 && js_len(values)) { /* reads part of a row */
        tensor_read_f32(t, scale, kFixtureBlock, 0, 2, cols - 3, got);
        for (int64_t i = 0; i < cols - 3; i++)
            CU_ASSERT_EQUAL(got[i], (float)js_num(js_at(values, (size_t)i + 2)));
    }
}

static void test_numbers(void) {
    snap_err err = {0};
    checkpoint *c = NULL;
    js *want = js_parse_file(FOLDER "/expected.json", 1 << 20, &err);
    CU_ASSERT_EQUAL(checkpoint_open(&c, FOLDER, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    int tensors = 0;
    for (void *it = js_first(want); it; it = js_next(want, it), tensors++)
        check_numbers(c, js_key(it), js_value(it));
    CU_ASSERT_EQUAL(tensors, 6);
    CU_ASSERT_PTR_NULL(checkpoint_find(c, "nowhere"));
    js_free(want);
    checkpoint_close(c);
}

/* ---- hostile headers ---- */

static void put_file(buf *out, const char *header, size_t data) {
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) {
        char byte = (char)(n >> 8 * i);
        (void)buf_append(out, &byte, 1);
    }
    (void)buf_puts(out, header);
    for (size_t i = 0; i < data; i++)
        (void)buf_append(out, "", 1);
}

#define BF16(shape, first, last)                                                                   \
    "{\"dtype\":\"BF16\",\"shape\":" shape ",\"data_offsets\":[" first "," last "]}"

static void test_hostile_headers(void) {
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } rows[] = {
        {"", 0, "f.safetensors:"},
        {"[]", 0, "object"},
        {"{\"a\":1}", 0, "tensor 'a'"},
        {"{\"a\":{}}", 0, "dtype ''"},
        {"{\"a\":{\"dtype\":\"F4\"}}", 0, "dtype 'F4'"},
        {"{\"a\":{\"dtype\":\"F32\"}}", 0, "'shape'"},
        {"{\"a\":" BF16("[1,1,1,1,1]", "0", "2") "}", 2, "dimensions"},
        {"{\"a\":" BF16("[-1]", "0", "2") "}", 2, "sizes"},
        {"{\"a\":" BF16("[0.5]", "0", "2") "}", 2, "sizes"},
        {"{\"a\":" BF16("[4611686018427387904,4611686018427387904]", "0", "2") "}", 2, "overflows"},
        {"{\"a\":" BF16("[1]", "0", "4") "}", 4, "has 4 bytes"},
        {"{\"a\":" BF16("[1]", "2", "4") "}", 2, "outside"},
        {"{\"a\":" BF16("[1]", "-2", "0") "}", 2, "outside"},
        {"{\"a\":" BF16("[1]", "2", "0") "}", 2, "outside"},
        {"{\"a\":" BF16("[1]", "0", "9223372036854775807") "}", 2, "outside"},
        {"{\"a\":" BF16("[1]", "0", "\"2\"") "}", 2, "integers"},
        {"{\"a\":" BF16("[2]", "0", "4") ",\"b\":" BF16("[2]", "2", "6") "}", 6, "overlap"},
        {"{\"a\":" BF16("[2]", "0", "4") ",\"b\":" BF16("[2]", "0", "4") "}", 4, "overlap"},
        {"{\"a\":" BF16("[1]", "0", "2") ",\"b\":" BF16("[1]", "4", "6") "}", 6,
         "2 bytes before tensor"},
        {"{\"a\":" BF16("[1]", "0", "2") "}", 4, "2 bytes at the end"},
        {"{\"a\":" BF16("[1]", "0", "2") ",\"a\":" BF16("[1]", "2", "4") "}", 4, "duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf file = {0};
        snap_err err = {0};
        safetensors s;
        put_file(&file, rows[i].header, rows[i].data);
        CU_ASSERT_NOT_EQUAL(safetensors_parse(&s, file.data, file.len, "f.safetensors", &err),
                            SNAP_OK);
        if (!strstr(err.text, rows[i].says))
            printf("  %s: %s\n", rows[i].header, err.text);
        CU_ASSERT(text_starts(err.text, "f.safetensors:") && strstr(err.text, rows[i].says));
        safetensors_close(&s);
        buf_release(&file);
    }
}

static void test_header_lengths(void) {
    static const unsigned char rows[][12] = {{0},
                                             {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'},
                                             {0, 0, 0, 64},
                                             {5, 0, 0, 0, 0, 0, 0, 0, '{', '}'}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n <= sizeof *rows; n++) {
            snap_err err = {0};
            safetensors s;
            CU_ASSERT_EQUAL(safetensors_parse(&s, rows[i], n, "f", &err), SNAP_E_INPUT);
            CU_ASSERT(text_starts(err.text, "f:"));
            safetensors_close(&s);
        }
}

static void test_a_tensor_of_nothing(void) {
    buf file = {0};
    safetensors s;
    put_file(&file, "{\"a\":" BF16("[0,7]", "0", "0") ",\"b\":" BF16("[]", "0", "2") "}  ", 2);
    CU_ASSERT_EQUAL(safetensors_parse(&s, file.data, file.len, "f", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.n, 2);
    CU_ASSERT_EQUAL(s.tensors[0].bytes, 0);
    CU_ASSERT_EQUAL(s.tensors[1].n_dims, 0);
    safetensors_close(&s);
    buf_release(&file);
}

/* ---- hostile folders ---- */

typedef struct {
    char path[64];
} folder;

static folder folder_new(void) {
    folder f = {"/tmp/snapmla-checkpoint-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f.path));
    return f;
}

static void folder_put(const folder *f, const char *name, const void *bytes, size_t n) {
    char *path = fs_join(f->path, name);
    CU_ASSERT_EQUAL(fs_write_atomic(path, bytes, n, NULL), SNAP_OK);
    free(path);
}

static void folder_put_tensor(const folder *f, const char *file, const char *name) {
    buf header = {0}, bytes = {0};
    (void)buf_printf(&header, "{\"%s\":%s}", name, BF16("[1]", "0", "2"));
    put_file(&bytes, header.data, 2);
    folder_put(f, file, bytes.data, bytes.len);
    buf_release(&header);
    buf_release(&bytes);
}

static void folder_delete(const folder *f, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char *path = fs_join(f->path, names[i]);
        (void)unlink(path);
        free(path);
    }
    CU_ASSERT_EQUAL(rmdir(f->path), 0);
}

static void test_hostile_indexes(void) {
    static const char *const names[] = {"model.safetensors.index.json", "1.safetensors",
                                        "2.safetensors", "loop.safetensors", "cut.safetensors"};
    static const struct {
        const char *index, *says;
    } rows[] = {
        {"{}", "weight_map"},
        {"[", "index.json:1"},
        {"{\"weight_map\":{\"a\":7}}", "tensor 'a'"},
        {"{\"weight_map\":{\"a\":\"../1.safetensors\"}}", "'../1.safetensors'"},
        {"{\"weight_map\":{\"a\":\"/etc/x.safetensors\"}}", "'/etc/x.safetensors'"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "'..'"},
        {"{\"weight_map\":{\"a\":\"\"}}", "shard ''"},
        {"{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}", "index.json'"},
        {"{\"weight_map\":{\"a\":\"loop.safetensors\"}}", "loop.safetensors"},
        {"{\"weight_map\":{\"a\":\"absent.safetensors\"}}", "absent.safetensors"},
        {"{\"weight_map\":{\"a\":\"cut.safetensors\"}}", "cut.safetensors"},
        {"{\"weight_map\":{\"b\":\"1.safetensors\"}}", "tensor 'b' is not in '1.safetensors'"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}",
         "tensor 'a' is in both"},
    };
    folder f = folder_new();
    char *loop = fs_join(f.path, names[3]);
    folder_put_tensor(&f, names[1], "a");
    folder_put_tensor(&f, names[2], "a");
    folder_put(&f, names[4], "1234567", 7);
    CU_ASSERT_EQUAL(symlink(names[3], loop), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snap_err err = {0};
        checkpoint *c = NULL;
        folder_put(&f, names[0], rows[i].index, strlen(rows[i].index));
        CU_ASSERT_NOT_EQUAL(checkpoint_open(&c, f.path, &err), SNAP_OK);
        CU_ASSERT_PTR_NULL(c);
        if (!strstr(err.text, rows[i].says))
            printf("  %s: %s\n", rows[i].index, err.text);
        CU_ASSERT(strstr(err.text, rows[i].says) && strstr(err.text, f.path));
    }
    folder_delete(&f, names, 5);
    free(loop);
}

static void test_one_file_without_an_index(void) {
    static const char *const names[] = {"model.safetensors"};
    folder f = folder_new();
    snap_err err = {0};
    checkpoint *c = NULL;
    CU_ASSERT_EQUAL(checkpoint_open(&c, f.path, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "model.safetensors"));
    folder_put_tensor(&f, names[0], "a");
    CU_ASSERT_EQUAL(checkpoint_open(&c, f.path, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(c ? checkpoint_find(c, "a") : NULL);
    checkpoint_close(c);
    folder_delete(&f, names, 1);
}

/* ---- a model's tensors against a checkpoint's ---- */

#define TINY                                                                                       \
    "\"vocab_size\":6,\"hidden_size\":5,\"num_hidden_layers\":1,\"num_attention_heads\":1,"        \
    "\"max_position_embeddings\":64,\"kv_lora_rank\":3,\"qk_nope_head_dim\":2,"                    \
    "\"qk_rope_head_dim\":2,\"v_head_dim\":2,\"intermediate_size\":4,\"tie_word_embeddings\":true"

typedef struct {
    buf header;
    size_t at;
    const char *skip, *transpose,
        *fp8; /* tensors that are left out, transposed, or written in e4m3 */
} writer;

static void write_one(writer *w, const char *name, const char *dtype, int64_t rows, int64_t cols,
                      int64_t element) {
    int64_t bytes = rows * (cols ? cols : 1) * element;
    (void)buf_printf(&w->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", w->at ? "," : "{",
                     name, dtype, (long long)rows);
    if (cols)
        (void)buf_printf(&w->header, ",%lld", (long long)cols);
    (void)buf_printf(&w->header, "],\"data_offsets\":[%zu,%zu]}", w->at, w->at + (size_t)bytes);
    w->at += (size_t)bytes;
}

static snap_status write_tensor(void *ctx, const char *name, int64_t rows, int64_t cols,
                                snap_err *err) {
    writer *w = ctx;
    bool transpose = w->transpose && strcmp(name, w->transpose) == 0;
    bool fp8 = w->fp8 && strcmp(name, w->fp8) == 0;
    (void)err;
    if (w->skip && strcmp(name, w->skip) == 0)
        return SNAP_OK;
    write_one(w, name, fp8 ? "F8_E4M3" : "BF16", transpose ? cols : rows, transpose ? rows : cols,
              fp8 ? 1 : 2);
    return SNAP_OK;
}

typedef struct {
    const model_shape *s;
    const checkpoint *c;
} against;

/* Checks a tensor as loading does. */
static snap_status need_one(void *ctx, const char *name, int64_t rows, int64_t cols,
                            snap_err *err) {
    const against *a = ctx;
    const tensor *w, *scale;
    return inventory_need(a->s, a->c, name, rows, cols, &w, &scale, err);
}

/* Checks a checkpoint that is made from the inventory, with at most one fault. An empty message
 * means that it is accepted. */
static void check_faulty(const char *config, writer w, const char *scale_dtype, int64_t scale_rows,
                         const char *says) {
    static const char *const names[] = {"model.safetensors"};
    folder f = folder_new();
    model_shape s;
    buf file = {0};
    snap_err err = {0};
    checkpoint *c = NULL;
    char scale[128];
    CU_ASSERT_EQUAL_FATAL(model_shape_parse(&s, config, strlen(config), "c", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(inventory_each(&s, write_tensor, &w, NULL), SNAP_OK);
    (void)snprintf(scale, sizeof scale, "%s_scale_inv", w.fp8 ? w.fp8 : "");
    if (scale_dtype)
        write_one(&w, scale, scale_dtype, scale_rows, 2, strcmp(scale_dtype, "F32") == 0 ? 4 : 2);
    (void)buf_puts(&w.header, "}");
    put_file(&file, w.header.data, w.at);
    folder_put(&f, names[0], file.data, file.len);
    CU_ASSERT_EQUAL_FATAL(checkpoint_open(&c, f.path, &err), SNAP_OK);
    snap_status st = inventory_each(&s, need_one, &(against){.s = &s, .c = c}, &err);
    CU_ASSERT((st == SNAP_OK) == (*says == '\0'));
    if (!strstr(err.text, says))
        printf("  for '%s': %s\n", says, err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
    checkpoint_close(c);
    folder_delete(&f, names, 1);
    buf_release(&file);
    buf_release(&w.header);
}

#define Q_PROJ "model.layers.0.self_attn.q_proj.weight"

static void test_missing_and_wrong_tensors(void) {
    static const char plain[] = "{\"architectures\":[\"DeepseekV2ForCausalLM\"]," TINY "}";
    static const char fp8[] = "{\"architectures\":[\"DeepseekV2ForCausalLM\"]," TINY
                              ",\"quantization_config\":{\"quant_method\":\"fp8\","
                              "\"weight_block_size\":[3,3]}}";
    check_faulty(plain, (writer){0}, NULL, 0, "");
    check_faulty(plain, (writer){.skip = Q_PROJ}, NULL, 0, "'" Q_PROJ "' is in none");
    check_faulty(plain, (writer){.skip = "model.norm.weight"}, NULL, 0, "'model.norm.weight'");
    check_faulty(plain, (writer){.transpose = Q_PROJ}, NULL, 0,
                 "[5, 4], config.json requires 2: [4, 5]");
    check_faulty(plain, (writer){.fp8 = Q_PROJ}, NULL, 0, "no quantization_config");
    check_faulty(fp8, (writer){.fp8 = Q_PROJ}, NULL, 0, "has no '" Q_PROJ "_scale_inv'");
    check_faulty(fp8, (writer){.fp8 = Q_PROJ}, "F16", 2, "is F16, must be F32");
    check_faulty(fp8, (writer){.fp8 = Q_PROJ}, "F32", 1, "[1, 2], config.json requires 2: [2, 2]");
    check_faulty(fp8, (writer){.fp8 = Q_PROJ}, "F32", 2, "");
    check_faulty(fp8, (writer){.fp8 = "model.norm.weight"}, "F32", 2, "'model.norm.weight' is F8");
}

CU_TestInfo tests_checkpoint[] = {
    {"numbers equal those that safetensors wrote", test_numbers},
    {"hostile headers", test_hostile_headers},
    {"headers whose length is wrong are refused", test_header_lengths},
    {"a tensor without numbers", test_a_tensor_of_nothing},
    {"hostile indexes", test_hostile_indexes},
    {"one file without an index", test_one_file_without_an_index},
    {"missing and wrong tensors", test_missing_and_wrong_tensors},
    CU_TEST_INFO_NULL};
