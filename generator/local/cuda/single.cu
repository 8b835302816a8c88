/* Launches the chain of kernels of a step of one row, in which attention and single_layer()
 * alternate. */
#include <algorithm>

#include "generator/local/cuda/chain.h"
#include "generator/local/cuda/single.h"

using namespace device;

namespace {

struct exchange_memory {
    single_exchange exchange;
    int64_t words;
};

/* Lays out the exchange in one allocation, each array at a multiple of 16 bytes. @at may be NULL to
 * get the size only. */
exchange_memory exchange_of(const model_shape &s, uint64_t *at) {
    exchange_memory t = {};
    const auto take = [&](int64_t n) {
        uint64_t *own = at ? at + t.words : nullptr;
        t.words += (n + 1) / 2 * 2;
        return own;
    };
    const int64_t heads = s.num_attention_heads, slots = s.num_experts_per_tok + shared_experts(s),
                  inner = std::max<int64_t>(slots * s.moe_intermediate_size, s.intermediate_size);
    t.exchange.values = take(heads * s.v_head_dim / 2);
    t.exchange.middle = take(s.hidden_size);
    t.exchange.scores = take(s.n_routed_experts);
    t.exchange.gated = take(inner / 2);
    t.exchange.x = take(s.hidden_size);
    t.exchange.in = take(heads * (s.qk_nope_head_dim + s.qk_rope_head_dim) + s.kv_lora_rank +
                         s.qk_rope_head_dim);
    t.exchange.epoch = reinterpret_cast<const uint32_t *>(take(2));
    return t;
}

/* The feed-forward part of a layer. A dense layer is treated as one shared expert. */
single_experts experts_of(const cuda_model *m, const device::block &b, int moe_layer) {
    single_experts e = {};
    e.norm = b.post_norm;
    e.eps = static_cast<float>(m->shape.rms_norm_eps);
    e.route.rows = e.route.shared = 1;
    if (b.moe)
        e.route = route_of(m, b, 1, moe_layer);
    e.up = b.moe ? b.experts_in.w : b.ffn_in.w;
    e.down = b.moe ? b.experts_out.w : b.ffn_out.w;
    e.inner = b.moe ? m->shape.moe_intermediate_size : m->shape.intermediate_size;
    return e;
}

single_next next_of(const cuda_model *m, size_t layer) {
    const bool ends = layer == m->w.blocks.size();
    const norm_to norm = ends ? last_norm(m) : norm_of(m, m->w.blocks[layer].input_norm);
    single_next n = {};
    n.norm = norm.weight;
    n.eps = norm.eps;
    n.factor = norm.factor;
    n.packed = norm.packed;
    if (ends)
        return n;
    const device::block &b = m->w.blocks[layer];
    n.project = project_of(m, b, static_cast<int>(layer), 1);
    n.absorb = absorb_of(m, b);
    n.in = b.in.w;
    n.columns = static_cast<int>(n.project.kv_row);
    return n;
}

/* The work between the attention of layer @next - 1 and that of layer @next. */
single_args args_of(const cuda_model *m, size_t next, int moe_layer) {
    single_args a = {};
    a.x = m->b.x;
    a.hidden = m->shape.hidden_size;
    a.factor = m->branch;
    a.exchange = exchange_of(m->shape, m->b.exchange).exchange;
    a.id = static_cast<int>(next);
    a.next = next_of(m, next);
    if (next == 0)
        return a;
    const device::block &b = m->w.blocks[next - 1];
    const gemm_args values = values_of(m, b, 1);
    a.attention = {values.w, values.w_group, values.x, b.o.w, m->shape.num_attention_heads,
                   values.n, values.k};
    a.experts = experts_of(m, b, moe_layer);
    return a;
}

} // namespace

uint32_t *device::epoch_of(const cuda_model *m) {
    return reinterpret_cast<uint32_t *>(m->b.exchange + single_exchange_words(m->shape) - 2);
}

int64_t device::single_exchange_words(const model_shape &s) {
    return exchange_of(s, nullptr).words;
}

bool device::single_supports_all(const cuda_model *m) {
    bool supported = !m->w.coded && m->shape.q_lora_rank == 0 && !m->shape.plain_latent &&
                     m->how.experts == m->shape.n_routed_experts && m->w.blocks.size() < 256;
    for (size_t i = 0; i <= m->w.blocks.size() && supported; i++)
        supported = single_supports(m->s, args_of(m, i, 0));
    for (const device::block &b : m->w.blocks)
        supported = supported && b.dense != b.moe;
    return supported;
}

void device::forward_single(chain *c) {
    cuda_model *m = c->m;
    const size_t layers = m->w.blocks.size();
    int moe_layer = 0;
    for (size_t next = 0; next <= layers && c->ok(); next++) {
        c->run(single_layer(m->s, args_of(m, next, moe_layer)), "layer");
        moe_layer += next > 0 && m->w.blocks[next - 1].moe;
        if (next < layers)
            attend_cache(c, static_cast<int>(next));
    }
}
