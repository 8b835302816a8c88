/* device.h - the backend's struct, its error handling, and the functions of its parts. */
#ifndef SNAPMLA_KERNELS_CUDA_DEVICE_H
#define SNAPMLA_KERNELS_CUDA_DEVICE_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/c_contract.h"

struct cuda_backend {
    mla_backend base;
    cudaStream_t stream; /* all work is enqueued here, so "stream order" is call order */
    cudaEvent_t started, stopped;
    int number; /* of the device */
    cudaDeviceProp device;
    int sms;
    bool hopper;        /* compute capability 9.0 */
    bool portable;      /* use only the portable kernels */
    mla_scale scale;    /* the rule by which the dataflow operations choose the scale of a row */
    void *flush_memory; /* read by lab_flush(); allocated by the first call */
    void *probe_memory; /* read by cuda_probe_once(); allocated by the first call */
};

inline cuda_backend *cuda_of(mla_backend *be) {
    return reinterpret_cast<cuda_backend *>(be);
}

/* Returns SNAP_OK for cudaSuccess, SNAP_E_NOMEM for cudaErrorMemoryAllocation, else SNAP_E_DEVICE.
 * In case of an error, sets @err to a message that begins with @what, and resets CUDA's last error.
 * After some errors the process can't use the device any more, and later calls fail, too. For most
 * of these errors the message says so. */
snap_status cuda_check(cudaError_t e, const char *what, snap_err *err);

/* plan.cu */
snap_status cuda_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                             snap_err *err);
snap_status cuda_plan_create_lab(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                                 lab_ablation ablation, snap_err *err);
void cuda_plan_free(mla_plan *plan);
snap_status cuda_schedule(mla_plan *plan, const mla_step *step, snap_err *err);
snap_status cuda_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                     const mla_attn *attn, snap_err *err);
snap_status cuda_append_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           const void *kv, snap_err *err);
snap_status cuda_prepare(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                         const mla_fresh *fresh, snap_err *err);
snap_status cuda_fetch_kv(mla_plan *plan, const mla_step *step, const mla_cache *cache, int seq,
                          int64_t first, int64_t count, void *kv, snap_err *err);
const char *cuda_plan_kernel(const mla_plan *plan);

/* lab/ */
extern const mla_lab_ops cuda_lab_ops;
snap_status cuda_unfused(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                         const void *q, const void *kv, const lab_rows *q8, const lab_rows *staged,
                         snap_err *err);
snap_status cuda_attend(mla_backend *be, const lab_step *step, const int64_t *row, int rows,
                        double *out, double *lse, snap_err *err);

/* ceilings/ */
snap_status cuda_ceilings(mla_backend *be, double seconds, mla_ceilings *out, snap_err *err);
snap_status cuda_probe_once(mla_backend *be, mla_probe_rates *out, snap_err *err);
snap_status cuda_limits(mla_backend *be, double seconds, mla_limits *out, snap_err *err);

#endif
