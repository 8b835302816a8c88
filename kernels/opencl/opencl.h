/* opencl.h - what the files of the OpenCL backend share.
 *
 * Buffers of OpenCL 1.2 have no addresses, mla.h's memory has: each buffer gets a range of addresses that
 * the process reserves and never backs, so that a caller may add offsets and a careless host access
 * faults. Kernels get the buffer and an offset in bytes. */
#ifndef SNAPMLA_KERNELS_OPENCL_OPENCL_H
#define SNAPMLA_KERNELS_OPENCL_OPENCL_H

#include "kernels/backend.h"
#include "kernels/opencl/api.h"

enum { OPENCL_GROUP = 64, OPENCL_OPTIONS = 96 };

typedef struct opencl_area {
    struct opencl_area *next;
    char *address; /* of `bytes` reserved bytes */
    size_t bytes;
    cl_object buffer;
} opencl_area;

/* A program as it was built for one set of options: built once, kept. */
typedef struct opencl_program {
    struct opencl_program *next;
    char options[OPENCL_OPTIONS];
    cl_object program;
} opencl_program;

typedef struct {
    mla_backend base;
    const opencl_api *cl;
    cl_object device, context, queue;
    opencl_area *areas;
    opencl_program *programs;
    cl_object quant_q, append, fetch, probe_read, probe_fma;
    uint32_t units;   /* compute units */
    uint64_t largest; /* bytes of a buffer at most */
    int64_t started_ns;
} opencl_backend;

/* SNAP_OK, or SNAP_E_DEVICE saying what failed with which code. */
snap_status opencl_check(int32_t code, const char *what, snap_err *err) SNAP_CHECK_RESULT;

/* The kernel of that name in mla.cl built with @options; the caller releases it. */
snap_status opencl_kernel(cl_object *out, opencl_backend *be, const char *options, const char *name,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Arguments in their order, then the launch; a failed one sticks and is reported by opencl_launch(). */
typedef struct {
    opencl_backend *be;
    cl_object kernel;
    uint32_t n;
    int32_t code;
} opencl_call;

void opencl_buffer(opencl_call *c, const void *address); /* buffer and offset: two arguments */
void opencl_int(opencl_call *c, int64_t value);
void opencl_value(opencl_call *c, const void *value, size_t size);

/* @groups: work-groups of OPENCL_GROUP in x, single ones in y and z. */
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
