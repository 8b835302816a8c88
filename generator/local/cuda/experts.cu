/* Computes the experts of a layer: their choice, their products, and what ranks exchange for them
 * (comm.h).
 *
 * Without EP, shared experts are treated as experts that every row chooses. With EP, the lists of
 * pairs have the rows of all ranks, and the shared experts are a feed-forward for the rows of this
 * rank. */
#include <algorithm>

#include "generator/local/cuda/chain.h"

namespace device {
namespace {

/* Enqueues an exchange, for which it calls once(false). While a step is recorded to time its
 * exchanges, copies of the exchange follow: once(true) enqueues one, which works on the memory of
 * m->again. The work after this call belongs to @next. */
template <typename F>
void exchange(chain *c, step_part next, F once) {
    const int copies = c->m->again.copies;
    c->part(STEP_EXCHANGE);
    if (c->ok())
        c->run(once(false));
    if (copies)
        c->part(STEP_COPIES);
    for (int i = 0; i < copies && c->ok(); i++)
        c->run(once(true));
    c->part(next);
}

/* The rows that go to the experts. */
struct expert_input {
    const bf16 *x;
    int64_t x_row; /* numbers from one row to the next */
    int rows;
    int shared; /* the last experts of the list, which all rows use */
};

/* Up and down projections of all pairs. */
void pair_products(chain *c, const block &b, const expert_input &in) {
    cuda_model *m = c->m;
    const model_shape &s = m->shape;
    const int hidden = s.hidden_size, inner = s.moe_intermediate_size,
              pairs = in.rows * std::min(m->slots, m->experts);
    const bool many = takes_many(m, in.rows), gathered = many && !b.experts_in.code;
    if (gathered)
        c->run(gather(m->s, in.x, in.x_row, m->b.pair_row, m->b.first, m->experts, pairs, hidden,
                      m->b.pair_x),
               "rows of experts");
    gemm_args up = linear(b.experts_in, 2 * inner, hidden, gathered ? m->b.pair_x : in.x, in.rows,
                          m->b.expert_inner, ends_gate);
    up.x_row = gathered ? hidden : in.x_row;
    up.w_group = static_cast<int64_t>(2) * inner * hidden;
    up.listed = true;
    up.groups = many ? m->experts : std::min(m->experts, pairs);
    up.x_rows = pairs;
    up.experts = {m->b.first, m->b.active,
                  m->b.count, gathered ? nullptr : m->b.pair_row,
                  in.shared,  m->experts - in.shared,
                  false};
    c->product(up, "experts");
    gemm_args down =
        linear(b.experts_out, hidden, inner, m->b.expert_inner, in.rows, m->b.down, ends_f32);
    down.w_group = static_cast<int64_t>(hidden) * inner;
    down.listed = true;
    down.groups = up.groups;
    down.x_rows = pairs;
    down.experts = {m->b.first, m->b.active, m->b.count, nullptr, in.shared, m->experts - in.shared,
                    true};
    c->product(down, "experts");
}

/* ---- experts divided over the ranks (EP) ----------------------------------------------------- */

/* y += the outputs of the shared experts for the normalised rows. With TP, each rank adds the
 * outputs of its part of these experts. */
void add_shared(chain *c, const block &b, float *y) {
    cuda_model *m = c->m;
    const int hidden = m->shape.hidden_size, inner = m->shared_inner, rows = c->step.rows;
    if (!b.moe || !inner)
        return;
    c->product(linear(b.shared_in, 2 * inner, hidden, m->b.packed, rows, m->b.inner, ends_gate),
               "shared experts");
    c->product(linear(b.shared_out, hidden, inner, m->b.inner, rows, y, ends_add_f32),
               "shared experts");
}

/* The messages of all rows that this rank computes experts for. */
bf16 *exchange_messages(chain *c) {
    cuda_model *m = c->m;
    comm *ranks = m->opt.experts;
    if (!gathers_rows(m))
        return m->b.message;
    const int64_t row = message_row(m->shape.hidden_size, m->how.chosen);
    exchange(c, STEP_EXPERTS, [&](bool copy) {
        return ranks->gather(ranks, m->b.message, copy ? m->again.rows : m->b.gathered,
                             c->step.rows * row * static_cast<int64_t>(sizeof(bf16)), m->s.stream,
                             c->err);
    });
    return m->b.gathered;
}

/* The number of this rank's first row among those of all ranks. */
int first_own_row(const cuda_model *m, int rows) {
    return gathers_rows(m) ? m->opt.experts->rank * rows : 0;
}

/* The buffer to which the outputs of experts for this rank's rows are added: the residual stream.
 * If the replica is split, they are partial sums and have a buffer of their own. */
float *own_outputs(const cuda_model *m) {
    return comm_splits(m->opt.comm) ? m->b.own : m->b.x;
}

/* Adds the shared experts to the buffer of outputs. Clears it before, if it is not the residual
 * stream. */
void begin_outputs(chain *c, const block &b) {
    cuda_model *m = c->m;
    const size_t bytes =
        static_cast<size_t>(c->step.rows) * static_cast<size_t>(m->shape.hidden_size) * 4;
    if (comm_splits(m->opt.comm) && c->ok())
        c->run(cudaMemsetAsync(m->b.own, 0, bytes, m->s.stream), "outputs of experts");
    add_shared(c, b, own_outputs(m));
}

/* Sorts the pairs of this rank's experts. The first rank of a split replica adds the
 * zero-computation experts. */
void sort_pairs(chain *c, const block &b, bf16 *messages, int moe_layer) {
    cuda_model *m = c->m;
    const int rows = c->step.rows;
    const bool adds = !comm_splits(m->opt.comm) || m->opt.comm->rank == 0;
    route_args a = route_of(m, b, expert_rows(m, rows), moe_layer);
    a.message = messages;
    a.routed = m->experts;
    c->run(sort_messages(m->s, a, {m->first_expert, first_own_row(m, rows), adds ? rows : 0}),
           "pairs of experts");
}

void divided_experts(chain *c, const block &b, int moe_layer) {
    cuda_model *m = c->m;
    const int rows = c->step.rows;
    c->run(route(m->s, route_of(m, b, rows, moe_layer)), "choice of experts");
    if (c->step.padding && gathers_rows(m))
        c->run(drop_choices(m->s, route_of(m, b, rows, moe_layer), rows - c->step.padding),
               "choices of padding");
    bf16 *messages = exchange_messages(c);
    if (gathers_rows(m))
        begin_outputs(c, b);
    sort_pairs(c, b, messages, moe_layer);
    pair_products(
        c, b,
        {messages, message_row(m->shape.hidden_size, m->how.chosen), expert_rows(m, rows), 0});
}

/* Adds up b.part over the ranks that exchange rows. The sums of this rank's rows are added to the
 * buffer of own_outputs(). */
void scatter_part(chain *c) {
    cuda_model *m = c->m;
    comm *ranks = m->opt.experts;
    const int64_t n = static_cast<int64_t>(c->step.rows) * m->shape.hidden_size;
    exchange(c, STEP_REST, [&](bool copy) {
        return ranks->scatter_sum(ranks, copy ? m->again.x : own_outputs(m),
                                  copy ? m->again.part : m->b.part, n, m->s.stream, c->err);
    });
}

/* x += factor * the sum of @part over the ranks of this replica. @after: as in add_part(). A step
 * with events has separate kernels, because the exchange and the norm belong to different parts. */
void add_over_replica(chain *c, float *part, float factor, const norm_to *after) {
    cuda_model *m = c->m;
    comm *ranks = m->opt.comm;
    const int rows = c->step.rows, hidden = m->shape.hidden_size;
    const int64_t n = static_cast<int64_t>(rows) * hidden;
    exchange(c, STEP_REST, [&](bool copy) {
        if (!after || m->marks)
            return ranks->add_sum(ranks, copy ? m->again.x : m->b.x, copy ? m->again.part : part, n,
                                  factor, m->s.stream, c->err);
        const comm_norm norm = {after->weight, after->eps, after->factor,
                                after->packed, rows,       hidden};
        return ranks->add_sum_norm(ranks, m->b.x, part, factor, &norm, &c->normed, m->s.stream,
                                   c->err);
    });
}

} // namespace

/* ---- for forward.cu -------------------------------------------------------------------------- */

void add_part(chain *c, float factor, const norm_to *after) {
    add_over_replica(c, c->m->b.part, factor, after);
}

join_from experts_join(const cuda_model *m, int rows) {
    return {m->b.down, m->b.place, m->b.weight,           m->b.identity,
            m->slots,  1.0f,       first_own_row(m, rows)};
}

void experts(chain *c, const block &b, int moe_layer) {
    cuda_model *m = c->m;
    const model_shape &s = m->shape;
    const int rows = c->step.rows;
    c->part(STEP_EXPERTS);
    if (m->divides_experts) {
        divided_experts(c, b, moe_layer);
    } else {
        c->run(route(m->s, route_of(m, b, rows, moe_layer)), "choice of experts");
        pair_products(c, b, {m->b.packed, s.hidden_size, rows, shared_experts(s)});
    }
    c->part(STEP_REST);
}

/* The first rank of a split replica alone adds what zero-computation experts return. With EP, the
 * places say which of them this rank adds. */
void add_experts(chain *c, const block &b, const norm_to *after) {
    const cuda_model *m = c->m;
    const int rows = expert_rows(m, c->step.rows);
    join_from join = experts_join(m, c->step.rows);
    if (!m->divides_experts && m->opt.comm->rank != 0)
        join.identity = nullptr;
    c->part(STEP_EXPERTS);
    const bool parts = gathers_rows(m) || comm_splits(m->opt.comm);
    float *to = parts ? m->b.part : m->b.x;
    c->run(join_rows(m->s, rows, m->shape.hidden_size, join, !parts, to), "outputs of experts");
    if (gathers_rows(m))
        scatter_part(c);
    else if (m->divides_experts)
        add_shared(c, b, to);
    if (comm_splits(m->opt.comm))
        add_over_replica(c, gathers_rows(m) ? m->b.own : m->b.part, 1.0f, after);
}

} // namespace device
