/* cpu.h - declarations that the files of the CPU backend share. */
#ifndef SNAPMLA_KERNELS_CPU_CPU_H
#define SNAPMLA_KERNELS_CPU_CPU_H

#include "base/parallel.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_probes.h"
#include "kernels/cpu/isa.h"

typedef struct {
    mla_backend base;
    const cpu_isa *isa;
    mla_scale scale;
    parallel *pool;
    bool borrowed;    /* the pool belongs to the caller */
    cpu_probe *probe; /* NULL until the first measurement of ceilings or rates */
    bool measured;    /* the probe has found its fastest loops */
    int64_t started_ns;
} cpu_backend;

/* Allocates memory aligned to MLA_ALIGN, to be released with free(). NULL if there is not
 * enough. */
void *cpu_memory(size_t bytes);

/* The length of sequence @b, clamped to 0 .. the tokens that the block table and the plan's
 * capacity allow. */
int64_t cpu_length(const mla_plan *plan, const mla_step *step, int b);

/* step.c: plan, schedule, run */
snap_status cpu_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                            snap_err *err);
void cpu_plan_free(mla_plan *base);
snap_status cpu_schedule(mla_plan *base, const mla_step *step, snap_err *err);
snap_status cpu_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, snap_err *err);

/* rows.c: the dataflow operations */
snap_status cpu_quant_q(mla_backend *base, int64_t rows, int d_c, int d_r, const void *q, void *q8,
                        void *q_rope, float *q_scale, snap_err *err);
snap_status cpu_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                          const void *kv, snap_err *err);
snap_status cpu_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                         int64_t first, int64_t count, void *kv, snap_err *err);

#endif
