#include "generator/local/model/weights.h"

#include <math.h>
#include <stdio.h>

#include "generator/local/checkpoint/inventory.h"
#include "generator/local/model/route.h"
#include "kernels/mla.h"

enum { kPrefixMax = 64, kNameMax = 96 };

typedef struct {
    model_weights *w;
    const model_shape *s; /* of the rank */
    const checkpoint *c;
    snap_err *err;
    char prefix[kPrefixMax]; /* "", or for example "model.layers.3." */
} binding;

/* How a matrix is divided over the ranks of a split replica. */
typedef enum { ON_EACH_RANK, BY_ROWS, BY_COLUMNS } division;

/* Binds the tensor of a matrix, or this rank's share of it, which has @rows rows and @cols
 * columns. */
static snap_status matrix(const binding *b, const char *name, int64_t rows, int64_t cols,
                          division how, mat *out) {
    char full[kPrefixMax + kNameMax + 8];
    const weights_share *share = &b->w->share;
    int64_t up = how == BY_ROWS ? share->parts : 1, across = how == BY_COLUMNS ? share->parts : 1;
    (void)snprintf(full, sizeof full, "%s%.95s.weight", b->prefix, name);
    *out = (mat){.block = b->s->fp8_block,
                 .first_row = how == BY_ROWS ? share->rank * rows : 0,
                 .rows = rows,
                 .first_col = how == BY_COLUMNS ? share->rank * cols : 0,
                 .cols = cols};
    return inventory_need(b->s, b->c, full, rows * up, cols * across, &out->w, &out->scale, b->err);
}

static snap_status vector(const binding *b, const char *name, int64_t n, const float **out) {
    char full[kPrefixMax + kNameMax];
    const tensor *w, *scale;
    (void)snprintf(full, sizeof full, "%s%.95s", b->prefix, name);
    snap_status st = inventory_need(b->s, b->c, full, n, 0, &w, &scale, b->err);
    if (st != SNAP_OK)
        return st;
    float *copy = arena_alloc(&b->w->mem, (size_t)n, sizeof *copy);
    if (!copy)
        return err_set(b->err, SNAP_E_NOMEM, "out of memory for '%s'", full);
    tensor_read_f32(w, scale, 0, 0, 0, n, copy);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(copy[i]))
            return err_set(b->err, SNAP_E_INPUT,
                           "%s: tensor '%s' is NaN or infinite at %lld: the file is damaged",
                           w->file, full, (long long)i);
    *out = copy;
    return SNAP_OK;
}

/* @splits: whether the ranks of a replica divide the inner width. */
static snap_status bind_ffn(const binding *b, const char *stem, int64_t inner, bool splits,
                            ffn_weights *f) {
    snap_status st;
    division rows = splits ? BY_ROWS : ON_EACH_RANK, cols = splits ? BY_COLUMNS : ON_EACH_RANK;
    char name[kNameMax];
    int64_t hidden = b->s->hidden_size;
    (void)snprintf(name, sizeof name, "%.80s.gate_proj", stem);
    TRY(matrix(b, name, inner, hidden, rows, &f->gate));
    (void)snprintf(name, sizeof name, "%.80s.up_proj", stem);
    TRY(matrix(b, name, inner, hidden, rows, &f->up));
    (void)snprintf(name, sizeof name, "%.80s.down_proj", stem);
    TRY(matrix(b, name, hidden, inner, cols, &f->down));
cleanup:
    return st;
}

static snap_status bind_moe(const binding *b, moe_weights *m) {
    snap_status st;
    char name[kNameMax];
    const model_shape *s = b->s;
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    int experts = s->n_routed_experts + s->zero_expert_num;
    m->expert = arena_alloc(&b->w->mem, (size_t)s->n_routed_experts, sizeof *m->expert);
    if (!m->expert)
        return err_set(b->err, SNAP_E_NOMEM, "out of memory for %d experts", s->n_routed_experts);
    TRY(matrix(b, longcat ? "mlp.router.classifier" : "mlp.gate", experts, s->hidden_size,
               ON_EACH_RANK, &m->router));
    if (shape_has_router_bias(s))
        TRY(vector(
            b, longcat ? "mlp.router.e_score_correction_bias" : "mlp.gate.e_score_correction_bias",
            experts, &m->bias));
    int first = weights_first_expert(b->w), end = first + weights_experts(b->w);
    for (int e = first; e < end; e++) {
        (void)snprintf(name, sizeof name, "mlp.experts.%d", e);
        TRY(bind_ffn(b, name, s->moe_intermediate_size, !weights_divide_experts(b->w),
                     &m->expert[e]));
    }
    if (s->n_shared_experts)
        TRY(bind_ffn(b, "mlp.shared_experts", weights_shared_inner(b->w), true, &m->shared));
cleanup:
    return st;
}

/* @at is "self_attn.", or "self_attn.0." in LongCat's layers. */
static snap_status bind_attention(const binding *outer, const char *at, attention_weights *a) {
    snap_status st;
    binding own = *outer;
    const binding *b = &own;
    const model_shape *s = b->s;
    int64_t hidden = s->hidden_size, heads = s->num_attention_heads, rank = s->kv_lora_rank;
    int64_t queries = heads * (s->qk_nope_head_dim + s->qk_rope_head_dim);
    (void)snprintf(own.prefix, sizeof own.prefix, "%.40s%.20s", outer->prefix, at);
    if (s->q_lora_rank) {
        TRY(matrix(b, "q_a_proj", s->q_lora_rank, hidden, ON_EACH_RANK, &a->q_a));
        TRY(vector(b, "q_a_layernorm.weight", s->q_lora_rank, &a->q_a_norm));
        TRY(matrix(b, "q_b_proj", queries, s->q_lora_rank, BY_ROWS, &a->q_b));
    } else {
        TRY(matrix(b, "q_proj", queries, hidden, BY_ROWS, &a->q));
    }
    TRY(matrix(b, "kv_a_proj_with_mqa", rank + s->qk_rope_head_dim, hidden, ON_EACH_RANK,
               &a->kv_a));
    if (!s->plain_latent)
        TRY(vector(b, "kv_a_layernorm.weight", rank, &a->kv_a_norm));
    TRY(matrix(b, "kv_b_proj", heads * (s->qk_nope_head_dim + s->v_head_dim), rank, BY_ROWS,
               &a->kv_b));
    TRY(matrix(b, "o_proj", hidden, heads * s->v_head_dim, BY_COLUMNS, &a->o));
cleanup:
    return st;
}

static snap_status bind_layer(binding *b, int layer) {
    snap_status st;
    const model_shape *s = b->s;
    block_weights *k = &b->w->block[layer];
    (void)snprintf(b->prefix, sizeof b->prefix, "model.layers.%d.", layer);
    TRY(vector(b, "input_layernorm.weight", s->hidden_size, &k->input_norm));
    TRY(vector(b, "post_attention_layernorm.weight", s->hidden_size, &k->post_norm));
    TRY(bind_attention(b, "self_attn.", &k->attention));
    TRY(k->moe ? bind_moe(b, &k->experts)
               : bind_ffn(b, "mlp", s->intermediate_size, true, &k->ffn));
cleanup:
    return st;
}

static snap_status bind_longcat_layer(binding *b, int layer) {
    snap_status st;
    const model_shape *s = b->s;
    char name[kNameMax];
    (void)snprintf(b->prefix, sizeof b->prefix, "model.layers.%d.", layer);
    for (int half = 0; half < 2; half++) {
        block_weights *k = &b->w->block[2 * layer + half];
        (void)snprintf(name, sizeof name, "input_layernorm.%d.weight", half);
        TRY(vector(b, name, s->hidden_size, &k->input_norm));
        (void)snprintf(name, sizeof name, "post_attention_layernorm.%d.weight", half);
        TRY(vector(b, name, s->hidden_size, &k->post_norm));
        (void)snprintf(name, sizeof name, "self_attn.%d.", half);
        TRY(bind_attention(b, name, &k->attention));
        (void)snprintf(name, sizeof name, "mlps.%d", half);
        TRY(bind_ffn(b, name, s->intermediate_size, true, &k->ffn));
        if (k->moe)
            TRY(bind_moe(b, &k->experts));
    }
cleanup:
    return st;
}

typedef struct {
    const char *name;
    int64_t value, least, most;
} bound;

static snap_status check_shape(const model_shape *s, snap_err *err) {
    int64_t experts = (int64_t)s->n_routed_experts + s->zero_expert_num;
    const bound bounds[] = {
        {"num_attention_heads", s->num_attention_heads, 1, MLA_MAX_HEADS},
        {"kv_lora_rank", s->kv_lora_rank, 32, MLA_MAX_CONTENT},
        {"kv_lora_rank modulo 32", s->kv_lora_rank % 32, 0, 0},
        {"qk_rope_head_dim", s->qk_rope_head_dim, 32, MLA_MAX_ROPE},
        {"qk_rope_head_dim modulo 32", s->qk_rope_head_dim % 32, 0, 0},
        {"experts", experts, 0, ROUTE_MAX_EXPERTS},
        {"num_experts_per_tok", s->num_experts_per_tok, experts ? 1 : 0,
         experts < ROUTE_MAX_CHOSEN ? experts : ROUTE_MAX_CHOSEN},
        {"n_group", s->n_group, 0, ROUTE_MAX_GROUPS},
        {"topk_group", s->topk_group, 0, s->n_group},
        {"experts modulo n_group", s->n_group > 1 ? experts % s->n_group : 0, 0, 0},
        {"num_experts_per_tok within topk_group groups",
         s->n_group > 1 ? s->num_experts_per_tok - s->topk_group * experts / s->n_group : 0,
         -ROUTE_MAX_EXPERTS, 0},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].value < bounds[i].least || bounds[i].value > bounds[i].most)
            return err_set(err, SNAP_E_UNSUPPORTED, "%s is %lld, must be %lld to %lld",
                           bounds[i].name, (long long)bounds[i].value, (long long)bounds[i].least,
                           (long long)bounds[i].most);
    return SNAP_OK;
}

/* Sets which parts a block has. LongCat's layers are two blocks; the experts of the first are added
 * after the second. */
static void outline_block(const model_shape *s, int i, block_weights *k) {
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    k->moe = longcat ? i % 2 == 0 : shape_is_sparse(s, i);
    k->dense = longcat || !k->moe;
    k->shortcut = longcat && k->moe;
}

snap_status weights_outline(model_weights *out, const model_shape *shape, snap_err *err) {
    snap_status st;
    *out = (model_weights){.shape = *shape, .share = {0, 1, 0, 1}};
    const model_shape *s = &out->shape;
    TRY(check_shape(s, err));
    out->blocks = s->num_hidden_layers * (s->arch == ARCH_LONGCAT_FLASH ? 2 : 1);
    out->block = arena_alloc(&out->mem, (size_t)out->blocks, sizeof *out->block);
    if (!out->block)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %d layers", s->num_hidden_layers);
    for (int i = 0; i < out->blocks; i++)
        outline_block(s, i, &out->block[i]);
cleanup:
    return st;
}

snap_status weights_bind_share(model_weights *out, const model_shape *shape,
                               const weights_share *share, const checkpoint *c, snap_err *err) {
    snap_status st;
    TRY(weights_outline(out, shape, err));
    out->files = c;
    out->share = *share;
    const model_shape *s = &out->shape;
    bool longcat = s->arch == ARCH_LONGCAT_FLASH;
    binding b = {.w = out, .s = s, .c = c, .err = err};
    TRY(matrix(&b, "model.embed_tokens", s->vocab_size, s->hidden_size, ON_EACH_RANK, &out->embed));
    TRY(vector(&b, "model.norm.weight", s->hidden_size, &out->norm));
    if (s->tie_word_embeddings)
        out->head = out->embed;
    else
        TRY(matrix(&b, "lm_head", s->vocab_size, s->hidden_size, ON_EACH_RANK, &out->head));
    for (int i = 0; i < s->num_hidden_layers; i++)
        TRY(longcat ? bind_longcat_layer(&b, i) : bind_layer(&b, i));
cleanup:
    return st;
}

snap_status weights_bind(model_weights *out, const model_shape *shape, const checkpoint *c,
                         snap_err *err) {
    return weights_bind_share(out, shape, &(weights_share){0, 1, 0, 1}, c, err);
}

void weights_release(model_weights *w) {
    arena_release(&w->mem);
    *w = (model_weights){0};
}
