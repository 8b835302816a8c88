#include "generator/local/checkpoint/inventory.h"

#include <stdio.h>

enum { kPrefix = 96, kName = 160 };

typedef struct {
    const model_shape *s;
    inventory_fn fn;
    void *ctx;
    snap_err *err;
    snap_status st; /* if it is not SNAP_OK, fn is not called any more */
} walk;

static void visit(walk *w, const char *prefix, const char *name, int64_t rows, int64_t cols) {
    char full[kName];
    if (w->st != SNAP_OK)
        return;
    (void)snprintf(full, sizeof full, "%s%s.weight", prefix, name);
    w->st = w->fn(w->ctx, full, rows, cols, w->err);
}

static void visit_attention(walk *w, const char *prefix) {
    const model_shape *s = w->s;
    int64_t heads = s->num_attention_heads, hidden = s->hidden_size;
    int64_t q = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim);
    if (s->q_lora_rank) {
        visit(w, prefix, "q_a_proj", s->q_lora_rank, hidden);
        visit(w, prefix, "q_a_layernorm", s->q_lora_rank, 0);
        visit(w, prefix, "q_b_proj", q, s->q_lora_rank);
    } else {
        visit(w, prefix, "q_proj", q, hidden);
    }
    visit(w, prefix, "kv_a_proj_with_mqa", s->kv_lora_rank + s->qk_rope_head_dim, hidden);
    if (!s->plain_latent)
        visit(w, prefix, "kv_a_layernorm", s->kv_lora_rank, 0);
    visit(w, prefix, "kv_b_proj", heads * (s->qk_nope_head_dim + s->v_head_dim), s->kv_lora_rank);
    visit(w, prefix, "o_proj", hidden, heads * s->v_head_dim);
}

static void visit_mlp(walk *w, const char *prefix, int64_t width) {
    visit(w, prefix, "gate_proj", width, w->s->hidden_size);
    visit(w, prefix, "up_proj", width, w->s->hidden_size);
    visit(w, prefix, "down_proj", w->s->hidden_size, width);
}

static void visit_bias(walk *w, const char *name, int64_t n) {
    if (w->st == SNAP_OK)
        w->st = w->fn(w->ctx, name, n, 0, w->err);
}

static void visit_experts(walk *w, int layer) {
    const model_shape *s = w->s;
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    int64_t choices = s->n_routed_experts + s->zero_expert_num;
    char prefix[kPrefix];
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.", layer);
    visit(w, prefix, longcat ? "router.classifier" : "gate", choices, s->hidden_size);
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.%s.e_score_correction_bias", layer,
                   longcat ? "router" : "gate");
    if (shape_has_router_bias(s))
        visit_bias(w, prefix, choices);
    for (int e = 0; e < s->n_routed_experts && w->st == SNAP_OK; e++) {
        (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.experts.%d.", layer, e);
        visit_mlp(w, prefix, s->moe_intermediate_size);
    }
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.shared_experts.", layer);
    if (s->n_shared_experts)
        visit_mlp(w, prefix, (int64_t)s->n_shared_experts * s->moe_intermediate_size);
}

static void visit_layer(walk *w, int layer) {
    char prefix[kPrefix];
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.self_attn.", layer);
    visit_attention(w, prefix);
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.", layer);
    visit(w, prefix, "input_layernorm", w->s->hidden_size, 0);
    visit(w, prefix, "post_attention_layernorm", w->s->hidden_size, 0);
    if (shape_is_sparse(w->s, layer)) {
        visit_experts(w, layer);
        return;
    }
    (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlp.", layer);
    visit_mlp(w, prefix, w->s->intermediate_size);
}

/* The layer has two attentions, two dense feed-forwards, and experts. */
static void visit_longcat_layer(walk *w, int layer) {
    static const char *const norms[] = {"input_layernorm", "post_attention_layernorm"};
    char prefix[kPrefix];
    for (int half = 0; half < 2; half++) {
        (void)snprintf(prefix, sizeof prefix, "model.layers.%d.self_attn.%d.", layer, half);
        visit_attention(w, prefix);
        (void)snprintf(prefix, sizeof prefix, "model.layers.%d.mlps.%d.", layer, half);
        visit_mlp(w, prefix, w->s->intermediate_size);
        for (int i = 0; i < 2; i++) {
            (void)snprintf(prefix, sizeof prefix, "model.layers.%d.%s.%d", layer, norms[i], half);
            visit(w, prefix, "", w->s->hidden_size, 0);
        }
    }
    visit_experts(w, layer);
}

snap_status inventory_each(const model_shape *s, inventory_fn fn, void *ctx, snap_err *err) {
    walk w = {.s = s, .fn = fn, .ctx = ctx, .err = err, .st = SNAP_OK};
    visit(&w, "model.", "embed_tokens", s->vocab_size, s->hidden_size);
    for (int layer = 0; layer < s->num_hidden_layers && w.st == SNAP_OK; layer++) {
        if (s->arch == ARCH_LONGCAT_FLASH)
            visit_longcat_layer(&w, layer);
        else
            visit_layer(&w, layer);
    }
    visit(&w, "model.", "norm", s->hidden_size, 0);
    if (!s->tie_word_embeddings)
        visit(&w, "", "lm_head", s->vocab_size, s->hidden_size);
    return w.st;
}

/* ---- check against a checkpoint ---- */

static snap_status need_shape(const tensor *t, int64_t rows, int64_t cols, snap_err *err) {
    int dims = cols ? 2 : 1;
    if (t->n_dims == dims && t->shape[0] == rows && (!cols || t->shape[1] == cols))
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT,
                   "%s: tensor '%s' has %d dimensions [%lld, %lld], config.json requires %d: "
                   "[%lld, %lld]",
                   t->file, t->name, t->n_dims, (long long)t->shape[0], (long long)t->shape[1],
                   dims, (long long)rows, cols ? (long long)cols : 1);
}

static snap_status need_scale(const model_shape *s, const checkpoint *c, const tensor *t,
                              const tensor **scale, snap_err *err) {
    char name[kName + 16];
    int64_t side = s->fp8_block;
    if (!side || t->n_dims != 2)
        return err_set(
            err, SNAP_E_INPUT,
            "%s: tensor '%s' is F8_E4M3, but config.json has no quantization_config for it",
            t->file, t->name);
    (void)snprintf(name, sizeof name, "%s_scale_inv", t->name);
    *scale = checkpoint_find(c, name);
    if (!*scale)
        return err_set(err, SNAP_E_INPUT, "%s: tensor '%s' has no '%s'", t->file, t->name, name);
    if ((*scale)->dtype != DTYPE_F32)
        return err_set(err, SNAP_E_INPUT, "%s: tensor '%s' is %s, must be F32", (*scale)->file,
                       name, tensor_dtype_name((*scale)->dtype));
    return need_shape(*scale, (t->shape[0] + side - 1) / side, (t->shape[1] + side - 1) / side,
                      err);
}

snap_status inventory_need(const model_shape *s, const checkpoint *c, const char *name,
                           int64_t rows, int64_t cols, const tensor **w, const tensor **scale,
                           snap_err *err) {
    const tensor *t = checkpoint_find(c, name);
    *w = t;
    *scale = NULL;
    if (!t)
        return err_set(err, SNAP_E_INPUT, "tensor '%s' is in none of the checkpoint's files", name);
    snap_status st = need_shape(t, rows, cols, err);
    if (st != SNAP_OK)
        return st;
    if (t->dtype == DTYPE_OTHER)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s: tensor '%s' is neither BF16, F16, F32 nor F8_E4M3", t->file, name);
    return t->dtype == DTYPE_F8_E4M3 ? need_scale(s, c, t, scale, err) : SNAP_OK;
}
