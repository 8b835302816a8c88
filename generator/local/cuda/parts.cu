/* Times the parts of a decode step: attention, experts and the rest with events inside its graph,
 * and the sums over the ranks by leaving them out. */
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

/* The time of a step without events, with or without the sums over the ranks. Without them, each
 * rank adds its own parts only. So the rows differ between the ranks, and their tokens are not
 * used. */
snap_status time_whole(cuda_model *m, const step_shape &step, bool sums, int steps, double *ns,
                       snap_err *err) {
    lab_recording *r = nullptr;
    m->skips_sums = !sums;
    snap_status st = record_step(m, step, &r, err);
    m->skips_sums = false;
    if (st == SNAP_OK)
        st = time_in_a_row(m, r, steps, ns, err);
    if (r)
        lab_recording_free(m->be, r);
    return st;
}

/* The time that the exchanges add to a step. Events around each exchange would take longer than a
 * short one. NAN if the step without them was not faster: then the difference says nothing. (Its
 * rows choose other experts, so other weights are read.) */
snap_status time_exchange(cuda_model *m, const step_shape &step, int steps, double *ns,
                          snap_err *err) {
    double with = 0, without = 0;
    snap_status st = SNAP_OK;
    *ns = 0;
    if (!comm_splits(m->opt.comm) && !comm_splits(m->opt.experts))
        return SNAP_OK;
    st = time_whole(m, step, true, steps, &with, err);
    if (st == SNAP_OK)
        st = time_whole(m, step, false, steps, &without, err);
    *ns = with > without ? with - without : NAN;
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
