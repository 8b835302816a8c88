/* attend_lab.c - the functions of lab.h for a plugin with one function on a CUDA device: those of
 * the CUDA backend. */
#include "kernels/plugin/attend_inside.h"

#ifdef SNAPMLA_CUDA
static const char *plan_kernel(const mla_plan *plan) {
    return attend_of(plan->be)->kernel;
}

static snap_status lab_fill_inner(mla_backend *be, void *device, int byte, size_t bytes,
                                  snap_err *err) {
    return lab_fill(attend_inner(be), device, byte, bytes, err);
}

static snap_status lab_flush_inner(mla_backend *be, snap_err *err) {
    return lab_flush(attend_inner(be), err);
}

static snap_status lab_draw_inner(mla_backend *be, const draw_source *from, const uint64_t *first,
                                  int groups, int64_t rows, void *out, snap_err *err) {
    return lab_draw(attend_inner(be), from, first, groups, rows, out, err);
}

static snap_status lab_unfused_inner(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                     const void *q, const void *kv, const lab_rows *q8,
                                     const lab_rows *staged, snap_err *err) {
    return lab_unfused(attend_plan_of(plan)->inner, step, cache, q, kv, q8, staged, err);
}

static snap_status lab_record_inner(mla_backend *be, snap_err *err) {
    return lab_record(attend_inner(be), err);
}

static snap_status lab_record_end_inner(mla_backend *be, lab_recording **out, snap_err *err) {
    return lab_record_end(attend_inner(be), out, err);
}

static snap_status lab_replay_inner(mla_backend *be, lab_recording *r, snap_err *err) {
    return lab_replay(attend_inner(be), r, err);
}

static void lab_recording_free_inner(mla_backend *be, lab_recording *r) {
    lab_recording_free(attend_inner(be), r);
}

static snap_status lab_attend_inner(mla_backend *be, const lab_step *step, const int64_t *row,
                                    int rows, double *out, double *lse, snap_err *err) {
    return lab_attend(attend_inner(be), step, row, rows, out, lse, err);
}

const mla_lab_ops attend_lab = {.plan_kernel = plan_kernel,
                                .fill = lab_fill_inner,
                                .flush = lab_flush_inner,
                                .draw = lab_draw_inner,
                                .unfused = lab_unfused_inner,
                                .record = lab_record_inner,
                                .record_end = lab_record_end_inner,
                                .replay = lab_replay_inner,
                                .recording_free = lab_recording_free_inner,
                                .attend = lab_attend_inner};
#endif
