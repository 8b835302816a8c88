/* attend_inside.h - the structs of attend.h's backend, for its source files. */
#ifndef SNAPMLA_KERNELS_PLUGIN_ATTEND_INSIDE_H
#define SNAPMLA_KERNELS_PLUGIN_ATTEND_INSIDE_H

#include "kernels/plugin/attend.h"
#include "kernels/plugin/packed.h"

typedef struct attend_block attend_block; /* attend_memory.c */

typedef struct {
    mla_backend base;   /* first: a pointer to it also points to the whole struct */
    mla_backend *inner; /* owned */
    const snapmla_attention *plugin;
    void (*drop)(void *self); /* releases a plugin that make() made; NULL: nothing to release */
    const char *kernel;
    double limit_s;
    void *stream;
    bool host;
    bool stopped; /* a call was ended by the time limit or crashed: the plugin is not called any
                     more */
    attend_block *blocks; /* all allocations; owned */
} attend_backend;

/* What a plan over a packed cache has beyond other plans. */
typedef struct {
    char *json; /* owned, like `named`; `seen` points to both */
    char *named;
    snapmla_format seen;              /* what the plugin sees */
    bool noted;                       /* `around` is filled */
    guard_range around[GUARD_RANGES]; /* CUDA: the bytes around the results of the first call */
    bool summed;                      /* `cache` and `cache_sum` are filled */
    snapmla_packed cache;             /* the cache of the first call */
    uint64_t cache_sum;               /* checksum of its first PACKED_SUMMED bytes */
} attend_packed;

typedef struct attend_plan {
    mla_plan base;         /* first */
    mla_plan *inner;       /* owned; NULL if the cache is packed */
    attend_packed *packed; /* owned; NULL if the cache is that of mla.h */
    void *state;           /* the plugin's */
    int calls;
    int page_tokens;
    int32_t *lengths, *table; /* host: the step with all numbers in range; owned */
    int table_width;
    struct attend_plan *next; /* links the plans that are kept because their plugin was stopped
                                 (attend.c) */
} attend_plan;

static inline attend_backend *attend_of(const mla_backend *be) {
    return (attend_backend *)(uintptr_t)be;
}

static inline attend_plan *attend_plan_of(const mla_plan *plan) {
    return (attend_plan *)(uintptr_t)plan;
}

static inline mla_backend *attend_inner(const mla_backend *be) {
    return attend_of(be)->inner;
}

/* Allocates a plan with room for the lengths and the block table of a step, which are needed on the
 * host only. attend_plan_release() frees what it allocated, but not if the plugin was stopped. */
snap_status attend_plan_new(attend_plan **out, mla_backend *be, const mla_capacity *cap,
                            int page_tokens, snap_err *err) SNAP_CHECK_RESULT;
void attend_plan_release(attend_plan *p);

/* Turns an error that a function of the plugin returned into one with the plugin's name. The codes
 * SNAP_E_NOMEM, SNAP_E_SHAPE and SNAP_E_UNSUPPORTED stay. Any other becomes SNAP_E_DEVICE: a plugin
 * must not end the run as if the user had cancelled it. */
snap_status attend_pass_on(const attend_backend *a, const char *function, snap_status st,
                           const snap_err *why, snap_err *err);

/* Copies lengths and table, and brings every number into its range. @pages is the number of pages
 * of the pool. */
void attend_keep_step(attend_plan *p, const mla_step *step, int64_t pages);

/* The step as the plugin sees it. */
snapmla_step attend_step(const attend_plan *p, const mla_step *step);

/* The functions alloc and free of the backend. */
void *attend_alloc(mla_backend *be, size_t bytes, snap_err *err);
void attend_free(mla_backend *be, void *device);

/* SNAP_E_DEVICE if bytes before or after an allocation have changed. Waits for a device. */
snap_status attend_check_memory(const attend_backend *a, snap_err *err) SNAP_CHECK_RESULT;

/* Writes where an address lies, relative to the nearest allocation. Returns false if it is not in a
 * page without access beside one. */
bool attend_describe_address(const attend_backend *a, const void *address, char *out, size_t size);

/* Calls @call(@ctx), which calls @function of the plugin. On the host, the call has the time limit;
 * if it exceeds the limit or crashes, that is SNAP_E_DEVICE, and the plugin counts as stopped.
 * SNAP_E_IO or SNAP_E_NOMEM: the system has no timer for the limit, and @call did not run. */
snap_status attend_limited(attend_backend *a, const char *function, void (*call)(void *ctx),
                           void *ctx, snap_err *err) SNAP_CHECK_RESULT;

/* A call of the plugin on the host, and what is checked around it. */
typedef struct {
    attend_plan *plan;
    void (*call)(void *ctx);
    uint64_t (*sum)(const void *ctx); /* the checksum of the inputs */
    void *ctx;
    const void *out;
    const float *lse;
    size_t rows;
} guarded_call;
snap_status attend_guarded(const guarded_call *c, snap_err *err) SNAP_CHECK_RESULT;

extern const mla_lab_ops attend_lab; /* in builds with CUDA */

#endif
