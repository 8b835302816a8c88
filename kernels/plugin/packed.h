/* packed.h - the program's side of caches in any format (attention.h): steps of a plugin over a
 * cache that kernels/format packed.
 *
 * The plan is an mla_plan and is released with mla_plan_free(). mla_run() and the other functions
 * of mla.h that take a plan must not be called with it.
 *
 * On the host, the checks of attend.h guard each call. On CUDA, packed_run() checks the first
 * call of a plan: it waits for the device, and compares the bytes around the results and the
 * checksums of the inputs with those before the call. (Of the cache, at most PACKED_SUMMED bytes
 * are read.) packed_check() compares the bytes around all buffers, and the cache, after any
 * number of calls. */
#ifndef SNAPMLA_KERNELS_PLUGIN_PACKED_H
#define SNAPMLA_KERNELS_PLUGIN_PACKED_H

#include "kernels/format/format.h"
#include "kernels/mla.h"

#define PACKED_SUMMED ((size_t)256 << 20)

/* Whether the backend is a plugin that reads packed caches. */
bool packed_is_supported(const mla_backend *be);

/* The format that the plugin names for its cache: the name of a shipped format, or the text of a
 * descriptor. NULL: none. */
const char *packed_own_format(const mla_backend *be);

/* Whether the plugin computes the log-sum-exp. */
bool packed_has_lse(const mla_backend *be);

/* Memory of the device with all planes of a format; see attention.h. */
typedef struct {
    int64_t pages;
    void *pool[CACHE_POOLS];
} packed_cache;

/**
 * packed_plan_create - reserve what every step up to these capacities needs
 *
 * @cap:  its precision must be MLA_BF16, the form of the queries
 * @f:    with the widths of @cap; copied
 * @json: the descriptor; copied
 *
 * Errors: SNAP_E_SHAPE, SNAP_E_UNSUPPORTED (not a plugin that reads packed caches), SNAP_E_NOMEM;
 * plan_packed() may return each of these too, and any other failure of it is SNAP_E_DEVICE.
 * SNAP_E_IO: the system has no timer for the plugin's time limit.
 */
snap_status packed_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                               const cache_format *f, const char *json,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Prepares the plugin for a step. The block table has pages of the format. On the host, lengths and
 * page numbers are copied and brought into range; packed_run() uses that copy. */
snap_status packed_schedule(mla_plan *plan, const mla_step *step, const packed_cache *cache,
                            const mla_attn *attn, snap_err *err) SNAP_CHECK_RESULT;

/* Attention over the cache for the step that was scheduled last. SNAP_E_DEVICE: the plugin did
 * what it must not. Also the errors that the plugin returns. */
snap_status packed_run(mla_plan *plan, const mla_step *step, const packed_cache *cache,
                       const mla_attn *attn, snap_err *err) SNAP_CHECK_RESULT;

/* For plans of a plugin with one function: waits for the device, and returns SNAP_E_DEVICE if bytes
 * before or after an allocation have changed or, for packed caches, the first PACKED_SUMMED bytes
 * of the cache of the plan's first call, or, on CUDA, the bytes around the results of that call.
 * Does nothing for plans of other backends. */
snap_status packed_check(mla_plan *plan, snap_err *err) SNAP_CHECK_RESULT;

#endif
