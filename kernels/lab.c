#include "kernels/lab.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

static snap_status cannot(const char *what, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED, "the backend can't %s", what);
}

const char *lab_plan_kernel(const mla_plan *plan) {
    const mla_lab_ops *lab = plan->be->ops->lab;
    return lab ? lab->plan_kernel(plan) : NULL;
}

/* ---- fallback by host copies, for backends without lab functions and without host memory ---- */

enum { kChunk = 1 << 20, kChunkRows = 512 };

static snap_status fill_by_copies(mla_backend *be, void *device, int byte, size_t bytes,
                                  snap_err *err) {
    char *chunk = malloc(kChunk);
    if (!chunk)
        return err_set(err, SNAP_E_NOMEM, "out of host memory while filling device memory");
    memset(chunk, byte, kChunk);
    snap_status st = SNAP_OK;
    for (size_t at = 0; at < bytes && st == SNAP_OK; at += kChunk)
        st = mla_copy_in(be, (char *)device + at, chunk, bytes - at < kChunk ? bytes - at : kChunk,
                         err);
    free(chunk);
    return st;
}

/* Generates @total rows in chunks and copies them to @out on the device. The pool of @from and
 * @first are host memory. */
static snap_status draw_chunks(mla_backend *be, const draw_source *from, const uint64_t *first,
                               int64_t total, int64_t rows, uint16_t *chunk, char *out,
                               snap_err *err) {
    int64_t width = from->d_c + from->d_r;
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < total && st == SNAP_OK; i += kChunkRows) {
        int64_t n = total - i < kChunkRows ? total - i : kChunkRows;
        for (int64_t j = i; j < i + n; j++)
            draw_row(from, first[j / rows] + (uint64_t)(j % rows), chunk + (j - i) * width);
        st = mla_copy_in(be, out + i * width * 2, chunk, (size_t)(n * width) * 2, err);
    }
    return st;
}

static snap_status draw_by_copies(mla_backend *be, const draw_source *from, const uint64_t *first,
                                  int groups, int64_t rows, void *out, snap_err *err) {
    size_t row = (size_t)(from->d_c + from->d_r) * sizeof(uint16_t), n = (size_t)groups;
    uint16_t *pool = malloc(DRAW_POOL * row), *chunk = malloc(kChunkRows * row);
    uint64_t *begins = calloc(n + 1, sizeof *begins);
    snap_status st = SNAP_OK;
    if (!pool || !chunk || !begins) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for random rows");
        goto cleanup;
    }
    TRY(mla_copy_out(be, pool, from->pool, DRAW_POOL * row, err));
    TRY(mla_copy_out(be, begins, first, n * sizeof *begins, err));
    draw_source here = *from;
    here.pool = pool;
    TRY(draw_chunks(be, &here, begins, groups * rows, rows, chunk, out, err));
cleanup:
    free(pool);
    free(chunk);
    free(begins);
    return st;
}

snap_status lab_fill(mla_backend *be, void *device, int byte, size_t bytes, snap_err *err) {
    if (be->ops->lab)
        return be->ops->lab->fill(be, device, byte, bytes, err);
    if (!be->ops->host_memory)
        return fill_by_copies(be, device, byte, bytes, err);
    memset(device, byte, bytes);
    return SNAP_OK;
}

bool lab_can_flush(const mla_backend *be) {
    return be->ops->lab != NULL;
}

snap_status lab_flush(mla_backend *be, snap_err *err) {
    return be->ops->lab ? be->ops->lab->flush(be, err) : cannot("flush its caches", err);
}

snap_status lab_draw(mla_backend *be, const draw_source *from, const uint64_t *first, int groups,
                     int64_t rows, void *out, snap_err *err) {
    if (be->ops->lab)
        return be->ops->lab->draw(be, from, first, groups, rows, out, err);
    if (!be->ops->host_memory)
        return draw_by_copies(be, from, first, groups, rows, out, err);
    int64_t width = from->d_c + from->d_r;
    for (int64_t i = 0; i < groups * rows; i++)
        draw_row(from, first[i / rows] + (uint64_t)(i % rows), (uint16_t *)out + i * width);
    return SNAP_OK;
}

snap_status lab_unfused(mla_plan *plan, const mla_step *step, const mla_cache *cache, const void *q,
                        const void *kv, const lab_rows *q8, const lab_rows *staged, snap_err *err) {
    if (!plan->be->ops->lab)
        return cannot("run the dataflow unfused", err);
    if (plan->cap.precision != MLA_FP8)
        return err_set(err, SNAP_E_USAGE, "the fused dataflow exists for FP8 only");
    return plan->be->ops->lab->unfused(plan, step, cache, q, kv, q8, staged, err);
}

bool lab_can_record(const mla_backend *be) {
    return be->ops->lab != NULL;
}

snap_status lab_record(mla_backend *be, snap_err *err) {
    return be->ops->lab ? be->ops->lab->record(be, err) : cannot("record steps", err);
}

snap_status lab_record_end(mla_backend *be, lab_recording **out, snap_err *err) {
    *out = NULL;
    return be->ops->lab ? be->ops->lab->record_end(be, out, err) : cannot("record steps", err);
}

snap_status lab_replay(mla_backend *be, lab_recording *r, snap_err *err) {
    return be->ops->lab ? be->ops->lab->replay(be, r, err) : cannot("record steps", err);
}

void lab_recording_free(mla_backend *be, lab_recording *r) {
    if (r)
        be->ops->lab->recording_free(be, r);
}

bool lab_can_attend(const mla_backend *be) {
    return be->ops->lab != NULL;
}

snap_status lab_attend(mla_backend *be, const lab_step *step, const int64_t *row, int rows,
                       double *out, double *lse, snap_err *err) {
    return be->ops->lab ? be->ops->lab->attend(be, step, row, rows, out, lse, err)
                        : cannot("compute attention in FP64", err);
}
