/* Runs a step. The host lays out its inputs and copies them, runs or replays the kernels, and
 * copies the results back. */
#include <algorithm>
#include <cstring>

#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

using namespace device;

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

/* Lays out the pieces: the decoded ones first, then the chunks. Then lists the rows whose logits
 * are wanted, in the caller's order. */
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
            return err_set(err, SNAP_E_SHAPE, "more than %d chunks of prompts in a step",
                           static_cast<int>(kMostChunks));
        first[static_cast<size_t>(i)] = step->rows;
        step->chunk[step->chunks] = {step->rows, pieces[i].count, pieces[i].position};
        m->host.chunk_length[step->chunks] = static_cast<int>(pieces[i].position) + pieces[i].count;
        add_pages(m, pieces[i], m->opt.max_decode + step->chunks++);
        add_tokens(m, step, pieces[i]);
        step->padding += pieces[i].padding ? pieces[i].count : 0;
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

} // namespace

snap_status begin_step(cuda_model *m, const model_piece *pieces, int count, step_shape *step,
                       snap_err *err) {
    const snap_status st = lay_out(m, pieces, count, step, err);
    return st == SNAP_OK && step->rows ? copy_in(m, *step, err) : st;
}

snap_status record_step(cuda_model *m, const step_shape &step, lab_recording **out, snap_err *err) {
    snap_status st = lab_record(m->be, err);
    if (st != SNAP_OK)
        return st;
    st = forward(m, step, err);
    if (st == SNAP_OK)
        st = logits_of(m, 0, step.rows, err);
    const snap_status end = lab_record_end(m->be, out, st == SNAP_OK ? err : nullptr);
    if (st != SNAP_OK && *out) { /* only a part of the step was recorded */
        lab_recording_free(m->be, *out);
        *out = nullptr;
    }
    return st == SNAP_OK ? end : st;
}

snap_status wait_for_ranks(cuda_model *m, snap_err *err) {
    comm *other = m->opt.experts, *c = comm_splits(m->opt.comm) ? m->opt.comm : other;
    const snap_status st = comm_splits(c) ? c->wait(c, m->s.stream, err) : SNAP_OK;
    if (st != SNAP_OK && comm_splits(other) && other != c)
        other->stop(other);
    return st;
}

namespace {

/* Runs a step of one new token for each sequence. It is recorded the first time that its number of
 * sequences occurs. */
snap_status run_recorded(cuda_model *m, const step_shape &step, runner_stats *stats,
                         snap_err *err) {
    lab_recording *&r = m->recorded[static_cast<size_t>(step.rows)];
    snap_status st = SNAP_OK;
    if (!r) {
        const int64_t begun_ns = clock_now_ns();
        st = record_step(m, step, &r, err);
        stats->recorded++;
        stats->record_ns += clock_now_ns() - begun_ns;
    }
    if (st == SNAP_OK)
        st = lab_replay(m->be, r, err);
    m->launched_ns = clock_now_ns();
    return st == SNAP_OK ? wait_for_ranks(m, err) : st;
}

snap_status run_eager(cuda_model *m, const step_shape &step, const cuda_model_results *out,
                      snap_err *err) {
    snap_status st = forward(m, step, err);
    m->launched_ns = clock_now_ns();
    if (st == SNAP_OK)
        st = wait_for_ranks(m, err);
    for (int first = 0; first < step.wanted && st == SNAP_OK; first += m->logit_rows) {
        const int now = std::min(m->logit_rows, step.wanted - first);
        st = logits_of(m, first, now, err);
        if (st == SNAP_OK)
            st = read_logits(m, first, now, out, err);
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

/* Counts the experts that the tokens of each layer have chosen. */
void count_experts(const cuda_model *m, int rows, runner_stats *stats) {
    const int k = m->how.chosen;
    for (int l = 0; l < m->moe_layers; l++) {
        const int *chosen = m->chosen_host + static_cast<int64_t>(l) * m->opt.max_rows * k;
        bool used[ROUTE_MAX_EXPERTS] = {};
        for (int i = 0; i < rows * k; i++)
            used[chosen[i]] = true;
        for (int e = 0; e < m->shape.n_routed_experts; e++)
            stats->experts += used[e];
        stats->layers++;
    }
}

snap_status copy_out(cuda_model *m, const step_shape &step, const cuda_model_results *out,
                     snap_err *err) {
    cudaError_t e = cudaSuccess;
    const bool counts = m->counted++ % RUNNER_EXPERTS_EVERY == 0,
               experts = (out->experts || counts) && m->moe_layers;
    const size_t chosen = static_cast<size_t>(m->moe_layers) * m->opt.max_rows * m->how.chosen;
    if (experts)
        e = cudaMemcpyAsync(m->chosen_host, m->b.chosen, chosen * sizeof(int),
                            cudaMemcpyDeviceToHost, m->s.stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    if (e != cudaSuccess)
        return cuda_check(e, "device work", err);
    for (int i = 0; i < step.wanted && out->next; i++)
        out->next[i] = next_token_of(m->key_host[i]);
    for (int i = step.wanted - 1; i >= 0 && out->not_finite; i--)
        if (m->key_host[i] == KEY_NOT_FINITE)
            *out->not_finite = i;
    if (experts && out->experts)
        reorder_experts(m, step.rows, out->experts);
    if (experts && counts)
        count_experts(m, step.rows, out->stats);
    return SNAP_OK;
}

} // namespace

extern "C" snap_status cuda_model_step(cuda_model *m, const model_piece *pieces, int count,
                                       const cuda_model_results *out, snap_err *err) {
    const int64_t begun_ns = clock_now_ns();
    step_shape step = {};
    snap_status st = lay_out(m, pieces, count, &step, err);
    if (st == SNAP_OK && out->wanted && step.wanted > m->read_rows)
        st = err_set(err, SNAP_E_SHAPE, "more than %d rows to draw from in a step", m->read_rows);
    if (st != SNAP_OK || !step.rows)
        return st;
    st = copy_in(m, step, err);
    if (st != SNAP_OK)
        return st;
    if (step.gathers) {
        st = run_eager(m, step, out, err);
    } else {
        st = run_recorded(m, step, out->stats, err);
        if (st == SNAP_OK)
            st = read_logits(m, 0, step.rows, out, err);
    }
    if (st == SNAP_OK)
        st = copy_out(m, step, out, err);
    if (st == SNAP_OK) {
        out->stats->launch_ns += m->launched_ns - begun_ns;
        out->stats->wait_ns += clock_now_ns() - m->launched_ns;
    }
    return st;
}
