/* One CUDA device as a backend of mla.h: opening and describing it, its memory, copies and timer,
 * and the table of its functions. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "kernels/cuda/dataflow/dataflow.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/portable/portable_launch.h"
#include "kernels/cuda/sm90_ablation/ablation.h"
#include "kernels/cuda/sm90_bf16/bf16_launch.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"

namespace {

/* True for errors after which the process can't use the device any more. */
bool is_sticky(cudaError_t e) {
    switch (e) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
        return true;
    default:
        return false;
    }
}

} // namespace

snap_status cuda_check(cudaError_t e, const char *what, snap_err *err) {
    if (e == cudaSuccess)
        return SNAP_OK;
    (void)cudaGetLastError();
    return err_set(err, e == cudaErrorMemoryAllocation ? SNAP_E_NOMEM : SNAP_E_DEVICE, "%s: %s%s",
                   what, cudaGetErrorString(e),
                   is_sticky(e) ? "; this process can't use the device any more" : "");
}

namespace {

/* ---- device --------------------------------------------------------------------------------- */

void cuda_close(mla_backend *base) {
    cuda_backend *be = cuda_of(base);
    cudaFree(be->flush_memory);
    cudaFree(be->probe_memory);
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
    snprintf(out->kernel, sizeof out->kernel, "%s", be->portable ? "portable" : "sm90a");
    snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.0", be->device.pciDomainID,
             be->device.pciBusID, be->device.pciDeviceID);
    out->host_memory = false;
    if (!be->portable)
        out->fp8_sums = {13, 32}; /* how wgmma sums: docs/lab/2026-11-22-fp8-errors.md */
    out->memory_bytes = be->device.totalGlobalMem;
    out->cache_bytes = static_cast<size_t>(be->device.l2CacheSize);
    out->scale = be->scale;
}

void *cuda_alloc(mla_backend *, size_t bytes, snap_err *err) {
    void *p = nullptr;
    const cudaError_t e = cudaMalloc(&p, std::max<size_t>(bytes, 1));
    char what[64];
    snprintf(what, sizeof what, "%zu bytes of device memory", bytes);
    (void)cuda_check(e, what, err);
    return e == cudaSuccess ? p : nullptr;
}

void cuda_free(mla_backend *, void *device) {
    (void)cudaFree(device);
}

snap_status cuda_sync(mla_backend *base, snap_err *err) {
    return cuda_check(cudaStreamSynchronize(cuda_of(base)->stream), "device work", err);
}

snap_status cuda_copy(mla_backend *base, void *to, const void *from, size_t bytes,
                      cudaMemcpyKind kind, const char *what, snap_err *err) {
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, cuda_of(base)->stream);
    return e == cudaSuccess ? cuda_sync(base, err) : cuda_check(e, what, err);
}

snap_status cuda_copy_in(mla_backend *base, void *device, const void *host, size_t bytes,
                         snap_err *err) {
    return cuda_copy(base, device, host, bytes, cudaMemcpyHostToDevice, "copy to the device", err);
}

snap_status cuda_copy_out(mla_backend *base, void *host, const void *device, size_t bytes,
                          snap_err *err) {
    return cuda_copy(base, host, device, bytes, cudaMemcpyDeviceToHost, "copy from the device",
                     err);
}

snap_status cuda_timer_start(mla_backend *base, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    return cuda_check(cudaEventRecord(be->started, be->stream), "timer", err);
}

snap_status cuda_timer_stop(mla_backend *base, double *ns, snap_err *err) {
    cuda_backend *be = cuda_of(base);
    float ms = 0;
    cudaError_t e = cudaEventRecord(be->stopped, be->stream);
    if (e == cudaSuccess)
        e = cudaEventSynchronize(be->stopped);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(&ms, be->started, be->stopped);
    *ns = std::round(static_cast<double>(ms) * 1e6); /* events are not more precise than 1 ns */
    return cuda_check(e, "device work", err);
}

snap_status cuda_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                         void *q_rope, float *q_scale, snap_err *err) {
    return cuda_check(quant_q_launch(rows, d_c, d_r, cuda_of(base)->scale == MLA_SCALE_POW2,
                                     static_cast<const __nv_bfloat16 *>(q),
                                     static_cast<uint8_t *>(q8),
                                     static_cast<__nv_bfloat16 *>(q_rope), q_scale,
                                     cuda_of(base)->stream),
                      "query quantisation", err);
}

/* Assigns the members by name, so that the order of the table may change. C++17 has no designated
 * initialisers. */
mla_backend_ops make_ops() {
    mla_backend_ops ops = {};
    ops.close = cuda_close;
    ops.describe = cuda_describe;
    ops.alloc = cuda_alloc;
    ops.free = cuda_free;
    ops.copy_in = cuda_copy_in;
    ops.copy_out = cuda_copy_out;
    ops.sync = cuda_sync;
    ops.timer_start = cuda_timer_start;
    ops.timer_stop = cuda_timer_stop;
    ops.plan_create = cuda_plan_create;
    ops.plan_free = cuda_plan_free;
    ops.schedule = cuda_schedule;
    ops.run = cuda_run;
    ops.quant_q = cuda_quant_q;
    ops.append_kv = cuda_append_kv;
    ops.prepare = cuda_prepare;
    ops.fetch_kv = cuda_fetch_kv;
    ops.ceilings = cuda_ceilings;
    ops.probe_once = cuda_probe_once;
    ops.limits = cuda_limits;
    ops.lab = &cuda_lab_ops;
    return ops;
}

const mla_backend_ops kOps = make_ops();

/* ---- opening -------------------------------------------------------------------------------- */

snap_status no_device(cudaError_t e, snap_err *err) {
    int driver = 0;
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "no CUDA device: there is no NVIDIA driver");
    return err_set(err, SNAP_E_UNSUPPORTED, "no CUDA device: %s", cudaGetErrorString(e));
}

snap_status find_device(cuda_backend *be, snap_err *err) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count == 0)
        e = cudaErrorNoDevice;
    if (e != cudaSuccess)
        return no_device(e, err);
    if (be->number < 0 || be->number >= count)
        return err_set(err, SNAP_E_UNSUPPORTED, "no CUDA device %d: this machine has %d",
                       be->number, count);
    e = cudaSetDevice(be->number);
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&be->device, be->number);
    if (e != cudaSuccess)
        return cuda_check(e, "device properties", err);
    be->sms = be->device.multiProcessorCount;
    be->hopper = be->device.major == 9 && be->device.minor == 0;
    if (be->device.major < 8)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%.100s has compute capability %d.%d; the kernels need 8.0", be->device.name,
                       be->device.major, be->device.minor);
    return SNAP_OK;
}

/* @isa: null or "auto" takes the Hopper kernels if the device can run them, else the portable ones;
 * "sm90a" requires a device that can run them; "portable" excludes them, for comparison. Widths
 * that no Hopper kernel serves always get the portable one. Another text is SNAP_E_USAGE. */
snap_status choose_kernels(cuda_backend *be, const char *isa, snap_err *err) {
    const bool best = !isa || strcmp(isa, "auto") == 0;
    if (!best && strcmp(isa, "sm90a") != 0 && strcmp(isa, "portable") != 0)
        return err_set(err, SNAP_E_USAGE,
                       "unknown isa '%s' of a CUDA device; one of auto, sm90a, portable", isa);
    if (!best && strcmp(isa, "sm90a") == 0 && !be->hopper)
        return err_set(err, SNAP_E_UNSUPPORTED, "%.100s has no sm_90a instructions",
                       be->device.name);
    be->portable = !be->hopper || (!best && strcmp(isa, "portable") == 0);
    return SNAP_OK;
}

cudaError_t prepare(cuda_backend *be) {
    cudaError_t e = cudaStreamCreateWithFlags(&be->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaEventCreate(&be->started);
    if (e == cudaSuccess)
        e = cudaEventCreate(&be->stopped);
    if (e == cudaSuccess)
        e = portable_init(0);
    if (e == cudaSuccess && be->hopper)
        e = fp8_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = bf16_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = widened_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = in_place_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = shallow_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = page_units_decode_init();
    if (e == cudaSuccess && be->hopper)
        e = page_order_decode_init();
    return e;
}

} // namespace

extern "C" snap_status cuda_backend_open(mla_backend **out, const mla_backend_options *opt,
                                         snap_err *err) {
    auto *be = new (std::nothrow) cuda_backend{};
    if (!be)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    be->base.ops = &kOps;
    be->scale = opt->scale;
    be->number = opt->device;
    snap_status st = find_device(be, err);
    if (st == SNAP_OK)
        st = choose_kernels(be, opt->isa, err);
    if (st == SNAP_OK)
        st = cuda_check(prepare(be), "preparing the device", err);
    if (st == SNAP_OK)
        *out = &be->base;
    else
        cuda_close(&be->base);
    return st;
}

extern "C" void *cuda_backend_stream(const mla_backend *be) {
    return reinterpret_cast<const cuda_backend *>(be)->stream;
}

extern "C" snap_status cuda_backend_use(const mla_backend *be, snap_err *err) {
    return cuda_check(cudaSetDevice(reinterpret_cast<const cuda_backend *>(be)->number),
                      "choosing the device of a thread", err);
}
