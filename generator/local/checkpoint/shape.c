#include "generator/local/checkpoint/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"

enum { kConfigMax = 4 << 20 };

/* ---- numbers ---- */

typedef struct {
    const char *key;
    const char *longcat; /* the key's name in LongCat-Flash; NULL: `key`, too */
    size_t at;           /* offset of the int member in model_shape */
    int low, high;
    int fallback; /* the value if the key is absent or null; REQUIRED: that is an error */
} int_field;

enum { REQUIRED = -1 };

#define FIELD(name) offsetof(model_shape, name)
static const int_field kInts[] = {
    {"vocab_size", NULL, FIELD(vocab_size), 1, 1 << 21, REQUIRED},
    {"hidden_size", NULL, FIELD(hidden_size), 1, 1 << 16, REQUIRED},
    {"num_hidden_layers", "num_layers", FIELD(num_hidden_layers), 1, 1 << 10, REQUIRED},
    {"num_attention_heads", NULL, FIELD(num_attention_heads), 1, 1 << 10, REQUIRED},
    {"max_position_embeddings", NULL, FIELD(max_position_embeddings), 1, 1 << 28, REQUIRED},
    {"q_lora_rank", NULL, FIELD(q_lora_rank), 0, 1 << 14, 0},
    {"kv_lora_rank", NULL, FIELD(kv_lora_rank), 1, 1 << 12, REQUIRED},
    {"qk_nope_head_dim", NULL, FIELD(qk_nope_head_dim), 0, 1 << 10, REQUIRED},
    {"qk_rope_head_dim", NULL, FIELD(qk_rope_head_dim), 2, 2 * SHAPE_ROPE_PAIRS, REQUIRED},
    {"v_head_dim", NULL, FIELD(v_head_dim), 0, 1 << 10, 0},
    {"intermediate_size", "ffn_hidden_size", FIELD(intermediate_size), 1, 1 << 18, REQUIRED},
    {"first_k_dense_replace", NULL, FIELD(first_k_dense_replace), 0, 1 << 10, 0},
    {"moe_layer_freq", NULL, FIELD(moe_layer_freq), 1, 1 << 10, 1},
    {"n_routed_experts", NULL, FIELD(n_routed_experts), 0, 1 << 12, 0},
    {"n_shared_experts", NULL, FIELD(n_shared_experts), 0, 1 << 6, 0},
    {"num_experts_per_tok", "moe_topk", FIELD(num_experts_per_tok), 0, 1 << 10, 0},
    {"moe_intermediate_size", "expert_ffn_hidden_size", FIELD(moe_intermediate_size), 0, 1 << 18,
     0},
    {"zero_expert_num", NULL, FIELD(zero_expert_num), 0, 1 << 12, 0},
    {"n_group", NULL, FIELD(n_group), 1, 1 << 10, 1},
    {"topk_group", NULL, FIELD(topk_group), 1, 1 << 10, 1},
};

static snap_status read_int(const js *config, const char *key, int low, int high, int fallback,
                            int *out, snap_err *err) {
    const js *v = js_get(config, key);
    *out = fallback;
    if (!v && fallback != REQUIRED)
        return SNAP_OK;
    if (!v)
        return err_set(err, SNAP_E_INPUT, "key '%s' is missing", key);
    if (!js_is_int(v) || js_int(v) < low || js_int(v) > high)
        return err_set(err, SNAP_E_INPUT, "key '%s' must be an integer in %d..%d", key, low, high);
    *out = (int)js_int(v);
    return SNAP_OK;
}

static snap_status read_ints(model_shape *s, const js *config, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < sizeof kInts / sizeof *kInts && st == SNAP_OK; i++) {
        const int_field *f = &kInts[i];
        const char *key = s->arch == ARCH_LONGCAT_FLASH && f->longcat ? f->longcat : f->key;
        int *at = (int *)(void *)((char *)s + f->at);
        st = read_int(config, key, f->low, f->high, f->fallback, at, err);
    }
    return st;
}

static snap_status read_real(const js *config, const char *key, double low, double high,
                             double fallback, double *out, snap_err *err) {
    const js *v = js_get(config, key);
    *out = v && js_is_num(v) ? js_num(v) : fallback;
    if ((v && !js_is_num(v)) || !(*out >= low && *out <= high))
        return err_set(err, SNAP_E_INPUT, "key '%s' must be a number in %g..%g", key, low, high);
    return SNAP_OK;
}

/* ---- names ---- */

static const char *const kArchs[] = {[ARCH_DEEPSEEK_V2] = "DeepseekV2ForCausalLM",
                                     [ARCH_DEEPSEEK_V3] = "DeepseekV3ForCausalLM",
                                     [ARCH_LONGCAT_FLASH] = "LongcatFlashForCausalLM",
                                     [ARCH_MINICPM3] = "MiniCPM3ForCausalLM",
                                     [ARCH_GLM4_MOE_LITE] = "Glm4MoeLiteForCausalLM",
                                     [ARCH_GROUPED_QUERY] = "GroupedQueryMlaForCausalLM"};

static snap_status read_arch(model_shape *s, const js *config, snap_err *err) {
    const char *name = js_str(js_at(js_get_array(config, "architectures"), 0));
    for (int i = 0; name && i < (int)(sizeof kArchs / sizeof *kArchs); i++)
        if (strcmp(name, kArchs[i]) == 0) {
            s->arch = (model_arch)i;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "architecture '%.80s' is not supported (%s, %s, %s, %s, %s, %s are)",
                   name ? name : "", kArchs[0], kArchs[1], kArchs[2], kArchs[3], kArchs[4],
                   kArchs[5]);
}

/* Sets *out to the index of the key's value in @names; to @fallback if the key is absent or not a
 * string. */
static snap_status read_name(const js *config, const char *key, const char *const *names, int n,
                             int fallback, int *out, snap_err *err) {
    const char *name = js_get_str(config, key);
    *out = fallback;
    for (int i = 0; name && i < n; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = i;
            return SNAP_OK;
        }
    return name ? err_set(err, SNAP_E_UNSUPPORTED, "%s '%.80s' is not supported", key, name)
                : SNAP_OK;
}

/* Rejects values of keys that would change the arithmetic. */
static snap_status reject_variants(const js *config, snap_err *err) {
    static const char *const off[] = {"attention_bias", "mlp_bias", "router_bias"};
    const char *act = js_get_str(config, "hidden_act");
    const char *zero = js_get_str(config, "zero_expert_type");
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (js_get_bool(config, off[i], false))
            return err_set(err, SNAP_E_UNSUPPORTED, "%s is not supported", off[i]);
    if (act && strcmp(act, "silu") != 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "hidden_act '%.80s' is not supported", act);
    if (zero && strcmp(zero, "identity") != 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "zero_expert_type '%.80s' is not supported", zero);
    if (!js_get_bool(config, "rope_interleave", true))
        return err_set(err, SNAP_E_UNSUPPORTED, "rope_interleave false is not supported");
    return SNAP_OK;
}

/* ---- reading parts of a config ---- */

static snap_status read_factors(const js *rope, const char *key, int n, double *out,
                                snap_err *err) {
    const js *list = js_get_array(rope, key);
    if (js_len(list) != (size_t)n)
        return err_set(err, SNAP_E_INPUT, "rope scaling: '%s' must contain %d numbers", key, n);
    for (int i = 0; i < n; i++) {
        out[i] = js_num(js_at(list, (size_t)i));
        if (!(out[i] > 0 && out[i] < 1e9))
            return err_set(err, SNAP_E_INPUT, "rope scaling: '%s' must contain positive numbers",
                           key);
    }
    return SNAP_OK;
}

static snap_status read_yarn(rope_shape *r, const js *rope, snap_err *err) {
    snap_status st = SNAP_OK;
    r->kind = ROPE_YARN;
    TRY(read_real(rope, "factor", 1, 1e6, -1, &r->factor, err));
    TRY(read_real(rope, "beta_fast", 1e-3, 1e6, 32, &r->beta_fast, err));
    TRY(read_real(rope, "beta_slow", 1e-3, 1e6, 1, &r->beta_slow, err));
    TRY(read_real(rope, "mscale", 0, 1e3, 1, &r->mscale, err));
    TRY(read_real(rope, "mscale_all_dim", 0, 1e3, 0, &r->mscale_all_dim, err));
cleanup:
    return st;
}

/* RoPE must apply to all of qk_rope_head_dim. */
static snap_status reject_partial_rope(const js *holder, snap_err *err) {
    double factor = 1;
    snap_status st = read_real(holder, "partial_rotary_factor", 0, 1, 1, &factor, err);
    return st != SNAP_OK || factor == 1
               ? st
               : err_set(err, SNAP_E_UNSUPPORTED, "partial_rotary_factor %g is not supported",
                         factor);
}

/* Newer files have `rope_parameters`, older ones `rope_theta` and `rope_scaling`. */
static snap_status read_rope(model_shape *s, const js *config, snap_err *err) {
    static const char *const kinds[] = {"default", "yarn", "deepseek_yarn", "longrope", "su"};
    const js *rope = js_get_object(config, "rope_parameters");
    const js *scaling = rope ? rope : js_get_object(config, "rope_scaling");
    const js *theta = js_get(rope, "rope_theta") ? rope : config;
    rope_shape *r = &s->rope;
    int kind = 0, n = s->qk_rope_head_dim / 2;
    snap_status st = SNAP_OK;
    if (s->qk_rope_head_dim % 2)
        return err_set(err, SNAP_E_INPUT, "qk_rope_head_dim must be even");
    TRY(reject_partial_rope(config, err));
    TRY(reject_partial_rope(rope, err));
    TRY(read_real(theta, "rope_theta", 1, 1e12, 10000, &r->theta, err));
    TRY(read_name(scaling, "type", kinds, 5, 0, &kind, err));
    TRY(read_name(scaling, "rope_type", kinds, 5, kind, &kind, err));
    TRY(read_int(scaling, "original_max_position_embeddings", 1, 1 << 28,
                 s->max_position_embeddings, &r->original_max_position_embeddings, err));
    if (kind == 1 || kind == 2)
        TRY(read_yarn(r, scaling, err));
    if (kind > 2) {
        r->kind = ROPE_LONGROPE;
        TRY(read_factors(scaling, "short_factor", n, r->short_factor, err));
        TRY(read_factors(scaling, "long_factor", n, r->long_factor, err));
    }
cleanup:
    return st;
}

static snap_status read_router(model_shape *s, const js *config, snap_err *err) {
    static const char *const scores[] = {"softmax", "sigmoid"};
    static const char *const methods[] = {"greedy", "group_limited_greedy", "noaux_tc"};
    bool v3 = s->arch == ARCH_DEEPSEEK_V3 || s->arch == ARCH_GLM4_MOE_LITE;
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    int score, method;
    snap_status st = SNAP_OK;
    TRY(read_name(config, "scoring_func", scores, 2, v3, &score, err));
    TRY(read_name(config, "topk_method", methods, 3, v3 || longcat ? 2 : 0, &method, err));
    s->scoring = (score_func)score;
    s->topk = (topk_method)method;
    s->norm_topk_prob = js_get_bool(config, "norm_topk_prob", v3);
    TRY(read_real(config, "routed_scaling_factor", 0, 1e6, 1, &s->routed_scaling_factor, err));
cleanup:
    return st;
}

/* Files that transformers 5 saves for GLM-4.7-Flash have `mlp_layer_types`, a word for each layer,
 * where published ones have `first_k_dense_replace`. */
static snap_status read_layer_types(model_shape *s, const js *config, snap_err *err) {
    const js *types = js_get_array(config, "mlp_layer_types");
    int n = (int)js_len(types), dense = 0;
    if (s->arch == ARCH_GLM4_MOE_LITE && !js_get(config, "first_k_dense_replace"))
        s->first_k_dense_replace = 1;
    if (!types)
        return SNAP_OK;
    while (dense < n && text_equal(js_str(js_at(types, (size_t)dense)), "dense"))
        dense++;
    for (int i = dense; i < n; i++)
        if (!text_equal(js_str(js_at(types, (size_t)i)), "sparse"))
            n = -1;
    if (n != s->num_hidden_layers)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "mlp_layer_types must contain %d words: dense ones, then sparse ones",
                       s->num_hidden_layers);
    s->first_k_dense_replace = dense;
    s->moe_layer_freq = 1;
    return SNAP_OK;
}

static snap_status check_experts(const model_shape *s, snap_err *err) {
    int all = s->n_routed_experts + s->zero_expert_num;
    if (s->n_routed_experts == 0)
        return SNAP_OK;
    if (s->num_experts_per_tok < 1 || s->num_experts_per_tok > all)
        return err_set(err, SNAP_E_INPUT, "num_experts_per_tok is %d, but there are %d experts",
                       s->num_experts_per_tok, all);
    if (s->moe_intermediate_size < 1)
        return err_set(err, SNAP_E_INPUT, "the experts' intermediate size is missing");
    if (s->n_routed_experts % s->n_group || s->topk_group > s->n_group)
        return err_set(err, SNAP_E_INPUT,
                       "%d experts can't be divided into %d groups with %d chosen",
                       s->n_routed_experts, s->n_group, s->topk_group);
    if (s->num_experts_per_tok > all / s->n_group * s->topk_group)
        return err_set(err, SNAP_E_INPUT,
                       "num_experts_per_tok is %d, but %d groups have %d experts each",
                       s->num_experts_per_tok, s->topk_group, all / s->n_group);
    return SNAP_OK;
}

/* A model whose attention was rewritten. Its config.json has `head_dim` and may have
 * `rotated_content`, the first column and the number of columns of the latent with RoPE. */
static snap_status read_grouped(model_shape *s, const js *config, snap_err *err) {
    snap_status st = SNAP_OK;
    const js *rotated = js_get_array(config, "rotated_content");
    bool whole = js_is_int(js_at(rotated, 0)) && js_is_int(js_at(rotated, 1));
    int64_t first = js_int(js_at(rotated, 0)), n = js_int(js_at(rotated, 1));
    s->plain_latent = true;
    TRY(read_int(config, "head_dim", 2, 2 * SHAPE_ROPE_PAIRS, REQUIRED, &s->head_dim, err));
    s->rope_period = s->head_dim;
    if (s->head_dim % 2 || s->qk_rope_head_dim % s->head_dim || s->qk_nope_head_dim % s->head_dim)
        TRY(err_set(err, SNAP_E_INPUT,
                    "qk_rope_head_dim and qk_nope_head_dim must be multiples of an even head_dim"));
    if (s->rope.kind != ROPE_PLAIN)
        TRY(err_set(err, SNAP_E_UNSUPPORTED, "grouped queries with scaled RoPE are not supported"));
    if (!rotated)
        return SNAP_OK;
    if (js_len(rotated) != 2 || !whole || first < 0 || n < s->head_dim || n % s->head_dim ||
        first > s->kv_lora_rank - n)
        TRY(err_set(err, SNAP_E_INPUT,
                    "key 'rotated_content' must be the first column and the number of columns, a "
                    "multiple of head_dim within kv_lora_rank"));
    s->rotated_first = (int)first;
    s->rotated_dim = (int)n;
cleanup:
    return st;
}

static snap_status read_family(model_shape *s, const js *config, snap_err *err) {
    snap_status st = SNAP_OK;
    s->mla_scale_q = s->mla_scale_kv = s->scale_emb = 1;
    s->head_dim = s->qk_nope_head_dim + s->qk_rope_head_dim;
    s->rope_period = s->qk_rope_head_dim;
    if (s->arch == ARCH_GROUPED_QUERY)
        TRY(read_grouped(s, config, err));
    if (s->arch == ARCH_LONGCAT_FLASH) {
        if (!s->q_lora_rank || !s->n_routed_experts)
            return err_set(err, SNAP_E_INPUT, "LongCat-Flash needs q_lora_rank, n_routed_experts");
        if (js_get_bool(config, "mla_scale_q_lora", true))
            s->mla_scale_q = sqrt((double)s->hidden_size / s->q_lora_rank);
        if (js_get_bool(config, "mla_scale_kv_lora", true))
            s->mla_scale_kv = sqrt((double)s->hidden_size / s->kv_lora_rank);
    }
    if (s->arch == ARCH_MINICPM3) {
        TRY(read_real(config, "scale_emb", 0, 1e6, 12, &s->scale_emb, err));
        TRY(read_real(config, "scale_depth", 0, 1e6, 1.4, &s->scale_depth, err));
        TRY(read_real(config, "dim_model_base", 1, 1e6, 256, &s->dim_model_base, err));
        s->n_routed_experts = s->n_shared_experts = s->zero_expert_num = 0;
    }
    if (!s->v_head_dim)
        s->v_head_dim = s->hidden_size / s->num_attention_heads;
    if (!s->v_head_dim)
        st = err_set(err, SNAP_E_INPUT, "key 'v_head_dim' is missing");
cleanup:
    return st;
}

static snap_status read_quantization(model_shape *s, const js *config, snap_err *err) {
    const js *q = js_get(config, "quantization_config");
    const char *method = js_get_str(q, "quant_method");
    const js *block = js_get_array(q, "weight_block_size");
    if (!q)
        return SNAP_OK;
    if (!method || strcmp(method, "fp8") != 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "quant_method '%.80s' is not supported",
                       method ? method : "");
    int64_t side = js_int(js_at(block, 0));
    if (js_len(block) != 2 || side < 1 || side > 4096 || js_int(js_at(block, 1)) != side)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "weight_block_size must be two equal sides, such as [128, 128]");
    s->fp8_block = (int)side;
    return SNAP_OK;
}

/* Reads one id or a list of them. Nothing changes if the key is absent. */
static snap_status read_eos(model_shape *s, const js *config, snap_err *err) {
    const js *v = js_get(config, "eos_token_id");
    size_t n = js_is_array(v) ? js_len(v) : 1;
    if (!v)
        return SNAP_OK;
    if (n > SHAPE_EOS)
        return err_set(err, SNAP_E_INPUT, "key 'eos_token_id' has %zu ids, at most %d are allowed",
                       n, SHAPE_EOS);
    for (size_t i = 0; i < n; i++) {
        const js *id = js_is_array(v) ? js_at(v, i) : v;
        if (!js_is_int(id) || js_int(id) < 0 || js_int(id) >= s->vocab_size)
            return err_set(err, SNAP_E_INPUT, "key 'eos_token_id' must contain ids below %d",
                           s->vocab_size);
        s->eos_ids[i] = (int)js_int(id);
    }
    s->n_eos = (int)n;
    return SNAP_OK;
}

static snap_status read_config(model_shape *s, const js *config, snap_err *err) {
    snap_status st = SNAP_OK;
    *s = (model_shape){.latent_norm_eps = 1e-6};
    TRY(read_arch(s, config, err));
    TRY(reject_variants(config, err));
    TRY(read_ints(s, config, err));
    TRY(read_layer_types(s, config, err));
    TRY(read_real(config, "rms_norm_eps", 0, 1, 1e-6, &s->rms_norm_eps, err));
    TRY(read_rope(s, config, err));
    TRY(read_router(s, config, err));
    TRY(read_family(s, config, err));
    TRY(check_experts(s, err));
    TRY(read_quantization(s, config, err));
    TRY(read_int(config, "bos_token_id", 0, s->vocab_size - 1, -2, &s->bos_id, err));
    TRY(read_eos(s, config, err));
    s->bos_id = s->bos_id < 0 ? -1 : s->bos_id;
    s->tie_word_embeddings = js_get_bool(config, "tie_word_embeddings", s->arch == ARCH_MINICPM3);
cleanup:
    return st;
}

/* ---- files ---- */

static snap_status failed(const snap_err *err) {
    return err && err->code ? err->code : SNAP_E_INPUT;
}

snap_status model_shape_parse(model_shape *out, const char *json, size_t n, const char *name,
                              snap_err *err) {
    js *config = js_parse(json, n, name, err);
    if (!config)
        return failed(err);
    snap_status st = read_config(out, config, err);
    if (st != SNAP_OK)
        err_prefix(err, "%s", name);
    js_free(config);
    return st;
}

/* The ids of generation_config.json replace those of config.json, because chat models may end their
 * turns with other tokens. */
static snap_status read_generation_config(model_shape *s, const char *path, snap_err *err) {
    js *config = js_parse_file(path, kConfigMax, err);
    if (!config)
        return failed(err);
    snap_status st = read_eos(s, config, err);
    if (st != SNAP_OK)
        err_prefix(err, "%s", path);
    js_free(config);
    return st;
}

snap_status model_shape_open(model_shape *out, const char *dir, snap_err *err) {
    char *path = fs_join(dir, "config.json"), *more = fs_join(dir, "generation_config.json");
    buf text = {.limit = kConfigMax};
    snap_status st = SNAP_OK;
    if (!path || !more)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    if (st == SNAP_OK)
        st = fs_read_regular(path, &text, err);
    if (st == SNAP_OK)
        st = model_shape_parse(out, buf_str(&text), text.len, path, err);
    if (st == SNAP_OK && fs_exists(more))
        st = read_generation_config(out, more, err);
    buf_release(&text);
    free(path);
    free(more);
    return st;
}

bool shape_is_sparse(const model_shape *s, int layer) {
    return s->n_routed_experts > 0 && layer >= s->first_k_dense_replace &&
           layer % s->moe_layer_freq == 0;
}

bool shape_has_router_bias(const model_shape *s) {
    return s->arch == ARCH_LONGCAT_FLASH || s->topk == TOPK_NOAUX;
}

snap_status model_shape_digest(const model_shape *s, char out[HASH_HEX], snap_err *err) {
    const rope_shape *r = &s->rope;
    const double reals[] = {s->rms_norm_eps,
                            s->latent_norm_eps,
                            s->mla_scale_q,
                            s->mla_scale_kv,
                            s->routed_scaling_factor,
                            s->scale_emb,
                            s->scale_depth,
                            s->dim_model_base,
                            r->theta,
                            r->factor,
                            r->beta_fast,
                            r->beta_slow,
                            r->mscale,
                            r->mscale_all_dim};
    const int ints[] = {
        (int)s->arch,      s->tie_word_embeddings, s->head_dim,
        s->rope_period,    s->plain_latent,        s->rotated_first,
        s->rotated_dim,    (int)s->scoring,        (int)s->topk,
        s->norm_topk_prob, s->fp8_block,           s->bos_id,
        s->n_eos,          (int)r->kind,           r->original_max_position_embeddings};
    buf all = {0};
    for (size_t i = 0; i < sizeof kInts / sizeof *kInts; i++)
        (void)buf_append(&all, (const char *)s + kInts[i].at, sizeof(int));
    (void)buf_append(&all, ints, sizeof ints);
    (void)buf_append(&all, s->eos_ids, sizeof s->eos_ids);
    (void)buf_append(&all, reals, sizeof reals);
    (void)buf_append(&all, r->short_factor, sizeof r->short_factor);
    (void)buf_append(&all, r->long_factor, sizeof r->long_factor);
    snap_status st = buf_check(&all, "a shape", err);
    if (st == SNAP_OK)
        st = hash_bytes(all.data, all.len, out, err);
    buf_release(&all);
    return st;
}
