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
    CU_ASSERT_EQUAL(n, 6);
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

/* Parses the config of an entry of published.json. */
static snap_status parse_tree(model_shape *s, const js *config, snap_err *err) {
    buf text = {0};
    CU_ASSERT_EQUAL(js_write(config, JS_COMPACT, &text, NULL), SNAP_OK);
    snap_status st = parse(s, buf_str(&text), err);
    buf_release(&text);
    return st;
}

static js *published(void) {
    js *models = js_parse_file("generator/test/checkpoint/published.json", 1 << 20, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(models);
    return models;
}

static model_shape published_shape(const js *models, const char *name) {
    model_shape s;
    CU_ASSERT_EQUAL_FATAL(parse_tree(&s, js_get(js_get(models, name), "config"), NULL), SNAP_OK);
    return s;
}

/* The numbers of tensors and parameters, without multi-token prediction and scales, are those that
 * transformers gives the published configs. */
static void test_published_sizes(void) {
    js *models = published();
    int n = 0;
    for (void *it = js_first(models); it; it = js_next(models, it)) {
        model_shape s = published_shape(models, js_key(it));
        count c = {0};
        CU_ASSERT_EQUAL(inventory_each(&s, add, &c, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(c.parameters, js_get_int(js_value(it), "parameters", 0));
        CU_ASSERT_EQUAL(c.tensors, js_get_int(js_value(it), "tensors", 0));
        n++;
    }
    CU_ASSERT_EQUAL(n, 5);
    CU_ASSERT_EQUAL(count_of(V2_LITE).parameters, 15706484224);
    js_free(models);
}

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names;
}

static bool same_rope(const rope_shape *a, const rope_shape *b) {
    return a->kind == b->kind && a->theta == b->theta && a->factor == b->factor &&
           a->original_max_position_embeddings == b->original_max_position_embeddings &&
           a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow && a->mscale == b->mscale &&
           a->mscale_all_dim == b->mscale_all_dim;
}

static bool same_attention(const model_shape *a, const model_shape *b) {
    return a->num_attention_heads == b->num_attention_heads && a->q_lora_rank == b->q_lora_rank &&
           a->kv_lora_rank == b->kv_lora_rank && a->qk_nope_head_dim == b->qk_nope_head_dim &&
           a->qk_rope_head_dim == b->qk_rope_head_dim && a->v_head_dim == b->v_head_dim &&
           a->head_dim == b->head_dim && same_rope(&a->rope, &b->rope);
}

static bool same_experts(const model_shape *a, const model_shape *b) {
    return a->intermediate_size == b->intermediate_size &&
           a->first_k_dense_replace == b->first_k_dense_replace &&
           a->moe_layer_freq == b->moe_layer_freq && a->n_routed_experts == b->n_routed_experts &&
           a->n_shared_experts == b->n_shared_experts &&
           a->num_experts_per_tok == b->num_experts_per_tok &&
           a->moe_intermediate_size == b->moe_intermediate_size && a->n_group == b->n_group &&
           a->topk_group == b->topk_group && a->scoring == b->scoring && a->topk == b->topk &&
           a->norm_topk_prob == b->norm_topk_prob &&
           a->routed_scaling_factor == b->routed_scaling_factor;
}

static bool same_shape(const model_shape *a, const model_shape *b) {
    return a->arch == b->arch && a->vocab_size == b->vocab_size &&
           a->hidden_size == b->hidden_size && a->num_hidden_layers == b->num_hidden_layers &&
           a->max_position_embeddings == b->max_position_embeddings &&
           a->tie_word_embeddings == b->tie_word_embeddings && a->rms_norm_eps == b->rms_norm_eps &&
           a->fp8_block == b->fp8_block && a->bos_id == b->bos_id && a->n_eos == b->n_eos &&
           memcmp(a->eos_ids, b->eos_ids, sizeof a->eos_ids) == 0 && same_attention(a, b) &&
           same_experts(a, b);
}

/* Also checks that only equal shapes have the same digest. */
static bool is_same(const model_shape *a, const model_shape *b) {
    char one[HASH_HEX], other[HASH_HEX];
    CU_ASSERT_EQUAL(model_shape_digest(a, one, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(model_shape_digest(b, other, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(strcmp(one, other) == 0, same_shape(a, b));
    return same_shape(a, b);
}

/* Whether another value of a key makes another shape or an error. @section: the object in @config
 * that has the key; NULL: config itself. */
static bool is_read(const js *config, const char *section, const char *key,
                    const model_shape *want) {
    static const char *const values[] = {"\"x\"", "true", "false", "{\"type\":\"x\"}", "0.5"};
    bool read = false;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        model_shape s;
        js *changed = js_copy(config),
           *holder = section ? js_get_object(changed, section) : changed,
           *value = js_parse(values[i], strlen(values[i]), "value", NULL);
        CU_ASSERT_TRUE(js_set_new(holder, key, value));
        read |= parse_tree(&s, changed, NULL) != SNAP_OK || !is_same(&s, want);
        js_free(changed);
    }
    return read;
}

static void check_keys(js *config, const char *section, const model_shape *want,
                       const char *const *ignored) {
    js *holder = section ? js_get_object(config, section) : config;
    for (void *it = js_first(holder); it; it = js_next(holder, it)) {
        bool read = is_read(config, section, js_key(it), want);
        if (read == is_one_of(js_key(it), ignored))
            printf("  %s is %s\n", js_key(it), read ? "read" : "not read");
        CU_ASSERT_NOT_EQUAL(read, is_one_of(js_key(it), ignored));
    }
}

/* Every key of a published config either has an effect or is one of those that are ignored, because
 * they say nothing about the arithmetic of a forward pass: keys of training, the number of key
 * heads (with MLA, that of the heads), and the layer for multi-token prediction. */
static void test_every_published_key(void) {
    static const char *const ignored[] = {"attention_dropout", "auto_map",
                                          "aux_loss_alpha",    "dtype",
                                          "ep_size",           "initializer_range",
                                          "model_type",        "num_key_value_heads",
                                          "pad_token_id",      "num_nextn_predict_layers",
                                          "pretraining_tp",    "seq_aux",
                                          "torch_dtype",       "transformers_version",
                                          "use_cache",         NULL};
    /* keys about the rounding of activations, and keys that repeat the types of the tensors */
    static const char *const of_weights[] = {"activation_scheme", "fmt", "scale_fmt", NULL};
    static const char *const none[] = {NULL};
    js *models = published();
    for (void *it = js_first(models); it; it = js_next(models, it)) {
        js *config = js_get_object(js_value(it), "config");
        model_shape want = published_shape(models, js_key(it));
        check_keys(config, NULL, &want, ignored);
        if (js_get(config, "rope_scaling"))
            check_keys(config, "rope_scaling", &want, none);
        if (js_get(config, "quantization_config"))
            check_keys(config, "quantization_config", &want, of_weights);
    }
    js_free(models);
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

static void test_r1(void) {
    js *models = published();
    model_shape s = published_shape(models, "DeepSeek-R1"),
                v31 = published_shape(models, "DeepSeek-V3.1");
    CU_ASSERT_TRUE(is_same(&s, &v31));
    CU_ASSERT_EQUAL(s.arch, ARCH_DEEPSEEK_V3);
    CU_ASSERT_EQUAL(s.topk, TOPK_NOAUX);
    CU_ASSERT_EQUAL(s.scoring, SCORE_SIGMOID);
    CU_ASSERT_TRUE(s.norm_topk_prob);
    CU_ASSERT_EQUAL(s.fp8_block, 128);
    CU_ASSERT_EQUAL(s.rope.kind, ROPE_YARN);
    CU_ASSERT_EQUAL(s.rope.factor, 40);
    CU_ASSERT_EQUAL(s.bos_id, 0);
    CU_ASSERT(s.n_eos == 1 && s.eos_ids[0] == 1);
    CU_ASSERT_FALSE(shape_is_sparse(&s, 2));
    CU_ASSERT_TRUE(shape_is_sparse(&s, 3));
    js_free(models);
}

static void test_kimi(void) {
    js *models = published();
    model_shape s = published_shape(models, "Kimi-K2-Instruct");
    CU_ASSERT(s.arch == ARCH_DEEPSEEK_V3 && s.n_group == 1 && s.n_routed_experts == 384);
    CU_ASSERT(s.rope.kind == ROPE_YARN && s.rope.factor == 32 && s.rope.theta == 50000);
    CU_ASSERT(s.rope.beta_fast == 1 && s.rope.beta_slow == 1);
    CU_ASSERT_EQUAL(s.routed_scaling_factor, 2.827);
    CU_ASSERT_EQUAL(s.bos_id, 163584);
    s = published_shape(models, "Moonlight-16B-A3B-Instruct");
    CU_ASSERT(s.arch == ARCH_DEEPSEEK_V3 && s.q_lora_rank == 0 && s.fp8_block == 0);
    CU_ASSERT(s.rope.kind == ROPE_PLAIN && s.rope.theta == 50000);
    CU_ASSERT(s.rms_norm_eps == 1e-5 && s.latent_norm_eps == 1e-6);
    js_free(models);
}

static void test_glm(void) {
    js *models = published();
    model_shape s = published_shape(models, "GLM-4.7-Flash");
    CU_ASSERT_EQUAL(s.arch, ARCH_GLM4_MOE_LITE);
    CU_ASSERT(s.scoring == SCORE_SIGMOID && s.topk == TOPK_NOAUX && s.norm_topk_prob);
    CU_ASSERT(s.rope.kind == ROPE_PLAIN && s.rope.theta == 1e6);
    CU_ASSERT(s.head_dim == 256 && s.v_head_dim == 256);
    CU_ASSERT(s.bos_id == -1 && s.n_eos == 3 && s.eos_ids[1] == 154827);
    CU_ASSERT_FALSE(shape_is_sparse(&s, 0));
    CU_ASSERT_TRUE(shape_is_sparse(&s, 1));
    js_free(models);
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
    CU_ASSERT_EQUAL(parse(&s, OF("Glm4MoeLiteForCausalLM", ""), NULL), SNAP_OK);
    CU_ASSERT(s.first_k_dense_replace == 1 && s.scoring == SCORE_SIGMOID && s.norm_topk_prob);
    CU_ASSERT_EQUAL(
        parse(&s, OF("Glm4MoeLiteForCausalLM", ",\"mlp_layer_types\":[\"sparse\"]"), NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL(s.first_k_dense_replace, 0);
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
        {DS(",\"rope_interleave\":false"), "rope_interleave"},
        {DS(",\"partial_rotary_factor\":0.5"), "partial_rotary_factor 0.5"},
        {DS(",\"rope_parameters\":{\"partial_rotary_factor\":0.5}"), "partial_rotary_factor 0.5"},
        {DS(",\"mlp_layer_types\":[\"x\"]"), "mlp_layer_types"},
        {DS(",\"mlp_layer_types\":[\"dense\",\"sparse\"]"), "mlp_layer_types must contain 1"},
        {DS(",\"mlp_layer_types\":[\"sparse\",\"dense\"]"), "mlp_layer_types"},
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

CU_TestInfo tests_shape[] = {
    {"tensors equal those that transformers saves", test_tensors_of_transformers},
    {"LongCat always has a bias", test_longcat_always_has_a_bias},
    {"published sizes", test_published_sizes},
    {"DeepSeek-V2-Lite", test_v2_lite},
    {"every key of published configs", test_every_published_key},
    {"DeepSeek-R1, V3.1", test_r1},
    {"Kimi-K2, Moonlight", test_kimi},
    {"GLM-4.7-Flash", test_glm},
    {"defaults of missing keys", test_defaults},
    {"malformed or unsupported configs are refused", test_refusals},
    {"a folder without a config.json", test_folder_without_a_config},
    {"generation_config.json", test_generation_config},
    CU_TEST_INFO_NULL};
