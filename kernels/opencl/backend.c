/* OpenCL as a backend: choice of the device, memory, timer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/text.h"
#include "kernels/opencl/opencl.h"

enum { kDevices = 16 };
static const char kDataflow[] = "-cl-std=CL1.2";

/* ---- memory ---------------------------------------------------------------------------------- */

static opencl_area *area_of(const opencl_backend *be, const void *address) {
    opencl_area *a = be->areas;
    while (a && ((uintptr_t)address < (uintptr_t)a->address ||
                 (uintptr_t)address - (uintptr_t)a->address >= a->bytes))
        a = a->next;
    return a;
}

static snap_status make_area(opencl_area *a, opencl_backend *be, size_t bytes, snap_err *err) {
    int32_t code = 0;
    a->bytes = bytes ? bytes : 1;
    if (a->bytes > be->largest)
        return err_set(err, SNAP_E_NOMEM,
                       "a buffer of %zu bytes exceeds the device's maximum of %llu", bytes,
                       (unsigned long long)be->largest);
    void *range =
        mmap(NULL, a->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return err_set(err, SNAP_E_NOMEM, "cannot reserve an address range of %zu bytes", bytes);
    a->address = range;
    a->buffer = be->cl->CreateBuffer(be->context, CL_MEM_READ_WRITE, a->bytes, NULL, &code);
    snap_status st = opencl_check(code, "a buffer", err);
    if (st != SNAP_OK)
        (void)munmap(range, a->bytes);
    return st;
}

static void *opencl_alloc(mla_backend *base, size_t bytes, snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    opencl_area *a = calloc(1, sizeof *a);
    if (!a) {
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a buffer");
        return NULL;
    }
    if (make_area(a, be, bytes, err) != SNAP_OK) {
        free(a);
        return NULL;
    }
    a->next = be->areas;
    be->areas = a;
    return a->address;
}

static void release_area(const opencl_backend *be, opencl_area *a) {
    (void)be->cl->ReleaseMemObject(a->buffer);
    (void)munmap(a->address, a->bytes);
    free(a);
}

static void opencl_free(mla_backend *base, void *device) {
    opencl_backend *be = (opencl_backend *)base;
    for (opencl_area **at = &be->areas; *at; at = &(*at)->next)
        if ((*at)->address == device) {
            opencl_area *a = *at;
            *at = a->next;
            release_area(be, a);
            return;
        }
}

static snap_status find_range(const opencl_area **out, size_t *at, const opencl_backend *be,
                              const void *device, size_t bytes, snap_err *err) {
    const opencl_area *a = area_of(be, device);
    *out = a;
    *at = a ? (size_t)((uintptr_t)device - (uintptr_t)a->address) : 0;
    if (!a || bytes > a->bytes - *at)
        return err_set(err, SNAP_E_SHAPE, "a copy of %zu bytes outside device memory", bytes);
    return SNAP_OK;
}

/* A copy to the device returns when it is done, as a copy from the device does, because the caller
 * may reuse the host memory at once. */
static snap_status opencl_copy_in(mla_backend *base, void *device, const void *host, size_t bytes,
                                  snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    const opencl_area *a = NULL;
    size_t at = 0;
    snap_status st = bytes ? find_range(&a, &at, be, device, bytes, err) : SNAP_OK;
    if (st != SNAP_OK || !a)
        return st;
    return opencl_check(
        be->cl->EnqueueWriteBuffer(be->queue, a->buffer, 1, at, bytes, host, 0, NULL, NULL),
        "a copy to the device", err);
}

static snap_status opencl_copy_out(mla_backend *base, void *host, const void *device, size_t bytes,
                                   snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    const opencl_area *a = NULL;
    size_t at = 0;
    snap_status st = bytes ? find_range(&a, &at, be, device, bytes, err) : SNAP_OK;
    if (st != SNAP_OK || !a)
        return st;
    return opencl_check(
        be->cl->EnqueueReadBuffer(be->queue, a->buffer, 1, at, bytes, host, 0, NULL, NULL),
        "a copy from the device", err);
}

/* ---- timer ----------------------------------------------------------------------------------- */

static snap_status opencl_sync(mla_backend *base, snap_err *err) {
    opencl_backend *be = (opencl_backend *)base;
    return opencl_check(be->cl->Finish(be->queue), "waiting for the device", err);
}

/* The timer is the host's clock, read when the queue is empty. So its times include launch
 * overhead. */
static snap_status opencl_timer_start(mla_backend *base, snap_err *err) {
    snap_status st = opencl_sync(base, err);
    ((opencl_backend *)base)->started_ns = clock_now_ns();
    return st;
}

static snap_status opencl_timer_stop(mla_backend *base, double *ns, snap_err *err) {
    snap_status st = opencl_sync(base, err);
    *ns = (double)(clock_now_ns() - ((opencl_backend *)base)->started_ns);
    return st;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Queries a numeric property of the device; 0 if it is not available. */
static uint64_t number(const opencl_backend *be, cl_object device, uint32_t what) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    size_t size = 0;
    if (be->cl->GetDeviceInfo(device, what, 0, NULL, &size) != 0)
        return 0;
    if (size == sizeof narrow)
        return be->cl->GetDeviceInfo(device, what, size, &narrow, NULL) == 0 ? narrow : 0;
    return size == sizeof wide && be->cl->GetDeviceInfo(device, what, size, &wide, NULL) == 0 ? wide
                                                                                              : 0;
}

static void name_of(const opencl_backend *be, cl_object device, char *out, size_t size) {
    memset(out, 0, size);
    if (be->cl->GetDeviceInfo(device, CL_DEVICE_NAME, size - 1, out, NULL) != 0)
        (void)snprintf(out, size, "a device with a long name");
}

static bool usable(const opencl_backend *be, cl_object device) {
    return number(be, device, CL_DEVICE_COMPILER_AVAILABLE) &&
           number(be, device, CL_DEVICE_ENDIAN_LITTLE) &&
           number(be, device, CL_DEVICE_MAX_WORK_GROUP_SIZE) >= OPENCL_GROUP &&
           number(be, device, CL_DEVICE_LOCAL_MEM_SIZE) >= 16 << 10;
}

/* Ranks a device by how well it matches the request; 0 = it does not match or is not usable. */
static int rank(const opencl_backend *be, cl_object device, const char *wanted) {
    char name[128];
    uint64_t type = number(be, device, CL_DEVICE_TYPE);
    bool processor = (type & CL_DEVICE_TYPE_CPU) != 0;
    name_of(be, device, name, sizeof name);
    if (!usable(be, device))
        return 0;
    if (!wanted || text_equal(wanted, "auto"))
        return processor ? 1 : 2;
    if (text_equal(wanted, "gpu"))
        return (type & CL_DEVICE_TYPE_GPU) != 0;
    return text_equal(wanted, "cpu") ? processor : strstr(name, wanted) != NULL;
}

static snap_status choose(opencl_backend *be, const char *wanted, snap_err *err) {
    cl_object platforms[kDevices], devices[kDevices];
    uint32_t n_platforms = 0, n = 0;
    int best = 0;
    if (be->cl->GetPlatformIDs(kDevices, platforms, &n_platforms) != 0 || n_platforms == 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "OpenCL has no platform on this machine");
    for (uint32_t p = 0; p < n_platforms && p < kDevices; p++) {
        n = 0;
        if (be->cl->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, kDevices, devices, &n) != 0)
            continue;
        for (uint32_t d = 0; d < n && d < kDevices; d++)
            if (rank(be, devices[d], wanted) > best) {
                best = rank(be, devices[d], wanted);
                be->device = devices[d];
            }
    }
    if (!be->device)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "no usable OpenCL device matches '%s': auto, gpu, cpu or a part of its "
                       "name",
                       wanted ? wanted : "auto");
    return SNAP_OK;
}

static void opencl_describe(const mla_backend *base, mla_backend_info *out) {
    const opencl_backend *be = (const opencl_backend *)base;
    (void)snprintf(out->name, sizeof out->name, "opencl");
    name_of(be, be->device, out->device, sizeof out->device);
    (void)snprintf(out->kernel, sizeof out->kernel, "cl1.2");
    out->memory_bytes = (size_t)number(be, be->device, CL_DEVICE_GLOBAL_MEM_SIZE);
    out->cache_bytes = (size_t)number(be, be->device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    out->processors = be->processor;
    if (!out->processors)
        opencl_pci(out->pci, be->cl, be->device);
    out->scale = be->scale;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void opencl_close(mla_backend *base) {
    opencl_backend *be = (opencl_backend *)base;
    const cl_object kernels[] = {be->quant_q, be->append, be->fetch, be->probe_read, be->probe_fma};
    if (be->queue)
        (void)be->cl->Finish(be->queue);
    while (be->areas) {
        opencl_area *a = be->areas;
        be->areas = a->next;
        release_area(be, a);
    }
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i])
            (void)be->cl->ReleaseKernel(kernels[i]);
    while (be->programs) {
        opencl_program *p = be->programs;
        be->programs = p->next;
        (void)be->cl->ReleaseProgram(p->program);
        free(p);
    }
    if (be->queue)
        (void)be->cl->ReleaseCommandQueue(be->queue);
    if (be->context)
        (void)be->cl->ReleaseContext(be->context);
    free(be);
}

static const mla_backend_ops kOps = {
    .close = opencl_close,
    .describe = opencl_describe,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .copy_in = opencl_copy_in,
    .copy_out = opencl_copy_out,
    .sync = opencl_sync,
    .timer_start = opencl_timer_start,
    .timer_stop = opencl_timer_stop,
    .plan_create = opencl_plan_create,
    .plan_free = opencl_plan_free,
    .schedule = opencl_schedule,
    .run = opencl_run,
    .quant_q = opencl_quant_q,
    .append_kv = opencl_append_kv,
    .fetch_kv = opencl_fetch_kv,
    .ceilings = opencl_ceilings,
};

static snap_status open_device(opencl_backend *be, const char *wanted, snap_err *err) {
    int32_t code = 0;
    snap_status st = SNAP_OK;
    TRY(choose(be, wanted, err));
    be->processor = (number(be, be->device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    be->units = (uint32_t)number(be, be->device, CL_DEVICE_MAX_COMPUTE_UNITS);
    be->largest = number(be, be->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    be->context = be->cl->CreateContext(NULL, 1, &be->device, NULL, NULL, &code);
    TRY(opencl_check(code, "a context", err));
    be->queue = be->cl->CreateCommandQueue(be->context, be->device, 0, &code);
    TRY(opencl_check(code, "a queue", err));
    TRY(opencl_kernel(&be->quant_q, be, kDataflow, "quant_q", err));
    TRY(opencl_kernel(&be->append, be, kDataflow, "append", err));
    TRY(opencl_kernel(&be->fetch, be, kDataflow, "fetch", err));
    TRY(opencl_kernel(&be->probe_read, be, kDataflow, "probe_read", err));
    TRY(opencl_kernel(&be->probe_fma, be, kDataflow, "probe_fma", err));
cleanup:
    return st;
}

snap_status opencl_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    const opencl_api *cl = opencl_load(err);
    if (!cl)
        return SNAP_E_UNSUPPORTED;
    opencl_backend *be = calloc(1, sizeof *be);
    if (!be)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    be->base.ops = &kOps;
    be->cl = cl;
    be->scale = opt->scale;
    snap_status st = open_device(be, opt->isa, err);
    if (st == SNAP_OK)
        *out = (mla_backend *)be;
    else
        opencl_close((mla_backend *)be);
    return st;
}
