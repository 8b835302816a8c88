/* The CPU as a backend: memory, timer, description, ceilings, and the choice of an instruction set.
 * Every call returns after its work is done, so "stream order" is program order. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/machine.h"

enum { kHugePage = 2 << 20 };

static const double kFirstProbeSeconds = 0.3;

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; older systems refuse it */
#endif

/* Large allocations use huge pages if the system has them: a cold read then has fewer TLB misses.
 * MADV_HUGEPAGE makes pages huge that are touched later. MADV_COLLAPSE does the same with pages
 * that the process touched before it freed this memory, see keep_memory(). */
void *cpu_memory(size_t bytes) {
    size_t align = bytes >= kHugePage ? kHugePage : MLA_ALIGN;
    if (bytes > machine_memory_bytes())
        return NULL;
    void *p = aligned_alloc(align, (bytes / align + 1) * align);
    if (p && align == kHugePage) {
        (void)madvise(p, bytes, MADV_HUGEPAGE);
        (void)madvise(p, bytes, MADV_COLLAPSE);
    }
    return p;
}

/* Makes malloc() keep freed memory instead of giving it back to the system. So the KV caches of a
 * benchmark can occupy memory that earlier ones had, whose pages are mapped already. The setting
 * applies to the whole process. */
static void keep_memory(void) {
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, -1);
}

static void cpu_close(mla_backend *base) {
    cpu_backend *be = (cpu_backend *)base;
    cpu_probe_free(be->probe);
    if (!be->borrowed)
        parallel_free(be->pool);
    free(be);
}

static void cpu_describe(const mla_backend *base, mla_backend_info *out) {
    const cpu_backend *be = (const cpu_backend *)base;
    int threads = parallel_threads(be->pool);
    char model[96];
    machine_name(model, sizeof model);
    (void)snprintf(out->name, sizeof out->name, "cpu");
    (void)snprintf(out->device, sizeof out->device, "%s, %d thread%s", model, threads,
                   threads == 1 ? "" : "s");
    (void)snprintf(out->kernel, sizeof out->kernel, "%s", be->isa->kernel);
    out->host_memory = true;
    out->memory_bytes = machine_memory_bytes();
    out->cache_bytes = machine_cache_bytes();
    out->scale = be->scale;
}

static void *cpu_alloc(mla_backend *be, size_t bytes, snap_err *err) {
    (void)be;
    void *p = cpu_memory(bytes);
    if (!p)
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for %zu bytes", bytes);
    return p;
}

static void cpu_free(mla_backend *be, void *device) {
    (void)be;
    free(device);
}

static snap_status cpu_copy(mla_backend *be, void *to, const void *from, size_t bytes,
                            snap_err *err) {
    (void)be;
    (void)err;
    memcpy(to, from, bytes);
    return SNAP_OK;
}

static snap_status cpu_sync(mla_backend *be, snap_err *err) {
    (void)be;
    (void)err;
    return SNAP_OK;
}

static snap_status cpu_timer_start(mla_backend *base, snap_err *err) {
    (void)err;
    ((cpu_backend *)base)->started_ns = clock_now_ns();
    return SNAP_OK;
}

static snap_status cpu_timer_stop(mla_backend *base, double *ns, snap_err *err) {
    (void)err;
    *ns = (double)(clock_now_ns() - ((cpu_backend *)base)->started_ns);
    return SNAP_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static snap_status cpu_ceilings(mla_backend *base, double seconds, mla_ceilings *out,
                                snap_err *err) {
    cpu_backend *be = (cpu_backend *)base;
    snap_status st = be->probe ? SNAP_OK : cpu_probe_create(&be->probe, be->pool, err);
    if (st != SNAP_OK)
        return st;
    cpu_probe_measure(be->probe, out, be->pool, seconds);
    be->measured = true;
    return SNAP_OK;
}

static snap_status cpu_probe_once(mla_backend *base, mla_probe_rates *out, snap_err *err) {
    cpu_backend *be = (cpu_backend *)base;
    mla_ceilings unused = {0};
    snap_status st = be->measured ? SNAP_OK : cpu_ceilings(base, kFirstProbeSeconds, &unused, err);
    if (st == SNAP_OK)
        cpu_probe_probe_once(be->probe, out, be->pool);
    return st;
}

static const mla_backend_ops kOps = {
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .sync = cpu_sync,
    .timer_start = cpu_timer_start,
    .timer_stop = cpu_timer_stop,
    .plan_create = cpu_plan_create,
    .plan_free = cpu_plan_free,
    .schedule = cpu_schedule,
    .run = cpu_run,
    .quant_q = cpu_quant_q,
    .append_kv = cpu_append_kv,
    .fetch_kv = cpu_fetch_kv,
    .ceilings = cpu_ceilings,
    .probe_once = cpu_probe_once,
    .host_memory = true,
};

static snap_status choose_isa(const cpu_isa **out, const char *name, snap_err *err) {
    bool any = !name || strcmp(name, "auto") == 0;
    for (const cpu_isa *const *isa = machine_isas(); *isa; isa++) {
        bool named = !any && strcmp(name, (*isa)->name) == 0;
        const char *lacks = named || (any && !(*isa)->emulated) ? (*isa)->lacks() : "";
        if (named && lacks)
            return err_set(err, SNAP_E_UNSUPPORTED, "isa '%s' cannot run here: %s", name, lacks);
        if (!lacks) {
            *out = *isa;
            return SNAP_OK;
        }
    }
    return err_set(err, SNAP_E_USAGE,
                   "unknown isa '%s'; one of auto, amx, avx512, avx512f, avx2, portable, "
                   "amx-emulated",
                   name);
}

snap_status cpu_backend_open(mla_backend **out, const mla_backend_options *opt, snap_err *err) {
    const cpu_isa *isa = NULL;
    snap_status st = choose_isa(&isa, opt->isa, err);
    if (st != SNAP_OK)
        return st;
    cpu_backend *be = calloc(1, sizeof *be);
    if (!be)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a backend");
    keep_memory();
    be->base.ops = &kOps;
    be->isa = isa;
    be->scale = opt->scale;
    be->pool = opt->pool;
    be->borrowed = opt->pool != NULL;
    if (!be->borrowed)
        st = parallel_create(&be->pool, opt->threads, err);
    if (st != SNAP_OK) {
        free(be);
        return st;
    }
    *out = (mla_backend *)be;
    return SNAP_OK;
}
