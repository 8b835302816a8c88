#include "generator/test/random_model.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "generator/local/checkpoint/inventory.h"
#include "kernels/formats.h"

const char random_wide_v2[] =
    "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"model_type\":\"deepseek_v2\","
    "\"hidden_size\":256,\"intermediate_size\":512,\"moe_intermediate_size\":128,"
    "\"num_hidden_layers\":4,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
    "\"n_shared_experts\":2,\"n_routed_experts\":16,\"num_experts_per_tok\":4,"
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"kv_lora_rank\":512,\"qk_nope_head_dim\":"
    "128,"
    "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":512,\"hidden_act\":\"silu\","
    "\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-06,\"rope_theta\":10000.0,"
    "\"attention_bias\":false,\"tie_word_embeddings\":false,\"bos_token_id\":0,\"eos_token_id\":1,"
    "\"torch_dtype\":\"bfloat16\",\"q_lora_rank\":null,\"topk_method\":\"greedy\",\"n_group\":1,"
    "\"topk_group\":1,\"scoring_func\":\"softmax\",\"norm_topk_prob\":false,"
    "\"routed_scaling_factor\":1.0}";

const char random_wide_v3[] =
    "{\"architectures\":[\"DeepseekV3ForCausalLM\"],\"model_type\":\"deepseek_v3\","
    "\"hidden_size\":256,\"intermediate_size\":512,\"moe_intermediate_size\":128,"
    "\"num_hidden_layers\":4,\"num_attention_heads\":32,\"num_key_value_heads\":32,"
    "\"n_shared_experts\":1,\"n_routed_experts\":32,\"num_experts_per_tok\":4,"
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"kv_lora_rank\":512,\"qk_nope_head_dim\":"
    "128,"
    "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":512,\"hidden_act\":\"silu\","
    "\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-06,\"rope_theta\":10000.0,"
    "\"attention_bias\":false,\"tie_word_embeddings\":false,\"bos_token_id\":0,\"eos_token_id\":1,"
    "\"torch_dtype\":\"bfloat16\",\"q_lora_rank\":192,\"topk_method\":\"noaux_tc\",\"n_group\":4,"
    "\"topk_group\":2,\"scoring_func\":\"sigmoid\",\"norm_topk_prob\":true,"
    "\"routed_scaling_factor\":2.5}";

const char random_narrow_v2[] =
    "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"model_type\":\"deepseek_v2\","
    "\"hidden_size\":256,\"intermediate_size\":512,\"moe_intermediate_size\":128,"
    "\"num_hidden_layers\":4,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
    "\"n_shared_experts\":2,\"n_routed_experts\":16,\"num_experts_per_tok\":4,"
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"kv_lora_rank\":512,\"qk_nope_head_dim\":"
    "32,"
    "\"qk_rope_head_dim\":64,\"v_head_dim\":32,\"vocab_size\":512,\"hidden_act\":\"silu\","
    "\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-06,\"rope_theta\":10000.0,"
    "\"attention_bias\":false,\"tie_word_embeddings\":false,\"bos_token_id\":0,\"eos_token_id\":1,"
    "\"torch_dtype\":\"bfloat16\",\"q_lora_rank\":null,\"topk_method\":\"greedy\",\"n_group\":1,"
    "\"topk_group\":1,\"scoring_func\":\"softmax\",\"norm_topk_prob\":false,"
    "\"routed_scaling_factor\":1.0}";

enum { kBlock = 128 }; /* rows and columns of e4m3 weights that share a scale */

/* How the projections are written: in BF16; in e4m3; the numbers of e4m3 in BF16. */
typedef enum { PLAIN, E4M3, E4M3_AS_BF16 } projections;

typedef struct {
    buf header, data;
    uint64_t draw;
    projections how;
    random_scales scales;
} writing;

static void add_entry(writing *w, const char *name, const char *type, int64_t rows, int64_t cols,
                      size_t start) {
    (void)buf_printf(&w->header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", name, type,
                     (long long)rows);
    if (cols)
        (void)buf_printf(&w->header, ",%lld", (long long)cols);
    (void)buf_printf(&w->header, "],\"data_offsets\":[%zu,%zu]}", start, w->data.len);
}

/* Random codes below 256, and scales that give the numbers the size of other weights. */
static void add_e4m3(writing *w, const char *name, int64_t rows, int64_t cols) {
    char scale_name[160];
    int64_t across = (cols + kBlock - 1) / kBlock, down = (rows + kBlock - 1) / kBlock;
    rng r = rng_make(rng_stream_of(name), w->draw);
    float *scale = calloc((size_t)(down * across), sizeof *scale);
    size_t start = w->data.len;
    CU_ASSERT_PTR_NOT_NULL_FATAL(scale);
    for (int64_t i = 0; i < down * across; i++)
        scale[i] = sqrtf(3.0f / (float)cols) / 256 * (0.5f + (float)(rng_u32(&r) >> 8) * 0x1p-24f);
    for (int64_t i = 0; i < down * across && w->scales == RANDOM_POWERS; i++)
        scale[i] = exp2f(rintf(log2f(scale[i])));
    for (int64_t i = 0; i < rows * cols; i++) {
        float u = (float)(rng_u32(&r) >> 8) * 0x1p-23f - 1.0f;
        uint8_t code = e4m3_from_f32(256 * u);
        uint16_t x = bf16_from_f32(e4m3_to_f32(code) *
                                   scale[i / cols / kBlock * across + i % cols / kBlock]);
        (void)buf_append(&w->data, w->how == E4M3 ? (void *)&code : (void *)&x,
                         w->how == E4M3 ? 1 : 2);
    }
    add_entry(w, name, w->how == E4M3 ? "F8_E4M3" : "BF16", rows, cols, start);
    (void)snprintf(scale_name, sizeof scale_name, "%s_scale_inv", name);
    start = w->data.len;
    if (w->how == E4M3) {
        (void)buf_append(&w->data, scale, (size_t)(down * across) * sizeof *scale);
        add_entry(w, scale_name, "F32", down, across, start);
    }
    free(scale);
}

static snap_status add_random(void *ctx, const char *name, int64_t rows, int64_t cols,
                              snap_err *err) {
    (void)err;
    writing *w = ctx;
    if (w->how != PLAIN && strstr(name, "_proj")) {
        add_e4m3(w, name, rows, cols);
        return SNAP_OK;
    }
    size_t start = w->data.len;
    rng r = rng_make(rng_stream_of(name), w->draw);
    float spread = cols ? sqrtf(3.0f / (float)cols) : 0.1f, centre = cols ? 0 : 1;
    bool bias = strstr(name, "bias") != NULL;
    for (int64_t i = 0; i < rows * (cols ? cols : 1); i++) {
        float u = (float)(rng_u32(&r) >> 8) * 0x1p-23f - 1.0f;
        uint16_t x = bf16_from_f32(bias ? 0.05f * u : centre + spread * u);
        (void)buf_append(&w->data, &x, sizeof x);
    }
    add_entry(w, name, "BF16", rows, cols, start);
    return SNAP_OK;
}

static void write_file(const char *dir, const char *name, const void *data, size_t n) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, data, n, NULL), SNAP_OK);
}

static void write_checkpoint(const char *dir, const char *config, uint64_t draw, projections how,
                             random_scales scales) {
    model_shape shape;
    writing w = {.draw = draw, .how = how, .scales = scales};
    buf file = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(model_shape_parse(&shape, config, strlen(config), "config", &err),
                          SNAP_OK);
    (void)buf_puts(&w.header, "{\"__metadata__\":{}");
    CU_ASSERT_EQUAL(inventory_each(&shape, add_random, &w, &err), SNAP_OK);
    (void)buf_puts(&w.header, "}");
    while (w.header.len % 8)
        (void)buf_puts(&w.header, " ");
    uint64_t length = w.header.len;
    (void)buf_append(&file, &length, sizeof length);
    (void)buf_append(&file, w.header.data, w.header.len);
    (void)buf_append(&file, w.data.data, w.data.len);
    write_file(dir, "config.json", config, strlen(config));
    write_file(dir, "model.safetensors", file.data, file.len);
    buf_release(&file);
    buf_release(&w.header);
    buf_release(&w.data);
}

char *random_changed(const char *config, const char *const (*change)[2], int n) {
    char *now = strdup(config);
    for (int i = 0; i < n; i++) {
        char *at = strstr(now, change[i][0]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        char *next = calloc(1, strlen(now) + strlen(change[i][1]) + 1);
        memcpy(next, now, (size_t)(at - now));
        strcat(next, change[i][1]);
        strcat(next, at + strlen(change[i][0]));
        free(now);
        now = next;
    }
    return now;
}

void random_open(tiny_model *t, const char *config, uint64_t draw) {
    tiny_make(t);
    write_checkpoint(t->dir, config, draw, PLAIN, RANDOM_SCALES);
    tiny_read(t);
}

void random_open_e4m3(tiny_model *t, const char *config, random_scales scales, bool written) {
    static const char *const quantised[][2] = {
        {"\"torch_dtype\":\"bfloat16\"",
         "\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}"}};
    char *now = written ? strdup(config) : random_changed(config, quantised, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(now);
    tiny_make(t);
    write_checkpoint(t->dir, now, 0, written ? E4M3_AS_BF16 : E4M3, scales);
    tiny_read(t);
    free(now);
}
