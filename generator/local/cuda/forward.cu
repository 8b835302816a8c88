/* Launches the chain of kernels of a step. Shapes and launches depend only on numbers known on the
 * host. */
#include <algorithm>

#include "generator/local/cuda/chain.h"
#include "generator/local/cuda/round.h"

using namespace device;

namespace {

project_args projected(const cuda_model *m, const block &b, int layer) {
    const model_shape &s = m->shape;
    const int queries = s.num_attention_heads * (s.qk_nope_head_dim + s.qk_rope_head_dim),
              first = s.q_lora_rank ? s.q_lora_rank : queries,
              in = first + s.kv_lora_rank + s.qk_rope_head_dim;
    project_args p = {};
    p.q = s.q_lora_rank ? m->b.q : m->b.in;
    p.q_row = s.q_lora_rank ? queries : in;
    p.kv = m->b.in + first;
    p.kv_row = in;
    p.heads = s.num_attention_heads;
    p.nope = s.qk_nope_head_dim;
    p.rope = s.qk_rope_head_dim;
    p.rank = s.kv_lora_rank;
    p.kv_norm = b.kv_a_norm;
    p.eps = static_cast<float>(s.latent_norm_eps);
    p.kv_factor = static_cast<float>(s.mla_scale_kv);
    p.angle = m->b.angle;
    p.pairs = m->rotary.pairs;
    p.halves = m->rotary.halves;
    p.rotated_first = s.rotated_first;
    p.rotated_dim = s.rotated_dim;
    p.table_width = m->table_width;
    p.cache = *kv_cache_layer(m->cache, layer);
    return p;
}

mla_step decode_step(const cuda_model *m, int rows) {
    return {rows, 1, m->dev.length, m->dev.table, m->table_width};
}

} // namespace

namespace device {

gemm_args linear(const bf16 *w, int n, int k, const bf16 *x, int rows, void *y, gemm_end end) {
    gemm_args a = {};
    a.w = w;
    a.x = x;
    a.x_row = k;
    a.y = y;
    a.y_row = end == ends_gate ? n / 2 : n;
    a.groups = 1;
    a.rows = rows;
    a.n = n;
    a.k = k;
    a.factor = 1;
    a.end = end;
    a.x_rows = rows;
    return a;
}

gemm_args linear(const weight_matrix &w, int n, int k, const bf16 *x, int rows, void *y,
                 gemm_end end) {
    gemm_args a = linear(w.w, n, k, x, rows, y, end);
    a.w_codes = {w.code, w.scale};
    a.w_uniform = w.uniform;
    return a;
}

norm_to norm_of(const cuda_model *m, const float *weight) {
    return {weight, static_cast<float>(m->shape.rms_norm_eps), 1.0f, m->b.packed, nullptr};
}

norm_to last_norm(const cuda_model *m) {
    const model_shape &s = m->shape;
    norm_to last = norm_of(m, m->w.norm);
    last.factor =
        s.arch == ARCH_MINICPM3 ? static_cast<float>(s.dim_model_base / s.hidden_size) : 1;
    return last;
}

/* The arguments of project_decode(), in which each row belongs to its own sequence. */
project_args project_of(const cuda_model *m, const block &b, int layer, int rows) {
    project_args p = projected(m, b, layer);
    p.rows = rows;
    p.length = m->dev.length;
    p.table = m->dev.table;
    return p;
}

absorb_to absorb_of(const cuda_model *m, const block &b) {
    return {b.uk, m->b.q_mla, m->b.q8, m->b.q8_rope, m->b.q8_scale};
}

/* The arguments of the product of W_UV of every head with the output of attention. */
gemm_args values_of(const cuda_model *m, const block &b, int rows) {
    const model_shape &s = m->shape;
    const int heads = s.num_attention_heads, rank = s.kv_lora_rank;
    gemm_args a = linear(b.kv_b + static_cast<int64_t>(s.qk_nope_head_dim) * rank, s.v_head_dim,
                         rank, m->b.o_mla, rows, m->b.o, ends_bf16);
    a.w_group = static_cast<int64_t>(s.qk_nope_head_dim + s.v_head_dim) * rank;
    a.x_row = static_cast<int64_t>(heads) * rank;
    a.x_group = rank;
    a.y_row = static_cast<int64_t>(heads) * s.v_head_dim;
    a.y_group = s.v_head_dim;
    a.groups = heads;
    return a;
}

route_args route_of(const cuda_model *m, const block &b, int rows, int moe_layer) {
    const model_shape &s = m->shape;
    route_args r = {};
    r.x = m->b.x;
    r.rows = rows;
    r.hidden = s.hidden_size;
    r.norm = b.post_norm;
    r.gate = b.gate;
    r.bias = b.bias;
    r.eps = static_cast<float>(s.rms_norm_eps);
    r.how = m->how;
    r.routed = s.n_routed_experts;
    r.shared = m->divides_experts ? 0 : shared_experts(s);
    r.message = m->b.message;
    r.packed = m->b.packed;
    r.identity = m->b.identity;
    r.scores = m->b.scores;
    r.chosen = m->b.chosen + static_cast<int64_t>(moe_layer) * m->opt.max_rows * m->how.chosen;
    r.expert = m->b.expert;
    r.place = m->b.place;
    r.weight = m->b.weight;
    r.first = m->b.first;
    r.active = m->b.active;
    r.count = m->b.count;
    r.row = m->b.pair_row;
    r.total = m->b.total;
    r.ticket = m->b.ticket;
    return r;
}

void attend_cache(chain *c, int layer) {
    cuda_model *m = c->m;
    const mla_cache &cache = *kv_cache_layer(m->cache, layer);
    const bool fp8 = cache.scale != nullptr;
    mla_attn attn = {};
    attn.q = fp8 ? static_cast<const void *>(m->b.q8) : m->b.q_mla;
    attn.q_rope = fp8 ? m->b.q8_rope : nullptr;
    attn.q_scale = fp8 ? m->b.q8_scale : nullptr;
    attn.softmax_scale = m->softmax_scale;
    attn.out = m->b.o_mla;
    const mla_step step = decode_step(m, c->step.decode);
    if (c->ok())
        c->run(mla_run(m->decode_plan, &step, &cache, &attn, c->err));
}

} // namespace device

namespace {

join_from no_join() {
    return {};
}

/* Computes the norm of all rows of the step, unless the last exchange has computed it. */
void norm_all(chain *c, const join_from &join, const norm_to &to) {
    const cuda_model *m = c->m;
    if (!c->normed)
        c->run(join_norm(m->s, m->b.x, c->step.rows, m->shape.hidden_size, join, to), "norm");
    c->normed = false;
}

/* Adds the result of a product to the residual stream. On a rank of a split model, the product is a
 * part of a sum over the ranks. @after: as in add_part(). */
void add_product(chain *c, gemm_args a, const norm_to *after, const char *what) {
    const bool sums = comm_splits(c->m->opt.comm);
    a.end = sums ? ends_f32 : ends_add_f32;
    a.y = sums ? c->m->b.part : c->m->b.x;
    a.factor = c->m->branch;
    c->product(a, what);
    if (sums)
        add_part(c, c->m->branch, after);
}

/* ---- attention ------------------------------------------------------------------------------- */

void project(chain *c, const device::block &b) {
    cuda_model *m = c->m;
    const model_shape &s = m->shape;
    const int queries = s.num_attention_heads * (s.qk_nope_head_dim + s.qk_rope_head_dim),
              first = s.q_lora_rank ? s.q_lora_rank : queries,
              in = first + s.kv_lora_rank + s.qk_rope_head_dim, rows = c->step.rows;
    c->product(linear(b.in, in, s.hidden_size, m->b.packed, rows, m->b.in, ends_f32),
               "projections");
    if (!s.q_lora_rank)
        return;
    norm_to to = {b.q_a_norm, static_cast<float>(s.latent_norm_eps),
                  static_cast<float>(s.mla_scale_q), m->b.packed, nullptr};
    c->run(norm_rows(m->s, m->b.in, in, rows, s.q_lora_rank, to), "norm of queries");
    c->product(linear(b.q_b, queries, s.q_lora_rank, m->b.packed, rows, m->b.q, ends_f32),
               "queries");
}

/* Rounds the rows that @p appended, unless the format of the cache is that of an arm. */
void round_rows(chain *c, const project_args &p) {
    const cuda_model *m = c->m;
    if (m->rounded)
        c->run(round_appended(m->s, *m->rounded, p, m->b.shared), "rounding of rows");
}

/* The attention of one chunk, for as many heads at a time as the buffer of expanded keys has
 * room. */
void chunk(chain *c, const device::block &b, int layer, int index) {
    cuda_model *m = c->m;
    const model_shape &s = m->shape;
    const chunk_piece &piece = c->step.chunk[index];
    const int heads = s.num_attention_heads, rank = s.kv_lora_rank,
              width = rank + s.qk_rope_head_dim, kv = s.qk_nope_head_dim + s.v_head_dim,
              qk = s.qk_nope_head_dim + s.qk_rope_head_dim;
    const int length = static_cast<int>(piece.start) + piece.count;
    const int *table =
        m->dev.table + static_cast<int64_t>(m->opt.max_decode + index) * m->table_width;
    project_args p = projected(m, b, layer);
    p.q += piece.first * p.q_row;
    p.kv += piece.first * p.kv_row;
    p.rows = piece.count;
    p.start = piece.start;
    p.table = table;
    p.packed = m->b.q_packed + static_cast<int64_t>(piece.first) * heads * qk;
    c->run(project_chunk(m->s, p), "queries of a chunk");
    round_rows(c, p);
    const mla_step step = {1, 1, m->dev.chunk_length + index, table, m->table_width};
    if (c->ok())
        c->run(mla_fetch_kv(m->fetch_plan, &step, &p.cache, 0, 0, length, m->b.kv, c->err));
    for (int first = 0; first < heads && c->ok(); first += m->heads_at_once) {
        const int now = std::min(m->heads_at_once, heads - first);
        gemm_args e = linear(b.kv_b + static_cast<int64_t>(first) * kv * rank, now * kv, rank,
                             m->b.kv, length, m->b.expanded, ends_bf16);
        e.x_row = width;
        c->product(e, "keys and values");
        c->run(attend_chunk(m->s,
                            {p.packed, m->b.kv, m->b.expanded,
                             m->b.o + static_cast<int64_t>(piece.first) * heads * s.v_head_dim,
                             piece.count, heads, first, now, s.qk_nope_head_dim, s.qk_rope_head_dim,
                             rank, s.v_head_dim, piece.start, m->softmax_scale}),
               "attention of a chunk");
    }
}

/* In a block with experts, route() computes the norm after attention. */
void attention(chain *c, const device::block &b, int layer) {
    cuda_model *m = c->m;
    const model_shape &s = m->shape;
    const norm_to post = norm_of(m, b.post_norm);
    const int values = s.num_attention_heads * s.v_head_dim;
    project(c, b);
    if (c->step.decode) {
        const project_args p = project_of(m, b, layer, c->step.decode);
        c->part(STEP_ATTENTION);
        c->run(project_decode(m->s, p, absorb_of(m, b)), "absorbed queries");
        round_rows(c, p);
        attend_cache(c, layer);
        c->part(STEP_REST);
        c->product(values_of(m, b, c->step.decode), "values");
    }
    for (int i = 0; i < c->step.chunks; i++)
        chunk(c, b, layer, i);
    add_product(c, linear(b.o, s.hidden_size, values, m->b.o, c->step.rows, m->b.x, ends_add_f32),
                b.moe ? nullptr : &post, "output projection");
}

/* ---- feed-forward ---------------------------------------------------------------------------- */

void dense(chain *c, const device::block &b, const norm_to *after) {
    cuda_model *m = c->m;
    const int hidden = m->shape.hidden_size, inner = m->shape.intermediate_size,
              rows = c->step.rows;
    c->product(linear(b.ffn_in, 2 * inner, hidden, m->b.packed, rows, m->b.inner, ends_gate),
               "feed-forward");
    add_product(c, linear(b.ffn_out, hidden, inner, m->b.inner, rows, m->b.x, ends_add_f32), after,
                "feed-forward");
}

/* @after: as in add_part(), for the last sum over the ranks that the block itself has. */
void feed_forward(chain *c, const device::block &b, int moe_layer, const norm_to *after) {
    if (b.moe)
        experts(c, b, moe_layer);
    else
        norm_all(c, no_join(), norm_of(c->m, b.post_norm));
    if (b.dense)
        dense(c, b, after);
}

/* The norm of all rows after block @i: that of the next block, or the last one of the step. false
 * if the last norm is not that of all rows. */
bool norm_after(const chain *c, size_t i, norm_to *out) {
    const cuda_model *m = c->m;
    const bool last = i + 1 == m->w.blocks.size();
    *out = last ? last_norm(m) : norm_of(m, m->w.blocks[i + 1].input_norm);
    return !last || (!c->step.gathers && c->step.wanted == c->step.rows);
}

} // namespace

snap_status forward(cuda_model *m, const step_shape &step, snap_err *err) {
    const model_shape &s = m->shape;
    chain c = {m, step, err, SNAP_OK};
    join_from join = no_join();
    int moe_layer = 0;
    const bool single = m->single && step.rows == 1 && step.decode == 1;
    c.part(STEP_REST);
    if (step.decode) {
        const mla_step all = decode_step(m, step.decode);
        c.run(mla_schedule(m->decode_plan, &all, err));
    }
    c.run(embed(m->s, m->w.embed, m->dev.token, step.rows, s.hidden_size,
                static_cast<float>(s.scale_emb), m->b.x, m->b.key, single ? epoch_of(m) : nullptr),
          "embedding");
    if (single) {
        forward_single(&c);
        return c.st;
    }
    for (size_t i = 0; i < m->w.blocks.size() && c.ok(); i++) {
        const device::block &b = m->w.blocks[i];
        const bool joins = (i > 0 && m->w.blocks[i - 1].shortcut) || (b.moe && !b.shortcut);
        const bool adds = joins && (comm_splits(m->opt.comm) || m->divides_experts);
        norm_to next;
        const norm_to *after = norm_after(&c, i, &next) ? &next : nullptr;
        norm_all(&c, join, norm_of(m, b.input_norm));
        attention(&c, b, static_cast<int>(i));
        feed_forward(&c, b, moe_layer, adds ? nullptr : after);
        moe_layer += b.moe;
        join = joins && !adds ? experts_join(m, step.rows) : no_join();
        if (adds)
            add_experts(&c, b, after);
    }
    norm_to last = last_norm(m);
    last.row = step.gathers ? m->b.want : nullptr;
    if (step.wanted && !c.normed)
        c.run(join_norm(m->s, m->b.x, step.wanted, s.hidden_size, join, last), "norm");
    return c.st;
}

snap_status logits_of(cuda_model *m, int first, int count, snap_err *err) {
    const model_shape &s = m->shape;
    const step_shape none = {};
    chain c = {m, none, err, SNAP_OK};
    c.product(linear(m->w.head, s.vocab_size, s.hidden_size,
                     m->b.packed + static_cast<int64_t>(first) * s.hidden_size, count, m->b.logits,
                     ends_f32),
              "logits");
    c.run(best_token(m->s, m->b.logits, count, s.vocab_size, m->b.key + first), "next token");
    c.part(STEP_REST); /* ends the last part */
    return c.st;
}
