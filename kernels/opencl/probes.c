/* Measures the ceilings: streaming reads of a large buffer, and FP32 multiply-accumulate, which the
 * kernels use for both precisions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/opencl/opencl.h"

enum { kReadBytes = 256 << 20, kItem = 16, kTurns = 4096, kGroups = 64, kFlopPerTurn = 2 * 4 * 16 };

typedef struct {
    opencl_backend *be;
    void *data, *sink;
    uint64_t each; /* items of kItem bytes that a work-item reads */
} probe;

static uint64_t work_items(const opencl_backend *be) {
    return (uint64_t)be->units * kGroups * OPENCL_GROUP;
}

/* On a GPU, neighbouring work-items read neighbouring items at the same time. A processor runs
 * work-items one after the other, so each of them reads items that follow each other. */
static snap_status launch_read(const probe *p, snap_err *err) {
    bool processor = p->be->processor;
    uint64_t apart = processor ? p->each : 1, step = processor ? 1 : work_items(p->be);
    opencl_call c = {.be = p->be, .kernel = p->be->probe_read};
    opencl_buffer(&c, p->data);
    opencl_value(&c, &p->each, sizeof p->each);
    opencl_value(&c, &apart, sizeof apart);
    opencl_value(&c, &step, sizeof step);
    opencl_buffer(&c, p->sink);
    return opencl_launch(&c, (size_t[]){(size_t)p->be->units * kGroups, 1, 1}, err);
}

static snap_status launch_fma(const probe *p, snap_err *err) {
    float factor = 0.999f;
    opencl_call c = {.be = p->be, .kernel = p->be->probe_fma};
    opencl_buffer(&c, p->sink);
    opencl_int(&c, kTurns);
    opencl_value(&c, &factor, sizeof factor);
    return opencl_launch(&c, (size_t[]){(size_t)p->be->units * kGroups, 1, 1}, err);
}

/* Writes all bytes. Memory that was never written may be a single page of zeros, which a processor
 * would read from its cache. */
static snap_status fill(mla_backend *base, char *data, size_t bytes, snap_err *err) {
    enum { kBlock = 1 << 20 };
    snap_status st = SNAP_OK;
    char *block = malloc(kBlock);
    if (!block)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a probe");
    memset(block, 0x5a, kBlock);
    for (size_t at = 0; at < bytes; at += kBlock)
        TRY(mla_copy_in(base, data + at, block, bytes - at < kBlock ? bytes - at : kBlock, err));
cleanup:
    free(block);
    return st;
}

/* Measures windows of one launch each until the time is over; the best counts. A launch before them
 * warms up. */
static snap_status measure(mla_ceiling *out, const probe *p, double work, double seconds,
                           snap_status (*launch)(const probe *p, snap_err *err), snap_err *err) {
    int64_t end = clock_now_ns() + (int64_t)(1e9 * seconds);
    snap_status st = SNAP_OK;
    TRY(launch(p, err));
    do {
        double ns = 0;
        TRY(p->be->base.ops->timer_start(&p->be->base, err));
        TRY(launch(p, err));
        TRY(p->be->base.ops->timer_stop(&p->be->base, &ns, err));
        double rate = ns > 0 ? 1e9 * work / ns : 0;
        out->worst_window = out->windows++ && out->worst_window < rate ? out->worst_window : rate;
        out->rate = rate > out->rate ? rate : out->rate;
    } while (clock_now_ns() < end);
cleanup:
    return st;
}

snap_status opencl_ceilings(mla_backend *base, double seconds, mla_ceilings *out, snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    uint64_t most = be->largest / 2 < kReadBytes ? be->largest / 2 : kReadBytes;
    probe p = {.be = be, .each = most / (kItem * work_items(be))};
    size_t bytes = (size_t)(p.each * kItem * work_items(be));
    double flop = (double)work_items(be) * kTurns * kFlopPerTurn;
    snap_status st = SNAP_OK;
    p.data = mla_alloc(base, bytes, err);
    p.sink = p.data ? mla_alloc(base, 64, err) : NULL;
    if (!p.sink)
        TRY(SNAP_E_NOMEM);
    TRY(fill(base, p.data, bytes, err));
    TRY(measure(&out->read, &p, (double)bytes, seconds, launch_read, err));
    TRY(measure(&out->bf16, &p, flop, seconds, launch_fma, err));
    (void)snprintf(out->read.how, sizeof out->read.how, "128-bit loads, %u units", be->units);
    (void)snprintf(out->bf16.how, sizeof out->bf16.how, "FP32 mad, 64 sums per work-item");
    out->fp8 = out->bf16;
    out->read_bytes = bytes;
cleanup:
    mla_free(base, p.data);
    mla_free(base, p.sink);
    return st;
}
