#include "generator/local/cuda/maps.h"
#include "generator/local/cuda/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "generator/local/cuda/attend.h"
#include "kernels/cuda/device.h"

using namespace device;

namespace {

const int64_t kExpandedBytes = int64_t(1) << 30; /* of keys and values of some heads */

/* ---- memory ------------------------------------------------------------------------------------ */

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

void take_words(allocator *a) {
    cuda_model *m = a->m;
    const int64_t words = kMostChunks + m->opt.max_decode + m->opt.max_rows,
                  table = static_cast<int64_t>(m->opt.max_decode + kMostChunks) * m->table_width;
    for (int side = 0; side < 2 && a->st == SNAP_OK; side++) {
        step_words &w = side ? m->host : m->dev;
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
                  first = s.q_lora_rank ? s.q_lora_rank : queries, values = heads * s.v_head_dim;
    a->take(&b.x, rows * s.hidden_size);
    a->take(&b.packed, rows * std::max(s.hidden_size, s.q_lora_rank));
    a->take(&b.in, rows * (first + rank + rope));
    a->take(&b.q, s.q_lora_rank ? rows * queries : 0);
    a->take(&b.q_packed, rows * queries);
    a->take(&b.o, rows * values);
    a->take(&b.inner, rows * s.intermediate_size);
    a->take(&b.logits,
            static_cast<int64_t>(std::max<int>(kLogitRows, m->opt.max_decode)) * s.vocab_size);
    a->take(&b.key, rows);
    a->take(&b.want, rows);
    a->take(&b.angle, m->opt.context * (rope / 2));
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

void take_experts(allocator *a) {
    cuda_model *m = a->m;
    const model_shape &s = m->shape;
    row_buffers &b = m->b;
    const int64_t rows = m->opt.max_rows, pairs = rows * m->slots;
    if (!m->moe_layers)
        return;
    a->take(&b.pair_x, pairs * s.hidden_size);
    a->take(&b.expert_inner, pairs * s.moe_intermediate_size);
    a->take(&b.down, pairs * s.hidden_size);
    a->take(&b.same, s.zero_expert_num ? rows * s.hidden_size : 0);
    a->take(&b.scores, rows * m->how.experts);
    a->take(&b.chosen, m->moe_layers * rows * m->how.chosen);
    a->take(&b.expert, pairs);
    a->take(&b.place, pairs);
    a->take(&b.weight, pairs);
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

snap_status take_all(cuda_model *m, snap_err *err) {
    allocator a = {m, err, SNAP_OK};
    take_words(&a);
    take_rows(&a);
    take_decode(&a);
    take_chunk(&a);
    take_experts(&a);
    a.take_host(&m->logits_host,
                static_cast<int64_t>(std::max<int>(kLogitRows, m->opt.max_decode)) *
                    m->shape.vocab_size);
    a.take_host(&m->key_host, m->opt.max_rows);
    a.take_host(&m->want_host, m->opt.max_rows);
    if (a.st == SNAP_OK)
        a.check(make_angles(m->s, m->turn, m->opt.context, m->b.angle), "rotary angles");
    return a.st;
}

/* ---- life --------------------------------------------------------------------------------------- */

struct bound {
    const char *name;
    int value, most;
};

/* 16-byte pieces everywhere, and heads as wide as the attention of chunks takes. */
snap_status check_shape(const model_shape &s, const runner_options &o, snap_err *err) {
    const bound bounds[] = {
        {"hidden_size modulo 8", s.hidden_size % 8, 0},
        {"q_lora_rank modulo 8", s.q_lora_rank % 8, 0},
        {"qk_nope_head_dim modulo 8", s.qk_nope_head_dim % 8, 0},
        {"v_head_dim modulo 8", s.v_head_dim % 8, 0},
        {"intermediate_size modulo 8", s.intermediate_size % 8, 0},
        {"moe_intermediate_size modulo 8", s.moe_intermediate_size % 8, 0},
        {"qk_nope_head_dim + qk_rope_head_dim", s.qk_nope_head_dim + s.qk_rope_head_dim, MAX_QK},
        {"v_head_dim", s.v_head_dim, MAX_V},
    };
    for (const bound &b : bounds)
        if (b.value > b.most)
            return err_set(err, SNAP_E_UNSUPPORTED, "%s is %d: the CUDA model takes at most %d",
                           b.name, b.value, b.most);
    if (o.format != CACHE_BF16 && o.format != CACHE_FP8)
        return err_set(err, SNAP_E_UNSUPPORTED, "the CUDA model has no precision '%s' (bf16, fp8)",
                       cache_format_name(o.format));
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
    return e == cudaSuccess ? attend_sm90_init() : e;
}

snap_status create(cuda_model *m, const model_weights *w, snap_err *err) {
    snap_status st = check_shape(m->shape, m->opt, err);
    if (st == SNAP_OK)
        st = cuda_check(attend_init(), "preparing kernels", err);
    if (st == SNAP_OK && m->s.hopper)
        st = cuda_check(prepare_hopper(), "preparing kernels", err);
    if (st == SNAP_OK)
        st = create_plans(m, err);
    if (st == SNAP_OK)
        st = take_all(m, err);
    if (st == SNAP_OK)
        st = weights_load(&m->w, m->s, w, err);
    return st;
}

int count_moe(const model_weights *w) {
    int n = 0;
    for (int i = 0; i < w->blocks; i++)
        n += w->block[i].moe;
    return n;
}

} // namespace

extern "C" void cuda_model_free(cuda_model *m) {
    if (!m)
        return;
    (void)cudaStreamSynchronize(m->s.stream);
    for (lab_recording *r : m->recorded)
        if (r)
            lab_recording_free(m->be, r);
    mla_plan_free(m->decode_plan);
    mla_plan_free(m->fetch_plan);
    weights_free(&m->w);
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
    m->how = router_make(&m->shape);
    m->turn = rope_make(&m->shape);
    m->softmax_scale =
        static_cast<float>(rope_softmax_factor(&m->shape) /
                           std::sqrt(m->shape.qk_nope_head_dim + m->shape.qk_rope_head_dim));
    m->branch = m->shape.arch == ARCH_MINICPM3
                    ? static_cast<float>(m->shape.scale_depth /
                                         std::sqrt(static_cast<double>(m->shape.num_hidden_layers)))
                    : 1.0f;
    m->table_width = static_cast<int>((opt->context - 1) / MLA_PAGE + 1);
    m->moe_layers = count_moe(w);
    m->experts = m->shape.n_routed_experts + shared_experts(m->shape);
    m->slots = m->how.chosen + shared_experts(m->shape);
    m->recorded.resize(static_cast<size_t>(opt->max_decode) + 1);
    const snap_status st = create(m, w, err);
    if (st == SNAP_OK)
        *out = m;
    else
        cuda_model_free(m);
    return st;
}

/* ---- step ---------------------------------------------------------------------------------------- */

namespace {

bool is_decode(const model_piece &p) {
    return p.count == 1 && !p.chunk;
}

void add_pages(cuda_model *m, const model_piece &p, int row) {
    const int64_t pages = (p.position + p.count - 1) / MLA_PAGE + 1;
    memcpy(m->host.table + static_cast<int64_t>(row) * m->table_width, p.pages,
           static_cast<size_t>(pages) * sizeof(int));
}

void add_tokens(cuda_model *m, step_shape *step, const model_piece &p) {
    memcpy(m->host.token + step->rows, p.tokens, static_cast<size_t>(p.count) * sizeof(int));
    step->rows += p.count;
}

/* Pieces of one token first; then which rows' logits are wanted, in the caller's order. */
snap_status lay_out(cuda_model *m, const model_piece *pieces, int count, step_shape *step,
                    snap_err *err) {
    std::vector<int> first(static_cast<size_t>(count));
    for (int i = 0; i < count; i++) {
        if (!is_decode(pieces[i]))
            continue;
        if (step->decode == m->opt.max_decode)
            return err_set(err, SNAP_E_SHAPE, "more than %d sequences in a step",
                           m->opt.max_decode);
        first[static_cast<size_t>(i)] = step->rows;
        m->host.length[step->decode] = static_cast<int>(pieces[i].position) + 1;
        add_pages(m, pieces[i], step->decode++);
        add_tokens(m, step, pieces[i]);
    }
    for (int i = 0; i < count; i++) {
        if (is_decode(pieces[i]))
            continue;
        if (step->chunks == kMostChunks)
            return err_set(err, SNAP_E_SHAPE, "more than %d pieces of prompts in a step",
                           static_cast<int>(kMostChunks));
        first[static_cast<size_t>(i)] = step->rows;
        step->chunk[step->chunks] = {step->rows, pieces[i].count, pieces[i].position};
        m->host.chunk_length[step->chunks] = static_cast<int>(pieces[i].position) + pieces[i].count;
        add_pages(m, pieces[i], m->opt.max_decode + step->chunks++);
        add_tokens(m, step, pieces[i]);
    }
    for (int i = 0; i < count; i++)
        for (int j = pieces[i].count - pieces[i].logits; j < pieces[i].count; j++)
            m->want_host[step->wanted++] = first[static_cast<size_t>(i)] + j;
    step->gathers = step->chunks > 0 || step->wanted != step->rows;
    return SNAP_OK;
}

cudaError_t copy_tables(cuda_model *m, int from, int rows, const int *length) {
    int longest = 1;
    for (int i = 0; i < rows; i++)
        longest = std::max(longest, length[i]);
    const size_t pitch = static_cast<size_t>(m->table_width) * sizeof(int),
                 width = static_cast<size_t>((longest - 1) / MLA_PAGE + 1) * sizeof(int);
    const int64_t at = static_cast<int64_t>(from) * m->table_width;
    return rows ? cudaMemcpy2DAsync(m->dev.table + at, pitch, m->host.table + at, pitch, width,
                                    static_cast<size_t>(rows), cudaMemcpyHostToDevice, m->s.stream)
                : cudaSuccess;
}

snap_status copy_in(cuda_model *m, const step_shape &step, snap_err *err) {
    const size_t words = static_cast<size_t>(kMostChunks + m->opt.max_decode + step.rows);
    cudaError_t e = cudaMemcpyAsync(m->dev.chunk_length, m->host.chunk_length, words * sizeof(int),
                                    cudaMemcpyHostToDevice, m->s.stream);
    if (e == cudaSuccess)
        e = copy_tables(m, 0, step.decode, m->host.length);
    if (e == cudaSuccess)
        e = copy_tables(m, m->opt.max_decode, step.chunks, m->host.chunk_length);
    if (e == cudaSuccess && step.gathers && step.wanted)
        e = cudaMemcpyAsync(m->b.want, m->want_host, static_cast<size_t>(step.wanted) * sizeof(int),
                            cudaMemcpyHostToDevice, m->s.stream);
    return cuda_check(e, "copying a step", err);
}

/* Rows of b.logits to the caller, through pinned memory. */
snap_status copy_logits(cuda_model *m, int rows, float *to, snap_err *err) {
    const size_t bytes = static_cast<size_t>(rows) * m->shape.vocab_size * sizeof(float);
    cudaError_t e =
        cudaMemcpyAsync(m->logits_host, m->b.logits, bytes, cudaMemcpyDeviceToHost, m->s.stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    if (e == cudaSuccess)
        memcpy(to, m->logits_host, bytes);
    return cuda_check(e, "device work", err);
}

/* A step of one new token for each sequence, recorded when its number of sequences first comes. */
snap_status run_recorded(cuda_model *m, const step_shape &step, snap_err *err) {
    lab_recording *&r = m->recorded[static_cast<size_t>(step.rows)];
    if (!r) {
        snap_status st = lab_record(m->be, err);
        if (st != SNAP_OK)
            return st;
        st = forward(m, step, err);
        if (st == SNAP_OK)
            st = logits_of(m, 0, step.rows, err);
        const snap_status end = lab_record_end(m->be, &r, err);
        if (st == SNAP_OK)
            st = end;
        if (st != SNAP_OK)
            return st;
    }
    return lab_replay(m->be, r, err);
}

snap_status run_eager(cuda_model *m, const step_shape &step, float *logits, snap_err *err) {
    snap_status st = forward(m, step, err);
    for (int first = 0; first < step.wanted && st == SNAP_OK; first += kLogitRows) {
        const int now = std::min<int>(kLogitRows, step.wanted - first);
        st = logits_of(m, first, now, err);
        if (st == SNAP_OK && logits)
            st = copy_logits(m, now, logits + static_cast<int64_t>(first) * m->shape.vocab_size,
                             err);
    }
    return st;
}

void reorder_experts(const cuda_model *m, int rows, int32_t *to) {
    const int k = m->how.chosen;
    for (int l = 0; l < m->moe_layers; l++)
        for (int i = 0; i < rows; i++)
            memcpy(to + (static_cast<int64_t>(i) * m->moe_layers + l) * k,
                   m->chosen_host + (static_cast<int64_t>(l) * m->opt.max_rows + i) * k,
                   static_cast<size_t>(k) * sizeof *to);
}

snap_status copy_out(cuda_model *m, const step_shape &step, const cuda_model_results *out,
                     snap_err *err) {
    cudaError_t e = cudaSuccess;
    const bool experts = out->experts && m->moe_layers;
    const size_t chosen = static_cast<size_t>(m->moe_layers) * m->opt.max_rows * m->how.chosen;
    if (out->next && step.wanted)
        e = cudaMemcpyAsync(m->key_host, m->b.key,
                            static_cast<size_t>(step.wanted) * sizeof *m->key_host,
                            cudaMemcpyDeviceToHost, m->s.stream);
    if (e == cudaSuccess && experts)
        e = cudaMemcpyAsync(m->chosen_host, m->b.chosen, chosen * sizeof(int),
                            cudaMemcpyDeviceToHost, m->s.stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    if (e != cudaSuccess)
        return cuda_check(e, "device work", err);
    for (int i = 0; i < step.wanted && out->next; i++)
        out->next[i] = next_token_of(m->key_host[i]);
    if (experts)
        reorder_experts(m, step.rows, out->experts);
    return SNAP_OK;
}

} // namespace

extern "C" snap_status cuda_model_step(cuda_model *m, const model_piece *pieces, int count,
                                       const cuda_model_results *out, snap_err *err) {
    step_shape step = {};
    snap_status st = lay_out(m, pieces, count, &step, err);
    if (st == SNAP_OK)
        st = copy_in(m, step, err);
    if (st != SNAP_OK)
        return st;
    if (step.gathers || !step.rows) {
        st = run_eager(m, step, out->logits, err);
    } else {
        st = run_recorded(m, step, err);
        if (st == SNAP_OK && out->logits)
            st = copy_logits(m, step.rows, out->logits, err);
    }
    return st == SNAP_OK ? copy_out(m, step, out, err) : st;
}

extern "C" snap_status cuda_model_fill_cache(cuda_model *m, uint64_t seed, snap_err *err) {
    const mla_page_bytes page = mla_cache_page_bytes(
        cache_precision(m->opt.format), m->shape.kv_lora_rank, m->shape.qk_rope_head_dim);
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < m->w.blocks.size() && e == cudaSuccess; i++) {
        const mla_cache *c = kv_cache_layer(m->cache, static_cast<int>(i));
        const int64_t pages = c->pages;
        seed += 1ull << 40;
        if (!c->scale) {
            e = fill_bf16(m->s, static_cast<bf16 *>(c->content),
                          pages * static_cast<int64_t>(page.content / sizeof(bf16)), 1.7f, seed);
            continue;
        }
        e = fill_e4m3(m->s, static_cast<uint8_t *>(c->content),
                      pages * static_cast<int64_t>(page.content), seed);
        if (e == cudaSuccess)
            e = fill_bf16(m->s, static_cast<bf16 *>(c->rope),
                          pages * static_cast<int64_t>(page.rope / sizeof(bf16)), 256.0f, ~seed);
        if (e == cudaSuccess)
            e = fill_f32(m->s, c->scale, pages * static_cast<int64_t>(page.scale / sizeof(float)),
                         0.0066f, 0.001f, seed + 1);
    }
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    return cuda_check(e, "filling the cache", err);
}
