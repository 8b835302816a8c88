#include "generator/local/cuda/cuda_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/rows.h"
#include "generator/local/cuda/scaled.h"
#include "kernels/cuda/device.h"

extern "C" {
#include "kernels/formats.h"
}

namespace device {
namespace {

enum { kBand = 1024 }; /* rows that are copied at a time; a multiple of 8 */

/* Device memory that grows as needed. */
struct staging {
    void *at;
    size_t bytes;
};

/* Loads one matrix after another. After a failure the further calls do nothing. */
struct loader {
    weights *to;
    stream_of s;
    const model_shape *shape;
    const model_weights *from;
    snap_err *err;
    snap_status st;
    const checkpoint *files;
    bool random;
    uint64_t seed;
    std::vector<float> row;
    std::vector<uint16_t> band;
    staging code, scale; /* codes and scales of an e4m3 matrix */

    void check(cudaError_t e, const char *what) {
        if (st == SNAP_OK)
            st = cuda_check(e, what, err);
    }

    /* Copies rows to the device; pitches and @width are in bytes. The copy uses the stream of the
     * kernels that read the weights, and is waited for. A copy from pageable host memory,
     * cudaMemcpy() included, may return while its last bytes are still on the way. Kernels of a
     * non-blocking stream could then read the old contents. */
    void copy(void *dst, int64_t dst_pitch, const void *src, int64_t src_pitch, int64_t width,
              int64_t rows) {
        if (st != SNAP_OK)
            return;
        check(cudaMemcpy2DAsync(dst, static_cast<size_t>(dst_pitch), src,
                                static_cast<size_t>(src_pitch), static_cast<size_t>(width),
                                static_cast<size_t>(rows), cudaMemcpyHostToDevice, s.stream),
              "copying weights");
        check(cudaStreamSynchronize(s.stream), "copying weights");
    }

    void *take(size_t bytes) {
        void *p = nullptr;
        if (st != SNAP_OK)
            return nullptr;
        const cudaError_t e = cudaMalloc(&p, bytes);
        if (e == cudaSuccess) {
            to->owned.push_back(p);
            to->bytes += bytes;
        }
        check(e, "device memory for weights");
        return p;
    }

    /* @first: number of the first row of a larger matrix of random weights, of which these are some
     * rows. The numbers of a row do not depend on which rank has it. */
    bf16 *matrix_of(int64_t rows, int64_t cols, uint64_t of_seed, int64_t first) {
        bf16 *p = static_cast<bf16 *>(take(static_cast<size_t>(rows * cols) * sizeof(bf16)));
        if (random && p) /* a product keeps the variance of its input */
            check(fill_bf16(s, p, rows * cols, std::sqrt(3.0f / static_cast<float>(cols)),
                            of_seed + static_cast<uint64_t>(first * cols)),
                  "random weights");
        return p;
    }

    bf16 *matrix(int64_t rows, int64_t cols) {
        return matrix_of(rows, cols, seed += 1ull << 40, 0);
    }

    /* Whether the parts of a joined matrix of @k columns can stay e4m3 (cuda_weights.h). Random
     * weights have no parts. */
    bool stays_coded(std::initializer_list<const mat *> parts, int64_t k) const {
        if (!s.hopper || shape->fp8_block != CODE_BLOCK || k % 16)
            return false;
        for (const mat *m : parts)
            if (!random &&
                (!m->scale || m->first_row % 8 || m->rows % 8 || m->first_col % CODE_BLOCK))
                return false;
        return true;
    }

    /* Allocates @groups matrices, e4m3 if @coded, else BF16. matrix_of() explains @of_seed and
     * @first. */
    weight_matrix matrices_of(int64_t groups, int64_t rows, int64_t cols, bool coded,
                              uint64_t of_seed, int64_t first) {
        weight_matrix m = {};
        const int64_t codes = groups * rows * cols, scales = groups * code_scales(rows, cols);
        if (!coded) {
            m.w = matrix_of(groups * rows, cols, of_seed, first);
            return m;
        }
        to->coded = m.uniform = true; /* as long as no part says otherwise */
        m.code = static_cast<uint8_t *>(take(static_cast<size_t>(codes)));
        m.scale = static_cast<float *>(take(static_cast<size_t>(scales) * sizeof(float)));
        if (!m.scale)
            return m;
        if (!random) { /* some places have no weights */
            check(
                cudaMemsetAsync(m.scale, 0, static_cast<size_t>(scales) * sizeof(float), s.stream),
                "device memory for weights");
            return m;
        }
        const float spread = std::sqrt(3.0f / static_cast<float>(cols)) / 256;
        check(fill_e4m3(s, m.code, codes, of_seed + static_cast<uint64_t>(first * cols)),
              "random weights");
        check(fill_f32(s, m.scale, scales, spread, 0, 0), "random weights");
        return m;
    }

    weight_matrix matrices(int64_t groups, int64_t rows, int64_t cols, bool coded) {
        return matrices_of(groups, rows, cols, coded, seed += 1ull << 40, 0);
    }

    float *vector(const float *from, int64_t n) {
        float *p = static_cast<float *>(take(static_cast<size_t>(n) * sizeof(float)));
        if (!p)
            return p;
        if (random)
            check(fill_f32(s, p, n, 1, 0.1f, seed += 1ull << 40), "random weights");
        else
            copy(p, n * 4, from, n * 4, n * 4, 1);
        return p;
    }

    /* Numbers from one row to the next in what rows_of() returns. */
    static int64_t pitch_of(const mat &m) {
        return m.w->dtype == DTYPE_BF16 ? mat_stride(&m) : m.cols;
    }

    /* The rows of a matrix from @first on in BF16: in place if they are BF16, else converted. */
    const uint16_t *rows_of(const mat &m, int64_t first, int64_t n) {
        if (m.w->dtype == DTYPE_BF16)
            return reinterpret_cast<const uint16_t *>(m.w->data) +
                   (m.first_row + first) * mat_stride(&m) + m.first_col;
        row.resize(static_cast<size_t>(m.cols));
        band.resize(static_cast<size_t>(n * m.cols));
        for (int64_t i = 0; i < n; i++) {
            mat_read_row(&m, first + i, row.data());
            for (int64_t j = 0; j < m.cols; j++)
                band[static_cast<size_t>(i * m.cols + j)] =
                    bf16_from_f32(row[static_cast<size_t>(j)]);
        }
        return band.data();
    }

    /* Copies @rows rows of @width bytes, which are @pitch bytes apart, to a buffer without gaps. */
    void stage(staging *buffer, const void *from, int64_t pitch, int64_t width, int64_t rows) {
        const size_t bytes = static_cast<size_t>(width * rows);
        if (buffer->bytes < bytes) {
            cudaFree(buffer->at);
            *buffer = {};
            check(cudaMalloc(&buffer->at, bytes), "device memory for weights");
            buffer->bytes = st == SNAP_OK ? bytes : 0;
        }
        copy(buffer->at, width, from, pitch, width, rows);
    }

    /* Converts rows from @first on and columns from @col on of an e4m3 matrix. */
    void place_scaled(const mat &m, int64_t first, int64_t n, int64_t col, int64_t width,
                      bool by_eights, bf16 *dst) {
        const auto *codes = static_cast<const uint8_t *>(m.w->data);
        const int64_t row = m.first_row + first, at = m.first_col + col, stride = mat_stride(&m),
                      bytes = static_cast<int64_t>(m.scale->bytes);
        stage(&code, codes + row * stride + at, stride, width, n);
        stage(&scale, m.scale->data, bytes, bytes, 1);
        if (st == SNAP_OK)
            check(scaled_to_bf16(s, {static_cast<const uint8_t *>(code.at),
                                     static_cast<const float *>(scale.at), m.block,
                                     m.scale->shape[1], row, n, at, width, by_eights, dst}),
                  "copying weights");
    }

    /* Copies the columns col .. col + width - 1 of all rows to a matrix of that width. */
    void place(const mat &m, int64_t col, int64_t width, bf16 *dst) {
        for (int64_t r = 0; r < m.rows && st == SNAP_OK && !random; r += kBand) {
            const int64_t n = std::min<int64_t>(kBand, m.rows - r);
            if (m.scale) {
                place_scaled(m, r, n, col, width, false, dst + r * width);
                continue;
            }
            copy(dst + r * width, 2 * width, rows_of(m, r, n) + col, 2 * pitch_of(m), 2 * width, n);
        }
    }

    /* Copies the rows first .. first + n - 1 to alternate blocks of eight rows. @half: 0 = gate, 1
     * = up projection, which are never split by columns. */
    void interleave(const mat &m, int64_t first, int64_t n, int half, bf16 *dst) {
        for (int64_t r = 0; r < n && st == SNAP_OK && !random; r += kBand) {
            const int64_t now = std::min<int64_t>(kBand, n - r);
            if (m.scale) {
                place_scaled(m, first + r, now, 0, m.cols, true, dst + (2 * r + 8 * half) * m.cols);
                continue;
            }
            copy(dst + (2 * r + 8 * half) * m.cols, 32 * m.cols, rows_of(m, first + r, now),
                 16 * m.cols, 16 * m.cols, now / 8);
        }
    }

    /* Copies the scales of @n rows from @first on, and of the columns from @col on. */
    void place_scales(const mat &m, int64_t first, int64_t n, int64_t col, int64_t width,
                      int64_t to_row, bool by_eights, float *dst) {
        const auto bytes = static_cast<int64_t>(m.scale->bytes);
        stage(&scale, m.scale->data, bytes, bytes, 1);
        if (st == SNAP_OK)
            check(place_code_scales(s, {static_cast<const float *>(scale.at), m.scale->shape[1],
                                        m.first_row + first, n, m.first_col + col, width, dst,
                                        to_row, by_eights}),
                  "copying weights");
    }

    /* Copies a matrix to dst, like place(): to the matrix number @group of dst, whose size is @rows
     * by @width, from row @to_row on. */
    void place_any(const mat &m, int64_t col, int64_t width, weight_matrix &dst, int64_t group,
                   int64_t rows, int64_t to_row) {
        const int64_t at = (group * rows + to_row) * width;
        if (random || st != SNAP_OK)
            return;
        if (dst.w) {
            place(m, col, width, dst.w + at);
            return;
        }
        copy(dst.code + at, width,
             static_cast<const uint8_t *>(m.w->data) + m.first_row * mat_stride(&m) + m.first_col +
                 col,
             mat_stride(&m), width, m.rows);
        dst.uniform = dst.uniform && (m.first_row - to_row) % CODE_BLOCK == 0;
        place_scales(m, 0, m.rows, col, width, to_row, false,
                     dst.scale + group * code_scales(rows, width));
    }

    /* interleave() to matrix number @group, which has 2 * @n rows. */
    void interleave_any(const mat &m, int64_t first, int64_t n, int half, weight_matrix &dst,
                        int64_t group) {
        const int64_t at = group * 2 * n * m.cols;
        if (random || st != SNAP_OK)
            return;
        if (dst.w) {
            interleave(m, first, n, half, dst.w + at);
            return;
        }
        copy(dst.code + at + 8 * half * m.cols, 16 * m.cols,
             static_cast<const uint8_t *>(m.w->data) + (m.first_row + first) * m.cols, 8 * m.cols,
             8 * m.cols, n / 8);
        dst.uniform = dst.uniform && (m.first_row + first) % (CODE_BLOCK / 2) == 0;
        place_scales(m, first, n, 0, m.cols, 8 * half, true,
                     dst.scale + group * code_scales(2 * n, m.cols));
    }

    void ffn(const ffn_weights &f, int64_t inner, weight_matrix *in, weight_matrix *out) {
        const int64_t hidden = shape->hidden_size;
        *in = matrices(1, 2 * inner, hidden, stays_coded({&f.gate, &f.up}, hidden));
        *out = matrices(1, hidden, inner, stays_coded({&f.down}, inner));
        interleave_any(f.gate, 0, inner, 0, *in, 0);
        interleave_any(f.up, 0, inner, 1, *in, 0);
        place_any(f.down, 0, inner, *out, 0, hidden, 0);
    }

    void attention(const attention_weights &a, block *b) {
        const model_shape &m = *shape;
        const int64_t hidden = m.hidden_size, heads = m.num_attention_heads, rank = m.kv_lora_rank;
        const int64_t queries = heads * (m.qk_nope_head_dim + m.qk_rope_head_dim),
                      first = m.q_lora_rank ? m.q_lora_rank : queries,
                      kv = m.qk_nope_head_dim + m.v_head_dim;
        const int64_t in_rows = first + rank + m.qk_rope_head_dim, values = heads * m.v_head_dim;
        const mat &q = m.q_lora_rank ? a.q_a : a.q;
        b->in = matrices(1, in_rows, hidden, stays_coded({&q, &a.kv_a}, hidden));
        place_any(q, 0, hidden, b->in, 0, in_rows, 0);
        place_any(a.kv_a, 0, hidden, b->in, 0, in_rows, first);
        if (m.q_lora_rank) {
            b->q_b = matrices(1, queries, m.q_lora_rank, stays_coded({&a.q_b}, m.q_lora_rank));
            place_any(a.q_b, 0, m.q_lora_rank, b->q_b, 0, queries, 0);
            b->q_a_norm = vector(a.q_a_norm, m.q_lora_rank);
        }
        if (!m.plain_latent)
            b->kv_a_norm = vector(a.kv_a_norm, rank);
        b->kv_b = matrix(heads * kv, rank);
        place(a.kv_b, 0, rank, b->kv_b);
        if (m.qk_nope_head_dim)
            b->uk = matrix(heads * rank, m.qk_nope_head_dim);
        if (st == SNAP_OK && b->uk)
            check(transpose_heads(s, b->kv_b, static_cast<int>(heads), static_cast<int>(kv),
                                  m.qk_nope_head_dim, static_cast<int>(rank), b->uk),
                  "copying weights");
        b->o = matrices(1, hidden, values, stays_coded({&a.o}, values));
        place_any(a.o, 0, values, b->o, 0, hidden, 0);
    }

    void gate_of(const moe_weights &e, int64_t experts, block *b) {
        const int64_t hidden = shape->hidden_size;
        b->gate = static_cast<float *>(take(static_cast<size_t>(experts * hidden) * sizeof(float)));
        if (random && b->gate)
            check(fill_f32(s, b->gate, experts * hidden, 0,
                           std::sqrt(3.0f / static_cast<float>(hidden)), seed += 1ull << 40),
                  "random weights");
        row.resize(static_cast<size_t>(hidden));
        for (int64_t i = 0; i < experts && st == SNAP_OK && !random; i++) {
            mat_read_row(&e.router, i, row.data());
            copy(b->gate + i * hidden, 4 * hidden, row.data(), 4 * hidden, 4 * hidden, 1);
        }
        if (e.bias)
            b->bias = vector(e.bias, experts);
    }

    void moe(const moe_weights &e, block *b) {
        const model_shape &m = *shape;
        const int64_t hidden = m.hidden_size, inner = m.moe_intermediate_size,
                      all = m.n_routed_experts + shared_experts(m);
        gate_of(e, m.n_routed_experts + m.zero_expert_num, b);
        if (weights_divide_experts(from)) {
            own_experts(e, b);
            return;
        }
        bool in_coded = true, out_coded = inner % CODE_BLOCK == 0 || m.n_shared_experts <= 1;
        for (int64_t i = 0; i <= m.n_routed_experts; i++) {
            const bool none = i == m.n_routed_experts && !m.n_shared_experts;
            const ffn_weights &f = i < m.n_routed_experts && !random ? e.expert[i] : e.shared;
            in_coded = in_coded && (none || stays_coded({&f.gate, &f.up}, hidden));
            out_coded = out_coded && (none || stays_coded({&f.down}, inner));
        }
        b->experts_in = matrices(all, 2 * inner, hidden, in_coded);
        b->experts_out = matrices(all, hidden, inner, out_coded);
        for (int64_t i = 0; i < all && st == SNAP_OK && !random; i++) {
            const bool routed = i < m.n_routed_experts;
            const ffn_weights &f = routed ? e.expert[i] : e.shared;
            const int64_t at = routed ? 0 : (i - m.n_routed_experts) * inner;
            interleave_any(f.gate, at, inner, 0, b->experts_in, i);
            interleave_any(f.up, at, inner, 1, b->experts_in, i);
            place_any(f.down, at, inner, b->experts_out, i, hidden, 0);
        }
    }

    /* With EP: the routed experts of this rank, and its part of the shared ones. */
    void own_experts(const moe_weights &e, block *b) {
        const model_shape &m = *shape;
        const int64_t hidden = m.hidden_size, inner = m.moe_intermediate_size,
                      routed = m.n_routed_experts, first = weights_first_expert(from),
                      count = weights_experts(from), shared = weights_shared_inner(from);
        const uint64_t in = seed + (1ull << 40), out = in + (1ull << 40);
        seed = out; /* where it is after the two products of the experts of an undivided model */
        bool in_coded = true, out_coded = true;
        for (int64_t i = 0; i < count; i++) {
            const ffn_weights &f = random ? e.shared : e.expert[first + i];
            in_coded = in_coded && stays_coded({&f.gate, &f.up}, hidden);
            out_coded = out_coded && stays_coded({&f.down}, inner);
        }
        b->experts_in = matrices_of(count, 2 * inner, hidden, in_coded, in, first * 2 * inner);
        b->experts_out = matrices_of(count, hidden, inner, out_coded, out, first * hidden);
        for (int64_t i = 0; i < count && st == SNAP_OK && !random; i++) {
            const ffn_weights &f = e.expert[first + i];
            interleave_any(f.gate, 0, inner, 0, b->experts_in, i);
            interleave_any(f.up, 0, inner, 1, b->experts_in, i);
            place_any(f.down, 0, inner, b->experts_out, i, hidden, 0);
        }
        if (!shared)
            return;
        const ffn_weights &f = e.shared;
        b->shared_in = matrices_of(1, 2 * shared, hidden, stays_coded({&f.gate, &f.up}, hidden), in,
                                   routed * 2 * inner);
        b->shared_out =
            matrices_of(1, hidden, shared, stays_coded({&f.down}, shared), out, routed * hidden);
        interleave_any(f.gate, 0, shared, 0, b->shared_in, 0);
        interleave_any(f.up, 0, shared, 1, b->shared_in, 0);
        place_any(f.down, 0, shared, b->shared_out, 0, hidden, 0);
    }

    void load_block(const block_weights &k, block *b) {
        *b = {};
        b->dense = k.dense;
        b->moe = k.moe;
        b->shortcut = k.shortcut;
        b->input_norm = vector(k.input_norm, shape->hidden_size);
        b->post_norm = vector(k.post_norm, shape->hidden_size);
        attention(k.attention, b);
        if (k.dense)
            ffn(k.ffn, shape->intermediate_size, &b->ffn_in, &b->ffn_out);
        if (k.moe)
            moe(k.experts, b);
        if (files)
            checkpoint_drop_pages(files);
    }
};

} // namespace

snap_status weights_load(weights *out, const stream_of &s, const model_weights *from,
                         snap_err *err) {
    *out = {};
    const model_shape &m = from->shape;
    loader l = {};
    l.to = out;
    l.s = s;
    l.shape = &m;
    l.from = from;
    l.err = err;
    l.files = from->files;
    l.random = from->files == nullptr;
    out->embed = l.matrix(m.vocab_size, m.hidden_size);
    l.place(from->embed, 0, m.hidden_size, out->embed);
    out->head = out->embed;
    if (!m.tie_word_embeddings) {
        out->head = l.matrix(m.vocab_size, m.hidden_size);
        l.place(from->head, 0, m.hidden_size, out->head);
    }
    out->norm = l.vector(from->norm, m.hidden_size);
    out->blocks.resize(static_cast<size_t>(from->blocks));
    for (int i = 0; i < from->blocks && l.st == SNAP_OK; i++)
        l.load_block(from->block[i], &out->blocks[static_cast<size_t>(i)]);
    l.check(cudaStreamSynchronize(s.stream), "copying weights");
    cudaFree(l.code.at);
    cudaFree(l.scale.at);
    return l.st;
}

void weights_free(weights *w) {
    for (void *p : w->owned)
        cudaFree(p);
    *w = {};
}

} // namespace device
