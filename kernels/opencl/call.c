/* Builds programs, passes arguments and launches kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/opencl/opencl.h"

extern const char opencl_source[]; /* in source.S */

snap_status opencl_check(int32_t code, const char *what, snap_err *err) {
    static const int32_t kMemory[] = {-4, -5, -6, -61}; /* object allocation, resources, host
                                                           memory, buffer size */
    if (code == 0)
        return SNAP_OK;
    for (size_t i = 0; i < sizeof kMemory / sizeof *kMemory; i++)
        if (code == kMemory[i])
            return err_set(err, SNAP_E_NOMEM, "%s: out of memory (OpenCL error %d)", what, code);
    return err_set(err, SNAP_E_DEVICE, "%s: OpenCL error %d", what, code);
}

/* Reports the beginning of the compiler's log, on one line. */
static snap_status build_failed(const opencl_backend *be, cl_object program, snap_err *err) {
    enum { kLog = 4096, kShown = 300 };
    char *log = calloc(kLog + 1, 1);
    if (log)
        (void)be->cl->GetProgramBuildInfo(program, be->device, CL_PROGRAM_BUILD_LOG, kLog, log,
                                          NULL);
    for (char *c = log; c && *c; c++)
        if (*c == '\n')
            *c = ' ';
    (void)err_set(err, SNAP_E_DEVICE, "the device's compiler rejects the kernels: %.*s", kShown,
                  log ? log : "");
    free(log);
    return SNAP_E_DEVICE;
}

static snap_status build(opencl_program *p, opencl_backend *be, snap_err *err) {
    const char *text = opencl_source;
    int32_t code = 0;
    p->program = be->cl->CreateProgramWithSource(be->context, 1, &text, NULL, &code);
    snap_status st = opencl_check(code, "the kernels' text", err);
    if (st != SNAP_OK)
        return st;
    if (be->cl->BuildProgram(p->program, 1, &be->device, p->options, NULL, NULL) == 0)
        return SNAP_OK;
    st = build_failed(be, p->program, err);
    (void)be->cl->ReleaseProgram(p->program);
    return st;
}

static snap_status find_program(const opencl_program **out, opencl_backend *be, const char *options,
                                snap_err *err) {
    for (opencl_program *p = be->programs; p; p = p->next)
        if (strcmp(p->options, options) == 0) {
            *out = p;
            return SNAP_OK;
        }
    opencl_program *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a program");
    (void)snprintf(p->options, sizeof p->options, "%s", options);
    snap_status st = build(p, be, err);
    if (st != SNAP_OK) {
        free(p);
        return st;
    }
    p->next = be->programs;
    be->programs = p;
    *out = p;
    return SNAP_OK;
}

snap_status opencl_kernel(cl_object *out, opencl_backend *be, const char *options, const char *name,
                          snap_err *err) {
    const opencl_program *p = NULL;
    int32_t code = 0;
    snap_status st = find_program(&p, be, options, err);
    if (st != SNAP_OK || !p)
        return st;
    *out = be->cl->CreateKernel(p->program, name, &code);
    return opencl_check(code, name, err);
}

/* ---- arguments and launches ------------------------------------------------------------------ */

void opencl_value(opencl_call *c, const void *value, size_t size) {
    int32_t code = c->be->cl->SetKernelArg(c->kernel, c->n++, size, value);
    c->code = c->code ? c->code : code;
}

void opencl_int(opencl_call *c, int64_t value) {
    int32_t narrow = (int32_t)value;
    opencl_value(c, &narrow, sizeof narrow);
}

/* Passes a null buffer if the address is NULL. An address outside all buffers is an error. */
void opencl_buffer(opencl_call *c, const void *address) {
    cl_object buffer = NULL;
    uint64_t offset = 0;
    for (const opencl_area *a = c->be->areas; a && !buffer; a = a->next) {
        size_t at = (uintptr_t)address - (uintptr_t)a->address;
        if ((uintptr_t)address >= (uintptr_t)a->address && at < a->bytes) {
            buffer = a->buffer;
            offset = at;
        }
    }
    if (address && !buffer)
        c->code = c->code ? c->code : -38; /* CL_INVALID_MEM_OBJECT */
    opencl_value(c, &buffer, sizeof buffer);
    opencl_value(c, &offset, sizeof offset);
}

snap_status opencl_launch(opencl_call *c, const size_t groups[3], snap_err *err) {
    const size_t local[3] = {OPENCL_GROUP, 1, 1};
    const size_t global[3] = {groups[0] * OPENCL_GROUP, groups[1], groups[2]};
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return SNAP_OK;
    if (!c->code)
        c->code = c->be->cl->EnqueueNDRangeKernel(c->be->queue, c->kernel, 3, NULL, global, local,
                                                  0, NULL, NULL);
    return opencl_check(c->code, "a kernel", err);
}
