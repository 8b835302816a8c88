/* Times the parts of a decode step with events inside its graph: attention, experts and the rest.
 * The exchanges between ranks are timed by copies of them. */
#include <algorithm>
#include <cmath>

#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

using namespace device;

cudaError_t part_marks::add(step_part part, cudaStream_t stream) {
    mark next = {nullptr, part};
    cudaError_t e = cudaEventCreate(&next.at);
    if (e != cudaSuccess)
        return e;
    list.push_back(next);
    return cudaEventRecordWithFlags(next.at, stream, cudaEventRecordExternal);
}

void part_marks::release() {
    for (const mark &m : list)
        cudaEventDestroy(m.at);
    list.clear();
}

namespace {

/* The step of one row in few launches (single.cu) has no parts, so the general chain is
 * recorded. */
snap_status record_with_marks(cuda_model *m, const step_shape &step, part_marks *marks,
                              lab_recording **out, snap_err *err) {
    const bool single = m->single;
    m->marks = marks;
    m->single = false;
    const snap_status st = record_step(m, step, out, err);
    m->marks = nullptr;
    m->single = single;
    return st;
}

/* Adds the times between the events of the last replay to ns [kTimedParts]. */
snap_status add_times(const part_marks &marks, double *ns, snap_err *err) {
    for (size_t i = 0; i + 1 < marks.list.size(); i++) {
        float ms = 0;
        const cudaError_t e = cudaEventElapsedTime(&ms, marks.list[i].at, marks.list[i + 1].at);
        if (e != cudaSuccess)
            return cuda_check(e, "the time of a part", err);
        ns[marks.list[i].part] += static_cast<double>(ms) * 1e6;
    }
    return SNAP_OK;
}

/* Replays a step @times without a pause in between, and waits for the end. The events then have the
 * times of the last replay. */
snap_status replay(cuda_model *m, lab_recording *r, int times, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < times && st == SNAP_OK; i++)
        st = lab_replay(m->be, r, err);
    if (st == SNAP_OK)
        st = wait_for_ranks(m, err);
    if (st == SNAP_OK)
        st = cuda_check(cudaStreamSynchronize(m->s.stream), "device work", err);
    return st;
}

/* ns [STEP_PARTS] = the mean times of the parts in @steps replays. */
snap_status replay_timed(cuda_model *m, lab_recording *r, const part_marks &marks, int steps,
                         double *ns, snap_err *err) {
    double sum[kTimedParts] = {};
    for (int i = 0; i <= steps; i++) { /* the first one only warms up */
        snap_status st = replay(m, r, 1, err);
        if (st == SNAP_OK && i > 0)
            st = add_times(marks, sum, err);
        if (st != SNAP_OK)
            return st;
    }
    for (int p = 0; p < STEP_PARTS; p++)
        ns[p] = sum[p] / steps;
    return SNAP_OK;
}

/* ---- the exchanges between ranks ---- */

enum { kCopies = 16 }; /* more copies of each exchange in the longer of the two steps below */

/* Allocates the memory of repeated exchanges, in one block. The caller frees again->x with
 * cudaFree(), also after an error. */
snap_status take_repeated(const cuda_model *m, const step_shape &step, repeated_exchanges *again,
                          snap_err *err) {
    const size_t hidden = static_cast<size_t>(m->shape.hidden_size),
                 x = static_cast<size_t>(step.rows) * hidden,
                 part = static_cast<size_t>(expert_rows(m, step.rows)) * hidden,
                 rows = static_cast<size_t>(expert_rows(m, step.rows)) *
                        static_cast<size_t>(message_row(m->shape.hidden_size, m->how.chosen)),
                 bytes = (x + part) * sizeof(float) + rows * sizeof(bf16);
    cudaError_t e = cudaMalloc(&again->x, bytes);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(again->x, 0, bytes, m->s.stream);
    again->part = again->x + x;
    again->rows = reinterpret_cast<bf16 *>(again->part + part);
    return cuda_check(e, "memory to time the exchanges of a step", err);
}

/* The times of all exchanges of a step together. */
struct exchange_times {
    double ns;         /* without waiting for slower ranks; NAN if it is not above 0 */
    double waiting_ns; /* the waiting for slower ranks */
};

/* A step in which copies follow each exchange, recorded with events. */
struct copied_step {
    lab_recording *recorded;
    part_marks marks;
};

snap_status record_copies(cuda_model *m, const step_shape &step, int copies, copied_step *out,
                          snap_err *err) {
    m->again.copies = copies;
    const snap_status st = record_with_marks(m, step, &out->marks, &out->recorded, err);
    m->again.copies = 0;
    return st;
}

/* ns [kTimedParts] = the times of the parts in one replay. Another replay precedes it without a
 * pause, so that the ranks wait for each other as in a longer run. */
snap_status time_copies(cuda_model *m, const copied_step &step, double *ns, snap_err *err) {
    std::fill(ns, ns + kTimedParts, 0.0);
    const snap_status st = replay(m, step.recorded, 2, err);
    return st == SNAP_OK ? add_times(step.marks, ns, err) : st;
}

double median(std::vector<double> *of) {
    std::sort(of->begin(), of->end());
    const size_t n = of->size();
    return ((*of)[(n - 1) / 2] + (*of)[n / 2]) / 2;
}

/* Times both steps in turns, @rounds (at least 1) each. A copy follows an exchange at once, so it
 * does not wait for a slower rank. The steps differ by kCopies copies of each exchange. The time
 * between the events around one copy contains what the events cost, and so does the time between
 * those around the exchange itself. */
snap_status time_both(cuda_model *m, const copied_step &one, const copied_step &more, int rounds,
                      exchange_times *out, snap_err *err) {
    std::vector<double> copies, waiting;
    snap_status st = SNAP_OK;
    for (int i = 0; i < rounds && st == SNAP_OK; i++) {
        double few[kTimedParts] = {}, many[kTimedParts] = {};
        st = time_copies(m, one, few, err);
        if (st == SNAP_OK)
            st = time_copies(m, more, many, err);
        copies.push_back(many[STEP_COPIES] - few[STEP_COPIES]);
        waiting.push_back(few[STEP_EXCHANGE] - few[STEP_COPIES]);
    }
    if (st != SNAP_OK)
        return st;
    const double ns = median(&copies) / kCopies;
    out->ns = ns > 0 ? ns : NAN;
    out->waiting_ns = std::max(0.0, median(&waiting));
    return SNAP_OK;
}

snap_status time_exchanges(cuda_model *m, const step_shape &step, int rounds, exchange_times *out,
                           snap_err *err) {
    copied_step one = {}, more = {};
    snap_status st = SNAP_OK;
    *out = {};
    if (!comm_splits(m->opt.comm) && !comm_splits(m->opt.experts))
        return SNAP_OK;
    st = take_repeated(m, step, &m->again, err);
    if (st == SNAP_OK)
        st = record_copies(m, step, 1, &one, err);
    if (st == SNAP_OK)
        st = record_copies(m, step, 1 + kCopies, &more, err);
    if (st == SNAP_OK)
        st = time_both(m, one, more, rounds, out, err);
    for (copied_step *s : {&one, &more}) {
        if (s->recorded)
            lab_recording_free(m->be, s->recorded);
        s->marks.release();
    }
    cudaFree(m->again.x);
    m->again = {};
    return st;
}

} // namespace

extern "C" snap_status cuda_model_time_parts(cuda_model *m, const model_piece *pieces, int count,
                                             int steps, double *ns, double *waiting_ns,
                                             snap_err *err) {
    step_shape step = {};
    part_marks marks;
    exchange_times exchanges = {};
    lab_recording *r = nullptr;
    snap_status st = begin_step(m, pieces, count, &step, err);
    if (st == SNAP_OK && (step.gathers || !step.rows))
        st = err_set(err, SNAP_E_SHAPE, "only decode steps have timed parts");
    if (st == SNAP_OK)
        st = record_with_marks(m, step, &marks, &r, err);
    if (st == SNAP_OK)
        st = replay_timed(m, r, marks, steps, ns, err);
    if (st == SNAP_OK)
        st = time_exchanges(m, step, steps, &exchanges, err);
    ns[STEP_EXCHANGE] = exchanges.ns;
    *waiting_ns = exchanges.waiting_ns;
    if (r)
        lab_recording_free(m->be, r);
    marks.release();
    return st;
}
