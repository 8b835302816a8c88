/* backend.h - the table of functions that a backend implements to serve mla.h.
 *
 * A backend embeds mla_backend and mla_plan as the first member of its own structs. Each function
 * of the tables implements the public function of the same name with the prefix mla_ or lab_, with
 * these exceptions: `close` and `describe` implement mla_backend_close() and
 * mla_backend_describe(); `ceilings`, `probe_once` and `limits` implement mla_ceilings_measure(),
 * mla_ceilings_probe_once() and mla_limits_measure(). Before mla.c calls plan_create, schedule,
 * run, quant_q, append_kv, prepare or fetch_kv, it checks the ranges of the numbers, and that
 * pointers are neither null nor misaligned. Before alloc, copy_in and copy_out, it checks that the
 * size is 1..PTRDIFF_MAX and that no pointer is null. For ceilings and limits it checks the
 * seconds. The functions of mla_lab_ops get their arguments unchecked, with two exceptions: those
 * of plan_create, and the precision of the plan given to `unfused`. None of these checks reads
 * device memory or finds out whether a pointer belongs to the device. */
#ifndef SNAPMLA_KERNELS_BACKEND_H
#define SNAPMLA_KERNELS_BACKEND_H

#include "kernels/ceilings.h"
#include "kernels/lab.h"
#include "kernels/mla.h"

/* The functions behind lab.h. A backend implements either none of them, or all except for those
 * marked "may be NULL". */
typedef struct {
    const char *(*plan_kernel)(const mla_plan *plan);
    snap_status (*fill)(mla_backend *be, void *device, int byte, size_t bytes, snap_err *err);
    snap_status (*flush)(mla_backend *be, snap_err *err);
    snap_status (*draw)(mla_backend *be, const draw_source *from, const uint64_t *first, int groups,
                        int64_t rows, void *out, snap_err *err);
    snap_status (*unfused)(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           const void *q, const void *kv, const lab_rows *q8,
                           const lab_rows *staged, snap_err *err);
    snap_status (*record)(mla_backend *be, snap_err *err);
    snap_status (*record_end)(mla_backend *be, lab_recording **out, snap_err *err);
    snap_status (*replay)(mla_backend *be, lab_recording *r, snap_err *err);
    void (*recording_free)(mla_backend *be, lab_recording *r);
    snap_status (*attend)(mla_backend *be, const lab_step *step, const int64_t *row, int rows,
                          double *out, double *lse, snap_err *err);
    snap_status (*plan_create)(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               lab_ablation ablation,
                               snap_err *err); /* may be NULL: there are no ablations */
} mla_lab_ops;

typedef struct {
    void (*close)(mla_backend *be);
    void (*describe)(const mla_backend *be, mla_backend_info *out);
    void *(*alloc)(mla_backend *be, size_t bytes, snap_err *err);
    void (*free)(mla_backend *be, void *device);
    snap_status (*copy_in)(mla_backend *be, void *device, const void *host, size_t bytes,
                           snap_err *err);
    snap_status (*copy_out)(mla_backend *be, void *host, const void *device, size_t bytes,
                            snap_err *err);
    snap_status (*sync)(mla_backend *be, snap_err *err);
    snap_status (*timer_start)(mla_backend *be, snap_err *err);
    snap_status (*timer_stop)(mla_backend *be, double *ns, snap_err *err);
    snap_status (*plan_create)(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               snap_err *err);
    void (*plan_free)(mla_plan *plan);
    snap_status (*schedule)(mla_plan *plan, const mla_step *step, snap_err *err);
    snap_status (*run)(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                       const mla_attn *attn, snap_err *err);
    snap_status (*quant_q)(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                           void *q_rope, float *q_scale, snap_err *err);
    snap_status (*append_kv)(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                             const void *kv, snap_err *err);
    snap_status (*prepare)(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           const mla_fresh *fresh,
                           snap_err *err); /* may be NULL: mla.c then calls quant_q, append_kv and
                                              schedule */
    snap_status (*fetch_kv)(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                            int64_t first, int64_t count, void *kv, snap_err *err);
    snap_status (*ceilings)(mla_backend *be, double seconds, mla_ceilings *out, snap_err *err);
    snap_status (*probe_once)(mla_backend *be, mla_probe_rates *out,
                              snap_err *err); /* may be NULL */
    snap_status (*limits)(mla_backend *be, double seconds, mla_limits *out,
                          snap_err *err); /* may be NULL */
    const mla_lab_ops *lab;               /* may be NULL */
    bool host_memory;                     /* as in mla_backend_info */
} mla_backend_ops;

struct mla_backend {
    const mla_backend_ops *ops;
};

struct mla_plan {
    mla_backend *be;
    mla_capacity cap;
    mla_step scheduled; /* Private to mla.c: the last scheduled step; batch 0 = none. mla_run()
                           compares the batch, s_q and table_width of its own step with it */
};

/* Opens one kind of backend for the registry. @opt is never NULL. */
typedef snap_status (*mla_backend_opener)(mla_backend **out, const mla_backend_options *opt,
                                          snap_err *err);

snap_status cpu_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err);

/* Exists in builds with CUDA. The device opt->device becomes current for the calling thread.
 * SNAP_E_UNSUPPORTED if there is no driver or no such device, or if the device cannot run the
 * kernels or those of opt->isa; the message says which. */
snap_status cuda_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err);

/* Exists in builds with CUDA: the cudaStream_t on which the backend @be enqueues all its work. */
void *cuda_backend_stream(const mla_backend *be);

/* Exists in builds with CUDA: makes the backend's device current for the calling thread. CUDA keeps
 * the current device of each thread, and a new thread begins with device 0. So every thread that
 * uses a backend on another device, and has not opened it, calls this first. SNAP_E_DEVICE. */
snap_status cuda_backend_use(const mla_backend *be, snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_E_UNSUPPORTED if there is no OpenCL library, no platform, or no usable device that matches
 * opt->isa. */
snap_status opencl_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err);

#endif
