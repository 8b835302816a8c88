#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/local/checkpoint/inventory.h"
#include "generator/local/checkpoint/shape.h"

static snap_status parse(model_shape *s, const char *json, snap_err *err) {
    return model_shape_parse(s, json, strlen(json), "c", err);
}

/* ---- the tensors that transformers saves ---- */

typedef struct {
    const js *want;
    size_t found;
} against;

static snap_status look_up(void *ctx, const char *name, int64_t rows, int64_t cols, snap_err *err) {
    against *a = ctx;
    const js *shape = js_get_array(a->want, name);
    bool same = js_len(shape) == (cols ? 2 : 1) && js_int(js_at(shape, 0)) == rows &&
                (!cols || js_int(js_at(shape, 1)) == cols);
    if (!same)
        printf("  %s\n", name);
    CU_ASSERT(same);
    a->found++;
    (void)err;
    return SNAP_OK;
}

/* LongCat-Flash's zero-computation experts have no weights in its published files, but transformers
 * saves some. */
static size_t idle_experts(const model_shape *s, js *tensors) {
    size_t n = 0;
    for (void *it = js_first(tensors); it; it = js_next(tensors, it)) {
        const char *at = strstr(js_key(it), ".experts.");
        n += s->zero_expert_num && at && atoll(at + strlen(".experts.")) >= s->n_routed_experts;
    }
    return n;
}

static void test_tensors_of_transformers(void) {
    js *models = js_parse_file("generator/test/checkpoint/inventory.json", 1 << 20, NULL);
    int n = 0;
    for (void *it = js_first(models); it; it = js_next(models, it)) {
        const js *model = js_value(it);
        js *tensors = js_get_object(model, "tensors");
        against a = {.want = tensors};
        buf config = {0};
        model_shape s;
        snap_err err = {0};
        size_t all = 0;
        for (void *t = js_first(tensors); t; t = js_next(tensors, t))
            all++;
        CU_ASSERT_EQUAL(js_write(js_get(model, "config"), JS_COMPACT, &config, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(parse(&s, buf_str(&config), &err), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(err.text, "");
        CU_ASSERT_EQUAL(inventory_each(&s, look_up, &a, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(a.found + idle_experts(&s, tensors), all);
        buf_release(&config);
        n++;
    }
    CU_ASSERT_EQUAL(n, 5);
    js_free(models);
}

/* transformers' LongCat-Flash has a bias in each router, whatever topk_method says. */
static void test_longcat_always_has_a_bias(void) {
    js *models = js_parse_file("generator/test/checkpoint/inventory.json", 1 << 20, NULL);
    int n = 0;
    for (void *it = js_first(models); it; it = js_next(models, it)) {
        const js *model = js_value(it);
        js *config = js_get_object(model, "config"), *tensors = js_get_object(model, "tensors");
        against a = {.want = tensors};
        buf text = {0};
        model_shape s;
        size_t all = 0;
        for (void *t = js_first(tensors); t; t = js_next(tensors, t))
            all++;
        CU_ASSERT(js_set_str(config, "topk_method", "greedy"));
        CU_ASSERT_EQUAL(js_write(config, JS_COMPACT, &text, NULL), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(parse(&s, buf_str(&text), NULL), SNAP_OK);
        buf_release(&text);
        if (s.arch != ARCH_LONGCAT_FLASH)
            continue;
        CU_ASSERT_EQUAL(s.topk, TOPK_GREEDY);
        CU_ASSERT_EQUAL(inventory_each(&s, look_up, &a, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(a.found + idle_experts(&s, tensors), all);
        n++;
    }
    CU_ASSERT_EQUAL(n, 1);
    js_free(models);
}

/* ---- published models ---- */

#define V2_LITE                                                                                    \
    "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"vocab_size\":102400,\"hidden_size\":2048,"   \
    "\"num_hidden_layers\":27,\"num_attention_heads\":16,\"max_position_embeddings\":163840,"      \
    "\"q_lora_rank\":null,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"  \
    "\"v_head_dim\":128,\"intermediate_size\":10944,\"moe_intermediate_size\":1408,"               \
    "\"n_routed_experts\":64,\"n_shared_experts\":2,\"num_experts_per_tok\":6,"                    \
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"n_group\":1,\"topk_group\":1,"             \
    "\"norm_topk_prob\":false,\"routed_scaling_factor\":1.0,\"scoring_func\":\"softmax\","         \
    "\"topk_method\":\"greedy\",\"rms_norm_eps\":1e-06,\"rope_theta\":10000,\"rope_scaling\":"     \
    "{\"beta_fast\":32,\"beta_slow\":1,\"factor\":40,\"mscale\":0.707,\"mscale_all_dim\":0.707,"   \
    "\"original_max_position_embeddings\":4096,\"type\":\"yarn\"},\"hidden_act\":\"silu\","        \
    "\"bos_token_id\":100000,\"eos_token_id\":100001,\"tie_word_embeddings\":false}"

#define V3_LIKE(heads, vocab, experts, dense, groups, limited, quantization)                       \
    "{\"architectures\":[\"DeepseekV3ForCausalLM\"],\"vocab_size\":" vocab                         \
    ",\"hidden_size\":7168,\"num_hidden_layers\":61,\"num_attention_heads\":" heads                \
    ",\"max_position_embeddings\":163840,\"q_lora_rank\":1536,\"kv_lora_rank\":512,"               \
    "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"                         \
    "\"intermediate_size\":18432,\"moe_intermediate_size\":2048,\"n_routed_experts\":" experts     \
    ",\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":" dense           \
    ",\"moe_layer_freq\":1,\"n_group\":" groups ",\"topk_group\":" limited                         \
    ",\"norm_topk_prob\":true,\"routed_scaling_factor\":2.5,\"scoring_func\":\"sigmoid\","         \
    "\"topk_method\":\"noaux_tc\",\"rms_norm_eps\":1e-06,\"rope_theta\":10000,"                    \
    "\"num_nextn_predict_layers\":1,\"eos_token_id\":[1,2]" quantization "}"

#define V3                                                                                         \
    V3_LIKE("128", "129280", "256", "3", "8", "4",                                                 \
            ",\"quantization_config\":{\"activation_scheme\":\"dynamic\",\"fmt\":\"e4m3\","        \
            "\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}")

typedef struct {
    int64_t tensors, parameters;
} count;

static snap_status add(void *ctx, const char *name, int64_t rows, int64_t cols, snap_err *err) {
    count *c = ctx;
    (void)name;
    (void)err;
    c->tensors++;
    c->parameters += rows * (cols ? cols : 1);
    return SNAP_OK;
}

static count count_of(const char *config) {
    model_shape s;
    count c = {0};
    CU_ASSERT_EQUAL(parse(&s, config, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(inventory_each(&s, add, &c, NULL), SNAP_OK);
    return c;
}

/* The numbers of parameters that the published files have, without multi-token prediction and
 * scales. */
static void test_published_sizes(void) {
    CU_ASSERT_EQUAL(count_of(V2_LITE).parameters, 15706484224);
    CU_ASSERT_EQUAL(count_of(V3).parameters, 671026419200);
    CU_ASSERT_EQUAL(count_of(V3).tensors, 45395);
    CU_ASSERT_EQUAL(count_of(V3_LIKE("64", "163840", "384", "1", "1", "1", "")).parameters,
                    1026408232448);
}

static void test_v2_lite(void) {
    model_shape s;
    CU_ASSERT_EQUAL_FATAL(parse(&s, V2_LITE, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.arch, ARCH_DEEPSEEK_V2);
    CU_ASSERT_EQUAL(s.q_lora_rank, 0);
    CU_ASSERT_EQUAL(s.topk, TOPK_GREEDY);
    CU_ASSERT_EQUAL(s.scoring, SCORE_SOFTMAX);
    CU_ASSERT_EQUAL(s.rope.kind, ROPE_YARN);
    CU_ASSERT_EQUAL(s.rope.factor, 40);
    CU_ASSERT_EQUAL(s.rope.mscale, 0.707);
    CU_ASSERT_EQUAL(s.rope.mscale_all_dim, 0.707);
    CU_ASSERT_EQUAL(s.rope.original_max_position_embeddings, 4096);
    CU_ASSERT_EQUAL(s.bos_id, 100000);
    CU_ASSERT_EQUAL(s.n_eos, 1);
    CU_ASSERT_EQUAL(s.eos_ids[0], 100001);
    CU_ASSERT_FALSE(shape_is_sparse(&s, 0));
    CU_ASSERT_TRUE(shape_is_sparse(&s, 1));
}

static void test_v3(void) {
    model_shape s;
    CU_ASSERT_EQUAL_FATAL(parse(&s, V3, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.topk, TOPK_NOAUX);
    CU_ASSERT_EQUAL(s.scoring, SCORE_SIGMOID);
    CU_ASSERT_TRUE(s.norm_topk_prob);
    CU_ASSERT_EQUAL(s.fp8_block, 128);
    CU_ASSERT_EQUAL(s.rope.kind, ROPE_PLAIN);
    CU_ASSERT_EQUAL(s.n_eos, 2);
    CU_ASSERT_EQUAL(s.bos_id, -1);
    CU_ASSERT_FALSE(shape_is_sparse(&s, 2));
    CU_ASSERT_TRUE(shape_is_sparse(&s, 3));
}

/* ---- what is refused ---- */

#define BASE                                                                                       \
    "\"vocab_size\":10,\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"       \
    "\"max_position_embeddings\":64,\"kv_lora_rank\":4,\"qk_nope_head_dim\":4,"                    \
    "\"qk_rope_head_dim\":4,\"intermediate_size\":8"
#define OF(arch, more) "{\"architectures\":[\"" arch "\"]," BASE more "}"
#define DS(more)       OF("DeepseekV3ForCausalLM", more)

static void test_defaults(void) {
    model_shape s;
    CU_ASSERT_EQUAL(parse(&s, DS(""), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.v_head_dim, 4); /* hidden_size / num_attention_heads */
    CU_ASSERT_EQUAL(s.n_eos, 0);
    CU_ASSERT_EQUAL(s.mla_scale_q, 1);
    CU_ASSERT_EQUAL(parse(&s, OF("MiniCPM3ForCausalLM", ""), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.scale_depth, 1.4);
    CU_ASSERT_TRUE(s.tie_word_embeddings);
}

static void test_refusals(void) {
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"", "c:1"},
        {"[]", "architecture ''"},
        {"{}", "architecture ''"},
        {"{\"architectures\":\"DeepseekV3ForCausalLM\"}", "architecture ''"},
        {"{\"architectures\":[\"LlamaForCausalLM\"]}", "'LlamaForCausalLM'"},
        {"{\"architectures\":[\"DeepseekV3ForCausalLM\"]}", "'vocab_size' is missing"},
        {OF("DeepseekV32ForCausalLM", ""), "'DeepseekV32ForCausalLM'"},
        {DS(",\"v_head_dim\":-1"), "'v_head_dim'"},
        {DS(",\"v_head_dim\":1e9"), "'v_head_dim'"},
        {DS(",\"v_head_dim\":\"4\""), "'v_head_dim'"},
        {DS(",\"q_lora_rank\":99999999999999"), "'q_lora_rank'"},
        {DS(",\"rms_norm_eps\":\"x\""), "'rms_norm_eps'"},
        {DS(",\"rms_norm_eps\":-1"), "'rms_norm_eps'"},
        {DS(",\"hidden_act\":\"gelu\""), "'gelu'"},
        {DS(",\"attention_bias\":true"), "attention_bias"},
        {DS(",\"scoring_func\":\"tanh\""), "'tanh'"},
        {DS(",\"topk_method\":\"x\""), "'x'"},
        {DS(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}"), "'linear'"},
        {DS(",\"rope_scaling\":{\"type\":\"yarn\"}"), "'factor'"},
        {DS(",\"rope_scaling\":{\"type\":\"longrope\"}"), "'short_factor'"},
        {DS(",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,0],\"long_factor\":[1,1]"
            "}"),
         "positive"},
        {DS(",\"n_routed_experts\":4"), "num_experts_per_tok is 0"},
        {DS(",\"n_routed_experts\":4,\"num_experts_per_tok\":5"),
         "num_experts_per_tok is 5, but there are 4"},
        {DS(",\"n_routed_experts\":4,\"num_experts_per_tok\":2"), "intermediate size"},
        {DS(",\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":3,"
            "\"n_group\":3"),
         "3 groups"},
        {DS(",\"n_routed_experts\":4,\"num_experts_per_tok\":3,\"moe_intermediate_size\":3,"
            "\"n_group\":2"),
         "num_experts_per_tok is 3, but 1 groups"},
        {DS(",\"quantization_config\":{\"quant_method\":\"awq\"}"), "'awq'"},
        {DS(",\"quantization_config\":{\"quant_method\":\"fp8\"}"), "weight_block_size"},
        {DS(",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[0,0]}"),
         "weight_block_size"},
        {DS(",\"eos_token_id\":10"), "'eos_token_id'"},
        {DS(",\"eos_token_id\":[1,-1]"), "'eos_token_id'"},
        {DS(",\"bos_token_id\":10"), "'bos_token_id'"},
        {OF("LongcatFlashForCausalLM", ""), "'num_layers' is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model_shape s;
        snap_err err = {0};
        CU_ASSERT_NOT_EQUAL(parse(&s, rows[i].json, &err), SNAP_OK);
        if (!strstr(err.text, rows[i].says))
            printf("  %s: %s\n", rows[i].json, err.text);
        CU_ASSERT(text_starts(err.text, "c:") && strstr(err.text, rows[i].says));
    }
}

static void test_folder_without_a_config(void) {
    model_shape s;
    snap_err err = {0};
    CU_ASSERT_EQUAL(model_shape_open(&s, "generator/test", &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "generator/test/config.json"));
}

/* Ids of generation_config.json replace the eos_token_id of config.json; the turns of a chat model
 * end with them. */
static void test_generation_config(void) {
    static const char *const names[] = {"config.json", "generation_config.json"};
    static const struct {
        const char *generation;
        snap_status st;
        int n, first;
    } rows[] = {{"{}", SNAP_OK, 1, 100001},
                {"{\"eos_token_id\":7}", SNAP_OK, 1, 7},
                {"{\"eos_token_id\":[8,9]}", SNAP_OK, 2, 8},
                {"{\"eos_token_id\":[-8]}", SNAP_E_INPUT, 0, 0},
                {"[", SNAP_E_INPUT, 0, 0}};
    char dir[] = "/tmp/snapmla-shape-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    char *config = fs_join(dir, names[0]), *generation = fs_join(dir, names[1]);
    CU_ASSERT_EQUAL(fs_write_atomic(config, V2_LITE, strlen(V2_LITE), NULL), SNAP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].generation;
        model_shape s;
        snap_err err = {0};
        CU_ASSERT_EQUAL(fs_write_atomic(generation, text, strlen(text), NULL), SNAP_OK);
        CU_ASSERT_EQUAL(model_shape_open(&s, dir, &err), rows[i].st);
        if (rows[i].st == SNAP_OK) {
            CU_ASSERT_EQUAL(s.n_eos, rows[i].n);
            CU_ASSERT_EQUAL(s.eos_ids[0], rows[i].first);
        } else {
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, generation));
        }
    }
    CU_ASSERT_EQUAL(unlink(config) | unlink(generation) | rmdir(dir), 0);
    free(config);
    free(generation);
}

CU_TestInfo tests_shape[] = {{"tensors, as transformers saves them", test_tensors_of_transformers},
                             {"LongCat always has a bias", test_longcat_always_has_a_bias},
                             {"published sizes", test_published_sizes},
                             {"DeepSeek-V2-Lite", test_v2_lite},
                             {"DeepSeek-V3", test_v3},
                             {"defaults", test_defaults},
                             {"refusals", test_refusals},
                             {"a folder without one", test_folder_without_a_config},
                             {"generation_config.json", test_generation_config},
                             CU_TEST_INFO_NULL};
