/* Times the parts of a decode step: attention, experts and the rest with events inside its graph,
 * and the exchanges between ranks by doing them several times. */
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

/* Adds the times between the events of the last replay. */
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

snap_status replay_timed(cuda_model *m, lab_recording *r, const part_marks &marks, int steps,
                         double *ns, snap_err *err) {
    std::fill(ns, ns + STEP_PARTS, 0.0);
    for (int i = 0; i <= steps; i++) { /* the first one only warms up */
        snap_status st = lab_replay(m->be, r, err);
        if (st == SNAP_OK)
            st = wait_for_ranks(m, err);
        if (st == SNAP_OK)
            st = cuda_check(cudaStreamSynchronize(m->s.stream), "device work", err);
        if (st == SNAP_OK && i > 0)
            st = add_times(marks, ns, err);
        if (st != SNAP_OK)
            return st;
    }
    for (int p = 0; p < STEP_PARTS; p++)
        ns[p] /= steps;
    return SNAP_OK;
}

/* The mean time of @steps replays, which follow one another without a pause. So the ranks of a
 * split model wait for each other in the first exchange, and then as in a longer run. */
snap_status time_in_a_row(cuda_model *m, lab_recording *r, int steps, double *ns, snap_err *err) {
    cudaEvent_t from = nullptr, to = nullptr;
    float ms = 0;
    cudaError_t e = cudaEventCreate(&from);
    if (e == cudaSuccess)
        e = cudaEventCreate(&to);
    snap_status st = cuda_check(e, "events", err);
    for (int i = -1; i < steps && st == SNAP_OK; i++) { /* the first one only warms up */
        if (i == 0)
            st = cuda_check(cudaEventRecord(from, m->s.stream), "events", err);
        if (st == SNAP_OK)
            st = lab_replay(m->be, r, err);
    }
    if (st == SNAP_OK)
        st = cuda_check(cudaEventRecord(to, m->s.stream), "events", err);
    if (st == SNAP_OK)
        st = wait_for_ranks(m, err);
    if (st == SNAP_OK)
        st = cuda_check(cudaEventSynchronize(to), "device work", err);
    if (st == SNAP_OK)
        st = cuda_check(cudaEventElapsedTime(&ms, from, to), "the time of a part", err);
    if (from)
        cudaEventDestroy(from);
    if (to)
        cudaEventDestroy(to);
    *ns = static_cast<double>(ms) * 1e6 / steps;
    return st;
}

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

/* Records a step without events in which each exchange is done again @times. */
snap_status record_repeated(cuda_model *m, const step_shape &step, int times, lab_recording **out,
                            snap_err *err) {
    m->again.times = times;
    const snap_status st = record_step(m, step, out, err);
    m->again.times = 0;
    return st;
}

enum {
    kTimes = 16, /* how often each exchange is done again */
    kInARow = 2 /* timed replays of a step in one turn */
};

/* *ns = the median difference between the two recorded steps. They take turns, @rounds (at least 1)
 * each, so that a drift of the clocks does not count. */
snap_status time_difference(cuda_model *m, lab_recording *once, lab_recording *again, int rounds,
                            double *ns, snap_err *err) {
    std::vector<double> difference;
    snap_status st = SNAP_OK;
    for (int i = 0; i < rounds && st == SNAP_OK; i++) {
        double shorter = 0, longer = 0;
        st = time_in_a_row(m, once, kInARow, &shorter, err);
        if (st == SNAP_OK)
            st = time_in_a_row(m, again, kInARow, &longer, err);
        difference.push_back(longer - shorter);
    }
    std::sort(difference.begin(), difference.end());
    const size_t n = difference.size();
    *ns = (difference[(n - 1) / 2] + difference[n / 2]) / 2;
    return st;
}

/* The time that all exchanges of a step take: that of a step which does each of them several times,
 * minus that of the step itself. Both steps have the same rows and experts. Events around each
 * exchange would take longer than a short one. NAN if the difference is not above 0. */
snap_status time_exchange(cuda_model *m, const step_shape &step, int rounds, double *ns,
                          snap_err *err) {
    lab_recording *once = nullptr, *again = nullptr;
    double difference = 0;
    snap_status st = SNAP_OK;
    *ns = 0;
    if (!comm_splits(m->opt.comm) && !comm_splits(m->opt.experts))
        return SNAP_OK;
    st = take_repeated(m, step, &m->again, err);
    if (st == SNAP_OK)
        st = record_repeated(m, step, 0, &once, err);
    if (st == SNAP_OK)
        st = record_repeated(m, step, kTimes, &again, err);
    if (st == SNAP_OK)
        st = time_difference(m, once, again, rounds, &difference, err);
    if (once)
        lab_recording_free(m->be, once);
    if (again)
        lab_recording_free(m->be, again);
    cudaFree(m->again.x);
    m->again = {};
    *ns = difference > 0 ? difference / kTimes : NAN;
    return st;
}

} // namespace

extern "C" snap_status cuda_model_time_parts(cuda_model *m, const model_piece *pieces, int count,
                                             int steps, double *ns, snap_err *err) {
    step_shape step = {};
    part_marks marks;
    lab_recording *r = nullptr;
    snap_status st = begin_step(m, pieces, count, &step, err);
    if (st == SNAP_OK && (step.gathers || !step.rows))
        st = err_set(err, SNAP_E_SHAPE, "only decode steps have timed parts");
    if (st == SNAP_OK)
        st = record_with_marks(m, step, &marks, &r, err);
    if (st == SNAP_OK)
        st = replay_timed(m, r, marks, steps, ns, err);
    if (st == SNAP_OK)
        st = time_exchange(m, step, steps, &ns[STEP_EXCHANGE], err);
    if (r)
        lab_recording_free(m->be, r);
    marks.release();
    return st;
}
