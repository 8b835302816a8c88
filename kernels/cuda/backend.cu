/* One CUDA device behind mla.h: its stream, its memory, and the plan of a step. All work goes to one
 * stream, so that "stream order" is call order. */
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "kernels/cuda/c_contract.h"
#include "kernels/cuda/dataflow/dataflow.h"
#include "kernels/cuda/sm90_fp8/launch.h"

namespace {

struct cuda_backend {
    mla_backend base;
    cudaStream_t stream;
    cudaEvent_t started, stopped;
    cudaDeviceProp device;
};

struct cuda_plan {
    mla_plan base;
    sched_plan step;
    void *metadata;
    float *partial_out, *partial_lse;
};

cuda_backend *of(mla_backend *be) {
    return reinterpret_cast<cuda_backend *>(be);
}

cuda_plan *of(mla_plan *plan) {
    return reinterpret_cast<cuda_plan *>(plan);
}

/* The message of a failed call; the error does not stick to the calls after it. */
snap_status check(cudaError_t e, const char *what, snap_err *err) {
    if (e == cudaSuccess)
        return SNAP_OK;
    (void)cudaGetLastError();
    return err_set(err, e == cudaErrorMemoryAllocation ? SNAP_E_NOMEM : SNAP_E_DEVICE, "%s: %s",
                   what, cudaGetErrorString(e));
}

/* ---- device --------------------------------------------------------------------------------- */

void cuda_close(mla_backend *base) {
    cuda_backend *be = of(base);
    if (be->started)
        cudaEventDestroy(be->started);
    if (be->stopped)
        cudaEventDestroy(be->stopped);
    if (be->stream)
        cudaStreamDestroy(be->stream);
    delete be;
}

void cuda_describe(const mla_backend *base, mla_backend_info *out) {
    const auto *be = reinterpret_cast<const cuda_backend *>(base);
    snprintf(out->name, sizeof out->name, "cuda");
    snprintf(out->device, sizeof out->device, "%.100s", be->device.name);
    snprintf(out->kernel, sizeof out->kernel, "sm90a");
    out->host_memory = false;
    out->memory_bytes = be->device.totalGlobalMem;
    out->cache_bytes = static_cast<size_t>(be->device.l2CacheSize);
}

void *cuda_alloc(mla_backend *, size_t bytes, snap_err *err) {
    void *p = nullptr;
    const cudaError_t e = cudaMalloc(&p, std::max<size_t>(bytes, 1));
    if (e == cudaSuccess)
        return p;
    (void)cudaGetLastError();
    (void)err_set(err, e == cudaErrorMemoryAllocation ? SNAP_E_NOMEM : SNAP_E_DEVICE,
                  "%zu bytes of device memory: %s", bytes, cudaGetErrorString(e));
    return nullptr;
}

void cuda_free(mla_backend *, void *device) {
    (void)cudaFree(device);
}

snap_status cuda_sync(mla_backend *base, snap_err *err) {
    return check(cudaStreamSynchronize(of(base)->stream), "device work", err);
}

snap_status cuda_copy_in(mla_backend *base, void *device, const void *host, size_t bytes,
                         snap_err *err) {
    cudaError_t e = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, of(base)->stream);
    return e == cudaSuccess ? cuda_sync(base, err) : check(e, "copy to the device", err);
}

snap_status cuda_copy_out(mla_backend *base, void *host, const void *device, size_t bytes,
                          snap_err *err) {
    cudaError_t e = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, of(base)->stream);
    return e == cudaSuccess ? cuda_sync(base, err) : check(e, "copy from the device", err);
}

snap_status cuda_timer_start(mla_backend *base, snap_err *err) {
    return check(cudaEventRecord(of(base)->started, of(base)->stream), "timer", err);
}

snap_status cuda_timer_stop(mla_backend *base, double *ns, snap_err *err) {
    cuda_backend *be = of(base);
    float ms = 0;
    cudaError_t e = cudaEventRecord(be->stopped, be->stream);
    if (e == cudaSuccess)
        e = cudaEventSynchronize(be->stopped);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(&ms, be->started, be->stopped);
    *ns = static_cast<double>(ms) * 1e6;
    return check(e, "timer", err);
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* Items a sequence may be cut into; more than one for each SM is of no use. */
int cuts_of(const mla_plan *plan) {
    const int64_t tiles = (plan->cap.max_tokens + FP8_TILE_TOKENS - 1) / FP8_TILE_TOKENS;
    const int sms = of(plan->be)->device.multiProcessorCount;
    return static_cast<int>(std::min<int64_t>({plan->cap.splits, tiles, sms}));
}

int parts_of(const mla_plan *plan, int s_q) {
    return fp8_decode_parts(of(plan->be)->device.multiProcessorCount, plan->cap.heads, s_q);
}

/* Rows of partial results that steps of up to the capacity's s_q leave. */
int64_t partial_rows(const mla_plan *plan) {
    const int cuts = cuts_of(plan);
    int64_t most = 1;
    for (int s_q = 1; s_q <= plan->cap.s_q && cuts != 1; s_q++) {
        const int64_t slots =
            cuts > 1 ? static_cast<int64_t>(plan->cap.batch) * cuts : 2 * parts_of(plan, s_q);
        most = std::max<int64_t>(most, slots * s_q * plan->cap.heads);
    }
    return most;
}

void cuda_plan_free(mla_plan *base) {
    cuda_plan *plan = of(base);
    cudaFree(plan->metadata);
    cudaFree(plan->partial_out);
    cudaFree(plan->partial_lse);
    delete plan;
}

/* One allocation for all metadata. */
cudaError_t plan_metadata(cuda_plan *plan) {
    const int batch = plan->base.cap.batch, parts = parts_of(&plan->base, 1);
    const size_t items = sched_max_items(batch, parts, cuts_of(&plan->base));
    const size_t at_cuts = items * sizeof(sched_item);
    const size_t at_begin = at_cuts + batch * sizeof(sched_cut);
    const size_t at_count = at_begin + parts * sizeof(sched_part);
    cudaError_t e = cudaMalloc(&plan->metadata, at_count + sizeof(int));
    auto *base = static_cast<uint8_t *>(plan->metadata);
    plan->step = {
        reinterpret_cast<sched_item *>(base), reinterpret_cast<sched_part *>(base + at_begin),
        reinterpret_cast<sched_cut *>(base + at_cuts), reinterpret_cast<int *>(base + at_count)};
    return e;
}

snap_status cuda_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                             snap_err *err) {
    if (cap->precision != MLA_FP8 || cap->d_c != 512 || cap->d_r != 64)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the cuda backend has a kernel for fp8 at 512 + 64 only, got %s at %d + %d",
                       mla_precision_name(cap->precision), cap->d_c, cap->d_r);
    auto *plan = new (std::nothrow) cuda_plan{};
    if (!plan)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    plan->base.be = base;
    plan->base.cap = *cap;
    const size_t rows = static_cast<size_t>(partial_rows(&plan->base));
    cudaError_t e = plan_metadata(plan);
    if (e == cudaSuccess)
        e = cudaMalloc(&plan->partial_out, rows * 512 * sizeof(float));
    if (e == cudaSuccess)
        e = cudaMalloc(&plan->partial_lse, rows * sizeof(float));
    if (e == cudaSuccess) {
        *out = &plan->base;
        return SNAP_OK;
    }
    cuda_plan_free(&plan->base);
    return check(e, "memory of a plan", err);
}

/* ---- step ----------------------------------------------------------------------------------- */

int longest_of(const mla_plan *plan, const mla_step *step) {
    const int64_t room = static_cast<int64_t>(step->table_width) * MLA_PAGE;
    return static_cast<int>(std::min(room, plan->cap.max_tokens));
}

snap_status cuda_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    return check(sched_launch(of(base)->step, step->seqlens, step->batch, longest_of(base, step),
                              FP8_TILE_TOKENS, parts_of(base, step->s_q), cuts_of(base),
                              of(base->be)->stream),
                 "schedule", err);
}

snap_status cuda_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                     const mla_attn *attn, snap_err *err) {
    const cuda_plan *plan = of(base);
    fp8_decode_args a = {};
    a.content = cache->content;
    a.rope = cache->rope;
    a.token_scale = cache->scale;
    a.pages = static_cast<int>(cache->pages);
    a.q = attn->q;
    a.q_rope = attn->q_rope;
    a.q_scale = attn->q_scale;
    a.block_table = step->block_table;
    a.batch = step->batch;
    a.heads = base->cap.heads;
    a.s_q = step->s_q;
    a.table_width = step->table_width;
    a.softmax_scale = attn->softmax_scale;
    a.plan = plan->step;
    a.parts = parts_of(base, step->s_q);
    a.out = static_cast<__nv_bfloat16 *>(attn->out);
    a.lse = attn->lse;
    a.partial_out = plan->partial_out;
    a.partial_lse = plan->partial_lse;
    return check(fp8_decode_launch(a, cuts_of(base) != 1, of(base->be)->stream), "attention", err);
}

/* ---- dataflow ------------------------------------------------------------------------------- */

snap_status cuda_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                         void *q_rope, float *q_scale, snap_err *err) {
    return check(quant_q_launch(rows, d_c, d_r, static_cast<const __nv_bfloat16 *>(q),
                                static_cast<uint8_t *>(q8), static_cast<__nv_bfloat16 *>(q_rope),
                                q_scale, of(base)->stream),
                 "query quantisation", err);
}

cache_planes planes_of(const mla_plan *plan, const mla_cache *cache) {
    const bool fp8 = plan->cap.precision == MLA_FP8;
    return {cache->content,
            fp8 ? cache->rope : nullptr,
            fp8 ? cache->scale : nullptr,
            static_cast<int>(cache->pages),
            plan->cap.d_c,
            plan->cap.d_r};
}

step_pages pages_of(const mla_plan *plan, const mla_step *step) {
    return {step->seqlens, step->block_table, step->batch,
            step->s_q,     step->table_width, longest_of(plan, step)};
}

snap_status cuda_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                           const void *kv, snap_err *err) {
    return check(append_launch(planes_of(base, cache), pages_of(base, step),
                               static_cast<const __nv_bfloat16 *>(kv), of(base->be)->stream),
                 "append", err);
}

snap_status cuda_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                          int64_t first, int64_t count, void *kv, snap_err *err) {
    return check(fetch_launch(planes_of(base, cache), pages_of(base, step), seq, first, count,
                              static_cast<__nv_bfloat16 *>(kv), of(base->be)->stream),
                 "fetch", err);
}

snap_status cuda_ceilings(mla_backend *, double, mla_ceilings *, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED, "the cuda backend has no ceiling probes");
}

const mla_backend_ops kOps = {
    cuda_close, cuda_describe,    cuda_alloc,      cuda_free,        cuda_copy_in,   cuda_copy_out,
    cuda_sync,  cuda_timer_start, cuda_timer_stop, cuda_plan_create, cuda_plan_free, cuda_schedule,
    cuda_run,   cuda_quant_q,     cuda_append_kv,  cuda_fetch_kv,    cuda_ceilings,
};

/* ---- opening -------------------------------------------------------------------------------- */

snap_status find_device(cudaDeviceProp *out, snap_err *err) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count == 0)
        e = cudaErrorNoDevice;
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        return err_set(err, SNAP_E_UNSUPPORTED, "no CUDA device: %s", cudaGetErrorString(e));
    }
    e = cudaGetDeviceProperties(out, 0);
    if (e != cudaSuccess)
        return check(e, "device properties", err);
    if (out->major != 9 || out->minor != 0)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%.100s has compute capability %d.%d; the kernels need 9.0", out->name,
                       out->major, out->minor);
    return SNAP_OK;
}

} // namespace

extern "C" snap_status cuda_backend_open(mla_backend **out, const mla_backend_options *,
                                         snap_err *err) {
    auto *be = new (std::nothrow) cuda_backend{};
    if (!be)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    be->base.ops = &kOps;
    snap_status st = find_device(&be->device, err);
    if (st == SNAP_OK)
        st = check(cudaStreamCreateWithFlags(&be->stream, cudaStreamNonBlocking), "stream", err);
    if (st == SNAP_OK)
        st = check(cudaEventCreate(&be->started), "event", err);
    if (st == SNAP_OK)
        st = check(cudaEventCreate(&be->stopped), "event", err);
    if (st == SNAP_OK)
        st = check(fp8_decode_init(), "preparing the kernels", err);
    if (st == SNAP_OK)
        *out = &be->base;
    else
        cuda_close(&be->base);
    return st;
}
