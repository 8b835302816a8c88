/* opencl.h - declarations that the files of the OpenCL backend share.
 *
 * Buffers of OpenCL 1.2 have no addresses, but mla.h needs pointers. So each buffer gets an address
 * range that the process reserves but never maps to memory. A caller may add offsets to such a
 * pointer; an access by the host faults. Kernels receive the buffer and an offset in bytes. */
#ifndef SNAPMLA_KERNELS_OPENCL_OPENCL_H
#define SNAPMLA_KERNELS_OPENCL_OPENCL_H

#include "kernels/backend.h"
#include "kernels/opencl/api.h"

enum { OPENCL_GROUP = 64, OPENCL_OPTIONS = 96, OPENCL_PCI = 24 };

typedef struct opencl_area {
    struct opencl_area *next;
    char *address; /* start of the reserved address range */
    size_t bytes;
    cl_object buffer;
} opencl_area;

/* The program, built with one set of options and kept for later use. */
typedef struct opencl_program {
    struct opencl_program *next;
    char options[OPENCL_OPTIONS];
    cl_object program;
} opencl_program;

typedef struct {
    mla_backend base;
    const opencl_api *cl;
    mla_scale scale;
    cl_object device, context, queue;
    opencl_area *areas;
    opencl_program *programs;
    cl_object quant_q, append, fetch, probe_read, probe_fma;
    bool processor;   /* the device is a CPU */
    uint32_t units;   /* compute units */
    uint64_t largest; /* largest possible buffer, in bytes */
    int64_t started_ns;
} opencl_backend;

/* Writes the PCI address of a device: "0000:1b:00.0"; "1b:00.0" if no extension gives the domain;
 * "" if none gives an address. */
void opencl_pci(char out[OPENCL_PCI], const opencl_api *cl, cl_object device);

/* Returns SNAP_OK for 0; else SNAP_E_NOMEM or SNAP_E_DEVICE with @what and the code in the
 * message. */
snap_status opencl_check(int32_t code, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* Creates the kernel @name from mla.cl built with @options. The caller releases it. */
snap_status opencl_kernel(cl_object *out, opencl_backend *be, const char *options, const char *name,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Collects a kernel's arguments in order, then launches it. The first error is kept in `code`, and
 * opencl_launch() reports it. */
typedef struct {
    opencl_backend *be;
    cl_object kernel;
    uint32_t n;
    int32_t code;
} opencl_call;

void opencl_buffer(opencl_call *c, const void *address); /* passes two arguments: buffer and
                                                            offset */
void opencl_int(opencl_call *c, int64_t value);
void opencl_value(opencl_call *c, const void *value, size_t size);

/* @groups: number of work-groups in x, y and z; each has OPENCL_GROUP work-items in x. If one of
 * the numbers is 0, nothing is launched, and SNAP_OK is returned. */
snap_status opencl_launch(opencl_call *c, const size_t groups[3], snap_err *err) SNAP_CHECK_RESULT;

/* step.c */
snap_status opencl_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                               snap_err *err);
void opencl_plan_free(mla_plan *base);
snap_status opencl_schedule(mla_plan *base, const mla_step *step, snap_err *err);
snap_status opencl_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err);
snap_status opencl_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q,
                           void *q8, void *q_rope, float *q_scale, snap_err *err);
snap_status opencl_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                             const void *kv, snap_err *err);
snap_status opencl_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                            int64_t first, int64_t count, void *kv, snap_err *err);

/* probes.c */
snap_status opencl_ceilings(mla_backend *base, double seconds, mla_ceilings *out, snap_err *err);

#endif
