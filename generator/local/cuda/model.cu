#include "generator/local/cuda/model.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "generator/local/cuda/chain.h"
#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/maps.h"
#include "generator/local/cuda/round.h"
#include "generator/local/cuda/single.h"
#include "kernels/cuda/device.h"

using namespace device;

namespace {

const int64_t kExpandedBytes = int64_t(1) << 30; /* limit for the expanded keys and values, unless
                                                    those of one head take more */

/* ---- memory ---------------------------------------------------------------------------------- */

struct allocator {
    cuda_model *m;
    snap_err *err;
    snap_status st;

    void check(cudaError_t e, const char *what) {
        if (st == SNAP_OK)
            st = cuda_check(e, what, err);
    }

    template <typename T>
    void take(T **out, int64_t n) {
        void *p = nullptr;
        *out = nullptr;
        if (st != SNAP_OK || n == 0)
            return;
        check(cudaMalloc(&p, static_cast<size_t>(n) * sizeof(T)), "device memory for a step");
        *out = static_cast<T *>(p);
        if (p)
            m->owned.push_back(p);
    }

    template <typename T>
    void take_host(T **out, int64_t n) {
        void *p = nullptr;
        *out = nullptr;
        if (st != SNAP_OK)
            return;
        check(cudaMallocHost(&p, static_cast<size_t>(n) * sizeof(T)), "host memory for a step");
        *out = static_cast<T *>(p);
        if (p)
            m->pinned.push_back(p);
    }
};

void take_inputs(allocator *a) {
    cuda_model *m = a->m;
    const int64_t words = kMostChunks + m->opt.max_decode + m->opt.max_rows,
                  table = static_cast<int64_t>(m->opt.max_decode + kMostChunks) * m->table_width;
    for (int side = 0; side < 2 && a->st == SNAP_OK; side++) {
        step_inputs &w = side ? m->host : m->dev;
        if (side) {
            a->take_host(&w.chunk_length, words);
            a->take_host(&w.table, table);
        } else {
            a->take(&w.chunk_length, words);
            a->take(&w.table, table);
        }
        w.length = w.chunk_length + kMostChunks;
        w.token = w.length + m->opt.max_decode;
    }
}

void take_rows(allocator *a) {
    cuda_model *m = a->m;
    const model_shape &s = m->shape;
    row_buffers &b = m->b;
    const int64_t rows = m->opt.max_rows, heads = s.num_attention_heads, rank = s.kv_lora_rank,
                  rope = s.qk_rope_head_dim, queries = heads * (s.qk_nope_head_dim + rope),
                  first = s.q_lora_rank ? s.q_lora_rank : queries, values = heads * s.v_head_dim,
                  widest = std::max(s.intermediate_size, m->shared_inner);
    a->take(&b.x, rows * s.hidden_size);
    a->take(&b.packed, rows * std::max(s.hidden_size, s.q_lora_rank));
    a->take(&b.in, rows * (first + rank + rope));
    a->take(&b.q, s.q_lora_rank ? rows * queries : 0);
    a->take(&b.q_packed, rows * queries);
    a->take(&b.o, rows * values);
    a->take(&b.part, comm_splits(m->opt.comm) || m->divides_experts
                         ? static_cast<int64_t>(expert_rows(m, m->opt.max_rows)) * s.hidden_size
                         : 0);
    a->take(&b.own, comm_splits(m->opt.comm) && gathers_rows(m) ? rows * s.hidden_size : 0);
    a->take(&b.inner, rows * widest);
    a->take(&b.gated, m->library ? std::min<int64_t>(rows, kGatedRows) * 2 * widest : 0);
    a->take(&b.logits, static_cast<int64_t>(m->logit_rows) * s.vocab_size);
    a->take(&b.key, rows);
    a->take(&b.want, rows);
    a->take(&b.angle, m->opt.context * m->rotary.pairs);
    a->take(&b.shared, m->rounded ? round_ranges(*m->rounded, rows) : 0);
    a->take(&b.exchange, single_exchange_words(s));
    a->check(a->st == SNAP_OK ? cudaMemsetAsync(b.exchange, 0,
                                                static_cast<size_t>(single_exchange_words(s)) *
                                                    sizeof *b.exchange,
                                                m->s.stream)
                              : cudaSuccess,
             "device memory for a step");
}

void take_decode(allocator *a) {
    cuda_model *m = a->m;
    const model_shape &s = m->shape;
    const int64_t rows = static_cast<int64_t>(m->opt.max_decode) * s.num_attention_heads,
                  rank = s.kv_lora_rank, rope = s.qk_rope_head_dim;
    const bool fp8 = m->opt.format == CACHE_FP8;
    a->take(&m->b.q_mla, fp8 ? 0 : rows * (rank + rope));
    a->take(&m->b.q8, fp8 ? rows * rank : 0);
    a->take(&m->b.q8_rope, fp8 ? rows * rope : 0);
    a->take(&m->b.q8_scale, fp8 ? rows : 0);
    a->take(&m->b.o_mla, rows * rank);
}

void take_chunk(allocator *a) {
    cuda_model *m = a->m;
    const model_shape &s = m->shape;
    const int64_t kv = s.qk_nope_head_dim + s.v_head_dim,
                  head = m->opt.context * kv * static_cast<int64_t>(sizeof(bf16));
    m->heads_at_once = static_cast<int>(
        std::min<int64_t>(std::max<int64_t>(kExpandedBytes / head, 1), s.num_attention_heads));
    a->take(&m->b.kv, m->opt.context * (s.kv_lora_rank + s.qk_rope_head_dim));
    a->take(&m->b.expanded, m->opt.context * kv * m->heads_at_once);
}

void take_messages(allocator *a) {
    cuda_model *m = a->m;
    const int64_t own = m->opt.max_rows * message_row(m->shape.hidden_size, m->how.chosen);
    a->take(&m->b.message, own);
    a->take(&m->b.gathered, gathers_rows(m) ? own * m->opt.experts->size : 0);
}

void take_experts(allocator *a) {
    cuda_model *m = a->m;
    const model_shape &s = m->shape;
    row_buffers &b = m->b;
    const int64_t rows = m->opt.max_rows, pairs = expert_pairs(m, m->opt.max_rows),
                  choices = static_cast<int64_t>(expert_rows(m, m->opt.max_rows)) * m->slots;
    if (!m->moe_layers)
        return;
    if (m->divides_experts)
        take_messages(a);
    a->take(&b.expert_inner, pairs * s.moe_intermediate_size);
    a->take(&b.down, pairs * s.hidden_size);
    a->take(&b.identity, s.zero_expert_num ? rows * s.hidden_size : 0);
    a->take(&b.scores, rows * m->how.experts);
    a->take(&b.chosen, m->moe_layers * rows * m->how.chosen);
    a->take(&b.expert, choices);
    a->take(&b.place, choices);
    a->take(&b.weight, choices);
    a->take(&b.first, m->experts + 1);
    a->take(&b.active, m->experts);
    a->take(&b.count, 1);
    a->take(&b.total, m->experts);
    a->take(&b.pair_row, pairs);
    a->take(&b.ticket, rows + 1);
    a->check(
        a->st == SNAP_OK
            ? cudaMemsetAsync(b.ticket, 0, static_cast<size_t>(rows + 1) * sizeof(int), m->s.stream)
            : cudaSuccess,
        "device memory for a step");
    a->take_host(&m->chosen_host, m->moe_layers * rows * m->how.chosen);
}

void take_readings(allocator *a) {
    cuda_model *m = a->m;
    const int64_t rows = m->read_rows = m->opt.max_decode + kMostChunks;
    a->take(&m->read.wanted, rows);
    a->take(&m->read.answer, rows);
    a->take(&m->read.list, rows * READING_MOST);
    a->take_host(&m->read_host.wanted, rows);
    a->take_host(&m->read_host.answer, rows);
    a->take_host(&m->read_host.list, rows * READING_MOST);
}

snap_status take_all(cuda_model *m, snap_err *err) {
    allocator a = {m, err, SNAP_OK};
    take_inputs(&a);
    take_rows(&a);
    take_decode(&a);
    take_chunk(&a);
    take_experts(&a);
    take_readings(&a);
    a.take_host(&m->logits_host, static_cast<int64_t>(m->logit_rows) * m->shape.vocab_size);
    a.take_host(&m->key_host, m->opt.max_rows);
    a.take_host(&m->want_host, m->opt.max_rows);
    if (a.st == SNAP_OK)
        a.check(make_angles(m->s, m->rotary, m->opt.context, m->b.angle), "rotary angles");
    return a.st;
}

/* Memory that depends on the format of the weights, so it must be taken after weights_load(). The
 * rows of experts are gathered as BF16. Products with e4m3 weights convert their operands: to FP16
 * with up to kFewRows rows, else to e4m3. */
snap_status take_operands(cuda_model *m, snap_err *err) {
    allocator a = {m, err, SNAP_OK};
    const model_shape &s = m->shape;
    const int64_t rows = m->opt.max_rows, pairs = expert_pairs(m, m->opt.max_rows),
                  widest = std::max({s.hidden_size, s.q_lora_rank, s.intermediate_size,
                                     m->shared_inner, s.num_attention_heads * s.v_head_dim}),
                  of_pairs = std::max(s.hidden_size, s.moe_intermediate_size),
                  few = std::min<int64_t>(expert_rows(m, m->opt.max_rows), kFewRows),
                  few_pairs = m->moe_layers ? few * std::min(m->slots, m->experts) : 0;
    bool gathers = false;
    for (const block &b : m->w.blocks)
        gathers = gathers || (b.moe && !b.experts_in.code);
    a.take(&m->b.pair_x, gathers ? pairs * s.hidden_size : 0);
    if (!m->w.coded)
        return a.st;
    a.take(&m->b.code, std::max({rows * widest, pairs * of_pairs, 2 * few * widest,
                                 2 * few_pairs * s.moe_intermediate_size}));
    a.take(&m->b.code_scale,
           std::max({row_scale_pitch(rows) * code_blocks(widest),
                     row_scale_pitch(pairs) * code_blocks(of_pairs), few, few_pairs}));
    a.take(&m->b.partial.sum, partial_sums_numbers());
    a.take(&m->b.partial.ready, STREAM_K_BLOCKS);
    if (a.st == SNAP_OK)
        a.check(cudaMemsetAsync(m->b.partial.ready, 0, sizeof(int) * STREAM_K_BLOCKS, m->s.stream),
                "marks of partial sums");
    return a.st;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct bound {
    const char *name;
    int value, most;
};

enum { MAX_EXPERTS = 3072 }; /* the most that check_route tests */

/* Refuses models that the kernels do not support. The limits: the longest row of a norm, the number
 * of experts, rows in multiples of 16 bytes, the head sizes that chunk attention supports, and no
 * cache in FP32. */
snap_status check_shape(const model_shape &s, int shared_inner, const runner_options &o,
                        snap_err *err) {
    const bound bounds[] = {
        {"hidden_size", s.hidden_size, MAX_NORMED},
        {"q_lora_rank", s.q_lora_rank, MAX_NORMED},
        {"n_routed_experts + zero_expert_num", s.n_routed_experts + s.zero_expert_num, MAX_EXPERTS},
        {"hidden_size modulo 8", s.hidden_size % 8, 0},
        {"q_lora_rank modulo 8", s.q_lora_rank % 8, 0},
        {"qk_nope_head_dim modulo 8", s.qk_nope_head_dim % 8, 0},
        {"v_head_dim modulo 8", s.v_head_dim % 8, 0},
        {"intermediate_size modulo 8", s.intermediate_size % 8, 0},
        {"moe_intermediate_size modulo 8", s.moe_intermediate_size % 8, 0},
        {"the rank's inner width of the shared experts modulo 8", shared_inner % 8, 0},
        {"qk_nope_head_dim + qk_rope_head_dim", s.qk_nope_head_dim + s.qk_rope_head_dim, MAX_QK},
        {"v_head_dim", s.v_head_dim, MAX_V},
    };
    for (const bound &b : bounds)
        if (b.value > b.most)
            return err_set(err, SNAP_E_UNSUPPORTED, "%s is %d: the CUDA model supports at most %d",
                           b.name, b.value, b.most);
    if (o.format == CACHE_F32)
        return err_set(err, SNAP_E_UNSUPPORTED, "the CUDA model does not support precision '%s'",
                       o.precision);
    return SNAP_OK;
}

snap_status create_plans(cuda_model *m, snap_err *err) {
    const model_shape &s = m->shape;
    mla_capacity cap = {};
    cap.precision = cache_precision(m->opt.format);
    cap.heads = s.num_attention_heads;
    cap.d_c = s.kv_lora_rank;
    cap.d_r = s.qk_rope_head_dim;
    cap.batch = 1;
    cap.s_q = 1;
    cap.max_tokens = static_cast<int64_t>(m->table_width) * MLA_PAGE;
    cap.splits = 1;
    const snap_status st = mla_plan_create(&m->fetch_plan, m->be, &cap, err);
    if (st != SNAP_OK)
        return st;
    cap.batch = m->opt.max_decode;
    cap.splits = 0;
    return mla_plan_create(&m->decode_plan, m->be, &cap, err);
}

cudaError_t prepare_hopper() {
    cudaError_t e = maps_init();
    if (e == cudaSuccess)
        e = gemm_many_init();
    if (e == cudaSuccess)
        e = gemm_few_sm90_init();
    if (e == cudaSuccess)
        e = gemm_few_codes_init();
    if (e == cudaSuccess)
        e = gemm_many_codes_init();
    if (e == cudaSuccess)
        e = gemm_expert_codes_init();
    if (e == cudaSuccess)
        e = gemm_stream_k_init();
    if (e == cudaSuccess)
        e = single_init();
    return e == cudaSuccess ? attend_sm90_init() : e;
}

snap_status create(cuda_model *m, const model_weights *w, snap_err *err) {
    snap_status st = check_shape(m->shape, m->shared_inner, m->opt, err);
    if (st == SNAP_OK)
        st = cuda_check(attend_init(), "preparing kernels", err);
    if (st == SNAP_OK && m->s.hopper)
        st = cuda_check(prepare_hopper(), "preparing kernels", err);
    if (st == SNAP_OK && m->s.hopper)
        m->library = cublaslt_open();
    if (st == SNAP_OK)
        st = create_plans(m, err);
    if (st == SNAP_OK)
        st = take_all(m, err);
    if (st == SNAP_OK)
        st = weights_load(&m->w, m->s, w, err);
    if (st == SNAP_OK)
        st = take_operands(m, err);
    m->single = st == SNAP_OK && !m->rounded && !comm_splits(m->opt.comm) && !m->divides_experts &&
                single_supports_all(m);
    return st;
}

void set_experts(cuda_model *m, const model_weights *w) {
    m->divides_experts = weights_divide_experts(w);
    const int shared = m->divides_experts ? 0 : shared_experts(m->shape);
    m->first_expert = weights_first_expert(w);
    m->experts = weights_experts(w) + shared;
    m->slots = m->how.chosen + shared;
    m->shared_inner = m->divides_experts ? static_cast<int>(weights_shared_inner(w)) : 0;
}

int count_moe(const model_weights *w) {
    int n = 0;
    for (int i = 0; i < w->blocks; i++)
        n += w->block[i].moe;
    return n;
}

} // namespace

extern "C" int cuda_model_cublaslt(const cuda_model *m) {
    return m->library ? static_cast<int>(cublaslt_version(m->library)) : 0;
}

extern "C" bool cuda_model_holds_e4m3(const cuda_model *m) {
    return m->w.coded;
}

extern "C" snap_status cuda_model_use(const cuda_model *m, snap_err *err) {
    return cuda_backend_use(m->be, err);
}

extern "C" void cuda_model_free(cuda_model *m) {
    if (!m)
        return;
    if (cuda_model_use(m, nullptr) == SNAP_OK)
        (void)cudaStreamSynchronize(m->s.stream);
    for (lab_recording *r : m->recorded)
        if (r)
            lab_recording_free(m->be, r);
    mla_plan_free(m->decode_plan);
    mla_plan_free(m->fetch_plan);
    weights_free(&m->w);
    cublaslt_close(m->library);
    for (void *p : m->owned)
        cudaFree(p);
    for (void *p : m->pinned)
        cudaFreeHost(p);
    delete m;
}

extern "C" snap_status cuda_model_create(cuda_model **out, mla_backend *be, const model_weights *w,
                                         kv_cache *cache, const runner_options *opt,
                                         snap_err *err) {
    *out = nullptr;
    auto *m = new (std::nothrow) cuda_model{};
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a model");
    const cuda_backend *device = cuda_of(be);
    m->be = be;
    m->s = {device->stream, device->hopper && !device->portable, device->sms};
    m->shape = w->shape;
    m->opt = *opt;
    m->cache = cache;
    m->rounded = kv_cache_row_format(cache);
    m->how = router_make(&m->shape);
    m->rotary = rope_make(&m->shape);
    m->softmax_scale = static_cast<float>(rope_softmax_scale(&m->shape));
    m->branch = m->shape.arch == ARCH_MINICPM3
                    ? static_cast<float>(m->shape.scale_depth /
                                         std::sqrt(static_cast<double>(m->shape.num_hidden_layers)))
                    : 1.0f;
    m->table_width = static_cast<int>((opt->context - 1) / MLA_PAGE + 1);
    m->moe_layers = count_moe(w);
    set_experts(m, w);
    m->logit_rows = std::max<int>(kLogitRows, opt->max_decode + 1);
    m->recorded.resize(static_cast<size_t>(opt->max_decode) + 1);
    const snap_status st = create(m, w, err);
    if (st == SNAP_OK)
        *out = m;
    else
        cuda_model_free(m);
    return st;
}
