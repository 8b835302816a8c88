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

typedef struct {
    buf header, data;
    uint64_t draw;
} writing;

static snap_status add_random(void *ctx, const char *name, int64_t rows, int64_t cols,
                              snap_err *err) {
    (void)err;
    writing *w = ctx;
    size_t start = w->data.len;
    rng r = rng_make(rng_stream_of(name), w->draw);
    float spread = cols ? sqrtf(3.0f / (float)cols) : 0.1f, centre = cols ? 0 : 1;
    bool bias = strstr(name, "bias") != NULL;
    for (int64_t i = 0; i < rows * (cols ? cols : 1); i++) {
        float u = (float)(rng_u32(&r) >> 8) * 0x1p-23f - 1.0f;
        uint16_t x = bf16_from_f32(bias ? 0.05f * u : centre + spread * u);
        (void)buf_append(&w->data, &x, sizeof x);
    }
    (void)buf_printf(&w->header, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[%lld", name,
                     (long long)rows);
    if (cols)
        (void)buf_printf(&w->header, ",%lld", (long long)cols);
    (void)buf_printf(&w->header, "],\"data_offsets\":[%zu,%zu]}", start, w->data.len);
    return SNAP_OK;
}

static void write_file(const char *dir, const char *name, const void *data, size_t n) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, data, n, NULL), SNAP_OK);
}

static void write_checkpoint(const char *dir, const char *config, uint64_t draw) {
    model_shape shape;
    writing w = {.draw = draw};
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
    write_checkpoint(t->dir, config, draw);
    tiny_read(t);
}
